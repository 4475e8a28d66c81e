//! What the core measured or planned, as the records of `bloomtide.records`.

use bloomtide_core::BloomPlan;
use bloomtide_core::filters::Measure;
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

/// The plan of a Bloom filter as a `Plan` record.
pub(crate) fn plan_record<'py>(py: Python<'py>, plan: &BloomPlan) -> PyResult<Bound<'py, PyAny>> {
    let error_at = |factor: f64| plan.capacity.map(|n| plan.error_at(n as f64 * factor));
    record(py, "Plan", |fields| {
        fields.set_item("kind", "bloom")?;
        fields.set_item("capacity", plan.capacity)?;
        fields.set_item("error_rate", plan.error_rate)?;
        fields.set_item("layout", plan.layout.name())?;
        fields.set_item("derivation", plan.derivation.name())?;
        fields.set_item("cells", plan.bits)?;
        fields.set_item("hashes", plan.hashes)?;
        fields.set_item("counter_bits", 1)?;
        fields.set_item("bytes", plan.bytes())?;
        fields.set_item("predicted_error", error_at(1.0))?;
        fields.set_item("predicted_error_overfull", error_at(2.0))
    })
}

/// A measured Bloom filter as a `Stats` record; also for the layers of others, which may have a depth.
pub(crate) fn stats_record<'py>(
    py: Python<'py>,
    plan: &BloomPlan,
    measure: &Measure,
    depth: Option<u32>,
) -> PyResult<Bound<'py, PyAny>> {
    record(py, "Stats", |fields| {
        fields.set_item("kind", "bloom")?;
        fields.set_item("items", measure.items)?;
        fields.set_item("capacity", plan.capacity)?;
        fields.set_item("error_rate", plan.error_rate)?;
        fields.set_item("predicted_error", measure.error)?;
        fields.set_item("fill", measure.fill)?;
        fields.set_item("cells", plan.bits)?;
        fields.set_item("hashes", plan.hashes)?;
        fields.set_item("counter_bits", 1)?;
        fields.set_item("bytes", plan.bytes())?;
        depth.map_or(Ok(()), |depth| fields.set_item("depth", depth))
    })
}
