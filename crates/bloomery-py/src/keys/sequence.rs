//! Lists, tuples and iterables of Python objects.
//!
//! A chunk of keys is hashed while the interpreter is held, because only it keeps the objects alive
//! and in place; then it is let go, and the core applies the digests. Taking a reference to every key
//! instead, so that threads could hash without the interpreter, was slower: it writes to
//! every object's header twice, and fresh strings lie all over memory. For the same reason the
//! headers of the keys ahead are prefetched while one is hashed. Most of the work is done then, so
//! more threads would only cost: `threads` is for keys that can be hashed without the interpreter.

use super::kept::{Copies, Hashed};
use super::{Answers, Batch, Options};
use crate::errors::{null_key, with_added};
use crate::key::with_key;
use bloomery_core::{Hasher, KeyHash};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyList;

/// Keys hashed at once: their digests stay in the cache, and another Python thread waits for the
/// interpreter no longer than half a millisecond.
const CHUNK: usize = 1 << 15;
/// How many keys ahead headers are prefetched.
const AHEAD: usize = 12;

/// The keys of a chunk, hashed.
#[derive(Default)]
struct Chunk {
    digests: Vec<KeyHash>,
    /// Rows without a key, as the number of digests before each; empty but for `nulls="skip"`.
    nulls: Vec<usize>,
    /// The keys, for a batch that keeps them.
    copies: Option<Copies>,
}

impl Chunk {
    fn new<B: Batch>() -> Self {
        Chunk { copies: B::KEEPS.then(Copies::default), ..Chunk::default() }
    }

    fn rows(&self) -> usize {
        self.digests.len() + self.nulls.len()
    }

    fn clear(&mut self) {
        self.digests.clear();
        self.nulls.clear();
        self.copies.iter_mut().for_each(Copies::clear);
    }

    /// Hashes one more key; `row` is its place in the batch.
    #[inline(always)]
    fn push(
        &mut self,
        hasher: &Hasher,
        key: &Bound<'_, PyAny>,
        row: usize,
        options: Options,
    ) -> PyResult<()> {
        if key.is_none() {
            if !options.skip_nulls {
                return Err(null_key(key.py(), row));
            }
            self.nulls.push(self.digests.len());
            return Ok(());
        }
        let Chunk { digests, copies, .. } = self;
        with_key(key, Some(row), |key| {
            digests.push(key.hash(hasher));
            if let Some(copies) = copies {
                copies.push(key);
            }
        })
    }

    /// Applies what was hashed, and tells the error that ended it, if any, how far the batch came.
    fn apply<B: Batch>(
        &self,
        answers: &mut Answers<B>,
        py: Python<'_>,
        batch: &B,
        outcome: PyResult<()>,
    ) -> PyResult<()> {
        if let Some(copies) = &self.copies {
            let keys = Hashed { digests: &self.digests, copies };
            answers.extend_kept(py, batch, &keys, &self.present(), self.rows())?;
        } else if self.nulls.is_empty() {
            answers.extend(py, batch, self.digests.as_slice(), 1)?;
        } else {
            answers.extend_some(py, batch, &self.with_nulls(), 1)?;
        }
        outcome.map_err(|error| with_added(py, error, answers.rows()))
    }

    /// The rows that have a key.
    fn present(&self) -> Vec<usize> {
        let mut nulls = self.nulls.iter().peekable();
        let mut skipped = 0;
        (0..self.digests.len())
            .map(|key| {
                while nulls.next_if(|before| **before <= key).is_some() {
                    skipped += 1;
                }
                key + skipped
            })
            .collect()
    }

    fn with_nulls(&self) -> Vec<Option<KeyHash>> {
        let mut rows: Vec<_> = self.digests.iter().copied().map(Some).collect();
        for before in self.nulls.iter().rev() {
            rows.insert(*before, None);
        }
        rows
    }
}

/// A list or a tuple.
pub(super) fn run<B: Batch>(
    batch: &B,
    keys: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Answers<B>> {
    let py = keys.py();
    let hasher = batch.hasher();
    let len = keys.len()?;
    let mut answers = Answers::with_capacity(len);
    let mut chunk = Chunk::new::<B>();
    while answers.rows() < len {
        chunk.clear();
        let start = answers.rows();
        let end = len.min(start + CHUNK);
        // Without a global lock, the list's own keeps other threads from changing it meanwhile.
        let outcome = with_critical_section(keys, || {
            (start..end).try_for_each(|row| {
                let key = item(keys, row, len)?;
                if row + AHEAD < end {
                    prefetch(item(keys, row + AHEAD, len)?);
                }
                // SAFETY: the list holds a reference to the key; `with_key` takes its own one before
                // it calls anything that could change the list.
                let key = unsafe { Borrowed::from_ptr(py, key) };
                chunk.push(&hasher, &key, row, options)
            })
        });
        chunk.apply(&mut answers, py, batch, outcome)?;
    }
    Ok(answers)
}

/// An item of a list or tuple that should still have `len` of them: a key's own code, or another
/// thread while the interpreter was let go, may have changed a list.
#[inline(always)]
fn item(keys: &Bound<'_, PyAny>, row: usize, len: usize) -> PyResult<*mut ffi::PyObject> {
    let object = keys.as_ptr();
    // SAFETY: the caller has a list or a tuple; the size is compared before the item is read.
    unsafe {
        if ffi::Py_SIZE(object) as usize != len || row >= len {
            return Err(PyRuntimeError::new_err("keys changed size during the batch"));
        }
        if keys.is_exact_instance_of::<PyList>() {
            return Ok(*(*object.cast::<ffi::PyListObject>()).ob_item.add(row));
        }
        let items = &raw const (*object.cast::<ffi::PyTupleObject>()).ob_item;
        Ok(*items.cast::<*mut ffi::PyObject>().add(row))
    }
}

#[inline(always)]
fn prefetch(object: *const ffi::PyObject) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(object.cast(), _MM_HINT_T0);
        // A URL's text reaches into the next line.
        _mm_prefetch(object.cast::<i8>().wrapping_add(64), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

/// Anything that can be iterated over.
pub(super) fn run_iterable<B: Batch>(
    batch: &B,
    keys: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Answers<B>> {
    let py = keys.py();
    let hasher = batch.hasher();
    let mut iterator = keys.try_iter().map_err(|_| {
        let kind = keys.get_type().qualname().map_or_else(|_| "?".to_owned(), |n| n.to_string());
        let hint = "give a list, an iterator, a NumPy array or an Arrow array of keys";
        crate::errors::parameter(py, "keys", kind, "an iterable of keys", hint)
    })?;
    let mut answers = Answers::with_capacity(0);
    let mut chunk = Chunk::new::<B>();
    loop {
        chunk.clear();
        let start = answers.rows();
        let outcome = iterator.by_ref().take(CHUNK).try_for_each(|key| {
            let row = start + chunk.rows();
            chunk.push(&hasher, &key?, row, options)
        });
        if chunk.rows() == 0 && outcome.is_ok() {
            return Ok(answers);
        }
        chunk.apply(&mut answers, py, batch, outcome)?;
    }
}
