//! Files and byte strings for every class: the interpreter is let go while bytes move.

use crate::bloom::BloomFilter;
use crate::buffer::View;
use crate::counting::CountingBloomFilter;
use crate::decaying::TimeDecayingBloomFilter;
use crate::errors::{OrRaise, parameter, to_python, with_path};
use crate::hot::HotList;
use crate::instants::Clock;
use crate::python::*;
use crate::scalable::ScalableBloomFilter;
use crate::structure::Structure;
use crate::url::UrlFilter;
use crate::{count, params};
use bloomtide_core::snapshot::{self, Kind, Loaded, RealDisk};
use pyo3::ffi;
use std::sync::Mutex;

pub(crate) fn load(path: &Object<'_>, wanted: Option<Kind>) -> PyResult<Loaded> {
    let py = path.py();
    let path = params::path(path)?;
    py.detach(|| snapshot::load(&path, wanted))
        .map_err(|error| with_path(py, to_python(py, error), &path))
}

pub(crate) fn from_bytes(data: &Object<'_>, wanted: Option<Kind>) -> PyResult<Loaded> {
    let py = data.py();
    let Some(view) = View::of(data, ffi::PyBUF_C_CONTIGUOUS) else {
        let got = data.get_type().to_string();
        return Err(parameter(py, "data", got, "bytes-like", "give what to_bytes() returned"));
    };
    py.detach(|| snapshot::read(view.slice(), wanted)).or_raise(py)
}

/// Puts bytes in a file's place as `save` does.
pub(crate) fn replace(path: &Object<'_>, data: &[u8]) -> PyResult<()> {
    let py = path.py();
    let path = params::path(path)?;
    py.detach(|| snapshot::replace(&RealDisk, &path, &mut |out| out.write_all(data))).or_raise(py)
}

/// The same object, which warns if it is overfull.
pub(crate) fn looked_at(py: Python<'_>, object: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let found = object.bind(py);
    if let Ok(filter) = found.cast::<BloomFilter>() {
        filter.get().look(py)?;
    } else if let Ok(filter) = found.cast::<CountingBloomFilter>() {
        filter.get().look(py)?;
    } else if let Ok(filter) = found.cast::<count::CountFilter>() {
        filter.get().look(py)?;
    } else if let Ok(filter) = found.cast::<TimeDecayingBloomFilter>() {
        filter.get().look(py)?;
    } else if let Ok(filter) = found.cast::<UrlFilter>() {
        filter.get().look(py)?;
    }
    Ok(object)
}

/// Says that this process holds the lock of a file and is about to replace it, until it is released.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct Replacing(Mutex<Option<snapshot::Replacing>>);

#[pymethods]
impl Replacing {
    #[new]
    fn py_new(path: &Object<'_>) -> PyResult<Self> {
        let found = snapshot::Replacing::new(&params::path(path)?).or_raise(path.py())?;
        Ok(Replacing(Mutex::new(Some(found))))
    }

    /// Saves of this process wait for the lock again.
    fn release(&self) {
        locked(&self.0).take();
    }
}

/// The Python object of a loaded structure, which goes by that clock if it has a time.
pub(crate) fn to_object(
    py: Python<'_>,
    loaded: Loaded,
    clock: Option<&Object<'_>>,
) -> PyResult<Py<PyAny>> {
    let clock = Clock::parse(clock)?;
    Ok(match loaded {
        Loaded::Bloom(core) => Py::new(py, BloomFilter::new(core))?.into_any(),
        Loaded::Scalable(core) => Py::new(py, ScalableBloomFilter::new(core))?.into_any(),
        Loaded::Counting(core) => Py::new(py, CountingBloomFilter::new(core))?.into_any(),
        Loaded::Dynamic(core) => count::to_object(py, count::Any::Dynamic(core))?,
        Loaded::Spectral(core) => count::to_object(py, count::Any::Spectral(core))?,
        Loaded::Decaying(core) => {
            Py::new(py, TimeDecayingBloomFilter::new(*core, clock))?.into_any()
        }
        Loaded::Url(core) => Py::new(py, UrlFilter::new(*core))?.into_any(),
        Loaded::Hot(core) => Py::new(py, HotList::new(*core, clock))?.into_any(),
    })
}
