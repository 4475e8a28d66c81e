//! Forks. A child process inherits a mapped file together with its parent's lock, so the parent could not
//! know that the child still writes when it seals the file. A child must open the file itself;
//! this module knows whether it did.

use crate::errors::raise;
use crate::python::*;
use crate::records::fields;
use pyo3::types::PyDict;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

static FORKS: AtomicUsize = AtomicUsize::new(0);

/// How many forks lie between this process and the first one.
#[inline(always)]
pub(crate) fn count() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// A writer that was inherited.
#[cold]
pub(crate) fn error(py: Python<'_>, path: &Path) -> PyErr {
    let path = path.to_string_lossy();
    let message = format!("opened before this process was forked: {path}");
    let hint = "open it again in the child, with BloomFilter.open(path, mode=\"r+\")";
    raise(py, "ClosedError", &message, |dict| fields!(dict => path: &*path, hint))
}

/// Asks Python to tell every child.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    // Only where processes can fork.
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let told = pyo3::types::PyCFunction::new_closure(py, None, None, |_, _| {
        FORKS.fetch_add(1, Ordering::Relaxed);
    })?;
    let kwargs = PyDict::new(py);
    kwargs.set_item("after_in_child", told)?;
    os.call_method("register_at_fork", (), Some(&kwargs))?;
    Ok(())
}
