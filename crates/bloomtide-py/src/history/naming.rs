//! The keys of a batch: first only their marks, and at the end those few that are kept by name.
//!
//! A batch goes in whole or not at all, so all keys are hashed before the first is added. Only then is it known
//! which of them are frequent, and these are looked up by their rows.

use super::digests::Digests;
use crate::errors::{nothing_added, null_key};
use crate::key::with_key;
use crate::keys::{self, Needs, Options, Part, Verb};
use crate::python::*;
use bloomtide_core::history::{Buffer, Mark, Wanted};
use bloomtide_core::{Crew, Hasher};
use pyo3::types::{PyList, PyTuple};
use std::sync::Mutex;

/// The marks of a batch.
pub(super) struct Marks {
    /// One for each row that has a key.
    pub(super) all: Vec<Mark>,
    /// Which rows these are, if not all.
    rows: Option<Vec<usize>>,
    /// How many rows there are.
    pub(super) total: usize,
}

impl Marks {
    /// Of every row, or of none if one is no key.
    pub(super) fn of(hasher: Hasher, keys: &Object<'_>, options: Options) -> PyResult<Self> {
        let py = keys.py();
        let hashed = Digests::of(keys, hasher, options).map_err(|error| {
            let null = error.value(py).get_type().name().is_ok_and(|name| name == "NullKeyError");
            match error.value(py).getattr("index").and_then(|row| row.extract()) {
                Ok(row) if null => null_key(py, row, true),
                _ => nothing_added(py, error),
            }
        })?;
        let (hashed, total) = (hashed.marks(), hashed.marks().len());
        let all: Vec<Mark> = hashed.iter().filter_map(|mark| *mark).collect();
        let present = |(row, mark): (usize, &Option<Mark>)| mark.map(|_| row);
        let some = all.len() < total;
        let rows = some.then(|| hashed.iter().enumerate().filter_map(present).collect());
        Ok(Marks { all, rows, total })
    }

    /// What belongs to the rows that have a key, out of what belongs to all.
    pub(super) fn chosen<T: Copy>(&self, all: Vec<T>) -> Vec<T> {
        match &self.rows {
            Some(rows) => rows.iter().filter_map(|row| all.get(*row).copied()).collect(),
            None => all,
        }
    }

    /// The row of the batch that the i-th mark is of.
    fn row(&self, i: usize) -> usize {
        self.rows.as_ref().map_or(i, |rows| rows[i])
    }
}

/// Names the keys that are wanted of a batch that was added.
pub(super) fn name(
    buffer: &Mutex<Buffer>,
    keys: &Object<'_>,
    marks: &Marks,
    mut wanted: Vec<Wanted>,
    options: Options,
) -> PyResult<()> {
    let py = keys.py();
    wanted.iter_mut().for_each(|each| each.row = marks.row(each.row));
    wanted.sort_unstable_by_key(|each| each.row);
    let listed = keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>();
    let outcome = if listed {
        // Keys are copied while the interpreter is held: only it keeps them in place.
        wanted.iter().try_for_each(|each| {
            let Ok(item) = keys.get_item(each.row) else { return Ok(()) };
            with_key(&item, None, |key| locked(buffer).name(*each, key))?
                .map_err(|error| crate::errors::to_python(py, error))
        })
    } else {
        let name = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
            let mut buffer = locked(buffer);
            let mut wanted = wanted.iter().peekable();
            for at in 0..part.keys.len() {
                let row = part.row(at);
                while wanted.next_if(|each| each.row < row).is_some() {}
                while let Some(each) = wanted.next_if(|each| each.row == row) {
                    let Some(key) = part.keys.key(at) else { continue };
                    buffer.name(*each, key).map_err(|error| (at, error))?;
                }
                if wanted.peek().is_none() {
                    break;
                }
            }
            Ok(())
        };
        let hasher = locked(buffer).plan().hasher;
        keys::answers(&Verb::new(&hasher, &name).needs(Needs::Keys), keys, options).map(drop)
    };
    locked(buffer).forget_unnamed(&wanted);
    outcome
}
