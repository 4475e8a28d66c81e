//! `Events` for Python: what comes becomes blocks of bytes; `Intake` counts blocks into structures.

mod intake;

pub(crate) use intake::Intake;

use crate::errors::{OrRaise, nothing_added};
use crate::instants::{Instants, instant, micros};
use crate::key::with_key;
use crate::keys::{self, Needs, Options, Part, Verb};
use crate::python::*;
use crate::{params, weights};
use bloomtide_core::events::Events as Core;
use bloomtide_core::history::microseconds;
use bloomtide_core::{Crew, Error, Hasher};
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard};

/// Events that have come and are not in a block yet.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct Events {
    core: Mutex<Core>,
}

impl Events {
    pub(crate) fn write(&self) -> MutexGuard<'_, Core> {
        locked(&self.core)
    }
}

#[pymethods]
impl Events {
    #[new]
    #[pyo3(signature = (*, urls=false))]
    fn py_new(urls: bool) -> Self {
        Events { core: Mutex::new(Core::new(urls)) }
    }

    /// One more event.
    #[pyo3(signature = (key, count=params::Times::ONCE, *, at), text_signature = "($self, key, count=1, *, at)")]
    fn add(&self, key: &Object<'_>, count: params::Times<'_>, at: &Object<'_>) -> PyResult<()> {
        let count = count.number();
        let at = microseconds(instant(at, "at")?);
        with_key(key, None, |key| self.write().push(key, count, at))?.or_raise(key.py())
    }

    /// The block of these keys alone, each with its count and instant; what has come before stays.
    #[pyo3(
        signature = (keys, counts=None, *, at, arrived, note=None, nulls="refuse"),
        text_signature = "($self, keys, counts=None, *, at, arrived, note=b'', nulls='refuse')"
    )]
    fn pack<'py>(
        &self,
        keys: &Object<'py>,
        counts: Option<&Object<'py>>,
        at: &Object<'py>,
        arrived: &Object<'py>,
        note: Option<&[u8]>,
        nulls: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let py = keys.py();
        let options = Options::parse(py, nulls)?;
        let (at, arrived) = (micros(at, "at")?, microseconds(instant(arrived, "arrived")?));
        let (keys, counts) = weights::of(keys, counts)?;
        let keys = at.fit(&keys)?;
        let events = Mutex::new(self.write().another());
        let push = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
            let mut events = locked(&events);
            for i in 0..part.keys.len() {
                let (row, Some(key)) = (part.row(i), part.keys.key(i)) else { continue };
                let count = counts.as_ref().map_or(1, |all| all[row]);
                let instant = match &at {
                    Instants::One(at) => *at,
                    Instants::Each(all) => all[row],
                };
                events
                    .push(key, count, instant)
                    .map_err(|error| (i, Error::Row { row: i, error: Box::new(error) }))?;
            }
            Ok(())
        };
        // Who reads the block hashes the keys by its own hash.
        let verb = Verb::new(&Hasher::Xxh3 { seed: 0 }, &push).needs(Needs::Keys);
        keys::answers(&verb, &keys, options).map_err(|error| nothing_added(py, error))?;
        let mut made = locked(&events);
        Ok(PyBytes::new(py, &made.take(arrived, note.unwrap_or_default())))
    }

    /// The block of all events so far, with what the caller ties to it; none are left.
    #[pyo3(signature = (arrived, note=None), text_signature = "($self, arrived, note=b'')")]
    fn take<'py>(
        &self,
        arrived: &Object<'py>,
        note: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let py = arrived.py();
        let arrived = microseconds(instant(arrived, "arrived")?);
        let block = self.write().take(arrived, note.unwrap_or_default());
        Ok(PyBytes::new(py, &block))
    }

    /// Forgets the events that are in no block yet.
    fn clear(&self) {
        self.write().clear();
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.write().rows()).unwrap_or(usize::MAX)
    }

    /// Lines of logs whose key no structure takes.
    #[getter]
    fn refused(&self) -> u64 {
        self.write().refused()
    }
}
