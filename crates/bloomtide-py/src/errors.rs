//! Core errors become the classes of `bloomtide.errors`, which is where they are defined.

use bloomtide_core::Error;
use bloomtide_core::format::Kind;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyBaseException, PyKeyboardInterrupt, PyMemoryError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// An error of that class, with its fields set. If even that fails, the failure is the error.
pub(crate) fn raise<'py>(
    py: Python<'py>,
    class: &str,
    message: &str,
    hint: &str,
    fields: impl FnOnce(&Bound<'py, PyDict>) -> PyResult<()>,
) -> PyErr {
    let make = || {
        let kwargs = PyDict::new(py);
        kwargs.set_item("hint", hint)?;
        fields(&kwargs)?;
        let class = py.import("bloomtide.errors")?.getattr(class)?;
        class.call((message,), Some(&kwargs))
    };
    make().map_or_else(|e| e, PyErr::from_value)
}

/// A parameter that the binding itself refuses.
pub(crate) fn parameter(
    py: Python<'_>,
    name: &str,
    got: impl std::fmt::Display,
    allowed: &str,
    hint: &str,
) -> PyErr {
    let got = got.to_string();
    let message = format!("`{name}` must be {allowed}, got: {got}");
    raise(py, "ParameterError", &message, hint, |fields| {
        fields.set_item("name", name)?;
        fields.set_item("got", got)?;
        fields.set_item("allowed", allowed)
    })
}

/// A key of a type that has no digest; `row` is its place in a batch.
pub(crate) fn key_type(key: &Bound<'_, PyAny>, row: Option<usize>, cause: Option<PyErr>) -> PyErr {
    let py = key.py();
    let surrogate = cause.as_ref().is_some_and(|e| e.is_instance_of::<PyUnicodeEncodeError>(py));
    let what = key.get_type().qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let (problem, hint) = if surrogate {
        (
            "a `str` with a lone surrogate has no UTF-8 form".to_owned(),
            "encode it yourself, for example key.encode(\"utf-8\", \"surrogatepass\")",
        )
    } else {
        let hint = match what.as_str() {
            "NoneType" => "leave missing values out; a batch skips them with nulls=\"skip\"",
            "float" => "convert it: int(key) or str(key)",
            "bool" => "convert it: int(key) or str(key)",
            "int" => {
                "an int key has 64 bits, from -2**63 to 2**64 - 1; use str(key) for larger ones"
            }
            "tuple" | "list" if row.is_some() => {
                "give counts as counts=[...] or as a mapping {key: count}; join the parts of one key"
            }
            "tuple" | "list" => "join its parts into one str or bytes key",
            _ => "convert it to str, bytes or int",
        };
        (format!("a key must be `str`, bytes-like or a 64-bit `int`, got: `{what}`"), hint)
    };
    let error = no_key(py, &what, row, &problem, hint);
    error.set_cause(py, cause);
    error
}

/// An integer where keys are texts.
pub(crate) fn text_type(key: &Bound<'_, PyAny>, row: Option<usize>) -> PyErr {
    let what = key.get_type().qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let problem = format!("a URL must be `str` or bytes-like, got: `{what}`");
    no_key(key.py(), &what, row, &problem, "give the URL itself, with its scheme")
}

/// A column of integers where keys are texts.
pub(crate) fn text_column(py: Python<'_>, got: &str) -> PyErr {
    parameter(py, "keys", got, "URLs as text or bytes", "choose the column that holds the URLs")
}

fn no_key(py: Python<'_>, got: &str, row: Option<usize>, problem: &str, hint: &str) -> PyErr {
    let message = match row {
        Some(row) => format!("keys[{row}]: {problem}"),
        None => problem.to_owned(),
    };
    raise(py, "KeyTypeError", &message, hint, |fields| {
        fields.set_item("got", got)?;
        fields.set_item("index", row)?;
        fields.set_item("added", None::<usize>)
    })
}

/// Tells on an error which row of its batch it is about.
pub(crate) fn in_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    let value = error.value(py);
    let named = value.getattr("message").and_then(|message| {
        value.setattr("message", format!("keys[{row}]: {message}"))?;
        set(value, "index", row)
    });
    named.map_or_else(|e| e, |()| error)
}

