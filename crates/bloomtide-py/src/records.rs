//! What the core measured or planned, as the records of `bloomtide.records`.

use bloomtide_core::filters::Measure;
use bloomtide_core::{BloomPlan, Estimate, Placement};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A record of that class with these fields.
pub(crate) fn record<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl FnOnce(&Bound<'py, PyDict>) -> PyResult<()>,
) -> PyResult<Bound<'py, PyAny>> {
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

    fn set(&self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        fields.set_item("kind", self.kind)?;
        fields.set_item("capacity", self.capacity)?;
        fields.set_item("error_rate", self.error_rate)?;
        fields.set_item("cells", self.placement.cells)?;
        fields.set_item("hashes", self.placement.hashes)?;
        fields.set_item("counter_bits", self.counter_bits)?;
        fields.set_item("bytes", self.bytes)
    }

    /// A `Plan`, with the error after that many keys and with what only this kind has.
    pub(crate) fn plan<'py>(
        &self,
        py: Python<'py>,
        error_at: impl Fn(f64) -> f64,
        more: impl FnOnce(&Bound<'py, PyDict>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let error = |factor: f64| self.capacity.map(|keys| error_at(keys as f64 * factor));
        record(py, "Plan", |fields| {
            self.set(fields)?;
            fields.set_item("layout", self.placement.layout.name())?;
            fields.set_item("derivation", self.placement.derivation.name())?;
            fields.set_item("predicted_error", error(1.0))?;
            fields.set_item("predicted_error_overfull", error(2.0))?;
            more(fields)
        })
    }

    /// A `Stats`, with what was measured and with what only this kind has.
    pub(crate) fn stats<'py>(
        &self,
        py: Python<'py>,
        measure: &Measure,
        more: impl FnOnce(&Bound<'py, PyDict>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        record(py, "Stats", |fields| {
            self.set(fields)?;
            fields.set_item("items", measure.items)?;
            fields.set_item("predicted_error", measure.error)?;
            fields.set_item("fill", measure.fill)?;
            fields.set_item("saturated", measure.saturated)?;
            more(fields)
        })
    }
}

/// The plan of a Bloom filter as a `Plan` record.
pub(crate) fn plan_record<'py>(py: Python<'py>, plan: &BloomPlan) -> PyResult<Bound<'py, PyAny>> {
    Sizes::of_bloom(plan).plan(py, |keys| plan.error_at(keys), |_| Ok(()))
}

/// A measured Bloom filter as a `Stats` record; also for the layers of others, which may have a depth.
pub(crate) fn stats_record<'py>(
    py: Python<'py>,
    plan: &BloomPlan,
    measure: &Measure,
    depth: Option<u32>,
) -> PyResult<Bound<'py, PyAny>> {
    Sizes::of_bloom(plan).stats(py, measure, |fields| fields.set_item("depth", depth))
}

/// The count of a key with its bounds; `count` is what the counters' units mean.
pub(crate) fn estimate_record<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    found: &Estimate,
    confidence: f64,
    count: impl Fn(u64) -> T,
) -> PyResult<Bound<'py, PyAny>> {
    record(py, "Estimate", |fields| {
        fields.set_item("value", count(found.value))?;
        fields.set_item("lower", count(found.lower))?;
        fields.set_item("upper", (!found.saturated).then(|| count(found.value)))?;
        fields.set_item("confidence", confidence)?;
        fields.set_item("saturated", found.saturated)
    })
}

/// `capacity` and `error_rate` at the beginning of a `repr`, if they were given.
pub(crate) fn shown_goal(capacity: Option<u64>, error_rate: Option<f64>) -> String {
    match (capacity, error_rate) {
        (Some(capacity), Some(rate)) => format!("capacity={capacity} error_rate={rate} "),
        _ => String::new(),
    }
}
