//! A segment straight from keys, each with its row: for experiments and tests, which know the rows themselves.

use super::digests::Digests;
use crate::errors::{OrRaise, parameter};
use crate::keys::Options;
use crate::params;
use bloomtide_core::history::{self, CellPolicy, Contents, Goal, RowRecord, Sizes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// What a segment is to be, besides its keys.
pub(super) struct Words<'a, 'py> {
    pub(super) row_count: u32,
    pub(super) begin: i64,
    pub(super) window: i64,
    pub(super) error_rate: f64,
    pub(super) gate_error: Option<f64>,
    pub(super) policy: &'a str,
    pub(super) sizes: Option<&'a Bound<'py, PyDict>>,
    pub(super) hash: &'a str,
    pub(super) seed: i128,
    pub(super) secret: Option<&'a Bound<'py, PyAny>>,
}

pub(super) fn build<'py>(
    keys: &Bound<'py, PyAny>,
    rows: Vec<u32>,
    counts: Option<Vec<u64>>,
    words: &Words<'_, 'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = keys.py();
    let hasher = params::hasher(py, words.hash, words.seed, words.secret)?;
    let digests = Digests::of(keys, hasher, Options::parse(py, "refuse", 1)?)?;
    let keys = digests.marks().len();
    for (name, len) in [("rows", rows.len()), ("counts", counts.as_ref().map_or(keys, Vec::len))] {
        if len != keys {
            let got = format!("{len} for {keys} keys");
            return Err(parameter(py, name, got, "as many as keys", "give one for each key"));
        }
    }
    if let Some(row) = rows.iter().find(|row| **row >= words.row_count) {
        let allowed = format!("between 0 and {}", i64::from(words.row_count) - 1);
        return Err(parameter(py, "rows", row, &allowed, "`row_count` says how many there are"));
    }
    if counts.as_ref().is_some_and(|counts| counts.contains(&0)) {
        return Err(parameter(py, "counts", 0, "at least 1", "leave out what never came"));
    }
    let goal = Goal {
        error_rate: words.error_rate,
        gate_error: words.gate_error.unwrap_or(words.error_rate),
        policy: CellPolicy::by_name(words.policy).or_raise(py)?,
        hasher,
        sizes: words.sizes.map(sizes_of).transpose()?,
    };
    let (row_count, begin, window) = (words.row_count, words.begin, words.window);
    let bytes = py.detach(|| {
        let events = digests.marks().iter().zip(rows).enumerate().filter_map(|(i, (mark, row))| {
            let count = counts.as_ref().map_or(1, |counts| counts[i]);
            mark.map(|mark| (mark, row, count))
        });
        let row = |row: u32| {
            let begin = begin.saturating_add(window.saturating_mul(row.into()));
            RowRecord::empty(begin, begin.saturating_add(window))
        };
        let rows = (0..row_count).map(row).collect();
        history::build(&Contents::of_events(rows, events)?, &goal)
    });
    Ok(PyBytes::new(py, &bytes.or_raise(py)?))
}

fn sizes_of(sizes: &Bound<'_, PyDict>) -> PyResult<Sizes> {
    let get = |name: &str| -> PyResult<u64> {
        let hint = "give what history_paper_sizes() returned";
        let missing = || parameter(sizes.py(), "sizes", format!("no `{name}`"), "all four", hint);
        sizes.get_item(name)?.ok_or_else(missing)?.extract()
    };
    let small = |name: &str| get(name).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
    Ok(Sizes {
        gate_hashes: small("gate_hashes")?,
        gate_bits: get("gate_bits")?,
        hashes: small("hashes")?,
        columns: get("columns")?,
    })
}
