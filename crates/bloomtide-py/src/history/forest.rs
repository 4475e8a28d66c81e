//! `HistoryForest` and `HistoryPlan` for Python: which segments answer for a range, and what they say.

use super::digests::Digests;
use super::segment::HistorySegment;
use crate::errors::{in_segment, to_python};
use crate::key::with_key;
use crate::keys::to_numpy;
use crate::python::*;
use crate::structure::getters;
use bloomtide_core::Error;
use bloomtide_core::history::{Forest, Known, RangeCounts, RangePlan};
use std::sync::Mutex;

/// Upper, inner and estimate.
type Triple = (u64, u64, f64);

fn triple(counts: RangeCounts) -> Triple {
    (counts.upper, counts.inner, counts.estimate)
}

/// The sealed segments of a store whose rows end by time. It opens no file.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct HistoryForest {
    core: Mutex<Forest>,
}

#[pymethods]
impl HistoryForest {
    #[new]
    fn py_new() -> Self {
        HistoryForest { core: Mutex::default() }
    }

    /// Adds a segment, or says anew what is known of it.
    fn insert(
        &self,
        id: u64,
        parent: Option<u64>,
        span: (i64, i64),
        seen: (i64, i64),
        rows: usize,
        events: u64,
    ) {
        locked(&self.core).insert(Known { id, parent, span, seen, rows, events });
    }

    /// Removes a segment.
    fn remove(&self, id: u64) {
        locked(&self.core).remove(id);
    }

    /// Gives a segment its bytes, or takes them away.
    fn set_segment(&self, id: u64, segment: Option<&Bound<'_, HistorySegment>>) {
        let segment = segment.map(|segment| segment.get().share());
        locked(&self.core).set_segment(id, segment);
    }

    /// Whether a segment cannot be asked.
    fn set_damaged(&self, id: u64, damaged: bool) {
        locked(&self.core).set_damaged(id, damaged);
    }

    /// What to read for the range `[start, end)`.
    fn plan(&self, start: i64, end: i64) -> HistoryPlan {
        HistoryPlan { core: locked(&self.core).plan(start, end) }
    }
}

/// What to read of the sealed segments for a range.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct HistoryPlan {
    core: RangePlan,
}

#[pymethods]
impl HistoryPlan {
    /// How many times a segment is asked.
    fn __len__(&self) -> usize {
        self.core.terms()
    }

    /// The finest segments that are read, each with whether all of it is covered.
    fn finest(&self) -> Vec<(u64, bool)> {
        self.core.finest().collect()
    }

    /// How many events there are of all keys.
    fn events(&self) -> Triple {
        triple(self.core.events())
    }

    /// How often a key came.
    fn count(&self, key: &Object<'_>) -> PyResult<Triple> {
        let counted = with_key(key, None, |key| self.core.count(|hasher| key.hash(hasher).mark()))?;
        counted.map(triple).map_err(|failed| damage(key.py(), failed))
    }

    /// The same for each key; 0 for rows without one.
    fn count_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, Digests>,
    ) -> PyResult<(Object<'py>, Object<'py>, Object<'py>)> {
        let keys = keys.get();
        self.core.hashers().try_for_each(|hasher| keys.require(py, hasher))?;
        let counted = py.detach(|| -> Result<Vec<RangeCounts>, (u64, Error)> {
            let count = |mark| self.core.count(|_| mark);
            keys.marks().iter().map(|mark| mark.map_or(Ok(RangeCounts::default()), count)).collect()
        });
        let counts = counted.map_err(|failed| damage(py, failed))?;
        let whole =
            |of: fn(&RangeCounts) -> u64| to_numpy(py, &counts.iter().map(of).collect::<Vec<_>>());
        let estimates: Vec<f64> = counts.iter().map(|counts| counts.estimate).collect();
        Ok((
            whole(|counts| counts.upper)?,
            whole(|counts| counts.inner)?,
            to_numpy(py, &estimates)?,
        ))
    }
}

/// The error that says which segment is damaged.
fn damage(py: Python<'_>, (id, error): (u64, Error)) -> PyErr {
    in_segment(py, to_python(py, error), id)
}

getters!(HistoryPlan, this =>
    /// How many rows are read.
    rows: usize = this.core.rows;
    /// How many of them are partial and have no finer ones.
    partial: usize = this.core.partial;
    /// Times that cannot be read.
    missing: Vec<(i64, i64)> = this.core.missing.clone();
    /// Segments that must be mapped before the plan can be finished.
    unplanned: Vec<u64> = this.core.unplanned.clone();
    /// Segments that must be mapped before a key can be asked for.
    unread: Vec<u64> = this.core.unread().collect();
);
