//! `HistoryBuffer` for Python: the open segments of a history and their journal.
//!
//! One lock around all of it. Nobody asks for the interpreter while holding it, so waiting for it cannot
//! deadlock.

use super::naming::{self, Marks};
use super::sealed;
use super::segment::row_arrays;
use crate::durable::RecordScan;
use crate::errors::{OrRaise, parameter};
use crate::instants::{Instants, micros};
use crate::key::{hash_key, to_object, with_key};
use crate::keys::{Options, to_numpy};
use crate::python::*;
use crate::records::new_record;
use crate::structure::{by_words, getters};
use crate::weights;
use crate::words::Words;
use bloomtide_core::Hasher;
use bloomtide_core::history::{Buffer, BufferPlan, Moments, RowsBy, Seen, in_threads};
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};
use std::sync::{Mutex, MutexGuard};

/// What a history has not sealed yet: exact counts by key and row, and the records of them.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct HistoryBuffer {
    core: Mutex<Buffer>,
    hasher: Hasher,
}

impl HistoryBuffer {
    pub(crate) fn write(&self) -> MutexGuard<'_, Buffer> {
        locked(&self.core)
    }

    pub(crate) fn hasher(&self) -> &Hasher {
        &self.hasher
    }
}

by_words!(
    HistoryBuffer,
    #[new]
    py_new,
    "(*, window=None, arrivals=None, rows, hash='xxh3', seed=0, secret=None, names=256, journal=True)",
    |_cls, words| {
        let py = words.py;
        let rows_by = match (words.get("window", None)?, words.get("arrivals", None)?) {
            (Some(window), None) => RowsBy::Time(window),
            (None, Some(arrivals)) => RowsBy::Arrivals(arrivals),
            _ => {
                let hint = "rows end by time or by arrivals";
                return Err(parameter(py, "window", "both or none", "given, or `arrivals`", hint));
            }
        };
        let (rows, names) = (words.get("rows", 0)?, words.get("names", 256)?);
        let hasher = words.hasher()?;
        let plan = BufferPlan { rows_by, rows, names, hasher };
        let core = Buffer::new(plan).or_raise(py)?;
        let core = if words.get("journal", true)? { core } else { core.without_journal() };
        let core = Mutex::new(core);
        Ok(Py::new(py, HistoryBuffer { core, hasher })?.into_any())
    }
);

#[pymethods]
impl HistoryBuffer {
    // ---- adding

    /// Adds `count` occurrences of the key at an instant in microseconds.
    fn add(&self, key: &Object<'_>, count: u64, at: i64) -> PyResult<()> {
        with_key(key, None, |key| self.write().add(key, count, at))?.or_raise(key.py())
    }

    /// Adds every key with its count and instant: all of them, or none if one is refused. How many.
    #[pyo3(signature = (keys, counts=None, *, at, nulls="refuse"))]
    fn add_many(
        &self,
        keys: &Object<'_>,
        counts: Option<&Object<'_>>,
        at: &Object<'_>,
        nulls: &str,
    ) -> PyResult<usize> {
        let py = keys.py();
        let options = Options::parse(py, nulls)?;
        let at = micros(at, "at")?;
        let (keys, counts) = weights::of(keys, counts)?;
        // Frequent keys are looked up again; what can be gone through only once keeps its names for itself.
        let speaks_arrow =
            keys.hasattr("__arrow_c_stream__")? || keys.hasattr("__arrow_c_array__")?;
        let keys = if speaks_arrow || keys.len().is_ok() {
            keys
        } else {
            py.get_type::<PyList>().call1((keys,))?
        };
        let marks = Marks::of(self.hasher, &keys, options)?;
        require_rows(py, &at, &marks)?;
        let counts = counts.map(|counts| marks.chosen(counts));
        let at = match at {
            Instants::One(at) => Instants::One(at),
            Instants::Each(all) => Instants::Each(marks.chosen(all)),
        };
        let moments = match &at {
            Instants::One(at) => Moments::All(*at),
            Instants::Each(all) => Moments::Each(all),
        };
        let added = py.detach(|| self.write().add_marks(&marks.all, counts.as_deref(), moments));
        let wanted = added.or_raise(py)?;
        if !wanted.is_empty() && keys.len().is_ok() {
            naming::name(&self.core, &keys, &marks, wanted, options)?;
        } else {
            self.write().forget_unnamed(&wanted);
        }
        Ok(marks.all.len())
    }

    /// Says what the clock shows, in seconds since 1970: what is later by more than a day counts as of it.
    fn clock_is_at(&self, seconds: f64) {
        self.write().clock_is_at(seconds);
    }

    /// Says how many events the store holds besides: all together are fewer than 2**62.
    fn set_sealed(&self, events: u64) {
        self.write().set_sealed(events);
    }

    // ---- the journal

