//! Records in a file that grows, for Python: how they are written, and the scan that finds them again.

use crate::errors::{OrRaise, parameter};
use crate::format::kind_of;
use crate::logs::Chunk;
use crate::python::*;
use crate::structure::getters;
use bloomtide_core::durable::{self, Scan};
use pyo3::types::{PyBytes, PyList};
use std::sync::{Mutex, MutexGuard};

/// Records with these payloads, numbered from `first` on.
#[pyfunction]
pub(crate) fn pack_records<'py>(
    py: Python<'py>,
    mark: &[u8],
    first: u64,
    payloads: &Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyBytes>> {
    let wrong = |_| parameter(py, "mark", mark.len(), "four bytes", "take that of the file");
    let mark = mark.try_into().map_err(wrong)?;
    let mut out = Vec::with_capacity(256);
    for (number, payload) in (first..).zip(payloads) {
        durable::put(mark, number, payload.cast::<PyBytes>()?.as_bytes(), &mut out).or_raise(py)?;
    }
    Ok(PyBytes::new(py, &out))
}

/// The sound records of a file as pairs of number and payload, in order; afterwards, what is wrong with the rest.
#[pyclass(frozen, module = "bloomtide._core")]
pub(crate) struct RecordScan {
    data: Chunk,
    core: Mutex<Scan>,
}

impl RecordScan {
    fn core(&self) -> MutexGuard<'_, Scan> {
        locked(&self.core)
    }

    /// Gives all records that are left to `take`.
    pub(crate) fn drain<E>(&self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut core = self.core();
        while let Some((_, payload)) = core.step(self.data.bytes()) {
            take(payload)?;
        }
        Ok(())
    }
}

#[pymethods]
impl RecordScan {
    /// Reads the header of a file of that kind. What is there must not change but grow.
    #[new]
    fn py_new(data: &Object<'_>, kind: &str) -> PyResult<Self> {
        let py = data.py();
        let data = Chunk::of(data)?;
        let core = Scan::new(data.bytes(), kind_of(py, kind)?).or_raise(py)?;
        Ok(RecordScan { data, core: Mutex::new(core) })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Option<(u64, Bound<'py, PyBytes>)> {
        let mut core = self.core();
        let (number, payload) = core.step(self.data.bytes())?;
        Some((number, PyBytes::new(py, payload)))
    }

    /// Goes to the end.
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.drain(|_| Ok::<(), ()>(())).ok());
    }
}

getters!(RecordScan, this =>
    /// What the records of the file begin with.
    mark: [u8; 4] = this.core().mark;
    /// The number of the next record; None if the header is damaged and none was found yet.
    next: Option<u64> = this.core().next;
    /// Where the last sound record ends.
    end: usize = this.core().end;
    /// Where damage begins: a bad header, or something that sound records follow.
    damaged: Option<usize> = this.core().damaged;
    /// Bytes of the file.
    size: usize = this.data.bytes().len();
);
