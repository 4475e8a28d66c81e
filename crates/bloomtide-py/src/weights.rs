//! How often each key of a batch counts: an array beside the keys, or the second column of a table.

use crate::buffer::View;
use crate::errors::parameter;
use crate::params;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMapping};

/// The keys, and their counts if there are any: given beside them, as the values of a mapping, or as the
/// second column of an Arrow table of two.
pub(crate) fn of<'py>(
    keys: &Bound<'py, PyAny>,
    counts: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Option<Vec<u64>>)> {
    let Some(counts) = counts else {
        if let Ok(mapping) = keys.cast::<PyMapping>() {
            return of(mapping.keys()?.as_any(), Some(mapping.values()?.as_any()));
        }
        return match columns(keys)? {
            Some((keys, counts)) => of(&keys, Some(&counts)),
            None => Ok((keys.clone(), None)),
        };
    };
    let counts = read(counts)?;
    Ok((beside("counts", keys, counts.len())?, Some(counts)))
}

/// The keys, and by how much each changes its count.
pub(crate) fn changes<'py>(
    keys: &Bound<'py, PyAny>,
    changes: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Vec<i64>)> {
    let py = keys.py();
    // NumPy knows all kinds of columns. What it makes of them is taken only if they are whole numbers.
    let column = py.import("numpy")?.call_method1("asarray", (changes,))?;
    let kind: char = column.getattr("dtype")?.getattr("kind")?.extract()?;
    let wrong = |got: String| {
        let hint = "give 1 to add, -1 to remove, 0 to ask; as int64, without nulls";
        parameter(py, "changes", got, "a column of whole numbers", hint)
    };
    let flat = column.getattr("ndim")?.extract::<usize>()? == 1;
    // An empty list has no kind of its own.
    if !flat || (kind != 'i' && kind != 'u' && column.len()? > 0) {
        return Err(wrong(format!("an array of {}", column.getattr("dtype")?)));
    }
    let words = column.call_method1("astype", ("int64",))?;
    // Of unsigned numbers the largest become negative.
    if kind == 'u' && words.call_method1("__lt__", (0,))?.call_method0("any")?.is_truthy()? {
        return Err(wrong("a number beyond 63 bits".to_owned()));
    }
    let Some(view) = View::of(&words, ffi::PyBUF_C_CONTIGUOUS) else {
        return Err(wrong(format!("an array of {}", column.getattr("dtype")?)));
    };
    // SAFETY: contiguous 64-bit integers, kept in place by the view.
    let words = unsafe {
        std::slice::from_raw_parts(view.data().cast::<i64>().cast_const(), view.bytes() / 8)
    };
    Ok((beside("changes", keys, words.len())?, words.to_vec()))
}

/// The keys, if there are as many as the numbers that argument `name` gives for them.
pub(crate) fn beside<'py>(
    name: &str,
    keys: &Bound<'py, PyAny>,
    numbers: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    // What has no length is taken whole, to be compared before the first key goes in.
    let keys =
        if keys.len().is_ok() { keys.clone() } else { py.get_type::<PyList>().call1((keys,))? };
    let rows = keys.len()?;
    if rows == numbers {
        return Ok(keys);
    }
    let got = format!("{numbers} for {rows} keys");
    Err(parameter(py, name, got, "as many as keys", "give one for each key"))
}

/// The two columns of a table of keys and counts: pyarrow, Polars and pandas say them the same way.
fn columns<'py>(
    table: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let names = match (table.getattr("column_names"), table.getattr("columns")) {
        // pyarrow's `columns` are arrays, the others' are names.
        (Ok(names), _) => names,
        (Err(_), Ok(names)) if table.hasattr("__arrow_c_stream__")? => names,
        _ => return Ok(None),
    };
    let Ok(names) = names.try_iter().and_then(|names| names.collect::<PyResult<Vec<_>>>()) else {
        return Ok(None);
    };
    match names.as_slice() {
        [keys, counts] => Ok(Some((table.get_item(keys)?, table.get_item(counts)?))),
        _ => Ok(None),
    }
}

/// Whole numbers from 1 up, of an array of 64-bit integers, an Arrow column, or any other iterable.
fn read(counts: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let py = counts.py();
    let refuse = |row: usize, got: String| {
        let got = format!("{got} in row {row}");
        parameter(py, "counts", got, "whole numbers, at least 1", "leave rows of zero out")
    };
    let wrong = |got: String| {
        parameter(
            py,
            "counts",
            got,
            "a column of whole numbers",
            "convert it to int64, without nulls",
        )
    };
    let counts = if counts.hasattr("__arrow_c_stream__")? || counts.hasattr("__arrow_c_array__")? {
        // Through NumPy, which all of them know; nulls become something that is no whole number.
        counts.call_method0("to_numpy").map_err(|error| wrong(error.value(py).to_string()))?
    } else {
        counts.clone()
    };
    if counts.hasattr("dtype")? && counts.hasattr("astype")? {
        let kind: char = counts.getattr("dtype")?.getattr("kind")?.extract()?;
        let flat = counts.getattr("ndim").and_then(|n| n.extract::<usize>()).is_ok_and(|n| n == 1);
        if !flat || (kind != 'i' && kind != 'u') {
            return Err(wrong(format!("an array of {}", counts.getattr("dtype")?)));
        }
        // Signed ones keep their sign, so that a negative count is shown as it is.
        let words =
            counts.call_method1("astype", (if kind == 'u' { "uint64" } else { "int64" },))?;
        if let Some(view) = View::of(&words, ffi::PyBUF_C_CONTIGUOUS) {
            // SAFETY: contiguous 64-bit integers, kept in place by the view.
            let words = unsafe {
                std::slice::from_raw_parts(view.data().cast::<u64>().cast_const(), view.bytes() / 8)
            };
            let taken = |(row, count): (usize, &u64)| match *count {
                0 => Err(refuse(row, "0".to_owned())),
                count if kind == 'i' && count > i64::MAX as u64 => {
                    Err(refuse(row, (count as i64).to_string()))
                }
                count => Ok(count),
            };
            return words.iter().enumerate().map(taken).collect();
        }
    }
    counts
        .try_iter()
        .map_err(|_| wrong(params::shown(&counts)))?
        .enumerate()
        .map(|(row, count)| {
            let count = count?;
            params::whole("counts", &count).map_err(|_| refuse(row, params::shown(&count)))
        })
        .collect()
}
