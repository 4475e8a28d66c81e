//! `LogCounter` for Python: a log goes into hot lists, without Python for a line.

use super::{Chunk, Said, format_of, locked};
use crate::errors::{OrRaise, parameter};
use crate::hot::HotList;
use crate::instants::{Clock, instant};
use bloomery_core::logs::{self, Choice, Field, Sink};
use bloomery_core::{HotList as Core, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, RwLockWriteGuard};

/// Counts one log by a field into any number of hot lists, by the log's own time.
#[pyclass(module = "bloomery", frozen)]
pub(crate) struct LogCounter {
    core: Mutex<logs::LogCounter>,
    /// In the order of their addresses: whoever locks several of them does it in the same order.
    into: Vec<Py<HotList>>,
}

#[pymethods]
impl LogCounter {
    #[new]
    #[pyo3(signature = (*into, by="path", query=true, until=None, format=None, json_map=None))]
    fn new(
        into: &Bound<'_, PyTuple>,
        by: &str,
        query: bool,
        until: Option<&Bound<'_, PyAny>>,
        format: Option<&str>,
        json_map: Option<&str>,
    ) -> PyResult<Self> {
        let py = into.py();
        let until = until.map(|value| instant(value, "until")).transpose()?;
        let choice = Choice { by: Field::parse(by).or_raise(py)?, query, until };
        let core = logs::LogCounter::new(format_of(py, format, json_map)?, choice);
        let lists = into.iter().map(|list| {
            list.cast_into::<HotList>().map(Bound::unbind).map_err(|wrong| {
                let got = wrong.into_inner().get_type().to_string();
                parameter(
                    py,
                    "into",
                    got,
                    "hot lists",
                    "make one: HotList(1000, half_life=\"10m\")",
                )
            })
        });
        let mut into = lists.collect::<PyResult<Vec<_>>>()?;
        into.sort_by_key(|list| list.as_ptr() as usize);
        if into.windows(2).any(|pair| pair[0].is(&pair[1])) {
            return Err(parameter(py, "into", "one twice", "different lists", "name each once"));
        }
        Ok(LogCounter { core: Mutex::new(core), into })
    }

    /// Counts the lines that end in these bytes. `now` is the time of lines in logs without times.
    #[pyo3(signature = (data, now=None))]
    fn feed(&self, data: &Bound<'_, PyAny>, now: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let chunk = Chunk::of(data)?;
        self.count(data.py(), now, |core, now, sinks| core.feed(chunk.bytes(), now, sinks))
    }

    /// Finds the format by the lines held back so far, and counts them.
    #[pyo3(signature = (now=None))]
    fn settle(&self, py: Python<'_>, now: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.count(py, now, logs::LogCounter::settle)
    }

    /// Counts a last line without a line end. Another log of the same format may follow.
    #[pyo3(signature = (now=None))]
    fn finish(&self, py: Python<'_>, now: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.count(py, now, logs::LogCounter::finish)
    }

    /// What became of the lines so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let said = py.detach(|| {
            let core = locked(&self.core);
            Said::of(core.reader(), core.tally())
        });
        said.record(py)
    }
}

impl LogCounter {
    fn count(
        &self,
        py: Python<'_>,
        now: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(&mut logs::LogCounter, f64, &mut [&mut dyn Sink]) -> Result<()> + Send,
    ) -> PyResult<()> {
        let now = now.map_or_else(|| Clock::System.now(py), |value| instant(value, "now"))?;
        py.detach(|| {
            let mut core = locked(&self.core);
            let mut lists: Vec<RwLockWriteGuard<'_, Core>> =
                self.into.iter().map(|list| list.get().write()).collect();
            let mut sinks: Vec<&mut dyn Sink> =
                lists.iter_mut().map(|list| &mut **list as &mut dyn Sink).collect();
            work(&mut core, now, &mut sinks)
        })
        .or_raise(py)
    }
}
