//! One Python object to one digest.
//!
//! `str` is hashed as its UTF-8 bytes, which for the usual compact ASCII string is the string's own
//! memory. Bytes-like objects are the same keys. Integers have their own domain.

use crate::errors::key_type;
use bloomery_core::{Hasher, KeyHash};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// The digest of a key that is plain memory: an exact `str` of ASCII, `bytes`, or an `int` of 64 bits.
///
/// # Safety
/// `key` is a live object that stays alive and as it is during the call: its owner holds the interpreter. It
/// may be another thread's to hold, since nothing but the object's own, immutable memory is read.
#[inline(always)]
pub(crate) unsafe fn hash_plain(hasher: &Hasher, key: *mut ffi::PyObject) -> Option<KeyHash> {
    // SAFETY: the object is live; the type is compared before the accesses that need it.
    unsafe {
        let kind = ffi::Py_TYPE(key);
        let (data, len) = if kind == &raw mut ffi::PyUnicode_Type {
            if ffi::PyUnicode_IS_COMPACT_ASCII(key) == 0 {
                return None;
            }
            let data = key.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
            (data, ffi::PyUnicode_GET_LENGTH(key) as usize)
        } else if kind == &raw mut ffi::PyBytes_Type {
            (ffi::PyBytes_AS_STRING(key).cast::<u8>().cast_mut(), ffi::Py_SIZE(key) as usize)
        } else if kind == &raw mut ffi::PyLong_Type {
            let mut overflow = 0;
            // For an exact int this only reads its digits.
            let value = ffi::PyLong_AsLongLongAndOverflow(key, &mut overflow);
            return (overflow == 0).then(|| hasher.signed(value));
        } else {
            return None;
        };
        Some(hasher.bytes(std::slice::from_raw_parts(data, len)))
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
    // SAFETY: the reference keeps the key alive, and this thread holds the interpreter.
    if let Some(digest) = unsafe { hash_plain(hasher, key.as_ptr()) } {
        return Ok(digest);
    }
    // SAFETY: as above; the type is compared first.
    unsafe {
        if ffi::Py_TYPE(key.as_ptr()) == &raw mut ffi::PyUnicode_Type
            && let Some((data, len)) = utf8_of(key.as_ptr())
        {
            return Ok(hasher.bytes(std::slice::from_raw_parts(data, len)));
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
