//! `Dedup` for Python: chunks of lines in, the kept ones out. No Python object for a line.

use crate::bloom::BloomFilter;
use crate::errors::{OrRaise, parameter};
use crate::keys::Options;
use crate::logs::Chunk;
use crate::python::locked;
use crate::records::record;
use crate::scalable::ScalableBloomFilter;
use crate::structure::Structure;
use bloomtide_core::lines::{self, Form, Keys, Reader, Seen};
use bloomtide_core::url::Canon;
use bloomtide_core::{Crew, Hasher};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::Mutex;

/// What remembers the keys; None if the caller gives the verdicts.
enum Memory {
    Bloom(Py<BloomFilter>),
    Scalable(Py<ScalableBloomFilter>),
    Elsewhere,
}

impl Memory {
    fn of(py: Python<'_>, seen: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(seen) = seen else { return Ok(Memory::Elsewhere) };
        if let Ok(filter) = seen.cast::<BloomFilter>() {
            return Ok(Memory::Bloom(filter.clone().unbind()));
        }
        if let Ok(filter) = seen.cast::<ScalableBloomFilter>() {
            return Ok(Memory::Scalable(filter.clone().unbind()));
        }
        let got = seen.get_type().to_string();
        let hint = "make one: BloomFilter(1_000_000, 1e-4)";
        Err(parameter(py, "seen", got, "a BloomFilter or a ScalableBloomFilter", hint))
    }

    fn hasher(&self) -> Option<Hasher> {
        match self {
            Memory::Bloom(filter) => Some(*filter.get().hasher()),
            Memory::Scalable(filter) => Some(*filter.get().write().hasher()),
            Memory::Elsewhere => None,
        }
    }
}

/// Lines whose keys are hashed, and the bytes that they are in.
#[pyclass(module = "bloomtide", frozen)]
pub(crate) struct HashedLines {
    core: lines::Hashed,
    chunk: Option<Chunk>,
}

/// Keeps the lines whose key was not seen before.
#[pyclass(module = "bloomtide", frozen)]
pub(crate) struct Dedup {
    reader: Mutex<Reader>,
    core: Mutex<lines::Dedup>,
    seen: Memory,
    /// That of the filter.
    hasher: Option<Hasher>,
}

#[pymethods]
impl Dedup {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(
        signature = (seen=None, *, format="lines", key=None, time=None, url=false, invert=false, threads=None),
        text_signature = "(seen=None, *, format='lines', key=None, time=None, url=False, invert=False, threads=1)"
    )]
    fn new(
        py: Python<'_>,
        seen: Option<&Bound<'_, PyAny>>,
        format: &str,
        key: Option<&str>,
        time: Option<&str>,
        url: bool,
        invert: bool,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let url = url.then(Canon::default);
        let keys = Form::parse(format).and_then(|form| Keys::new(form, key, time, url));
        let keys = keys.or_raise(py)?;
        let threads = threads.map_or(Ok(1), Options::threads)?;
        let reader = Mutex::new(Reader::new(keys, Crew::new(threads)));
        let core = Mutex::new(lines::Dedup::new(invert));
        let seen = Memory::of(py, seen)?;
        Ok(Dedup { reader, core, hasher: seen.hasher(), seen })
    }

    /// The lines to be kept of those that end in these bytes.
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.filter(data.py(), &self.hash(data.py(), Some(data))?)
    }

    /// A last line without a line end, if it is to be kept. Another file may follow.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.filter(py, &self.hash(py, None)?)
    }

    /// The first half of `feed`, or of `finish` without data: finds the lines and hashes their keys. A
    /// thread may do this for the next bytes while another one filters. The data must stay as it is.
    #[pyo3(signature = (data=None))]
    fn hash(&self, py: Python<'_>, data: Option<&Bound<'_, PyAny>>) -> PyResult<HashedLines> {
        let Some(hasher) = self.hasher else {
            let hint = "give a filter, or use `take` and `keep`";
            return Err(parameter(py, "seen", "None", "a filter", hint));
        };
        let chunk = data.map(Chunk::of).transpose()?;
        let bytes = chunk.as_ref().map(Chunk::bytes);
        let core = py.detach(|| locked(&self.reader).hash(bytes, &hasher)).or_raise(py)?;
        Ok(HashedLines { core, chunk })
    }

    /// The second half: the lines to be kept. Halves must come in the order of the bytes.
    fn filter<'py>(&self, py: Python<'py>, hashed: &HashedLines) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::new();
        let bytes = hashed.chunk.as_ref().map(Chunk::bytes).unwrap_or_default();
        // How many lines were filtered.
        let mut work = |seen: &mut dyn Seen| {
            let mut core = locked(&self.core);
            let before = core.tally().lines;
            core.filter(&hashed.core, bytes, seen, &mut out)?;
            Ok((core.tally().lines - before) as usize)
        };
        match &self.seen {
            Memory::Bloom(filter) => {
                let filter = filter.get();
                let lines = {
                    let (_registered, mut core) = filter.to_write(py)?;
                    let lines = py.detach(|| work(&mut core)).or_raise(py)?;
                    core.require_whole().or_raise(py)?;
                    lines
                };
                filter.look_after(py, lines)?;
            }
            Memory::Scalable(filter) => {
                let filter = filter.get();
                py.detach(|| work(&mut *filter.write())).or_raise(py)?;
            }
            Memory::Elsewhere => {}
        }
        Ok(PyBytes::new(py, &out))
    }

    /// What comes before the lines (a header), and the keys and times of those that end in these bytes;
    /// of the last line if there are none. `keep` must follow.
    #[pyo3(signature = (data=None))]
    #[allow(clippy::type_complexity, reason = "three columns")]
    fn take<'py>(
        &self,
        py: Python<'py>,
        data: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyList>, Vec<Option<f64>>)> {
        let chunk = data.map(Chunk::of).transpose()?;
        let (mut out, mut keys, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let each = |key: &[u8], time| {
            keys.push(PyBytes::new(py, key));
            times.push(time);
        };
        let bytes = chunk.as_ref().map(Chunk::bytes);
        let (mut core, mut reader) = (locked(&self.core), locked(&self.reader));
        core.take(&mut reader, bytes, &mut out, each).or_raise(py)?;
        Ok((PyBytes::new(py, &out), PyList::new(py, keys)?, times))
    }

    /// The lines to be kept of those taken, by the verdict on each key: whether it is new. With `counts`
    /// each line has the count of its key and a tab before it.
    #[pyo3(signature = (new, counts=None))]
    fn keep<'py>(
        &self,
        py: Python<'py>,
        new: Vec<bool>,
        counts: Option<Vec<u64>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::new();
        locked(&self.core).keep(&new, counts.as_deref(), &mut out).or_raise(py)?;
        Ok(PyBytes::new(py, &out))
    }

    /// Lines so far, and how many of them were new, repeats and without a key.
    #[getter]
    fn tally(&self, py: Python<'_>) -> (u64, u64, u64, u64) {
        let tally = py.detach(|| locked(&self.core).tally());
        (tally.lines, tally.new, tally.repeats, tally.keyless)
    }

    /// Lines so far that have no key.
    #[getter]
    fn without_key(&self, py: Python<'_>) -> u64 {
        py.detach(|| locked(&self.core).tally().keyless)
    }

    /// What became of the lines so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tally = py.detach(|| locked(&self.core).tally());
        record(py, "LineReport", |fields| {
            fields.set_item("lines", tally.lines)?;
            fields.set_item("new", tally.new)?;
            fields.set_item("repeats", tally.repeats)?;
            fields.set_item("without_key", tally.keyless)
        })
    }
}
