//! `HistorySegment` for Python.

use super::digests::Digests;
use crate::errors::{parameter, to_python, with_path};
use crate::key::{hash_key, to_object};
use crate::keys::to_numpy;
use crate::logs::Chunk;
use crate::params;
use crate::python::*;
use crate::records::{fields, new_record};
use bloomtide_core::Result;
use bloomtide_core::history::{Mark, RowRecord, Seen, Segment, Sizes};
use pyo3::types::{PyBytes, PyDict, PyList};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A run of time, sealed: how often any key came in each of its rows. Never less than the truth.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct HistorySegment {
    core: Arc<Segment>,
    /// Its file, for errors.
    path: Option<PathBuf>,
}

impl HistorySegment {
    /// The same bytes for somebody else.
    pub(crate) fn share(&self) -> Arc<Segment> {
        self.core.clone()
    }

    /// Damage is found when a block is first touched, so any question may meet it.
    fn answer<T>(&self, py: Python<'_>, result: Result<T>) -> PyResult<T> {
        result.map_err(|error| {
            let error = to_python(py, error);
            match &self.path {
                Some(path) => with_path(py, error, path),
                None => error,
            }
        })
    }

    /// Rows `[first, last)`; all from `first` on if there is no last.
    fn range(&self, py: Python<'_>, first: i64, last: Option<i64>) -> PyResult<Range<usize>> {
        let rows = self.core.rows().len();
        let place = |name: &str, value: i64| {
            usize::try_from(value).map(|value| value.min(rows)).map_err(|_| {
                parameter(py, name, value, "at least 0", "rows are counted from the earliest")
            })
        };
        Ok(place("first", first)?..last.map_or(Ok(rows), |last| place("last", last))?)
    }
}

/// Begin, end, first, last, events and windows of rows, as arrays.
pub(super) fn row_arrays<'py>(py: Python<'py>, rows: &[RowRecord]) -> PyResult<Bound<'py, PyDict>> {
    let times = |of: fn(&RowRecord) -> i64| to_numpy(py, &rows.iter().map(of).collect::<Vec<_>>());
    let events: Vec<u64> = rows.iter().map(|row| row.seen.events).collect();
    let windows: Vec<u32> = rows.iter().map(|row| row.windows).collect();
    let out = PyDict::new(py);
    fields!(&out =>
        begin: times(|row| row.begin)?, end: times(|row| row.end)?,
        first: times(|row| row.seen.first)?, last: times(|row| row.seen.last)?,
        events: to_numpy(py, &events)?, windows: to_numpy(py, &windows)?)?;
    Ok(out)
}

#[pymethods]
impl HistorySegment {
    /// Maps a segment's file, or the part of one. Only its header, its rows and its checksums are read.
    #[staticmethod]
    #[pyo3(signature = (path, offset=0, length=None))]
    fn open(path: &Object<'_>, offset: u64, length: Option<u64>) -> PyResult<Self> {
        let py = path.py();
        let path = params::path(path)?;
        let opened = py.detach(|| Segment::open(&path, offset, length));
        let core = opened.map_err(|error| with_path(py, to_python(py, error), &path))?;
        Ok(HistorySegment { core: Arc::new(core), path: Some(path) })
    }

    /// The same from bytes, which are copied.
    #[staticmethod]
    fn from_bytes(data: &Object<'_>) -> PyResult<Self> {
        let py = data.py();
        let bytes = Chunk::of(data)?;
        let core =
            Segment::from_vec(bytes.bytes().to_vec()).map_err(|error| to_python(py, error))?;
        Ok(HistorySegment { core: Arc::new(core), path: None })
    }

    /// What it is, how large its parts are, and how often it errs.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let about = self.core.about();
        let [bytes, gate, maps, codes, names] = self.core.bytes();
        let seen = about.rows.iter().fold(Seen::NOTHING, |all, row| all.with(row.seen));
        let Sizes { hashes, columns, gate_hashes, gate_bits, .. } = about.sizes;
        new_record!(py, "SegmentInfo" =>
            level: about.level, begin: about.begin, end: about.end, rows: about.rows.len(),
            events: seen.events, keys: about.keys, items: about.items, hashes, columns, gate_hashes,
            gate_bits, bytes, gate_bytes: gate, map_bytes: maps, code_bytes: codes, name_bytes: names,
            error_rate: about.error_rate, gate_error: about.gate_error,
            predicted_error: about.predicted_error, predicted_gate_error: about.predicted_gate_error,
            hash: about.hasher.name(), seed: about.hasher.seed())
    }

    /// All bytes before the body. They have the checksums of the rest, so they tell this file from all others.
    #[getter]
    fn front<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.core.front())
    }

    /// What is known of each row besides its counts, as arrays.
    fn row_records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        row_arrays(py, self.core.rows())
    }

    /// Whether the gate lets the key pass; if not, it never came.
    fn contains(&self, key: &Object<'_>) -> PyResult<bool> {
        let mark = hash_key(&self.core.about().hasher, key, None)?.mark();
        self.answer(key.py(), self.core.contains(mark))
    }

    /// At least how often the key came in rows `[first, last)`.
    #[pyo3(signature = (key, first=0, last=None))]
    fn count(&self, key: &Object<'_>, first: i64, last: Option<i64>) -> PyResult<u64> {
        let rows = self.range(key.py(), first, last)?;
        let mark = hash_key(&self.core.about().hasher, key, None)?.mark();
        Ok(self.answer(key.py(), self.core.ask(mark, rows))?.0)
    }

    /// The same for many keys, or for `Digests` of them; 0 for rows without a key.
    #[pyo3(signature = (keys, first=0, last=None, *, nulls="refuse"))]
    fn count_many<'py>(
        &self,
        keys: &Object<'py>,
        first: i64,
        last: Option<i64>,
        nulls: &str,
    ) -> Answer<'py> {
        let py = keys.py();
        let rows = self.range(py, first, last)?;
        let digests = Digests::given_or_made(keys, &self.core.about().hasher, nulls)?;
        let marks = digests.get().marks();
        let count = |mark: &Option<Mark>| {
            mark.map_or(Ok(0), |mark| Ok(self.core.ask(mark, rows.clone())?.0))
        };
        let counted = py.detach(|| marks.iter().map(count).collect::<Result<Vec<u64>>>());
        to_numpy(py, &self.answer(py, counted)?)
    }

    /// At least how often the key came in each row.
    fn rows_of<'py>(&self, key: &Object<'py>) -> Answer<'py> {
        let py = key.py();
        let mark = hash_key(&self.core.about().hasher, key, None)?.mark();
        let mut rows = vec![0; self.core.rows().len()];
        let counts = self.answer(py, self.core.counts(mark, 0..rows.len()))?;
        counts.into_iter().for_each(|(row, count)| rows[row] = count);
        to_numpy(py, &rows)
    }

    /// The most frequent keys with their counts in the whole segment, which are exact; and the most that any
    /// other key has.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, u64)> {
        let (names, unlisted) = self.answer(py, self.core.names())?;
        let list = PyList::empty(py);
        for name in names {
            list.append((to_object(py, name.key.view()), name.count))?;
        }
        Ok((list, unlisted))
    }

    /// (bits of the gate, columns of the matrix) of a key.
    fn positions(&self, key: &Object<'_>) -> PyResult<(Vec<u64>, Vec<u64>)> {
        Ok(self.core.positions(hash_key(&self.core.about().hasher, key, None)?.mark()))
    }

    /// Checks every byte and every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        let result = py.detach(|| self.core.validate());
        self.answer(py, result)
    }
}
