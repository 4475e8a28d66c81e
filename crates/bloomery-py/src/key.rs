//! One Python object to one digest.
//!
//! `str` is hashed as its UTF-8 bytes, which for the usual compact ASCII string is the string's own
//! memory. Bytes-like objects are the same keys. Integers have their own domain.

use crate::errors::key_type;
use bloomery_core::{Hasher, KeyHash};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// The bytes of an exact `str` or `bytes`, which live as long as the object.
///
/// # Safety
/// `key` is a live object, and the caller keeps it alive while it uses the bytes.
#[inline(always)]
pub(crate) unsafe fn text_of(key: *mut ffi::PyObject) -> Option<(*const u8, usize)> {
    // SAFETY: the object is live; the checks come before the accesses that need them.
    unsafe {
        let kind = ffi::Py_TYPE(key);
        if kind == &raw mut ffi::PyUnicode_Type {
            if ffi::PyUnicode_IS_COMPACT_ASCII(key) != 0 {
                let data = key.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
                return Some((data, ffi::PyUnicode_GET_LENGTH(key) as usize));
            }
            return utf8_of(key);
        }
        if kind == &raw mut ffi::PyBytes_Type {
            let data = ffi::PyBytes_AS_STRING(key).cast::<u8>();
            return Some((data, ffi::Py_SIZE(key) as usize));
        }
        None
    }
}

/// The UTF-8 form that a `str` keeps of itself once asked; None for a lone surrogate.
#[cold]
unsafe fn utf8_of(key: *mut ffi::PyObject) -> Option<(*const u8, usize)> {
    let mut len = 0;
    // SAFETY: the caller says it is a live str.
    unsafe {
        let data = ffi::PyUnicode_AsUTF8AndSize(key, &mut len);
        if data.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some((data.cast(), len as usize))
    }
}

/// The digest of a key; `row` is its place in a batch, for the error.
#[inline(always)]
pub(crate) fn hash_key(
    hasher: &Hasher,
    key: &Bound<'_, PyAny>,
    row: Option<usize>,
) -> PyResult<KeyHash> {
    // SAFETY: the reference keeps the key alive during this call.
    if let Some((data, len)) = unsafe { text_of(key.as_ptr()) } {
        // SAFETY: text_of returned the object's own memory.
        return Ok(hasher.bytes(unsafe { std::slice::from_raw_parts(data, len) }));
    }
    // SAFETY: the type is compared before the value is read, which runs no Python code.
    unsafe {
        if ffi::Py_TYPE(key.as_ptr()) == &raw mut ffi::PyLong_Type {
            let mut overflow = 0;
            let value = ffi::PyLong_AsLongLongAndOverflow(key.as_ptr(), &mut overflow);
            if overflow == 0 {
                return Ok(hasher.signed(value));
            }
        }
    }
    // What follows may run a key's own code, which may drop the last other reference to it.
    hash_other(hasher, &key.clone(), row)
}

/// Large integers, subclasses, other bytes-like objects, and everything that is no key.
#[cold]
fn hash_other(hasher: &Hasher, key: &Bound<'_, PyAny>, row: Option<usize>) -> PyResult<KeyHash> {
    if let Ok(text) = key.cast::<pyo3::types::PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(hasher.bytes(text.as_bytes())),
            Err(surrogate) => Err(key_type(key, row, Some(surrogate))),
        };
    }
    // SAFETY: key is a live object.
    let is_index = unsafe { ffi::PyIndex_Check(key.as_ptr()) } != 0;
    if is_index && !key.is_instance_of::<PyBool>() {
        return hash_integer(hasher, key).map_err(|cause| key_type(key, row, Some(cause)));
    }
    hash_buffer(hasher, key).unwrap_or_else(|| Err(key_type(key, row, None)))
}

fn hash_integer(hasher: &Hasher, key: &Bound<'_, PyAny>) -> PyResult<KeyHash> {
    if let Ok(integer) = key.cast::<PyInt>() {
        if let Ok(value) = integer.extract::<i64>() {
            return Ok(hasher.signed(value));
        }
        return integer.extract::<u64>().map(|value| hasher.unsigned(value));
    }
    // NumPy's integers and other types that are an index are keys by their value.
    // SAFETY: PyNumber_Index returns a new reference or sets an error.
    let integer =
        unsafe { Bound::from_owned_ptr_or_err(key.py(), ffi::PyNumber_Index(key.as_ptr())) }?;
    match integer.extract::<i64>() {
        Ok(value) => Ok(hasher.signed(value)),
        Err(_) => integer.extract::<u64>().map(|value| hasher.unsigned(value)),
    }
}

/// A contiguous run of bytes behind the buffer protocol; None if it is none.
fn hash_buffer(hasher: &Hasher, key: &Bound<'_, PyAny>) -> Option<PyResult<KeyHash>> {
    let buffer = crate::buffer::View::of(key, ffi::PyBUF_FORMAT | ffi::PyBUF_C_CONTIGUOUS)?;
    let bytes = matches!(buffer.format(), "B" | "b" | "c") && buffer.dimensions() <= 1;
    // NumPy hands dates out as plain bytes.
    if !bytes || crate::keys::is_date(key) {
        return None;
    }
    // SAFETY: the view is contiguous and stays locked until it is dropped, after the hash.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.data(), buffer.bytes()) };
    Some(Ok(hasher.bytes(bytes)))
}
