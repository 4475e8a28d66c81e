//! Sealing for Python: contents become a segment's file, and the items that the segment above is built from.

use crate::errors::OrRaise;
use crate::params;
use crate::python::*;
use crate::records::{fields, new_record};
use bloomtide_core::history::{
    Contents, Goal, RowOf, Seen, Segment, Sizes, build, encode_items, roll_up,
};
use bloomtide_core::{Hasher, Result};
use pyo3::types::{PyBytes, PyDict};

/// What a sealed segment is to achieve.
pub(super) fn goal(error_rate: f64, gate_error: Option<f64>, hasher: Hasher) -> Goal {
    Goal { error_rate, gate_error: gate_error.unwrap_or(error_rate), hasher }
}

/// Makes both files of what `contents` answers, without the interpreter.
pub(super) fn seal<'py>(
    py: Python<'py>,
    goal: &Goal,
    contents: impl FnOnce() -> Result<Contents> + Send,
) -> Answer<'py> {
    let made = py.detach(|| {
        let contents = contents()?;
        let bytes = build(&contents, goal)?;
        let items = encode_items(&contents, &goal.hasher)?;
        Ok((Segment::from_vec(bytes)?, items, contents))
    });
    let (segment, items, contents) = made.or_raise(py)?;
    let about = segment.about();
    let Sizes { hashes, columns, gate_hashes, gate_bits, .. } = about.sizes;
    let parameters = PyDict::new(py);
    fields!(&parameters =>
        hashes, columns, gate_hashes, gate_bits, error_rate: goal.error_rate, gate_error: goal.gate_error,
        predicted_gate_error: about.predicted_gate_error, keys: about.keys, items: about.items)?;
    let Contents { level, begin, end, rows, .. } = &contents;
    let seen = rows.iter().fold(Seen::NOTHING, |all, row| all.with(row.seen));
    let some = |at| (seen.events > 0).then_some(at);
    new_record!(py, "SealedSegment" =>
        segment: PyBytes::new(py, segment.as_bytes()), front: PyBytes::new(py, segment.front()), items: PyBytes::new(py, &items), level, begin, end,
        rows: rows.len(), events: seen.events, first: some(seen.first), last: some(seen.last),
        predicted_error: about.predicted_error, parameters)
}

/// The segment above sealed ones, built from their items: a row of it is what began in its span, or, without
/// `row_span`, one of them.
#[pyfunction]
#[pyo3(signature = (items, *, begin, end, level, row_span=None, error_rate, gate_error=None, hash="xxh3", seed=0, secret=None, names=256))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn history_roll_up<'py>(
    py: Python<'py>,
    items: Vec<Bound<'py, PyBytes>>,
    begin: i64,
    end: i64,
    level: u8,
    row_span: Option<i64>,
    error_rate: f64,
    gate_error: Option<f64>,
    hash: &str,
    seed: i128,
    secret: Option<&Object<'py>>,
    names: usize,
) -> Answer<'py> {
    let hasher = params::hasher(py, hash, seed, secret)?;
    let goal = goal(error_rate, gate_error, hasher);
    let slices: Vec<&[u8]> = items.iter().map(|item| item.as_bytes()).collect();
    let row_of = row_span.map_or(RowOf::Order, RowOf::Time);
    seal(py, &goal, || roll_up(&slices, level, (begin, end), row_of, names, &hasher))
}
