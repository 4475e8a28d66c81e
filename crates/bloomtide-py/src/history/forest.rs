//! `HistoryForest` and `HistoryPlan` for Python: which rows answer for a range, and what they say.
//!
//! Both call Python in the middle of a question, to open files: so a forest is locked by one thread at a time, and
//! another one is refused instead of waiting with the interpreter.

use super::buffer::HistoryBuffer;
use super::digests::Digests;
use super::segment::HistorySegment;
use crate::errors::{OrRaise, in_segment, to_python};
use crate::key::{hash_key, to_object};
use crate::keys::to_numpy;
use crate::python::*;
use bloomtide_core::Error;
use bloomtide_core::history::{Files, Forest, Known, Mark, RangeCounts, RangePlan, Segment};
use pyo3::types::PyList;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Upper, inner, estimate and error.
type Counts = (u64, u64, f64, f64);
/// The same of many, as arrays.
type Arrays<'py> = (Object<'py>, Object<'py>, Object<'py>);
/// Begins and ends.
type Times = Vec<(i64, i64)>;

fn plain(counts: RangeCounts) -> Counts {
    (counts.upper, counts.inner, counts.estimate, counts.error)
}

fn arrays<'py>(py: Python<'py>, counts: &[RangeCounts]) -> PyResult<Arrays<'py>> {
    let whole =
        |of: fn(&RangeCounts) -> u64| to_numpy(py, &counts.iter().map(of).collect::<Vec<_>>());
    let estimates: Vec<f64> = counts.iter().map(|counts| counts.estimate).collect();
    Ok((whole(|it| it.upper)?, whole(|it| it.inner)?, to_numpy(py, &estimates)?))
}

/// The store's files: `open(number)` answers with a `HistorySegment`, `give_up(number, error)` raises.
struct Opener<'a, 'py>(&'a Object<'py>);

impl Files for Opener<'_, '_> {
    type Failed = PyErr;

    fn open(&mut self, id: u64) -> PyResult<Arc<Segment>> {
        let opened = self.0.call_method1("open", (id,))?;
        Ok(opened.cast::<HistorySegment>()?.get().share())
    }

    fn damaged(&mut self, id: u64, error: Error) -> PyErr {
        let py = self.0.py();
        let error = in_segment(py, to_python(py, error), id);
        match self.0.call_method1("give_up", (id, error.value(py))) {
            Ok(_) => error,
            Err(raised) => raised,
        }
    }
}

/// The sealed segments of a store. Who asks says where their files are.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct HistoryForest {
    core: Mutex<Forest>,
}

/// The lock of a mutex, if no other thread has it.
fn alone<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    let busy = || Error::Invariant { invariant: "a forest is asked by one at a time".into() };
    mutex.try_lock().map_err(|_| busy()).or_raise(py)
}

impl HistoryForest {
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Forest>> {
        alone(py, &self.core)
    }
}

#[pymethods]
impl HistoryForest {
    #[new]
    #[pyo3(signature = (*, by_order=false, mapped=16_384))]
    fn py_new(by_order: bool, mapped: usize) -> Self {
        HistoryForest { core: Mutex::new(Forest::new(by_order, mapped)) }
    }

    /// Adds a segment, or says anew what is known of it.
    #[expect(clippy::too_many_arguments, reason = "a row of the catalogue")]
    fn insert(
        &self,
        py: Python<'_>,
        id: u64,
        parent: Option<u64>,
        place: i64,
        span: (i64, i64),
        seen: (i64, i64),
        rows: usize,
        events: u64,
    ) -> PyResult<()> {
        self.lock(py)?.insert(Known { id, parent, place, span, seen, rows, events });
        Ok(())
    }

    /// Removes a segment.
    fn remove(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.lock(py)?.remove(id);
        Ok(())
    }

    /// Whether a segment cannot be asked.
    fn set_damaged(&self, py: Python<'_>, id: u64, damaged: bool) -> PyResult<()> {
        self.lock(py)?.set_damaged(id, damaged);
        Ok(())
    }

