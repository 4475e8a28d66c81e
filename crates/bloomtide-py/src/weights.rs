//! What stands beside the keys of a batch: how often each counts, as an array or as the second column of a table.

use crate::buffer::View;
use crate::errors::parameter;
use crate::keys::no_keys;
use crate::python::*;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PyMapping};

/// What a function of `bloomtide.columns` answers.
pub(crate) fn read_by<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> Answer<'py> {
    static COLUMNS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let columns = COLUMNS.get_or_try_init(py, || py.import("bloomtide.columns").map(Bound::unbind));
    columns?.bind(py).getattr(function)?.call1(arguments)
}

/// The items of a contiguous array of 64-bit numbers.
pub(crate) fn contiguous<T: Copy>(array: &Object<'_>) -> PyResult<Vec<T>> {
    const { assert!(size_of::<T>() == 8) };
    match View::of(array, ffi::PyBUF_C_CONTIGUOUS).filter(|view| view.item_bytes() == 8) {
        // SAFETY: contiguous 64-bit numbers, kept in place by the view.
        Some(view) => Ok(unsafe {
            std::slice::from_raw_parts(view.data().cast::<T>().cast_const(), view.bytes() / 8)
                .to_vec()
        }),
        None => Err(PyTypeError::new_err("no contiguous array of 64-bit numbers")),
    }
}

/// The keys, and their counts if there are any: given beside them, as the values of a mapping, or as the
/// second column of an Arrow table of two.
pub(crate) fn of<'py>(
    keys: &Object<'py>,
    counts: Option<&Object<'py>>,
) -> PyResult<(Object<'py>, Option<Vec<u64>>)> {
    let Some(counts) = counts else {
        if keys.is_exact_instance_of::<PyList>() {
            return Ok((keys.clone(), None));
        }
        if let Ok(mapping) = keys.cast::<PyMapping>() {
            return of(mapping.keys()?.as_any(), Some(mapping.values()?.as_any()));
        }
        let table = read_by(keys.py(), "split_table", (keys,))?;
        return match table.extract::<Option<(Object<'py>, Object<'py>)>>()? {
            Some((keys, counts)) => of(&keys, Some(&counts)),
            None => Ok((keys.clone(), None)),
        };
    };
    let counts = read(counts)?;
    Ok((beside("counts", keys, counts.len())?, Some(counts)))
}

/// Whole numbers from 1 up.
fn read(counts: &Object<'_>) -> PyResult<Vec<u64>> {
    let plain = |count: Object<'_>| {
        count.cast_exact::<PyInt>().ok()?.extract().ok().filter(|count| *count > 0)
    };
    if let Ok(list) = counts.cast_exact::<PyList>()
        && let Some(all) = list.iter().map(plain).collect()
    {
        return Ok(all);
    }
    contiguous(&read_by(counts.py(), "read_counts", (counts,))?)
}

/// The keys, and by how much each changes its count.
pub(crate) fn changes<'py>(
    keys: &Object<'py>,
    changes: &Object<'py>,
) -> PyResult<(Object<'py>, Vec<i64>)> {
    let changes: Vec<i64> = contiguous(&read_by(keys.py(), "read_changes", (changes,))?)?;
    Ok((beside("changes", keys, changes.len())?, changes))
}

/// The keys, if there are as many as the numbers that argument `name` gives for them.
pub(crate) fn beside<'py>(name: &str, keys: &Object<'py>, numbers: usize) -> Answer<'py> {
    let py = keys.py();
    // What has no length is taken whole, to be compared before the first key goes in.
    let keys = if keys.len().is_ok() {
        keys.clone()
    } else {
        py.get_type::<PyList>().call1((keys.try_iter().map_err(|_| no_keys(keys))?,))?
    };
    let rows = keys.len()?;
    if rows == numbers {
        return Ok(keys);
    }
    let got = format!("{numbers} for {rows} keys");
    Err(parameter(py, name, got, "as many as keys", "give one for each key"))
}
