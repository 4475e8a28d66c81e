//! Lists, tuples and iterables of Python objects.
//!
//! The keys of a chunk are pinned while the interpreter is held: a reference is taken, and where
//! its text lies is noted. Then the interpreter is let go and the core hashes that memory, with as
//! many threads as asked for. Fresh strings lie all over memory, so the headers of the keys ahead are
//! prefetched while one is pinned.

use super::{Answers, Batch, Options};
use crate::errors::with_added;
use crate::key::{hash_key, text_of};
use bloomery_core::{Hasher, KeyHash, KeySource};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Keys pinned at once: their strings should still be in the cache when they are hashed.
const CHUNK: usize = 1 << 14;
/// How many keys ahead headers are prefetched.
const AHEAD: usize = 16;

/// Where a key's text lies, or its digest if it had to be hashed with the interpreter held.
#[derive(Clone, Copy)]
enum Pin {
    Text(*const u8, usize),
    Digest(KeyHash),
}

/// A chunk of pinned keys.
struct Pins<'py> {
    py: Python<'py>,
    pins: Vec<Pin>,
    /// The objects whose memory the texts are.
    kept: Vec<*mut ffi::PyObject>,
}

impl<'py> Pins<'py> {
    fn new(py: Python<'py>) -> Self {
        Pins { py, pins: Vec::with_capacity(CHUNK), kept: Vec::with_capacity(CHUNK) }
    }

    /// Pins one more key; `row` is its place in the batch.
    ///
    /// # Safety
    /// `key` is a live object.
    #[inline(always)]
    unsafe fn push(
        &mut self,
        hasher: &Hasher,
        key: *mut ffi::PyObject,
        row: usize,
    ) -> PyResult<()> {
        // SAFETY: the caller says so; the reference taken keeps the text in place.
        unsafe {
            if let Some((data, len)) = text_of(key) {
                ffi::Py_INCREF(key);
                self.kept.push(key);
                self.pins.push(Pin::Text(data, len));
                return Ok(());
            }
            // Integers are cheap to hash, and a bytearray may change once the interpreter is let go.
            let key = Bound::from_borrowed_ptr(self.py, key);
            self.pins.push(Pin::Digest(hash_key(hasher, &key, Some(row))?));
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.pins.clear();
        for key in self.kept.drain(..) {
            // SAFETY: `push` took this reference.
            unsafe { ffi::Py_DECREF(key) };
        }
    }
}

impl Drop for Pins<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The pins without the interpreter.
struct Rows<'a>(&'a [Pin]);
// SAFETY: a pinned text does not move or change while its object is kept.
unsafe impl Sync for Rows<'_> {}
// SAFETY: as above.
unsafe impl Send for Rows<'_> {}

impl KeySource for Rows<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        match self.0[row] {
            // SAFETY: the text is kept in place while the rows exist.
            Pin::Text(data, len) => hasher.bytes(unsafe { std::slice::from_raw_parts(data, len) }),
            Pin::Digest(digest) => digest,
        }
    }
}

/// Runs what is pinned, and tells `error`, if any, how far the batch came.
fn finish<B: Batch>(
    answers: &mut Answers<B>,
    batch: &B,
    pins: &mut Pins<'_>,
    threads: usize,
    outcome: PyResult<()>,
) -> PyResult<()> {
    answers.extend(pins.py, batch, &Rows(&pins.pins), threads)?;
    pins.clear();
    outcome.map_err(|error| with_added(pins.py, error, answers.rows()))
}

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
    let mut pins = Pins::new(py);
    while answers.rows() < len {
        let start = answers.rows();
        let rows = CHUNK.min(len - start) * options.threads;
        let end = len.min(start + rows);
        // Another thread may have changed the list while the interpreter was let go.
        let items = items_of(keys, len)?;
        let outcome = (start..end).try_for_each(|row| {
            // SAFETY: the list still has `len` items, which it keeps alive; nothing here runs
            // Python code that could change it, except when a key is refused.
            unsafe {
                let ahead = (row + AHEAD).min(end - 1);
                prefetch(*items.add(ahead));
                pins.push(&hasher, *items.add(row), row)
            }
        });
        finish(&mut answers, batch, &mut pins, options.threads, outcome)?;
    }
    Ok(answers)
}

/// The items of a list or tuple that has `len` of them.
fn items_of(keys: &Bound<'_, PyAny>, len: usize) -> PyResult<*const *mut ffi::PyObject> {
    if keys.len()? != len {
        return Err(PyRuntimeError::new_err("keys changed size during the batch"));
    }
    let object = keys.as_ptr();
    // SAFETY: the type was checked; the items are `len` pointers in a row.
    unsafe {
        if keys.is_exact_instance_of::<PyList>() {
            return Ok((*object.cast::<ffi::PyListObject>()).ob_item.cast_const());
        }
        debug_assert!(keys.is_exact_instance_of::<PyTuple>());
        Ok((&raw const (*object.cast::<ffi::PyTupleObject>()).ob_item).cast())
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
        _mm_prefetch(object.cast::<i8>().add(64), _MM_HINT_T0);
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
    let mut pins = Pins::new(py);
    loop {
        let mut outcome = Ok(());
        while pins.pins.len() < CHUNK * options.threads {
            let row = answers.rows() + pins.pins.len();
            let pinned = match iterator.next() {
                None => break,
                // SAFETY: `key` is alive, and `push` takes a reference where it needs one.
                Some(key) => key.and_then(|key| unsafe { pins.push(&hasher, key.as_ptr(), row) }),
            };
            if pinned.is_err() {
                outcome = pinned;
                break;
            }
        }
        if pins.pins.is_empty() && outcome.is_ok() {
            return Ok(answers);
        }
        finish(&mut answers, batch, &mut pins, options.threads, outcome)?;
    }
}
