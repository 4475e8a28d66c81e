//! The buffer protocol, held open by a guard.

use crate::python::*;
use pyo3::ffi;
use std::ffi::{CStr, c_int};

/// A view of another object's memory; its owner cannot resize it meanwhile.
pub(crate) struct View(Box<ffi::Py_buffer>);

impl View {
    /// The object's memory, if it offers it in that form.
    pub(crate) fn of(object: &Object<'_>, flags: c_int) -> Option<Self> {
        // SAFETY: object is live; a failed call leaves an error, which is cleared.
        unsafe {
            if ffi::PyObject_CheckBuffer(object.as_ptr()) == 0 {
                return None;
            }
            let mut view = Box::new(ffi::Py_buffer::new());
            if ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) != 0 {
                ffi::PyErr_Clear();
                return None;
            }
            Some(View(view))
        }
    }

    /// The format of an item, as `struct` spells it.
    pub(crate) fn format(&self) -> &str {
        if self.0.format.is_null() {
            return "B";
        }
        // SAFETY: the owner gives a C string that lives as long as the view.
        unsafe { CStr::from_ptr(self.0.format) }.to_str().unwrap_or("?")
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.0.ndim as usize
    }

    pub(crate) fn data(&self) -> *mut u8 {
        let data: *mut u8 = self.0.buf.cast();
        if data.is_null() { std::ptr::NonNull::dangling().as_ptr() } else { data }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len as usize
    }

    /// The bytes of a contiguous view.
    pub(crate) fn slice(&self) -> &[u8] {
        // SAFETY: the view keeps that many bytes in place as long as it lives.
        unsafe { std::slice::from_raw_parts(self.data().cast_const(), self.bytes()) }
    }

    pub(crate) fn item_bytes(&self) -> usize {
        self.0.itemsize as usize
    }

    /// Items of a one-dimensional view, and the distance between them in bytes.
    pub(crate) fn line(&self) -> (usize, isize) {
        // SAFETY: asked for with strides and one dimension, so both arrays have an entry.
        unsafe { (*self.0.shape as usize, *self.0.strides) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // Cheap if the interpreter is held already, as it nearly always is.
        Python::attach(|_| {
            // SAFETY: the view was filled by PyObject_GetBuffer and is released once.
            unsafe { ffi::PyBuffer_Release(&mut *self.0) };
        });
    }
}

// SAFETY: the memory is only read, through raw pointers, while the view keeps it in place.
unsafe impl Sync for View {}
// SAFETY: as above; whichever thread drops it holds the interpreter for that.
unsafe impl Send for View {}