/// A row of a batch without a key; the `row` keys before it were processed.
pub(crate) fn null_key(py: Python<'_>, row: usize) -> PyErr {
    let message = format!("keys[{row}] is null; the {row} keys before it were processed");
    let hint = "nulls=\"skip\" answers False (or 0) for such rows";
    raise(py, "NullKeyError", &message, hint, |fields| {
        fields.set_item("index", row)?;
        fields.set_item("added", row)
    })
}

/// The same of a batch that goes in whole or not at all.
pub(crate) fn null_key_of_all(py: Python<'_>, row: usize) -> PyErr {
    let message = format!("keys[{row}] is null; nothing was added");
    raise(py, "NullKeyError", &message, "nulls=\"skip\" leaves such rows out", |fields| {
        fields.set_item("index", row)?;
        fields.set_item("added", 0)
    })
}

/// Tells on an error how many keys of its batch went in before it.
pub(crate) fn with_added(py: Python<'_>, error: PyErr, added: usize) -> PyErr {
    // An interrupt or a lack of memory is not the batch's to explain.
    if error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<PyMemoryError>(py)
    {
        return error;
    }
    let value = error.value(py);
    let note = format!("{added} keys of the batch were processed before this");
    let noted = value.call_method1("add_note", (note,)).and_then(|_| set(value, "added", added));
    noted.map_or_else(|e| e, |()| error)
}

/// Tells on an error that its batch changed nothing, whatever was said of it before.
pub(crate) fn nothing_added(py: Python<'_>, error: PyErr) -> PyErr {
    // Without notes there is nothing to take back.
    let _ = error.value(py).delattr("__notes__");
    with_added(py, error, 0)
}

/// Sets a field on an error, also among those that a pickled one is made of again.
pub(crate) fn set<'py>(
    error: &Bound<'py, PyBaseException>,
    name: &str,
    value: impl IntoPyObject<'py>,
) -> PyResult<()> {
    let value = value.into_bound_py_any(error.py())?;
    error.setattr(name, &value)?;
    match error.getattr("fields").ok().and_then(|fields| fields.cast_into::<PyDict>().ok()) {
        Some(fields) => fields.set_item(name, value),
        None => Ok(()),
    }
}

