//! The calls that are made most often, as short as a call can be: `add` and `count` of one key, and `key in filter`.
//!
//! PyO3's own methods take keywords, which costs a quarter of such a call. `BloomFilter.add` and `count`
//! are C functions of one argument; `add` with its optional count is one of an array of arguments,
//! which hands anything but a lone key to PyO3's method. All are put on the class as method
//! descriptors, which check the type of `self` themselves. `in` of a `BloomFilter` takes the class's slot.

use crate::bloom::BloomFilter;
use crate::count::{
    CountFilter, DynamicCountFilter, PartitionedDynamicCountFilter, PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
};
use crate::counting::CountingBloomFilter;
use crate::decaying::TimeDecayingBloomFilter;
use crate::hot::HotList;
use crate::params;
use crate::python::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyClass, ffi};
use std::ffi::c_int;

type Pointer = *mut ffi::PyObject;

/// A method of a key alone.
macro_rules! of_key {
    ($name:ident, $class:ty, $method:ident) => {
        unsafe extern "C" fn $name(this: Pointer, key: Pointer) -> Pointer {
            // SAFETY: called through the descriptor of that class, or of one that extends it.
            unsafe { call(this, key, <$class>::$method) }
        }
    };
}

/// A method of a key alone, which says of anything more that nothing is counted.
macro_rules! of_key_alone {
    ($name:ident, $class:ty, $method:ident) => {
        unsafe extern "C" fn $name(
            this: Pointer,
            arguments: *mut Pointer,
            positional: ffi::Py_ssize_t,
        ) -> Pointer {
            if positional == 1 {
                // SAFETY: called through the descriptor of that class, with one argument.
                return unsafe { call(this, *arguments, <$class>::$method) };
            }
            // SAFETY: the interpreter gives `positional` arguments.
            unsafe { refuse_all_but_a_key(arguments, positional) }
        }
    };
}

