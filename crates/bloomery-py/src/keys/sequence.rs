//! Lists, tuples and iterables of Python objects.
//!
//! A chunk of keys is hashed while the interpreter is held, because only it keeps the objects alive
//! and in place; then it is let go, and the core applies the digests. Taking a reference to every key
//! instead, so that threads could hash without the interpreter, was slower: it writes to
//! every object's header twice, and fresh strings lie all over memory. For the same reason the
//! headers of the keys ahead are prefetched while one is hashed.

use super::{Answers, Batch, Options};
use crate::errors::with_added;
use crate::key::hash_key;
use bloomery_core::KeyHash;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Keys hashed at once: their digests stay in the cache, and another Python thread waits for the
/// interpreter no longer than half a millisecond.
const CHUNK: usize = 1 << 15;
/// How many keys ahead headers are prefetched.
const AHEAD: usize = 12;

/// A list or a tuple.
pub(super) fn run<B: Batch>(
    batch: &B,
    keys: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Answers<B>> {
    let py = keys.py();
    let hasher = batch.hasher();
    let len = keys.len()?;
    let mut answers = Answers::with_capacity(len);
    let mut digests = Vec::with_capacity(CHUNK.min(len));
    while answers.rows() < len {
        digests.clear();
        let start = answers.rows();
        let end = len.min(start + CHUNK);
        let outcome = (start..end).try_for_each(|row| {
            let key = item(keys, row, len)?;
            if row + AHEAD < end {
                prefetch(item(keys, row + AHEAD, len)?);
            }
            // SAFETY: the list holds a reference to the key; `hash_key` takes its own one before it
            // calls anything that could change the list.
            let key = unsafe { Borrowed::from_ptr(py, key) };
            digests.push(hash_key(&hasher, &key, Some(row))?);
            Ok(())
        });
        apply(&mut answers, py, batch, &digests, options, outcome)?;
    }
    Ok(answers)
}

/// Applies what was hashed, and tells the error that ended it, if any, how far the batch came.
fn apply<B: Batch>(
    answers: &mut Answers<B>,
    py: Python<'_>,
    batch: &B,
    digests: &[KeyHash],
    options: Options,
    outcome: PyResult<()>,
) -> PyResult<()> {
    answers.extend(py, batch, digests, options.threads)?;
    outcome.map_err(|error| with_added(py, error, answers.rows()))
}

/// An item of a list or tuple that should still have `len` of them: a key's own code, or another
/// thread while the interpreter was let go, may have changed a list.
#[inline(always)]
fn item(keys: &Bound<'_, PyAny>, row: usize, len: usize) -> PyResult<*mut ffi::PyObject> {
    let object = keys.as_ptr();
    // SAFETY: the caller has a list or a tuple; the size is compared before the item is read.
    unsafe {
        if ffi::Py_SIZE(object) as usize != len || row >= len {
            return Err(PyRuntimeError::new_err("keys changed size during the batch"));
        }
        if keys.is_exact_instance_of::<PyList>() {
            return Ok(*(*object.cast::<ffi::PyListObject>()).ob_item.add(row));
        }
        let items = &raw const (*object.cast::<ffi::PyTupleObject>()).ob_item;
        Ok(*items.cast::<*mut ffi::PyObject>().add(row))
    }
}

#[inline(always)]
fn prefetch(object: *const ffi::PyObject) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(object.cast(), _MM_HINT_T0);
        // A URL's text reaches into the next line.
        _mm_prefetch(object.cast::<i8>().wrapping_add(64), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

/// Anything that can be iterated over.
pub(super) fn run_iterable<B: Batch>(
    batch: &B,
    keys: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Answers<B>> {
    let py = keys.py();
    let hasher = batch.hasher();
    let mut iterator = keys.try_iter().map_err(|_| {
        let kind = keys.get_type().qualname().map_or_else(|_| "?".to_owned(), |n| n.to_string());
        let hint = "give a list, an iterator, a NumPy array or an Arrow array of keys";
        crate::errors::parameter(py, "keys", kind, "an iterable of keys", hint)
    })?;
    let mut answers = Answers::with_capacity(0);
    let mut digests = Vec::new();
    loop {
        digests.clear();
        let start = answers.rows();
        let outcome = iterator.by_ref().take(CHUNK).try_for_each(|key| {
            digests.push(hash_key(&hasher, &key?, Some(start + digests.len()))?);
            Ok(())
        });
        if digests.is_empty() && outcome.is_ok() {
            return Ok(answers);
        }
        apply(&mut answers, py, batch, &digests, options, outcome)?;
    }
}