/// The Python error of a core error.
pub(crate) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    let raise = |class: &str, hint: &str, fields: &dyn Fn(&Bound<'_, PyDict>) -> PyResult<()>| {
        raise(py, class, &message, hint, fields)
    };
    let damaged =
        "the bytes changed after they were written: restore them from a copy or build them again";
    match error {
        Error::Parameter { name, got, allowed, hint } => raise("ParameterError", hint, &|f| {
            f.set_item("name", name)?;
            f.set_item("got", &got)?;
            f.set_item("allowed", allowed)
        }),
        Error::Row { row, error } => in_row(py, to_python(py, *error), row),
        Error::Capacity { needed, limit } => {
            raise("CapacityError", "lower `capacity`, or allow a larger `error_rate`", &|f| {
                f.set_item("needed", needed)?;
                f.set_item("limit", limit)
            })
        }
        Error::Incompatible { field, expected, got } => raise(
            "IncompatibleError",
            "make both filters with the same parameters and the same seed",
            &|f| {
                f.set_item("field", field)?;
                f.set_item("expected", &expected)?;
                f.set_item("got", &got)
            },
        ),
        Error::AbsentKey { estimate, requested } => raise(
            "AbsentKeyError",
            "remove only what was added, and no more often; this key is as it was",
            &|f| {
                f.set_item("estimate", estimate)?;
                f.set_item("requested", requested)
            },
        ),
        Error::Unsupported { verb, policy } => {
            raise("UnsupportedError", "use policy=\"plain\" for filters that remove", &|f| {
                f.set_item("verb", verb)?;
                f.set_item("policy", policy)
            })
        }
        Error::Platform { what } => {
            raise("UnsupportedError", "`load` and `save` work everywhere", &|f| {
                f.set_item("verb", what)?;
                f.set_item("policy", "platform")
            })
        }
        Error::ReadOnly { path } => {
            raise("ReadOnlyError", "open it with mode=\"r+\" to add", &|f| {
                f.set_item("path", path.to_string_lossy())
            })
        }
        Error::Invariant { invariant } => {
            raise("InvariantError", "build the filter again, and report how it came about", &|f| {
                f.set_item("invariant", &invariant)
            })
        }
        Error::NotASnapshot => snapshot(
            py,
            "NotASnapshotError",
            &message,
            "check the path: this is some other program's file",
            None,
        ),
        Error::Version { expected, got } => with_pair(
            py,
            snapshot(py, "VersionError", &message, "read it with a newer bloomtide", Some(10)),
            expected,
            got,
        ),
        Error::Kind { expected, got } => {
            let hint = match Kind::from_name(&got) {
                Some(kind) => format!("it is read by {}", kind.reader()),
                None => "a newer bloomtide may know it".to_owned(),
            };
            with_pair(py, snapshot(py, "KindError", &message, &hint, Some(8)), expected, got)
        }
        Error::Truncated { expected, got } => with_pair(
            py,
            snapshot(
                py,
                "TruncatedError",
                &message,
                "it was cut or copied only in part: restore it from a copy or build it again",
                None,
            ),
            expected,
            got,
        ),
        Error::Checksum { expected, got, offset } => with_pair(
            py,
            snapshot(py, "ChecksumError", &message, damaged, Some(offset)),
            expected,
            got,
        ),
        Error::Field { .. } => snapshot(py, "SnapshotError", &message, damaged, None),
        Error::Unsealed => snapshot(
            py,
            "UnsealedError",
            &message,
            "open it with BloomFilter.open(path, mode=\"r+\"); closing it writes the checksums",
            None,
        ),
        Error::Storage { path, operation, source } => {
            raise("StorageError", storage_hint(&source), &|f| {
                f.set_item("path", path.to_string_lossy())?;
                f.set_item("operation", operation)?;
                f.set_item("filename", path.to_string_lossy())?;
                f.set_item("errno", source.raw_os_error().unwrap_or_else(|| errno_of(&source)))?;
                f.set_item("strerror", source.to_string().split(" (os error").next())
            })
        }
        _ => raise("BloomtideError", "", &|_| Ok(())),
    }
}

fn snapshot(py: Python<'_>, class: &str, message: &str, hint: &str, offset: Option<u64>) -> PyErr {
    raise(py, class, message, hint, |fields| {
        fields.set_item("path", None::<&str>)?;
        fields.set_item("offset", offset)
    })
}

fn with_pair<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    error: PyErr,
    expected: impl IntoPyObject<'py>,
    got: T,
) -> PyErr {
    let value = error.value(py);
    let pair = set(value, "expected", expected).and_then(|()| set(value, "got", got));
    pair.map_or_else(|e| e, |()| error)
}

/// Names the file in a snapshot error, which knows only bytes.
pub(crate) fn with_path(py: Python<'_>, error: PyErr, path: &std::path::Path) -> PyErr {
    let value = error.value(py);
    let name = path.to_string_lossy();
    let named = value.hasattr("offset").and_then(|is_snapshot| {
        if is_snapshot {
            let message: Bound<'_, PyString> = value.getattr("message")?.cast_into()?;
            value.setattr("message", format!("{name}: {message}"))?;
            set(value, "path", &*name)?;
        }
        Ok(())
    });
    named.map_or_else(|e| e, |()| error)
}

fn errno_of(error: &std::io::Error) -> i32 {
    match error.kind() {
        std::io::ErrorKind::IsADirectory => 21,
        _ => 5,
    }
}

fn storage_hint(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "check the path, and that its directory exists",
        ErrorKind::PermissionDenied => "check the permissions of the file and of its directory",
        ErrorKind::IsADirectory => "give the path of a file, not of a directory",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space; what was there before is unchanged"
        }
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only: save somewhere else",
        _ => "see errno; what was there before is unchanged",
    }
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