/// A method of a key, which hands a call that says more to PyO3's method of that name.
macro_rules! of_key_or_more {
    ($(#[$attribute:meta])* $name:ident, $class:ty, $method:ident, $full:ident) => {
        $(#[$attribute])*
        unsafe extern "C" fn $name(
            this: Pointer,
            arguments: *const Pointer,
            positional: ffi::Py_ssize_t,
            keywords: Pointer,
        ) -> Pointer {
            if positional == 1 && keywords.is_null() {
                // SAFETY: called through the descriptor of that class, or of one that extends it, with
                // one argument.
                return unsafe { call(this, *arguments, <$class>::$method) };
            }
            // SAFETY: the interpreter gives `positional` arguments and one more for each keyword.
            unsafe { call_with_all(this, arguments, positional, keywords, &$full) }
        }
    };
}

/// PyO3's methods, for calls that say a count, an instant or use keywords.
static ADD_WITH_COUNT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ADD_GROWING_WITH_COUNT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ADD_AT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static COUNT_AT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ADD_HOT_AT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

of_key_alone!(add, BloomFilter, add_one);
of_key!(count, CountingBloomFilter, count_one);
of_key!(count_growing, CountFilter, count_one);
of_key_or_more!(add_counted, CountingBloomFilter, add_one, ADD_WITH_COUNT);
of_key_or_more!(add_growing, CountFilter, add_one, ADD_GROWING_WITH_COUNT);
of_key_or_more!(
    /// The same code for processors that shift and multiply without flags: hashing is mostly products, and
    /// counters are found by shifts.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt")]
    add_growing_newer,
    CountFilter,
    add_one,
    ADD_GROWING_WITH_COUNT
);
of_key_or_more!(add_now, TimeDecayingBloomFilter, add_one, ADD_AT);
of_key_or_more!(count_now, TimeDecayingBloomFilter, count_one, COUNT_AT);
of_key_or_more!(add_hot, HotList, add_one, ADD_HOT_AT);

/// `key in filter`.
unsafe extern "C" fn has(this: Pointer, key: Pointer) -> c_int {
    // SAFETY: called by the interpreter through the slot of that class, which cannot be extended.
    let (py, filter, key) = unsafe { given::<BloomFilter>(&this, &key) };
    match filter.has_one(key) {
        Ok(found) => c_int::from(found),
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// Sets the error of a call with no argument, or with more than a key.
///
/// # Safety
/// Called by the interpreter with so many arguments.
#[cold]
unsafe fn refuse_all_but_a_key(arguments: *const Pointer, positional: ffi::Py_ssize_t) -> Pointer {
    // SAFETY: called by the interpreter, so this thread holds it, and the arguments are there.
    let (py, given) = unsafe {
        let given = std::slice::from_raw_parts(arguments, positional as usize);
        (Python::assume_attached(), given)
    };
    let error = match given.get(1) {
        // SAFETY: the interpreter keeps the arguments alive.
        Some(more) => unsafe {
            params::no_counts(py, "count", &params::shown(Bound::ref_from_ptr(py, more)))
        },
        None => pyo3::exceptions::PyTypeError::new_err("missing required argument: 'key'"),
    };
    error.restore(py);
    std::ptr::null_mut()
}

/// Calls PyO3's method with everything that was given.
///
/// # Safety
/// Called by the interpreter with the arguments of a fast call.
unsafe fn call_with_all(
    this: Pointer,
    arguments: *const Pointer,
    positional: ffi::Py_ssize_t,
    keywords: Pointer,
    method: &PyOnceLock<Py<PyAny>>,
) -> Pointer {
    // SAFETY: called by the interpreter, so this thread holds it.
    let py = unsafe { Python::assume_attached() };
    let Some(method) = method.get(py) else {
        // `install` filled it before the class could be used.
        pyo3::exceptions::PySystemError::new_err("the module is not set up").restore(py);
        return std::ptr::null_mut();
    };
    let named =
        // SAFETY: `keywords` is null or the tuple of names.
        if keywords.is_null() { 0 } else { unsafe { ffi::PyTuple_GET_SIZE(keywords) } };
    // SAFETY: the interpreter promises that many.
    let given = unsafe { std::slice::from_raw_parts(arguments, (positional + named) as usize) };
    let all: Vec<Pointer> = std::iter::once(this).chain(given.iter().copied()).collect();
    // SAFETY: `self` comes first, as a method descriptor wants it; the names belong to the last ones.
    unsafe {
        ffi::PyObject_Vectorcall(method.as_ptr(), all.as_ptr(), 1 + positional as usize, keywords)
    }
}

/// Calls the method and hands its answer, or its error, to the interpreter.
///
/// # Safety
/// Called by the interpreter with a `this` of class C.
#[inline(always)]
unsafe fn call<C, T>(
    this: Pointer,
    key: Pointer,
    method: impl Fn(&C, &Object<'_>) -> PyResult<T>,
) -> Pointer
where
    C: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync,
    T: for<'py> IntoPyObject<'py>,
{
    // SAFETY: the caller's promise.
    let (py, this, key) = unsafe { given::<C>(&this, &key) };
    match method(this, key).and_then(|answer| pyo3::IntoPyObjectExt::into_py_any(answer, py)) {
        Ok(answer) => answer.into_ptr(),
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

/// What a call is about.
///
/// # Safety
/// Called by the interpreter, which keeps both objects alive, with a `this` of class C.
#[inline(always)]
unsafe fn given<'a, C>(this: &'a Pointer, key: &'a Pointer) -> (Python<'a>, &'a C, &'a Object<'a>)
where
    C: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync,
{
    // SAFETY: the caller's promise.
    unsafe {
        let py = Python::assume_attached();
        (
            py,
            Bound::ref_from_ptr(py, this).cast_unchecked::<C>().get(),
            Bound::ref_from_ptr(py, key),
        )
    }
}

struct Definition(ffi::PyMethodDef);
// SAFETY: only read by the interpreter, and never changed.
unsafe impl Sync for Definition {}

static ADD: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"add".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: add },
    ml_flags: ffi::METH_FASTCALL,
    ml_doc: c"add($self, key, /)\n--\n\nAdds the key; True iff it was certainly absent before."
        .as_ptr(),
});

static ADD_COUNTED: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"add".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: add_counted },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"add($self, key, count=1)\n--\n\nAdds `count` occurrences of the key; True iff it was certainly absent before."
        .as_ptr(),
});

static COUNT: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"count".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: count },
    ml_flags: ffi::METH_O,
    ml_doc: c"count($self, key, /)\n--\n\nHow often the key was added: never too small, see `estimate` for the bounds."
        .as_ptr(),
});

