//! The items of a list or a tuple, read by many threads while one of them holds the interpreter.
//!
//! Holding it means that no other Python thread runs: nobody changes the list, drops a key or collects
//! garbage. Exact `str`, `bytes` and `int` never change either, so that reading them is reading memory,
//! and for that a thread need not be known to the interpreter. No reference is counted. Python without a
//! global lock has no such moment, so there only the thread that was called reads.

use crate::key::hash_plain;
use crate::python::*;
use bloomtide_core::batch::split;
use bloomtide_core::{Crew, Hasher, KeyHash};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::types::{PyBytes, PyInt, PyList, PyString};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// How many keys ahead headers are prefetched.
pub(super) const AHEAD: usize = 12;

/// Some rows of a list or tuple. Valid until the interpreter is let go or a key's own code runs.
pub(super) struct Items<'a>(&'a [*mut ffi::PyObject]);

// SAFETY: used only while the thread that made it holds the interpreter, so the objects stay as they are.
unsafe impl Sync for Items<'_> {}

impl<'a> Items<'a> {
    /// How many threads of a crew may read so many rows.
    pub(super) fn readers(crew: &mut Crew, rows: usize) -> usize {
        if cfg!(Py_GIL_DISABLED) { 1 } else { crew.muster(rows).count() }
    }

    /// Rows of a list or tuple that should still have `len` items.
    pub(super) fn of(keys: &'a Object<'_>, rows: Range<usize>, len: usize) -> PyResult<Self> {
        let first = first_item(keys, len)?;
        debug_assert!(rows.start <= rows.end && rows.end <= len);
        // SAFETY: the size was compared just now, and the rows are inside.
        Ok(Items(unsafe { std::slice::from_raw_parts(first.add(rows.start), rows.len()) }))
    }

    /// One item, borrowed, of a list or tuple that should still have `len` of them: a key's own
    /// code, or another thread while the interpreter was let go, may have changed a list.
    #[inline(always)]
    pub(super) fn item(keys: &Object<'_>, row: usize, len: usize) -> PyResult<*mut ffi::PyObject> {
        let first = first_item(keys, len)?;
        debug_assert!(row < len);
        // SAFETY: the size was compared just now, and the row is inside.
        Ok(unsafe { *first.add(row) })
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// One of the items.
    pub(super) fn get<'py>(&self, py: Python<'py>, at: usize) -> Borrowed<'a, 'py, PyAny> {
        // SAFETY: the list holds a reference to it as long as these items are valid.
        unsafe { Borrowed::from_ptr(py, self.pointer(at)) }
    }

    #[inline(always)]
    fn pointer(&self, at: usize) -> *mut ffi::PyObject {
        self.0[at]
    }

    /// Hashes the items that are plain memory, with all threads; the places of the others, in order.
    pub(super) fn hash_plain(
        &self,
        hasher: &Hasher,
        out: &mut [KeyHash],
        crew: &mut Crew,
    ) -> Vec<usize> {
        let others = Mutex::new(Vec::new());
        split(out, crew, |rows, out| {
            // SAFETY: the caller holds the interpreter until all threads are done.
            let found = unsafe { self.hash_rows(hasher, rows, out) };
            locked(&others).extend(found);
        });
        let mut others = others.into_inner().unwrap_or_else(PoisonError::into_inner);
        others.sort_unstable();
        others
    }

    /// Hashes some of the items; the places of those that are not plain memory.
    ///
    /// # Safety
    /// The interpreter is held until it returns.
    unsafe fn hash_rows(
        &self,
        hasher: &Hasher,
        rows: Range<usize>,
        out: &mut [KeyHash],
    ) -> Vec<usize> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
            /// For processors that multiply without flags: XXH3 is mostly 128-bit products.
            #[target_feature(enable = "bmi1,bmi2")]
            unsafe fn newer(
                items: &Items<'_>,
                hasher: &Hasher,
                rows: Range<usize>,
                out: &mut [KeyHash],
            ) -> Vec<usize> {
                // SAFETY: the caller's promise.
                unsafe { items.hash_each(hasher, rows, out) }
            }
            // SAFETY: the processor has the instructions; the caller's promise.
            return unsafe { newer(self, hasher, rows, out) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.hash_each(hasher, rows, out) }
    }

    #[inline(always)]
    unsafe fn hash_each(
        &self,
        hasher: &Hasher,
        rows: Range<usize>,
        out: &mut [KeyHash],
    ) -> Vec<usize> {
        let mut others = Vec::new();
        for (at, slot) in rows.zip(out) {
            if at + AHEAD < self.len() {
                prefetch(self.pointer(at + AHEAD));
            }
            // SAFETY: the caller's promise.
            match unsafe { hash_plain(hasher, self.pointer(at)) } {
                Some(digest) => *slot = digest,
                None => others.push(at),
            }
        }
        others
    }
}

/// Where the items begin, if there are still `len` of them.
#[inline(always)]
fn first_item(keys: &Object<'_>, len: usize) -> PyResult<*const *mut ffi::PyObject> {
    let object = keys.as_ptr();
    // SAFETY: the caller has a list or a tuple.
    unsafe {
        if ffi::Py_SIZE(object) as usize != len {
            return Err(PyRuntimeError::new_err("keys changed size during the batch"));
        }
        if keys.is_exact_instance_of::<PyList>() {
            return Ok((*object.cast::<ffi::PyListObject>()).ob_item);
        }
        Ok((&raw const (*object.cast::<ffi::PyTupleObject>()).ob_item).cast())
    }
}

/// Whether hashing the key runs no code but ours: its type is one of Python's own.
pub(super) fn has_no_code(key: &Object<'_>) -> bool {
    key.is_none()
        || key.is_exact_instance_of::<PyString>()
        || key.is_exact_instance_of::<PyBytes>()
        || key.is_exact_instance_of::<PyInt>()
}

/// Asks the processor for a key's header and the text behind it.
#[inline(always)]
pub(super) fn prefetch(object: *const ffi::PyObject) {
    bloomtide_core::batch::prefetch(object);
    // A URL's text reaches into the next line.
    bloomtide_core::batch::prefetch(object.cast::<u8>().wrapping_add(64));
}
