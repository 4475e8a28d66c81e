//! `Dedup` for Python: chunks of lines in, the kept ones out. No Python object for a line.

use crate::bloom::BloomFilter;
use crate::errors::{OrRaise, parameter};
use crate::logs::{Chunk, locked};
use crate::records::record;
use crate::scalable::ScalableBloomFilter;
use bloomtide_core::lines::{self, Form, Keys, Seen};
use bloomtide_core::url::Canon;
use bloomtide_core::{Crew, Result};
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
}

/// Keeps the lines whose key was not seen before.
#[pyclass(module = "bloomtide", frozen)]
pub(crate) struct Dedup {
    core: Mutex<lines::Dedup>,
    seen: Memory,
}

#[pymethods]
impl Dedup {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (seen=None, *, format="lines", key=None, time=None, url=false, invert=false, threads=1))]
    fn new(
        py: Python<'_>,
        seen: Option<&Bound<'_, PyAny>>,
        format: &str,
        key: Option<&str>,
        time: Option<&str>,
        url: bool,
        invert: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let url = url.then(Canon::default);
        let keys = Form::parse(format).and_then(|form| Keys::new(form, key, time, url));
        let keys = keys.or_raise(py)?;
        let core = lines::Dedup::new(keys, invert, Crew::new(threads.max(1)));
        Ok(Dedup { core: Mutex::new(core), seen: Memory::of(py, seen)? })
    }

    /// The lines to be kept of those that end in these bytes.
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let chunk = Chunk::of(data)?;
        self.judge(data.py(), |core, seen, out| core.feed(chunk.bytes(), seen, out))
    }

    /// A last line without a line end, if it is to be kept. Another file may follow.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.judge(py, lines::Dedup::finish)
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
        let mut core = locked(&self.core);
        match chunk {
            Some(chunk) => core.take(chunk.bytes(), &mut out, each),
            None => core.take_last(&mut out, each),
        }
        .or_raise(py)?;
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

impl Dedup {
    fn judge<'py>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&mut lines::Dedup, &mut dyn Seen, &mut Vec<u8>) -> Result<()> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::new();
        match &self.seen {
            Memory::Bloom(filter) => {
                let (_registered, mut filter) = filter.get().to_write(py)?;
                py.detach(|| work(&mut locked(&self.core), &mut filter, &mut out))
            }
            Memory::Scalable(filter) => {
                let filter = filter.get();
                py.detach(|| work(&mut locked(&self.core), &mut *filter.write(), &mut out))
            }
            Memory::Elsewhere => {
                let hint = "give a filter, or use `take` and `keep`";
                return Err(parameter(py, "seen", "None", "a filter", hint));
            }
        }
        .or_raise(py)?;
        Ok(PyBytes::new(py, &out))
    }
}
