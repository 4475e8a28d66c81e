//! Sealing for Python: contents become a segment's file, and the items that the segment above is built from.

use crate::errors::OrRaise;
use crate::params;
use crate::python::*;
use crate::records::{fields, new_record};
use bloomtide_core::history::{
    Contents, Goal, RowOf, Seen, Segment, Sizes, build, encode_items, in_threads, roll_up,
};
use bloomtide_core::{Hasher, Result};
use pyo3::types::{PyBytes, PyDict};

/// What a sealed segment is to achieve.
pub(super) fn goal(error_rate: f64, gate_error: Option<f64>, hasher: Hasher) -> Goal {
    Goal { error_rate, gate_error: gate_error.unwrap_or(error_rate), hasher }
}

/// A sealed segment: its file, and that of its items.
pub(super) struct Sealed {
    segment: Segment,
    items: Vec<u8>,
    contents: Contents,
}

/// Makes both files of what `contents` answers.
pub(super) fn make(goal: &Goal, contents: impl FnOnce() -> Result<Contents>) -> Result<Sealed> {
    let contents = contents()?;
    let segment = Segment::from_vec(build(&contents, goal)?)?;
    Ok(Sealed { segment, items: encode_items(&contents, &goal.hasher)?, contents })
}

impl Sealed {
    pub(super) fn record<'py>(&self, py: Python<'py>, goal: &Goal) -> Answer<'py> {
        let Sealed { segment, items, contents } = self;
        let about = segment.about();
        let Sizes { hashes, columns, gate_hashes, gate_bits, .. } = about.sizes;
        let parameters = PyDict::new(py);
        fields!(&parameters =>
            hashes, columns, gate_hashes, gate_bits, error_rate: goal.error_rate, gate_error: goal.gate_error,
            predicted_gate_error: about.predicted_gate_error, keys: about.keys, items: about.items)?;
        let Contents { level, begin, end, rows, .. } = contents;
        let seen = rows.iter().fold(Seen::NOTHING, |all, row| all.with(row.seen));
        let some = |at| (seen.events > 0).then_some(at);
        new_record!(py, "SealedSegment" =>
            segment: PyBytes::new(py, segment.as_bytes()), front: PyBytes::new(py, segment.front()), items: PyBytes::new(py, items), level, begin, end,
            rows: rows.len(), events: seen.events, first: some(seen.first), last: some(seen.last),
            predicted_error: about.predicted_error, parameters)
    }
}

/// A segment above sealed ones for each group of these: their items, and where its time begins and ends. A row of
/// it is what began in its span, or, without `row_span`, one of them.
#[pyfunction]
#[pyo3(signature = (groups, *, level, row_span=None, error_rate, gate_error=None, hash="xxh3", seed=0, secret=None, names=256))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn history_roll_up<'py>(
    py: Python<'py>,
    groups: Vec<(Vec<Bound<'py, PyBytes>>, i64, i64)>,
    level: u8,
    row_span: Option<i64>,
    error_rate: f64,
    gate_error: Option<f64>,
    hash: &str,
    seed: i128,
    secret: Option<&Object<'py>>,
    names: usize,
) -> PyResult<Vec<Object<'py>>> {
    let hasher = params::hasher(py, hash, seed, secret)?;
    let goal = goal(error_rate, gate_error, hasher);
    let row_of = row_span.map_or(RowOf::Order, RowOf::Time);
    let groups: Vec<(Vec<&[u8]>, _)> = groups
        .iter()
        .map(|(items, begin, end)| {
            (items.iter().map(|item| item.as_bytes()).collect(), (*begin, *end))
        })
        .collect();
    // A mark and its count take some eight bytes.
    let entries = groups.iter().flat_map(|(items, _)| items).map(|item| item.len() / 8).sum();
    let made = py.detach(|| {
        in_threads(groups.len(), entries, |group| {
            let (items, span) = &groups[group];
            make(&goal, || roll_up(items, level, *span, row_of, names, &hasher))
        })
    });
    made.into_iter().map(|made| made.or_raise(py)?.record(py, &goal)).collect()
}
