//! `Intake` for Python: blocks of events go into all structures of a monitor in one pass.

use crate::bloom::BloomFilter;
use crate::count::{Any, CountFilter};
use crate::decaying::TimeDecayingBloomFilter;
use crate::errors::{OrRaise, parameter};
use crate::history::HistoryBuffer;
use crate::hot::HotList;
use crate::logs::Chunk;
use crate::python::*;
use crate::records::new_record;
use crate::stream_time::{self, KeptTime};
use crate::structure::Structure;
use crate::url::UrlFilter;
use crate::writers::Registered;
use bloomtide_core::event_time::{Oddities, StreamTime};
use bloomtide_core::events::{Block, Passed, Piece, Target, pass};
use bloomtide_core::history::Buffer;
use bloomtide_core::{self as core, Crew, Hasher, Result};
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{MutexGuard, RwLockWriteGuard};

/// A structure of a monitor.
#[derive(FromPyObject)]
enum Part {
    Bloom(Py<BloomFilter>),
    Url(Py<UrlFilter>),
    Count(Py<CountFilter>),
    Fading(Py<TimeDecayingBloomFilter>),
    List(Py<HotList>),
}

impl Part {
    fn of(part: &Object<'_>) -> PyResult<Self> {
        part.extract().map_err(|_| {
            let (got, allowed) = (part.get_type(), "filters and hot lists");
            let hint = "a history's buffer is given with each block";
            parameter(part.py(), "into", got, allowed, hint)
        })
    }

    /// Seconds that the time of one event may move its own time on.
    fn far(&self) -> f64 {
        match self {
            Part::Fading(part) => {
                let fade = part.get().core.plan().fade;
                fade.far() * fade.epoch
            }
            Part::List(part) => part.get().far(),
            Part::Bloom(_) | Part::Url(_) | Part::Count(_) => f64::INFINITY,
        }
    }

    fn hasher(&self) -> Hasher {
        match self {
            Part::Bloom(part) => *part.get().hasher(),
            Part::Url(part) => *part.get().hasher(),
            Part::Count(part) => *part.get().hasher(),
            Part::Fading(part) => *part.get().hasher(),
            Part::List(part) => *part.get().hasher(),
        }
    }
}

/// Counters of either storage.
struct Counts<'a>(&'a Any);

impl Target for Counts<'_> {
    fn take(&mut self, piece: &Piece<'_>, new: &mut [bool]) -> Result<()> {
        let counts = piece.counts();
        self.0.add_many(piece, counts, new, &mut Crew::new(1)).map_err(|(_, error)| error)
    }
}

