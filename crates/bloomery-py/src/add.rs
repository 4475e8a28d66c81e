//! `BloomFilter.add`, the call that is made most often, as short as a call can be.
//!
//! PyO3's own methods take keywords, which costs a quarter of the call; this is a C function of one
//! argument, put on the class as a method descriptor, which checks the type of `self` itself.

use crate::bloom::BloomFilter;
use pyo3::ffi;
use pyo3::prelude::*;

unsafe extern "C" fn add(this: *mut ffi::PyObject, key: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter, so this thread holds it.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the descriptor checked the type, and the interpreter keeps both objects alive.
    let (this, key) = unsafe {
        let this = Bound::ref_from_ptr(py, &this).cast_unchecked::<BloomFilter>();
        (this, Bound::ref_from_ptr(py, &key))
    };
    match this.get().add_one(key) {
        Ok(new) => {
            // SAFETY: True and False live for ever; a new reference is what a function returns.
            unsafe {
                let answer = if new { ffi::Py_True() } else { ffi::Py_False() };
                ffi::Py_INCREF(answer);
                answer
            }
        }
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

struct Definition(ffi::PyMethodDef);
// SAFETY: only read by the interpreter, and never changed.
unsafe impl Sync for Definition {}

static ADD: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"add".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: add },
    ml_flags: ffi::METH_O,
    ml_doc: c"add($self, key, /)\n--\n\nAdds the key; True iff it was certainly absent before."
        .as_ptr(),
});

/// Puts `add` on the class.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<BloomFilter>();
    // SAFETY: the class is live, and the definition lives for ever.
    let method = unsafe {
        let definition = (&raw const ADD.0).cast_mut();
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))
    }?;
    class.setattr("add", method)
}
