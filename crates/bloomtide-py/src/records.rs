//! What the core measured or planned, as the records of `bloomtide.records`.

use crate::python::*;
use bloomtide_core::filters::{Measure, OVERFULL, Overfull, holds};
use bloomtide_core::{BloomPlan, Estimate, Placement};
use pyo3::types::{PyDict, PyTuple};

/// Sets items of a dict: `fields!(dict => items: len as f64, late, ...)`; a name alone is also its value.
macro_rules! fields {
    ($dict:expr => $($name:ident $(: $value:expr)?),* $(,)?) => {{
        $(pyo3::types::PyDictMethods::set_item($dict, stringify!($name), $crate::records::fields!(@ $name $($value)?))?;)*
        pyo3::PyResult::Ok(())
    }};
    (@ $name:ident) => { $name };
    (@ $name:ident $value:expr) => { $value };
}
pub(crate) use fields;

/// A record of that class with these fields: `new_record!(py, "HotItem" => key, count: 1)`.
macro_rules! new_record {
    ($py:expr, $class:literal => $($fields:tt)*) => {
        $crate::records::record($py, $class, |dict| $crate::records::fields!(dict => $($fields)*))
    };
}
pub(crate) use new_record;

/// A record of that class with these fields.
pub(crate) fn record<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl FnOnce(&Dict<'py>) -> PyResult<()>,
) -> Answer<'py> {
    let kwargs = PyDict::new(py);
    fields(&kwargs)?;
    py.import("bloomtide.records")?.getattr(class)?.call((), Some(&kwargs))
}

/// What every `Plan` and every `Stats` tells of a structure.
pub(crate) struct Sizes {
    pub(crate) kind: &'static str,
    pub(crate) capacity: Option<u64>,
    pub(crate) error_rate: Option<f64>,
    pub(crate) placement: Placement,
    pub(crate) counter_bits: u32,
    pub(crate) bytes: u64,
}

impl Sizes {
    /// Those of a Bloom filter.
    pub(crate) fn of_bloom(plan: &BloomPlan) -> Self {
        let BloomPlan { layout, derivation, bits, hashes, capacity, error_rate } = *plan;
        let placement = Placement { layout, derivation, cells: bits, hashes };
        let bytes = plan.bytes();
        Sizes { kind: "bloom", capacity, error_rate, placement, counter_bits: 1, bytes }
    }

    fn set(&self, dict: &Dict<'_>) -> PyResult<()> {
        let Sizes { kind, capacity, error_rate, placement, counter_bits, bytes } = *self;
        let Placement { cells, hashes, .. } = placement;
        fields!(dict => kind, capacity, error_rate, cells, hashes, counter_bits, bytes)
    }

    /// A `Plan`, with the error after that many keys and with what only this kind has.
    pub(crate) fn plan<'py>(
        &self,
        py: Python<'py>,
        error_at: impl Fn(f64) -> f64,
        more: impl FnOnce(&Dict<'py>) -> PyResult<()>,
    ) -> Answer<'py> {
        let error = |factor: f64| self.capacity.map(|keys| error_at(keys as f64 * factor));
        record(py, "Plan", |dict| {
            self.set(dict)?;
            fields!(dict =>
                layout: self.placement.layout.name(), derivation: self.placement.derivation.name(),
                predicted_error: error(1.0), predicted_error_overfull: error(2.0),
                bytes_at_most: self.bytes)?;
            more(dict)
        })
    }

    /// A `Stats`, with what was measured and with what only this kind has.
    pub(crate) fn stats<'py>(
        &self,
        py: Python<'py>,
        measure: &Measure,
        more: impl FnOnce(&Dict<'py>) -> PyResult<()>,
    ) -> Answer<'py> {
        let Measure { items, error, fill, saturated, .. } = *measure;
        let overfull = self.capacity.filter(|capacity| items > *capacity as f64 * OVERFULL);
        let warning = overfull
            .map(|capacity| holds("the filter", "keys", &Overfull { items, capacity, error }));
        record(py, "Stats", |dict| {
            self.set(dict)?;
            let warnings = PyTuple::new(py, warning)?;
            fields!(dict => items, predicted_error: error, fill, saturated, warnings)?;
            more(dict)
        })
    }
}

/// The plan of a Bloom filter as a `Plan` record.
pub(crate) fn plan_record<'py>(py: Python<'py>, plan: &BloomPlan) -> Answer<'py> {
    Sizes::of_bloom(plan).plan(py, |keys| plan.error_at(keys), |_| Ok(()))
}

/// A measured Bloom filter as a `Stats` record; also for the layers of others, which may have a depth.
pub(crate) fn stats_record<'py>(
    py: Python<'py>,
    plan: &BloomPlan,
    measure: &Measure,
    depth: Option<u32>,
) -> Answer<'py> {
    Sizes::of_bloom(plan).stats(py, measure, |dict| fields!(dict => depth))
}

/// The count of a key with its bounds; `count` is what the counters' units mean.
pub(crate) fn estimate_record<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    found: &Estimate,
    confidence: f64,
    count: impl Fn(u64) -> T,
) -> Answer<'py> {
    let upper = (!found.saturated).then(|| count(found.upper));
    new_record!(py, "Estimate" => value: count(found.value), lower: count(found.lower), upper, confidence,
            saturated: found.saturated)
}

/// `capacity` and `error_rate` at the beginning of a `repr`, if they were given.
pub(crate) fn shown_goal(capacity: Option<u64>, error_rate: Option<f64>) -> String {
    let capacity = capacity.map(|keys| format!("capacity={keys} ")).unwrap_or_default();
    capacity + &error_rate.map(|rate| format!("error_rate={rate} ")).unwrap_or_default()
}
