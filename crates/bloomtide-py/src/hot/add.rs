//! `HotList.add_many`: keys with their counts and instants.

use super::HotList;
use crate::errors::parameter;
use crate::instants::Instants;
use crate::keys::Batch;
use crate::weights::Weights;
use bloomtide_core::{Crew, Error, Hasher, KeySource, Times};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Adds keys with their counts and instants.
pub(super) struct AddHot<'a> {
    pub(super) list: &'a HotList,
    pub(super) weights: Option<Weights>,
    pub(super) instants: Instants,
    /// Whether the one instant is what the clock said; if so, what the list made of it.
    pub(super) by_clock: Option<OnceLock<f64>>,
    /// The instants of the rows that run next.
    pub(super) next: Mutex<Vec<f64>>,
}

impl Batch for AddHot<'_> {
    type Answer = ();
    // Nobody asks for them.
    const DTYPE: &'static str = "V0";
    const KEEPS: bool = true;

    fn hasher(&self) -> Hasher {
        self.list.hasher
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        if self.weights.is_none() && matches!(self.instants, Instants::One(_)) {
            return;
        }
        let rows: Vec<usize> = rows.collect();
        if let Some(weights) = &self.weights {
            weights.choose(&mut rows.iter().copied());
        }
        if let Instants::Each(all) = &self.instants {
            let chosen = rows.iter().filter_map(|row| all.get(*row).copied()).collect();
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) = chosen;
        }
    }

    fn run<S: KeySource + ?Sized>(
        &self,
        keys: &S,
        _: &mut [()],
        _: &mut Crew,
    ) -> Result<(), (usize, Error)> {
        let counts = self.weights.as_ref().map(Weights::next);
        let next = std::mem::take(&mut *self.next.lock().unwrap_or_else(PoisonError::into_inner));
        let mut core = self.list.write();
        let times = match (&self.instants, &self.by_clock) {
            (Instants::Each(_), _) => Times::Each(&next),
            (Instants::One(now), Some(at)) => Times::All(*at.get_or_init(|| core.by_clock(*now))),
            (Instants::One(at), None) => Times::All(*at),
        };
        core.add_many(keys, counts.as_deref(), times)
    }
}

/// The keys, if there are as many as instants; what has no length is taken whole to be counted.
pub(crate) fn as_many<'py>(
    keys: &Bound<'py, PyAny>,
    instants: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let keys =
        if keys.len().is_ok() { keys.clone() } else { py.get_type::<PyList>().call1((keys,))? };
    let rows = keys.len()?;
    if rows == instants {
        return Ok(keys);
    }
    let got = format!("{instants} instants for {rows} keys");
    Err(parameter(py, "at", got, "one instant, or as many as keys", "give one for each key"))
}