    /// The payloads of the records of everything since the last time, for a journal.
    fn take_journal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        payloads(py, self.write().take_journal())
    }

    /// The same of a new journal that begins with what is here, but for segments that are being sealed.
    #[pyo3(signature = (*, without=Vec::new()), text_signature = "($self, *, without=())")]
    fn dump<'py>(&self, py: Python<'py>, without: Vec<i64>) -> PyResult<Bound<'py, PyList>> {
        payloads(py, py.detach(|| self.write().dump(&without)).or_raise(py)?)
    }

    /// Adds what the records of a journal have that the scan has not passed; how many events that are.
    fn replay(&self, py: Python<'_>, scan: &RecordScan) -> PyResult<u64> {
        let mut events = 0u64;
        let replay = |payload: &[u8]| {
            events = events.saturating_add(self.write().replay(payload)?);
            Ok::<(), bloomtide_core::Error>(())
        };
        py.detach(|| scan.drain(replay)).or_raise(py)?;
        Ok(events)
    }

    // ---- segments

    /// The open segments, in the order of time.
    fn segments<'py>(&self, py: Python<'py>) -> PyResult<Vec<Object<'py>>> {
        let found = {
            let core = self.write();
            let about = |(index, open): (i64, &bloomtide_core::history::OpenRows)| {
                let span = core.span(index)?;
                Ok((index, span, core.is_complete(index)?, open.entries(), open.seen()))
            };
            core.segments().map(about).collect::<bloomtide_core::Result<Vec<_>>>()
        };
        let made = found.or_raise(py)?.into_iter().map(|(index, span, complete, entries, seen)| {
            let (Seen { first, last, events }, (begin, end)) = (seen, span);
            new_record!(py, "OpenSegment" => index, begin, end, complete, entries, events, first, last)
        });
        made.collect()
    }

    /// The files of many segments, each of some open ones, of a level and with an error: those of one are as of
    /// `seal`. All stay as they are until they are dropped.
    #[pyo3(signature = (parts, *, gate_error=None))]
    fn seal_many<'py>(
        &self,
        py: Python<'py>,
        parts: Vec<(Vec<i64>, u8, f64)>,
        gate_error: Option<f64>,
    ) -> PyResult<Vec<Object<'py>>> {
        let goal = |error_rate| sealed::goal(error_rate, gate_error, self.hasher);
        let made = py.detach(|| {
            let core = self.write();
            let core: &Buffer = &core;
            in_threads(parts.len(), core.entries(), |part| {
                let (indexes, level, error_rate) = &parts[part];
                sealed::make(&goal(*error_rate), || core.contents(indexes, *level))
            })
        });
        let records = made.into_iter().zip(&parts);
        records.map(|(made, part)| made.or_raise(py)?.record(py, &goal(part.2))).collect()
    }

    /// The files of a segment. It stays as it is until it is dropped; meanwhile events may come.
    #[pyo3(signature = (index, *, error_rate, gate_error=None))]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        index: i64,
        error_rate: f64,
        gate_error: Option<f64>,
    ) -> Answer<'py> {
        let goal = sealed::goal(error_rate, gate_error, self.hasher);
        let made = py.detach(|| sealed::make(&goal, || self.write().contents(&[index], 0)));
        made.or_raise(py)?.record(py, &goal)
    }

    /// Forgets a segment, which was sealed.
    fn drop(&self, py: Python<'_>, index: i64) -> PyResult<()> {
        let dropped = self.write().drop_segment(index);
        dropped.or_raise(py)
    }

    /// Begin, end, first, last, events and windows of a segment's rows, as arrays.
    fn row_records<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyDict>> {
        let records = self.write().row_records(index);
        row_arrays(py, &records.or_raise(py)?)
    }

    // ---- asking; all of it is exact

    /// The key's count in every row of a segment.
    fn rows_of<'py>(&self, py: Python<'py>, index: i64, key: &Object<'py>) -> Answer<'py> {
        let mark = hash_key(&self.hasher, key, None)?.mark();
        let counted = {
            let core = self.write();
            core.row_records(index).and_then(|records| {
                let mut rows = vec![0u64; records.len()];
                core.segment(index)?
                    .rows_of(mark)
                    .for_each(|(row, count)| rows[row as usize] = count);
                Ok(rows)
            })
        };
        to_numpy(py, &counted.or_raise(py)?)
    }

    /// A segment's most frequent keys with their counts, and the largest count of all others.
    fn names<'py>(&self, py: Python<'py>, index: i64) -> PyResult<(Bound<'py, PyList>, u64)> {
        let listed = self.write().segment(index).map(|open| open.top());
        let (names, unlisted) = listed.or_raise(py)?;
        let named = names.iter().map(|named| (to_object(py, named.key.view()), named.count));
        Ok((PyList::new(py, named)?, unlisted))
    }

    fn __repr__(&self) -> String {
        let core = self.write();
        let BufferPlan { rows_by, rows, .. } = core.plan();
        format!("HistoryBuffer({rows_by}, rows={rows}, entries={})", core.entries())
    }
}

fn payloads(py: Python<'_>, all: Vec<Vec<u8>>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, all.iter().map(|payload| PyBytes::new(py, payload)))
}

/// Refuses instants that are not as many as keys.
fn require_rows(py: Python<'_>, at: &Instants<i64>, marks: &Marks) -> PyResult<()> {
    let rows = marks.total;
    match at {
        Instants::Each(all) if all.len() != rows => {
            let got = format!("{} instants for {rows} keys", all.len());
            let hint = "give one instant for each key";
            Err(parameter(py, "at", got, "as many as keys, or one", hint))
        }
        _ => Ok(()),
    }
}

getters!(HistoryBuffer, this =>
    /// Pairs of key and row that are held.
    entries: usize = this.write().entries();
    /// Bytes of memory, about.
    nbytes: u64 = this.write().bytes();
    /// Events that were later than the clock by more than a day.
    ahead: u64 = this.write().oddities().ahead;
    /// Events whose times are not believed yet; they are in their rows all the same.
    aside: usize = this.write().aside();
    /// The time of the stream, in microseconds: that of its latest event, if it is believed.
    newest: Option<i64> = this.write().newest();
);