    /// How many files are mapped.
    #[getter]
    fn mapped(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.mapped())
    }

    /// What to read for the range `[start, end)`.
    #[pyo3(signature = (buffer, start, end, files, *, rollups=true))]
    fn plan(
        this: &Bound<'_, Self>,
        buffer: Py<HistoryBuffer>,
        start: i64,
        end: i64,
        files: Object<'_>,
        rollups: bool,
    ) -> PyResult<HistoryPlan> {
        let mut forest = this.get().lock(this.py())?;
        let mut plan = forest.plan(start, end, rollups, &mut Opener(&files))?;
        plan.add_open(&buffer.get().write(), start, end);
        let (forest, files) = (this.clone().unbind(), files.unbind());
        Ok(HistoryPlan { core: Mutex::new(plan), forest, buffer, files })
    }

    /// A key's counts in steps from `start` on, as arrays, and the times that cannot be read.
    #[expect(clippy::too_many_arguments, reason = "a question and where its files are")]
    fn series<'py>(
        &self,
        py: Python<'py>,
        buffer: &Bound<'py, HistoryBuffer>,
        key: &Object<'py>,
        start: i64,
        end: i64,
        step: i64,
        files: &Object<'py>,
    ) -> PyResult<(Arrays<'py>, Times)> {
        let mark = hash_key(buffer.get().hasher(), key, None)?.mark();
        let steps = (start..end).step_by(step.max(1) as usize);
        let edges: Vec<i64> = steps.chain(std::iter::once(end)).collect();
        let open = buffer.get().write().counts_of(mark);
        let (sums, missing) = self.lock(py)?.series(mark, &edges, &open, &mut Opener(files))?;
        Ok((arrays(py, &sums)?, missing))
    }

    /// Upper, inner and estimate of a key's events weighed by `weigh(first, last)`, which says the weights of the
    /// youngest and of the oldest between two times; how many rows that took; the times that cannot be read.
    fn decayed<'py>(
        &self,
        py: Python<'py>,
        buffer: &Bound<'py, HistoryBuffer>,
        key: &Object<'py>,
        tolerance: f64,
        weigh: &Object<'py>,
        files: &Object<'py>,
    ) -> PyResult<((f64, f64, f64), usize, Times)> {
        let mark = hash_key(buffer.get().hasher(), key, None)?.mark();
        let open = buffer.get().write().counts_of(mark);
        let mut weigh = |first, last| weigh.call1((first, last))?.extract::<(f64, f64)>();
        let (sum, missing) =
            self.lock(py)?.decayed(mark, &open, tolerance, &mut weigh, &mut Opener(files))?;
        Ok(((sum.upper, sum.inner, sum.estimate), sum.rows, missing))
    }
}

/// What to read for a range, in sealed and open segments.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct HistoryPlan {
    core: Mutex<RangePlan>,
    forest: Py<HistoryForest>,
    buffer: Py<HistoryBuffer>,
    files: Py<PyAny>,
}

impl HistoryPlan {
    /// Asks each piece of the plan when its files are open.
    fn ask(
        &self,
        py: Python<'_>,
        mut ask: impl FnMut(&RangePlan, &Range<usize>) -> Result<(), (u64, Error)>,
    ) -> PyResult<()> {
        let mut plan = alone(py, &self.core)?;
        let (forest, files) = (self.forest.get(), self.files.bind(py));
        let pieces = plan.pieces(&*forest.lock(py)?);
        for piece in &pieces {
            plan.open(piece, &mut *forest.lock(py)?, &mut Opener(files))?;
            let answered = ask(&plan, piece);
            plan.close(piece);
            if let Err((id, error)) = answered {
                forest.lock(py)?.set_damaged(id, true);
                return Err(Opener(files).damaged(id, error));
            }
        }
        Ok(())
    }

    fn sums(&self, py: Python<'_>, marks: &[Option<Mark>]) -> PyResult<Vec<RangeCounts>> {
        let mut sums = vec![RangeCounts::default(); marks.len()];
        let buffer = self.buffer.get();
        self.ask(py, |plan, piece| {
            let mut count = || plan.count(piece, &buffer.write(), marks, &mut sums);
            if marks.len() == 1 { count() } else { py.detach(count) }
        })?;
        Ok(sums)
    }
}

#[pymethods]
impl HistoryPlan {
    /// How many events there are of all keys.
    fn events(&self, py: Python<'_>) -> PyResult<Counts> {
        Ok(plain(alone(py, &self.core)?.events()))
    }

    /// How often a key came.
    fn count(&self, key: &Object<'_>) -> PyResult<Counts> {
        let mark = hash_key(self.buffer.get().hasher(), key, None)?.mark();
        Ok(plain(self.sums(key.py(), &[Some(mark)])?[0]))
    }

    /// The same for each key; 0 for rows without one.
    fn count_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, Digests>,
    ) -> PyResult<Arrays<'py>> {
        keys.get().require(py, self.buffer.get().hasher())?;
        arrays(py, &self.sums(py, keys.get().marks())?)
    }

    /// Of each of the finest segments that are read: its most frequent keys with their counts, the most that any
    /// other key has, and whether all of it lies in the range.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyList>, u64, bool)>> {
        let (mut found, buffer) = (Vec::new(), self.buffer.get());
        self.ask(py, |plan, piece| {
            found.extend(plan.names(piece, &buffer.write())?);
            Ok(())
        })?;
        let list = |(names, unlisted, covered): (Vec<bloomtide_core::history::Named>, _, _)| {
            let named = names.iter().map(|named| (to_object(py, named.key.view()), named.count));
            Ok((PyList::new(py, named)?, unlisted, covered))
        };
        found.into_iter().map(list).collect()
    }

    /// How many rows are read, how many of them are partial and have no finer ones, and the times that cannot be
    /// read.
    fn about(&self, py: Python<'_>) -> PyResult<(usize, usize, Times)> {
        let plan = alone(py, &self.core)?;
        Ok((plan.rows, plan.partial, plan.missing.clone()))
    }
}