static ADD_GROWING: Definition = Definition(ffi::PyMethodDef {
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: add_growing },
    ..ADD_COUNTED.0
});

#[cfg(target_arch = "x86_64")]
static ADD_GROWING_NEWER: Definition = Definition(ffi::PyMethodDef {
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: add_growing_newer },
    ..ADD_COUNTED.0
});

/// The one for this processor.
fn add_growing_at_best() -> &'static Definition {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
    {
        return &ADD_GROWING_NEWER;
    }
    &ADD_GROWING
}

static COUNT_GROWING: Definition = Definition(ffi::PyMethodDef {
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: count_growing },
    ml_doc: c"count($self, key, /)\n--\n\nHow often the key was added: never too small unless a counter is stuck, see `estimate`."
        .as_ptr(),
    ..COUNT.0
});

static ADD_NOW: Definition = Definition(ffi::PyMethodDef {
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: add_now },
    ml_doc: c"add($self, key, count=1, at=None)\n--\n\nAdds `count` occurrences of the key at an instant; True iff it was certainly absent before."
        .as_ptr(),
    ..ADD_COUNTED.0
});

static ADD_HOT: Definition = Definition(ffi::PyMethodDef {
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: add_hot },
    ml_doc: c"add($self, key, count=1, at=None)\n--\n\nAdds `count` occurrences of the key, at an instant or now. A late one weighs what is left of it."
        .as_ptr(),
    ..ADD_COUNTED.0
});

static COUNT_NOW: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"count".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: count_now },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"count($self, key, at=None)\n--\n\nThe decayed sum of the key's occurrences: never too small with rounding=\"strict\"."
        .as_ptr(),
});

/// Puts the methods on their classes.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    keep::<TimeDecayingBloomFilter>(py, "add", &ADD_AT)?;
    keep::<TimeDecayingBloomFilter>(py, "count", &COUNT_AT)?;
    keep::<HotList>(py, "add", &ADD_HOT_AT)?;
    keep::<CountingBloomFilter>(py, "add", &ADD_WITH_COUNT)?;
    keep::<CountFilter>(py, "add", &ADD_GROWING_WITH_COUNT)?;
    put::<TimeDecayingBloomFilter>(py, "add", &ADD_NOW)?;
    put::<TimeDecayingBloomFilter>(py, "count", &COUNT_NOW)?;
    put::<HotList>(py, "add", &ADD_HOT)?;
    put::<BloomFilter>(py, "add", &ADD)?;
    // SAFETY: the class is live, has the slot, and no object of it was asked yet.
    unsafe {
        let class = py.get_type::<BloomFilter>().as_type_ptr();
        (*(*class).tp_as_sequence).sq_contains = Some(has);
    }
    put::<CountingBloomFilter>(py, "add", &ADD_COUNTED)?;
    put::<CountingBloomFilter>(py, "count", &COUNT)?;
    put_growing::<CountFilter>(py)?;
    put_growing::<SpectralBloomFilter>(py)?;
    put_growing::<DynamicCountFilter>(py)?;
    put_growing::<PartitionedSpectralBloomFilter>(py)?;
    put_growing::<PartitionedDynamicCountFilter>(py)
}

/// Keeps PyO3's method, which is about to be replaced.
fn keep<C: PyClass>(py: Python<'_>, name: &str, kept: &PyOnceLock<Py<PyAny>>) -> PyResult<()> {
    let method = py.get_type::<C>().getattr(name)?.unbind();
    kept.get_or_init(py, || method);
    Ok(())
}

/// On each class of its own: the interpreter takes its short way only where the descriptor's class is
/// the object's.
fn put_growing<C: PyClass>(py: Python<'_>) -> PyResult<()> {
    put::<C>(py, "add", add_growing_at_best())?;
    put::<C>(py, "count", &COUNT_GROWING)
}

fn put<C: PyClass>(py: Python<'_>, name: &str, definition: &'static Definition) -> PyResult<()> {
    let class = py.get_type::<C>();
    // SAFETY: the class is live, and the definition lives for ever.
    let method = unsafe {
        let definition = (&raw const definition.0).cast_mut();
        Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))
    }?;
    class.setattr(name, method)
}
