//! Core errors become the classes of `bloomtide.errors`, which also has their hints.

use crate::params::{Times, shown};
use crate::python::*;
use crate::records::fields;
use bloomtide_core::Error;
use bloomtide_core::format::Kind;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::types::PyDict;

/// What a function of `bloomtide.errors` makes. If even that fails, the failure is the error.
fn made<'py>(py: Python<'py>, function: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let module = py.import("bloomtide.errors");
    let made = module.and_then(|module| module.getattr(function)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An error of that class with these fields, one of which may be its `hint`.
pub(crate) fn raise<'py>(
    py: Python<'py>,
    class: &str,
    message: &str,
    fields: impl FnOnce(&Dict<'py>) -> PyResult<()>,
) -> PyErr {
    let dict = PyDict::new(py);
    fields(&dict).map_or_else(|error| error, |()| made(py, "core_error", (class, message, &dict)))
}

/// A parameter that the binding itself refuses.
pub(crate) fn parameter(
    py: Python<'_>,
    name: &str,
    got: impl std::fmt::Display,
    allowed: &str,
    hint: &str,
) -> PyErr {
    made(py, "refusal", (name, got.to_string(), allowed, hint))
}

/// A key of a type that has no digest; `row` is its place in a batch.
pub(crate) fn key_type(key: &Object<'_>, row: Option<usize>, cause: Option<PyErr>) -> PyErr {
    let py = key.py();
    let surrogate = cause.as_ref().is_some_and(|e| e.is_instance_of::<PyUnicodeEncodeError>(py));
    let error = made(py, "key_type", (key, row, surrogate));
    error.set_cause(py, cause);
    error
}

/// An integer where keys are texts.
pub(crate) fn text_type(key: &Object<'_>, row: Option<usize>) -> PyErr {
    made(key.py(), "text_type", (key, row))
}

/// A column of integers where keys are texts.
pub(crate) fn text_column(py: Python<'_>, got: &str) -> PyErr {
    parameter(py, "keys", got, "URLs as text or bytes", "choose the column that holds the URLs")
}

/// Tells on an error which row of its batch it is about.
pub(crate) fn in_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    made(py, "in_row", (error, row))
}

/// A row without a key, in a batch that goes in up to there, or `whole` or not at all.
pub(crate) fn null_key(py: Python<'_>, row: usize, whole: bool) -> PyErr {
    made(py, "null_key", (row, whole))
}

/// Tells on an error how many keys of its batch went in before it.
pub(crate) fn with_added(py: Python<'_>, error: PyErr, added: usize) -> PyErr {
    made(py, "with_added", (error, added))
}

/// Tells on an error that its batch changed nothing, whatever was said of it before.
pub(crate) fn nothing_added(py: Python<'_>, error: PyErr) -> PyErr {
    made(py, "nothing_added", (error,))
}

/// Names the file in a snapshot error, which knows only bytes.
pub(crate) fn with_path(py: Python<'_>, error: PyErr, path: &std::path::Path) -> PyErr {
    made(py, "with_path", (error, path.to_string_lossy()))
}

/// Says which segment of a history is damaged.
pub(crate) fn in_segment(py: Python<'_>, error: PyErr, segment: u64) -> PyErr {
    made(py, "in_segment", (error, segment))
}

