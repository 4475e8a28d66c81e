//! The common header and its checksum for the formats that Python writes. `bloomtide.format` is their module.

use crate::buffer::View;
use crate::errors::{OrRaise, parameter};
use crate::python::*;
use bloomtide_core::format::{self, Header, Kind};
use pyo3::ffi;
use pyo3::types::PyBytes;

/// From here on the interpreter is let go.
const LARGE: usize = 1 << 16;

fn with_bytes<T: Send>(data: &Object<'_>, act: impl FnOnce(&[u8]) -> T + Send) -> PyResult<T> {
    let py = data.py();
    let Some(view) = View::of(data, ffi::PyBUF_C_CONTIGUOUS) else {
        let got = data.get_type().to_string();
        return Err(parameter(py, "data", got, "bytes-like", "give bytes"));
    };
    let bytes = view.slice();
    Ok(if bytes.len() < LARGE { act(bytes) } else { py.detach(|| act(bytes)) })
}

pub(crate) fn kind_of(py: Python<'_>, name: &str) -> PyResult<Kind> {
    let hint = "bloomtide.format.KINDS lists them";
    Kind::from_name(name).ok_or_else(|| parameter(py, "kind", name, "the name of a kind", hint))
}

/// CRC-32C of the data, going on from the checksum of what came before it.
#[pyfunction]
#[pyo3(signature = (data, value=0, /))]
pub(crate) fn crc32c(data: &Object<'_>, value: u32) -> PyResult<u32> {
    with_bytes(data, |bytes| format::append(value, bytes))
}

/// Every kind of file and blob: its number and its name.
#[pyfunction]
pub(crate) fn format_kinds() -> Vec<(u16, &'static str)> {
    Kind::ALL.iter().map(|kind| (kind.code(), kind.name())).collect()
}

/// The common header with what the kind adds. `length` counts everything; 0 if it is not known.
#[pyfunction]
pub(crate) fn pack_header<'py>(
    py: Python<'py>,
    kind: &str,
    added: &[u8],
    length: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &format::header(kind_of(py, kind)?, added, length)))
}

/// Checks the header that the data begins with: its length, that of everything, and what the kind adds.
#[pyfunction]
pub(crate) fn read_header<'py>(
    data: &Object<'py>,
    kind: &str,
) -> PyResult<(usize, u64, Bound<'py, PyBytes>)> {
    let py = data.py();
    let kind = kind_of(py, kind)?;
    let read = |bytes: &[u8]| {
        Header::read(bytes, Some(kind)).map(|found| (found.len, found.length, found.added.to_vec()))
    };
    let (len, length, added) = with_bytes(data, read)?.or_raise(py)?;
    Ok((len, length, PyBytes::new(py, &added)))
}

/// Checks all of a blob that ends with the checksum of its body: what the kind adds, and where the body is.
#[pyfunction]
pub(crate) fn read_sealed<'py>(
    data: &Object<'py>,
    kind: &str,
) -> PyResult<(Bound<'py, PyBytes>, usize, usize)> {
    let py = data.py();
    let kind = kind_of(py, kind)?;
    let read = |bytes: &[u8]| {
        let (header, body) = format::unseal(bytes, kind)?;
        Ok((header.added.to_vec(), header.len, header.len + body.len()))
    };
    let (added, begin, end) = with_bytes(data, read)?.or_raise(py)?;
    Ok((PyBytes::new(py, &added), begin, end))
}
