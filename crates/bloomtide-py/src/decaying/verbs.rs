//! The batch verbs of a time-decaying filter.

use crate::errors::parameter;
use crate::keys::Batch;
use crate::weights::Weights;
use bloomtide_core::filters::{Epochs, When};
use bloomtide_core::{Crew, Error, Hasher, KeySource, TimeDecayingBloomFilter as Core};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

type Outcome = Result<(), (usize, Error)>;

/// When the rows of a batch happened, and when those that run next.
pub(crate) enum RowTimes {
    One(When),
    Each { all: Vec<i64>, next: Mutex<Vec<i64>> },
}

impl RowTimes {
    pub(crate) fn each(all: Vec<i64>) -> Self {
        RowTimes::Each { all, next: Mutex::default() }
    }

    /// The keys, with as many rows as there are instants.
    pub(crate) fn fit<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let RowTimes::Each { all, .. } = self else { return Ok(keys.clone()) };
        let py = keys.py();
        // What has no length is taken whole, or it could not be compared before the first key.
        let keys = if keys.len().is_ok() {
            keys.clone()
        } else {
            py.get_type::<PyList>().call1((keys,))?
        };
        let rows = keys.len()?;
        if rows == all.len() {
            return Ok(keys);
        }
        let got = format!("{} instants for {rows} keys", all.len());
        Err(parameter(py, "at", got, "as many as keys, or one", "give one instant for each key"))
    }

    fn choose(&self, rows: &[usize]) {
        if let RowTimes::Each { all, next } = self {
            let chosen = rows.iter().map(|row| all.get(*row).copied().unwrap_or(0)).collect();
            *next.lock().unwrap_or_else(PoisonError::into_inner) = chosen;
        }
    }

    /// Runs `work` with the times of the rows that were chosen.
    fn with<T>(&self, work: impl FnOnce(Epochs<'_>) -> T) -> T {
        match self {
            RowTimes::One(when) => work(Epochs::One(*when)),
            RowTimes::Each { next, .. } => {
                let epochs =
                    std::mem::take(&mut *next.lock().unwrap_or_else(PoisonError::into_inner));
                work(Epochs::Each(&epochs))
            }
        }
    }
}

/// Adds keys.
pub(crate) struct AddTimed<'a> {
    pub(crate) filter: &'a Core,
    pub(crate) writers: &'a AtomicUsize,
    pub(crate) weights: Option<Weights>,
    pub(crate) times: RowTimes,
}

/// Asks for counts, times `scale`.
pub(crate) struct AskTimed<'a> {
    pub(crate) filter: &'a Core,
    pub(crate) times: RowTimes,
    pub(crate) scale: f64,
}

/// Asks whether keys are inside.
pub(crate) struct AskPresent<'a> {
    pub(crate) filter: &'a Core,
    pub(crate) times: RowTimes,
}

impl Batch for AddTimed<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn writers(&self) -> Option<&AtomicUsize> {
        Some(self.writers)
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        let rows: Vec<usize> = rows.collect();
        self.times.choose(&rows);
        if let Some(weights) = &self.weights {
            weights.choose(&mut rows.into_iter());
        }
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        // Time goes in order, so threads would only wait for each other.
        let _ = crew;
        let counts = self.weights.as_ref().map(Weights::next);
        self.times.with(|times| {
            let added = self.filter.add_many(keys, counts.as_deref(), times, out);
            added.map_err(|(row, refused)| (row, self.filter.refusal(refused)))
        })
    }
}

impl Batch for AskTimed<'_> {
    type Answer = f64;
    const DTYPE: &'static str = "float64";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        self.times.choose(&rows.collect::<Vec<_>>());
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [f64], crew: &mut Crew) -> Outcome {
        let answer = |units| self.filter.count_of(units) * self.scale;
        self.times.with(|times| self.filter.ask_many(keys, times, out, crew, answer));
        Ok(())
    }
}

impl Batch for AskPresent<'_> {
    type Answer = bool;
    const DTYPE: &'static str = "bool";

    fn hasher(&self) -> Hasher {
        *self.filter.hasher()
    }

    fn choose(&self, rows: &mut dyn Iterator<Item = usize>) {
        self.times.choose(&rows.collect::<Vec<_>>());
    }

    fn run<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], crew: &mut Crew) -> Outcome {
        self.times.with(|times| self.filter.ask_many(keys, times, out, crew, |units| units != 0));
        Ok(())
    }
}