/// The Python error of a core error.
pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    macro_rules! raise {
        ($class:literal $(, $($fields:tt)*)?) => {
            raise(py, $class, &message, |_dict| fields!(_dict => $($($fields)*)?))
        };
    }
    match error {
        Error::Parameter { name, got, allowed, hint } => {
            raise!("ParameterError", name, got: &got, allowed, hint)
        }
        Error::Row { row, error } => in_row(py, to_python(py, *error), row),
        Error::Capacity { needed, limit } => raise!("CapacityError", needed, limit),
        Error::Cells { needed, limit } => {
            let hint = "begin with a larger `capacity` or `growth`, or allow a larger `error_rate`";
            raise!("CapacityError", needed, limit, hint)
        }
        Error::Incompatible { field, expected, got } => {
            raise!("IncompatibleError", field, expected: &expected, got: &got)
        }
        Error::AbsentKey { estimate, requested } => raise!("AbsentKeyError", estimate, requested),
        Error::Unsupported { verb, policy } => raise!("UnsupportedError", verb, policy),
        Error::Platform { what } => {
            let hint = "`load` and `save` work everywhere";
            raise!("UnsupportedError", verb: what, policy: "platform", hint)
        }
        Error::ReadOnly { path } => raise!("ReadOnlyError", path: path.to_string_lossy()),
        Error::Closed { path } => {
            let hint = "open it again with BloomFilter.open(path)";
            raise!("ClosedError", path: path.to_string_lossy(), hint)
        }
        Error::Invariant { invariant } => raise!("InvariantError", invariant: &invariant),
        Error::NotASnapshot => raise!("NotASnapshotError"),
        Error::Version { expected, got } => raise!("VersionError", expected, got, offset: 10),
        Error::Kind { expected, got } => {
            let hint = match Kind::from_name(&got) {
                Some(kind) => format!("it is read by {}", kind.reader()),
                None => "a newer bloomtide may know it".to_owned(),
            };
            raise!("KindError", expected, got: &got, offset: 8, hint)
        }
        Error::Truncated { expected, got } => raise!("TruncatedError", expected, got),
        Error::Cut { path, expected, got } => {
            let hint = "open it again if the file was replaced; else restore it from a copy";
            raise!("TruncatedError", expected, got, path: path.to_string_lossy(), hint)
        }
        Error::InUse { path, mapped } => {
            let hint = if mapped {
                "close it there, which writes the file, or save to another path"
            } else {
                "wait until the other program is done, or save to another path"
            };
            // EBUSY, which is the same number wherever there are such locks.
            let (path, errno) = (path.to_string_lossy(), 16);
            raise!("LockedError", path: &path, operation: "replace", filename: &path, errno,
                   strerror: "the file is in use", pid: None::<u32>, hint)
        }
        Error::Checksum { expected, got, offset } => {
            raise!("ChecksumError", expected, got, offset)
        }
        Error::Field { .. } => raise!("SnapshotError"),
        Error::Unsealed => raise!("UnsealedError"),
        Error::Storage { path, operation, source } => {
            let (path, reason, said) = (path.to_string_lossy(), source.kind(), source.to_string());
            let other = match reason {
                std::io::ErrorKind::IsADirectory => 21,
                std::io::ErrorKind::InvalidInput => 22,
                _ => 5,
            };
            let errno = source.raw_os_error().unwrap_or(other);
            raise!("StorageError", path: &path, operation, filename: &path, errno,
                   strerror: said.split(" (os error").next(), reason: format!("{reason:?}"))
        }
        _ => raise!("BloomtideError"),
    }
}

/// The error of a removal, with the number that was given, be it larger than any counter.
pub(crate) fn removal_refused(py: Python<'_>, error: Error, count: &Times<'_>) -> PyErr {
    match (&error, count.beyond()) {
        (Error::AbsentKey { estimate, .. }, Some(given)) => {
            let message =
                format!("cannot remove {}: the key's smallest counter is {estimate}", shown(given));
            let estimate = *estimate;
            let more = |dict: &Dict<'_>| fields!(dict => estimate, requested: given);
            raise(py, "AbsentKeyError", &message, more)
        }
        _ => to_python(py, error),
    }
}

/// Issues the warning of a filter that holds far more than it was made for. An error if the user made it one.
pub(crate) fn warn_overfull(
    py: Python<'_>,
    text: String,
    items: f64,
    capacity: u64,
    error: f64,
) -> PyResult<()> {
    let module = py.import("bloomtide.errors")?;
    module.getattr("warn_overfull")?.call1((text, items, capacity, error)).map(drop)
}

/// Core results in Python's terms.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for bloomtide_core::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, error))
    }
}
