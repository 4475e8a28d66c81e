//! One Python object to one key, and to its digest.
//!
//! `str` is hashed as its UTF-8 bytes, which for the usual compact ASCII string is the string's own
//! memory. Bytes-like objects are the same keys. Integers have their own domain.

use crate::buffer::View;
use crate::errors::{key_type, text_type};
use crate::python::*;
use bloomtide_core::{Hasher, Key, KeyHash};
use pyo3::ffi;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

/// A key that is plain memory: an exact `str` of ASCII, `bytes`, or an `int` of 64 bits.
///
/// # Safety
/// `key` is a live object that stays alive and as it is while the result is used: its owner holds the
/// interpreter. It may be another thread's to hold, since nothing but the object's own, immutable memory is read.
#[inline(always)]
unsafe fn plain_of<'a>(key: *mut ffi::PyObject) -> Option<Key<'a>> {
    // SAFETY: the object is live; the type is compared before the accesses that need it.
    unsafe {
        let kind = ffi::Py_TYPE(key);
        if kind == &raw mut ffi::PyUnicode_Type {
            if ffi::PyUnicode_IS_COMPACT_ASCII(key) == 0 {
                return None;
            }
            let data = key.cast::<ffi::PyASCIIObject>().add(1).cast::<u8>();
            let len = ffi::PyUnicode_GET_LENGTH(key) as usize;
            return Some(Key::Text(std::slice::from_raw_parts(data, len)));
        }
        if kind == &raw mut ffi::PyBytes_Type {
            let data = ffi::PyBytes_AS_STRING(key).cast::<u8>();
            return Some(Key::Bytes(std::slice::from_raw_parts(data, ffi::Py_SIZE(key) as usize)));
        }
        if kind == &raw mut ffi::PyLong_Type {
            let mut overflow = 0;
            // For an exact int this only reads its digits.
            let value = ffi::PyLong_AsLongLongAndOverflow(key, &mut overflow);
            return (overflow == 0).then(|| Key::from(value));
        }
        None
    }
}

/// The digest of a key that is plain memory.
///
/// # Safety
/// As of `plain_of`, during the call.
#[inline(always)]
pub(crate) unsafe fn hash_plain(hasher: &Hasher, key: *mut ffi::PyObject) -> Option<KeyHash> {
    // SAFETY: the caller's promise.
    let key = unsafe { plain_of(key) }?;
    // No closure: it would be a call of its own.
    Some(key.hash(hasher))
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

/// Texts that were made one after the other mostly lie one after the other, and so do their calls come: a few of them
/// ahead, in bytes. The processor itself looks ahead only to the end of a page.
const AHEAD: usize = 512;

/// The digest of a key; `row` is its place in a batch, for the error.
#[inline(always)]
pub(crate) fn hash_key(hasher: &Hasher, key: &Object<'_>, row: Option<usize>) -> PyResult<KeyHash> {
    bloomtide_core::batch::prefetch(key.as_ptr().cast::<u8>().wrapping_add(AHEAD));
    // SAFETY: the reference keeps the key alive, and this thread holds the interpreter.
    match unsafe { hash_plain(hasher, key.as_ptr()) } {
        Some(hash) => Ok(hash),
        None => hash_any(hasher, key, row),
    }
}

/// The same for keys that are more than plain memory.
#[inline(never)]
fn hash_any(hasher: &Hasher, key: &Object<'_>, row: Option<usize>) -> PyResult<KeyHash> {
    with_key(key, row, |key| key.hash(hasher))
}

/// A key that is plain memory.
#[inline(always)]
pub(crate) fn plain<'a>(key: &'a Object<'_>) -> Option<Key<'a>> {
    // SAFETY: the reference keeps the key alive, and this thread holds the interpreter.
    unsafe { plain_of(key.as_ptr()) }
}

/// What `then` makes of a key; `row` is its place in a batch, for the error.
#[inline(always)]
pub(crate) fn with_key<T>(
    key: &Object<'_>,
    row: Option<usize>,
    then: impl FnOnce(Key<'_>) -> T,
) -> PyResult<T> {
    if let Some(key) = plain(key) {
        return Ok(then(key));
    }
    // SAFETY: this thread holds the interpreter, and the type is compared first.
    unsafe {
        if ffi::Py_TYPE(key.as_ptr()) == &raw mut ffi::PyUnicode_Type
            && let Some((data, len)) = utf8_of(key.as_ptr())
        {
            return Ok(then(Key::Text(std::slice::from_raw_parts(data, len))));
        }
    }
    // What follows may run a key's own code, which may drop the last other reference to it.
    with_other(&key.clone(), row, then)
}

/// A key as it is handed back.
pub(crate) fn to_object<'py>(py: Python<'py>, key: Key<'_>) -> Object<'py> {
    match key {
        // A producer of text may have broken its word; then it is bytes.
        Key::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => PyString::new(py, text).into_any(),
            Err(_) => PyBytes::new(py, bytes).into_any(),
        },
        Key::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Key::Unsigned(value) => PyInt::new(py, value).into_any(),
        Key::Negative(value) => PyInt::new(py, value).into_any(),
    }
}

/// The same for structures whose keys are texts: an integer is none.
#[inline(always)]
pub(crate) fn with_text<T>(
    key: &Object<'_>,
    row: Option<usize>,
    then: impl FnOnce(Key<'_>) -> T,
) -> PyResult<T> {
    let kept = with_key(key, row, |text| match text {
        Key::Text(_) | Key::Bytes(_) => Some(then(text)),
        _ => None,
    });
    kept?.ok_or_else(|| text_type(key, row))
}

/// Large integers, subclasses, other bytes-like objects, and everything that is no key.
#[cold]
fn with_other<T>(
    key: &Object<'_>,
    row: Option<usize>,
    then: impl FnOnce(Key<'_>) -> T,
) -> PyResult<T> {
    if let Ok(text) = key.cast::<PyString>() {
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
        Some(view) => Ok(then(Key::Bytes(view.slice()))),
        None => Err(key_type(key, row, None)),
    }
}

fn integer(key: &Object<'_>) -> PyResult<Key<'static>> {
    let of = |integer: &Object<'_>| match integer.extract::<i64>() {
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
fn bytes_behind(key: &Object<'_>) -> Option<View> {
    let view = View::of(key, ffi::PyBUF_FORMAT | ffi::PyBUF_C_CONTIGUOUS)?;
    let bytes = matches!(view.format(), "B" | "b" | "c") && view.dimensions() <= 1;
    // NumPy hands dates out as plain bytes.
    (bytes && !crate::keys::is_date(key)).then_some(view)
}
