//! PyO3's prelude, and what most files need beside it.

pub(crate) use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Any Python object.
pub(crate) type Object<'py> = Bound<'py, PyAny>;
/// What most methods answer.
pub(crate) type Answer<'py> = PyResult<Object<'py>>;
/// Keywords of a call, or fields of a record.
pub(crate) type Dict<'py> = Bound<'py, pyo3::types::PyDict>;

/// The lock of a mutex. A panic while it was held would leave a whole value behind.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a class is called, as an error shows it.
pub(crate) fn class_name(class: &Bound<'_, PyType>) -> String {
    class.qualname().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}
