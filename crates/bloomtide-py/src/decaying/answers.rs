//! The records of a fading filter: what it knows of a key, and of itself.

use crate::records::record;
use bloomtide_core::{KeyHash, TimeDecayingBloomFilter as Core};
use pyo3::prelude::*;

/// The count of a key with its bounds.
pub(super) fn estimate<'py>(
    py: Python<'py>,
    core: &Core,
    hash: KeyHash,
    epoch: i64,
    confidence: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let found = py.detach(|| core.estimate(hash, epoch, confidence));
    let count = |units| core.count_of(units);
    record(py, "Estimate", |fields| {
        fields.set_item("value", count(found.value))?;
        fields.set_item("lower", count(found.lower))?;
        fields.set_item("upper", (!found.saturated).then_some(count(found.value)))?;
        fields.set_item("confidence", confidence)?;
        fields.set_item("saturated", found.saturated)
    })
}

/// Fill, estimated keys, error rate, memory, and what happened to the time.
pub(super) fn stats<'py>(py: Python<'py>, core: &Core, epoch: i64) -> PyResult<Bound<'py, PyAny>> {
    let measure = py.detach(|| core.measure(epoch));
    let plan = core.plan();
    let (late, clock_jumps) = core.history();
    record(py, "Stats", |fields| {
        fields.set_item("kind", "tbf")?;
        fields.set_item("items", measure.items)?;
        fields.set_item("capacity", plan.capacity)?;
        fields.set_item("error_rate", plan.error_rate)?;
        fields.set_item("predicted_error", measure.error)?;
        fields.set_item("fill", measure.fill)?;
        fields.set_item("cells", plan.cells())?;
        fields.set_item("hashes", plan.hashes())?;
        fields.set_item("counter_bits", plan.counter_bits)?;
        fields.set_item("bytes", core.bytes())?;
        fields.set_item("saturated", measure.saturated)?;
        fields.set_item("late", late)?;
        fields.set_item("clock_jumps", clock_jumps)
    })
}