/// A structure that nobody else changes meanwhile, or that orders its writers itself.
enum Held<'a> {
    Bloom(&'a core::BloomFilter),
    Url(RwLockWriteGuard<'a, core::UrlFilter>),
    Count(Counts<'a>),
    Fading(&'a core::TimeDecayingBloomFilter),
    List(RwLockWriteGuard<'a, core::HotList>),
    Buffer(MutexGuard<'a, Buffer>),
}

impl Held<'_> {
    fn target(&mut self) -> &mut dyn Target {
        match self {
            Held::Bloom(filter) => filter,
            Held::Url(filter) => &mut **filter,
            Held::Count(filter) => filter,
            Held::Fading(filter) => filter,
            Held::List(list) => &mut **list,
            Held::Buffer(buffer) => &mut **buffer,
        }
    }
}

/// Counts blocks of events into structures that have one hash function: each key is hashed once.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct Intake {
    /// In the order given: the first filter among them says which keys are new. One pass runs at a time, so
    /// the order of their locks does not matter to another.
    into: Vec<Part>,
    hasher: Hasher,
    /// The time of the stream, in microseconds; held by the pass that runs.
    time: std::sync::Mutex<StreamTime>,
}

#[pymethods]
impl Intake {
    #[new]
    #[pyo3(signature = (*into, time=None))]
    fn py_new(into: &Bound<'_, PyTuple>, time: Option<KeptTime>) -> PyResult<Self> {
        let py = into.py();
        let (mut parts, mut hasher) = (Vec::new(), None);
        for part in into {
            let part = Part::of(&part)?;
            let first: &Hasher = hasher.get_or_insert(part.hasher());
            first.require_same(&part.hasher()).or_raise(py)?;
            parts.push(part);
        }
        let hasher = hasher.unwrap_or(Hasher::Xxh3 { seed: 0 });
        // As far as the structure that forgets fastest lets one event move it.
        let far = parts.iter().map(Part::far).fold(f64::INFINITY, f64::min);
        let time = stream_time::restored(py, far * 1e6, time)?;
        Ok(Intake { into: parts, hasher, time: std::sync::Mutex::new(time) })
    }

    /// What another intake goes on with, of the times of events.
    #[getter]
    fn time(&self) -> KeptTime {
        stream_time::kept(&locked(&self.time))
    }

    /// Counts the events of a block.
    #[pyo3(signature = (block, *, history=None))]
    fn apply<'py>(
        &self,
        block: &Object<'py>,
        history: Option<&Bound<'py, HistoryBuffer>>,
    ) -> Answer<'py> {
        let py = block.py();
        let chunk = Chunk::of(block)?;
        let block = Block::parse(chunk.bytes()).or_raise(py)?;
        if let Some(buffer) = history {
            self.hasher.require_same(&buffer.get().write().plan().hasher).or_raise(py)?;
        }
        let (passed, before, time) = self.pass(py, &block, history.map(Bound::get))?;
        let Passed { events, new, first } = passed;
        let (late, ahead) = (time.odd().late - before.late, time.odd().ahead - before.ahead);
        let newest = time.presumed().map(|newest| newest as i64);
        let (aside, arrived, note) = (time.aside(), block.arrived, PyBytes::new(py, block.note));
        new_record!(py, "Applied" => events, new, first, newest, late, ahead, aside, arrived, note)
    }
}

impl Intake {
    fn pass(
        &self,
        py: Python<'_>,
        block: &Block<'_>,
        history: Option<&HistoryBuffer>,
    ) -> PyResult<(Passed, Oddities, StreamTime)> {
        // Who adds one key without the interpreter's batches must see that somebody writes.
        let registered = self.into.iter().map(|part| match part {
            Part::Bloom(filter) => {
                filter.get().to_write(py).map(|(registered, _)| Some(registered))
            }
            Part::Count(filter) => Ok(filter.get().register()),
            Part::Fading(filter) => Ok(Some(Registered::new(&filter.get().writers))),
            Part::Url(_) | Part::List(_) => Ok(None),
        });
        let registered = registered.collect::<PyResult<Vec<_>>>()?;
        let outcome = py.detach(|| {
            let mut time = locked(&self.time);
            let held = self.into.iter().map(|part| match part {
                Part::Bloom(filter) => Held::Bloom(filter.get().core()),
                Part::Url(filter) => Held::Url(filter.get().write()),
                Part::Count(filter) => Held::Count(Counts(filter.get().core())),
                Part::Fading(filter) => Held::Fading(&filter.get().core),
                Part::List(list) => Held::List(list.get().write()),
            });
            let mut held: Vec<Held<'_>> = held.collect();
            held.extend(history.map(|buffer| Held::Buffer(buffer.write())));
            let mut targets: Vec<&mut dyn Target> = held.iter_mut().map(Held::target).collect();
            let before = time.odd();
            let passed = pass(block, &self.hasher, &mut targets, &mut time)?;
            Ok((passed, before, time.clone()))
        });
        drop(registered);
        let passed = outcome.or_raise(py)?;
        self.into.iter().try_for_each(|part| match part {
            Part::Bloom(filter) => filter.get().core().require_whole().or_raise(py),
            _ => Ok(()),
        })?;
        self.look_after(py, usize::try_from(passed.0.events).unwrap_or(usize::MAX));
        Ok(passed)
    }

    /// Lets each filter say that it is overfull. The block counts, so nothing may be raised any more.
    fn look_after(&self, py: Python<'_>, rows: usize) {
        for part in &self.into {
            let looked = match part {
                Part::Bloom(filter) => filter.get().look_after(py, rows),
                Part::Url(filter) => filter.get().look_after(py, rows),
                Part::Count(filter) => filter.get().look_after(py, rows),
                Part::Fading(filter) => filter.get().look_after(py, rows),
                Part::List(_) => Ok(()),
            };
            if let Err(error) = looked {
                error.write_unraisable(py, None);
            }
        }
    }
}
