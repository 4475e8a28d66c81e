//! The Arrow C data and stream interfaces, as their specification lays the structures out, and guards
//! that release what a producer handed over.

use crate::python::*;
use pyo3::exceptions::PyValueError;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_char, c_int, c_void};

#[repr(C)]
pub(super) struct ArrowSchema {
    pub(super) format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub(super) struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub(super) struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

macro_rules! released_on_drop {
    ($guard:ident, $inner:ident) => {
        /// Owns the structure and releases it.
        pub(super) struct $guard(pub(super) Box<$inner>);

        impl $guard {
            /// Takes the structure out of a capsule, which keeps an already released shell.
            fn take(capsule: &Object<'_>, name: &CStr) -> PyResult<Self> {
                let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
                let shell = pointer.as_ptr().cast::<$inner>();
                // SAFETY: the capsule's name says what it points to; moving it out is what the
                // specification asks of a consumer, with `release` set to null behind it.
                unsafe {
                    let moved = $guard(Box::new(shell.read()));
                    (*shell).release = None;
                    Ok(moved)
                }
            }
        }

        impl Drop for $guard {
            fn drop(&mut self) {
                if let Some(release) = self.0.release {
                    // SAFETY: the producer's own function, called once.
                    unsafe { release(&mut *self.0) };
                }
            }
        }
    };
}

released_on_drop!(Schema, ArrowSchema);
released_on_drop!(Array, ArrowArray);
released_on_drop!(Stream, ArrowArrayStream);

/// Structures that a producer fills in place.
trait Empty: Sized {
    fn empty() -> Box<Self> {
        // SAFETY: all fields are integers, pointers or optional functions: zero is valid.
        Box::new(unsafe { std::mem::zeroed() })
    }
}
impl Empty for ArrowSchema {}
impl Empty for ArrowArray {}

/// Arrays of one type, one after the other.
pub(super) enum Arrays {
    Stream(Stream),
    One(Option<Array>),
}

/// What an object exports, if it speaks Arrow at all.
pub(super) fn export(object: &Object<'_>) -> PyResult<Option<(Schema, Arrays)>> {
    // A class has the attribute too, but unbound.
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let mut stream = Stream::take(&capsule, c"arrow_array_stream")?;
        let mut schema = Schema(ArrowSchema::empty());
        let Some(get_schema) = stream.0.get_schema else { return Ok(None) };
        // SAFETY: the stream is live, and the schema is an empty structure to fill.
        let code = unsafe { get_schema(&mut *stream.0, &mut *schema.0) };
        stream.check(code)?;
        return Ok(Some((schema, Arrays::Stream(stream))));
    }
    if object.hasattr("__arrow_c_array__")? {
        let (schema, array): (Object<'_>, Object<'_>) =
            object.call_method0("__arrow_c_array__")?.extract()?;
        let schema = Schema::take(&schema, c"arrow_schema")?;
        return Ok(Some((schema, Arrays::One(Some(Array::take(&array, c"arrow_array")?)))));
    }
    Ok(None)
}

impl Arrays {
    /// The next array, or None at the end.
    pub(super) fn next(&mut self) -> PyResult<Option<Array>> {
        match self {
            Arrays::One(array) => Ok(array.take()),
            Arrays::Stream(stream) => {
                let mut array = Array(ArrowArray::empty());
                let Some(get_next) = stream.0.get_next else { return Ok(None) };
                // SAFETY: the stream is live, and the array is an empty structure to fill.
                let code = unsafe { get_next(&mut *stream.0, &mut *array.0) };
                stream.check(code)?;
                Ok(array.0.release.is_some().then_some(array))
            }
        }
    }
}

impl Stream {
    fn check(&mut self, code: c_int) -> PyResult<()> {
        if code == 0 {
            return Ok(());
        }
        // A producer written in Python may have raised.
        if let Some(error) = Python::attach(PyErr::take) {
            return Err(error);
        }
        let message = self.0.get_last_error.and_then(|get| {
            // SAFETY: the stream is live; the text lives until the next call on it.
            let text = unsafe { get(&mut *self.0) };
            // SAFETY: null or a C string, by the specification.
            (!text.is_null())
                .then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        let message = message.unwrap_or_else(|| format!("error {code}"));
        Err(PyValueError::new_err(format!("the Arrow stream failed: {message}")))
    }
}
