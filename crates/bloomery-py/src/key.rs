//! One Python object to one key, and to its digest.
//!
//! `str` is hashed as its UTF-8 bytes, which for the usual compact ASCII string is the string's own
//! memory. Bytes-like objects are the same keys. Integers have their own domain.

use crate::buffer::View;
use crate::errors::key_type;
use bloomery_core::{Hasher, Key, KeyHash};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

/// The bytes of an exact `str` (true) or `bytes` (false), which live as long as the object.
///
/// # Safety
/// `key` is a live object, and the caller keeps it alive while it uses the bytes.
#[inline(always)]
unsafe fn text_of(key: *mut ffi::PyObject) -> Option<(*const u8, usize, bool)> {
    // SAFETY: the object is live; the checks come before the accesses that need them.
    unsafe {
        let kind = ffi::Py_TYPE(key);
        if kind == &raw mut ffi::PyUnicode_Type {
            if ffi::PyUnicode_IS_COMPACT_ASCII(key) != 0 {
                let data = key.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
                return Some((data, ffi::PyUnicode_GET_LENGTH(key) as usize, true));
            }
            return utf8_of(key);
        }
        if kind == &raw mut ffi::PyBytes_Type {
            let data = ffi::PyBytes_AS_STRING(key).cast::<u8>();
            return Some((data, ffi::Py_SIZE(key) as usize, false));
        }
        None
    }
}

/// The UTF-8 form that a `str` keeps of itself once asked; None for a lone surrogate.
#[cold]
unsafe fn utf8_of(key: *mut ffi::PyObject) -> Option<(*const u8, usize, bool)> {
    let mut len = 0;
    // SAFETY: the caller says it is a live str.
    unsafe {
        let data = ffi::PyUnicode_AsUTF8AndSize(key, &mut len);
        if data.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some((data.cast(), len as usize, true))
    }
}

/// The digest of a key; `row` is its place in a batch, for the error.
#[inline(always)]
pub(crate) fn hash_key(
    hasher: &Hasher,
    key: &Bound<'_, PyAny>,
    row: Option<usize>,
) -> PyResult<KeyHash> {
    with_key(key, row, |key| key.hash(hasher))
}

/// What `then` makes of a key; `row` is its place in a batch, for the error.
#[inline(always)]
pub(crate) fn with_key<T>(
    key: &Bound<'_, PyAny>,
    row: Option<usize>,
    then: impl FnOnce(Key<'_>) -> T,
) -> PyResult<T> {
    // SAFETY: the reference keeps the key alive during this call.
    if let Some((data, len, text)) = unsafe { text_of(key.as_ptr()) } {
        // SAFETY: text_of returned the object's own memory.
        let bytes = unsafe { std::slice::from_raw_parts(data, len) };
        return Ok(then(if text { Key::Text(bytes) } else { Key::Bytes(bytes) }));
    }
    // SAFETY: the type is compared before the value is read, which runs no Python code.
    unsafe {
        if ffi::Py_TYPE(key.as_ptr()) == &raw mut ffi::PyLong_Type {
            let mut overflow = 0;
            let value = ffi::PyLong_AsLongLongAndOverflow(key.as_ptr(), &mut overflow);
            if overflow == 0 {
                return Ok(then(Key::from(value)));
            }
        }
    }
    // What follows may run a key's own code, which may drop the last other reference to it.
    with_other(&key.clone(), row, then)
}

/// Large integers, subclasses, other bytes-like objects, and everything that is no key.
#[cold]
fn with_other<T>(
    key: &Bound<'_, PyAny>,
    row: Option<usize>,
    then: impl FnOnce(Key<'_>) -> T,
) -> PyResult<T> {
    if let Ok(text) = key.cast::<pyo3::types::PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(then(Key::Text(text.as_bytes()))),
            Err(surrogate) => Err(key_type(key, row, Some(surrogate))),
        };
    }
    // SAFETY: key is a live object.
    let is_index = unsafe { ffi::PyIndex_Check(key.as_ptr()) } != 0;
    if is_index && !key.is_instance_of::<PyBool>() {
        return match integer(key) {
            Ok(value) => Ok(then(value)),
            Err(cause) => Err(key_type(key, row, Some(cause))),
        };
    }
    match bytes_behind(key) {
        Some(view) => {
            // SAFETY: the view is contiguous and stays locked until it is dropped, after the call.
            let bytes = unsafe { std::slice::from_raw_parts(view.data(), view.bytes()) };
            Ok(then(Key::Bytes(bytes)))
        }
        None => Err(key_type(key, row, None)),
    }
}

fn integer(key: &Bound<'_, PyAny>) -> PyResult<Key<'static>> {
    let of = |integer: &Bound<'_, PyAny>| match integer.extract::<i64>() {
        Ok(value) => Ok(Key::from(value)),
        Err(_) => integer.extract::<u64>().map(Key::Unsigned),
    };
    if let Ok(integer) = key.cast::<PyInt>() {
        return of(integer);
    }
    // NumPy's integers and other types that are an index are keys by their value.
    // SAFETY: PyNumber_Index returns a new reference or sets an error.
    of(&unsafe { Bound::from_owned_ptr_or_err(key.py(), ffi::PyNumber_Index(key.as_ptr())) }?)
}

/// A contiguous run of bytes behind the buffer protocol; None if it is none.
fn bytes_behind(key: &Bound<'_, PyAny>) -> Option<View> {
    let view = View::of(key, ffi::PyBUF_FORMAT | ffi::PyBUF_C_CONTIGUOUS)?;
    let bytes = matches!(view.format(), "B" | "b" | "c") && view.dimensions() <= 1;
    // NumPy hands dates out as plain bytes.
    (bytes && !crate::keys::is_date(key)).then_some(view)
}
