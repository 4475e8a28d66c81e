//! `LogCounter` for Python: a log goes into hot lists, fading filters, histories and events, without Python for a line.

use super::{Chunk, Said, format_of};
use crate::decaying::TimeDecayingBloomFilter;
use crate::errors::{OrRaise, parameter};
use crate::events::Events;
use crate::history::HistoryBuffer;
use crate::hot::HotList;
use crate::instants::{Clock, instant};
use crate::python::*;
use crate::structure::Structure;
use crate::writers::Registered;
use bloomtide_core::Result;
use bloomtide_core::history::Buffer;
use bloomtide_core::logs::{self, Choice, Field, Sink};
use pyo3::types::PyTuple;
use std::sync::{Mutex, MutexGuard, RwLockWriteGuard};

/// What a log is counted into.
#[derive(FromPyObject)]
enum Target {
    List(Py<HotList>),
    Filter(Py<TimeDecayingBloomFilter>),
    Buffer(Py<HistoryBuffer>),
    Events(Py<Events>),
}

impl Target {
    fn of(target: &Object<'_>) -> PyResult<Self> {
        target.extract().map_err(|_| {
            let got = target.get_type();
            let hint = "make one: HotList(1000, half_life=\"10m\")";
            let allowed = "hot lists, time-decaying filters, events or the buffers of histories";
            parameter(target.py(), "into", got, allowed, hint)
        })
    }
}

/// A target that has a lock, while it is held.
enum Locked<'a> {
    List(RwLockWriteGuard<'a, bloomtide_core::HotList>),
    Buffer(MutexGuard<'a, Buffer>),
    Events(MutexGuard<'a, bloomtide_core::events::Events>),
}

impl Locked<'_> {
    fn sink(&mut self) -> &mut dyn Sink {
        match self {
            Locked::List(list) => &mut **list,
            Locked::Buffer(buffer) => &mut **buffer,
            Locked::Events(events) => &mut **events,
        }
    }
}

/// Counts one log by a field into any number of hot lists and fading filters, by the log's own time.
#[pyclass(module = "bloomtide", frozen)]
pub(crate) struct LogCounter {
    core: Mutex<logs::LogCounter>,
    /// In the order of their addresses: whoever locks several of them does it in the same order.
    into: Vec<Target>,
}

#[pymethods]
impl LogCounter {
    #[new]
    #[pyo3(signature = (*into, by="path", query=true, until=None, format=None, json_map=None))]
    fn new(
        into: &Bound<'_, PyTuple>,
        by: &str,
        query: bool,
        until: Option<&Object<'_>>,
        format: Option<&str>,
        json_map: Option<&str>,
    ) -> PyResult<Self> {
        let py = into.py();
        let until = until.map(|value| instant(value, "until")).transpose()?;
        let choice = Choice { by: Field::parse(by).or_raise(py)?, query, until };
        let core = logs::LogCounter::new(format_of(py, format, json_map)?, choice);
        let mut into: Vec<Object<'_>> = into.iter().collect();
        into.sort_by_key(Bound::as_ptr);
        if into.windows(2).any(|pair| pair[0].is(&pair[1])) {
            return Err(parameter(py, "into", "one twice", "different ones", "name each once"));
        }
        let into = into.iter().map(Target::of).collect::<PyResult<_>>()?;
        Ok(LogCounter { core: Mutex::new(core), into })
    }

    /// Counts the lines that end in these bytes. `now` is the time of lines in logs without times.
    #[pyo3(signature = (data, now=None))]
    fn feed(&self, data: &Object<'_>, now: Option<&Object<'_>>) -> PyResult<()> {
        let chunk = Chunk::of(data)?;
        self.count(data.py(), now, |core, now, sinks| core.feed(chunk.bytes(), now, sinks))
    }

    /// Finds the format by the lines held back so far, and counts them.
    #[pyo3(signature = (now=None))]
    fn settle(&self, py: Python<'_>, now: Option<&Object<'_>>) -> PyResult<()> {
        self.count(py, now, logs::LogCounter::settle)
    }

    /// Counts a last line without a line end. Another log of the same format may follow.
    #[pyo3(signature = (now=None))]
    fn finish(&self, py: Python<'_>, now: Option<&Object<'_>>) -> PyResult<()> {
        self.count(py, now, logs::LogCounter::finish)
    }

    /// What became of the lines so far.
    fn report<'py>(&self, py: Python<'py>) -> Answer<'py> {
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
        now: Option<&Object<'_>>,
        work: impl FnOnce(&mut logs::LogCounter, f64, &mut [&mut dyn Sink]) -> Result<()> + Send,
    ) -> PyResult<()> {
        let now = now.map_or_else(|| Clock::System.now(py), |value| instant(value, "now"))?;
        let filters = self.into.iter().filter_map(|target| match target {
            Target::Filter(filter) => Some(filter.get()),
            Target::List(_) | Target::Buffer(_) | Target::Events(_) => None,
        });
        let mut filters: Vec<_> =
            filters.map(|filter| (Registered::new(&filter.writers), &filter.core)).collect();
        // A line from the future of the clock must not move the time of what counts it.
        for target in &self.into {
            match target {
                Target::List(list) => list.get().look_at_clock(py)?,
                Target::Filter(filter) => filter.get().look_at_clock(py)?,
                // Its store has looked; blocks say when they arrived.
                Target::Buffer(_) | Target::Events(_) => {}
            }
        }
        let counted = py.detach(|| {
            let mut core = locked(&self.core);
            let before = core.tally().counted;
            let locked = self.into.iter().filter_map(|target| match target {
                Target::List(list) => Some(Locked::List(list.get().write())),
                Target::Buffer(buffer) => Some(Locked::Buffer(buffer.get().write())),
                Target::Events(events) => Some(Locked::Events(events.get().write())),
                Target::Filter(_) => None,
            });
            let mut locked: Vec<Locked<'_>> = locked.collect();
            let locked = locked.iter_mut().map(Locked::sink);
            let filters = filters.iter_mut().map(|(_, filter)| filter as &mut dyn Sink);
            let mut sinks: Vec<&mut dyn Sink> = locked.chain(filters).collect();
            work(&mut core, now, &mut sinks)?;
            Ok((core.tally().counted - before) as usize)
        });
        drop(filters);
        let counted = counted.or_raise(py)?;
        self.into.iter().try_for_each(|target| match target {
            Target::Filter(filter) => filter.get().look_after(py, counted),
            _ => Ok(()),
        })
    }
}
