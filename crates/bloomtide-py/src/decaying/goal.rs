//! What a user wants of a time-decaying filter, from Python's words to the core's plan and back.

use crate::errors::{OrRaise, parameter};
use crate::instants;
use crate::params::{self, field};
use crate::records::{Sizes, shown_goal};
use crate::words::{Words, placement_of};
use bloomtide_core::cells::Rounding;
use bloomtide_core::filters::{DecayStorage, Fade};
use bloomtide_core::{DecayingPlan, Policy};
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// The keywords that a plan is made from.
pub(super) const SIZING: &[&str] = &[
    "half_life",
    "decay",
    "epoch",
    "origin",
    "storage",
    "rounding",
    "policy",
    "counter_bits",
    "fraction_bits",
    "layout",
    "cells",
    "hashes",
    "paper",
];

/// Words of Python's that become a plan.
pub(super) fn plan_of<'py>(
    words: &Words<'_, 'py>,
    capacity: Option<&Bound<'py, PyAny>>,
    error_rate: Option<&Bound<'py, PyAny>>,
) -> PyResult<DecayingPlan> {
    let py = words.py;
    let fade = fade_of(words)?;
    let (placement, capacity, error_rate) = words.placed(capacity, error_rate)?;
    DecayingPlan {
        placement,
        storage: DecayStorage::parse(&words.text("storage", "basic")?).or_raise(py)?,
        fade,
        rounding: Rounding::parse(&words.text("rounding", "strict")?).or_raise(py)?,
        policy: Policy::parse(&words.text("policy", "plain")?).or_raise(py)?,
        counter_bits: words.small("counter_bits")?.unwrap_or(32),
        fraction_bits: fraction_bits(words)?,
        capacity,
        error_rate,
    }
    .checked()
    .or_raise(py)
}

fn fraction_bits(words: &Words<'_, '_>) -> PyResult<u32> {
    let Some(bits) = words.word("fraction_bits")? else { return Ok(8) };
    bits.extract().ok().filter(|_| !bits.is_instance_of::<PyBool>()).ok_or_else(|| {
        let got = params::shown(&bits);
        let hint = "8 bits behind the point round to 1/256 of an occurrence";
        parameter(words.py, "fraction_bits", got, "a whole number, at least 0", hint)
    })
}

/// `half_life`, with or without `epoch`, or `decay` with `epoch`.
fn fade_of(words: &Words<'_, '_>) -> PyResult<Fade> {
    let py = words.py;
    let epoch = words.word("epoch")?.map(|epoch| instants::duration(&epoch, "epoch"));
    let epoch = epoch.transpose()?;
    let origin = words.word("origin")?.map(|origin| instants::instant(&origin, "origin"));
    let origin = origin.transpose()?.unwrap_or(0.0);
    match (words.word("half_life")?, words.word("decay")?, epoch) {
        (Some(half_life), None, _) => {
            let half_life = instants::duration(&half_life, "half_life")?;
            Fade::from_half_life(half_life, epoch, origin).or_raise(py)
        }
        (None, Some(decay), Some(epoch)) => {
            Fade::from_decay(params::rate("decay", &decay)?, epoch, origin).or_raise(py)
        }
        (None, Some(_), None) => {
            let hint = "epoch=\"1h\" lets counts fade once an hour";
            Err(parameter(py, "epoch", "nothing", "given together with `decay`", hint))
        }
        (None, None, _) => {
            let hint = "half_life=\"1h\": what was counted an hour ago counts half";
            let allowed = "given, or else `decay` and `epoch`";
            Err(parameter(py, "half_life", "nothing", allowed, hint))
        }
        (Some(_), Some(_), _) => {
            let hint = "give either `half_life`, or `decay` and `epoch`";
            let allowed = "left out when `half_life` is given";
            Err(parameter(py, "decay", "both", allowed, hint))
        }
    }
}

/// What every record of the filter tells.
pub(super) fn sizes_of(plan: &DecayingPlan, bytes: u64) -> Sizes {
    let DecayingPlan { placement, counter_bits, capacity, error_rate, .. } = *plan;
    Sizes { kind: "tbf", capacity, error_rate, placement, counter_bits, bytes }
}

/// A plan as a `Plan` record.
pub(super) fn plan_record<'py>(
    py: Python<'py>,
    plan: &DecayingPlan,
) -> PyResult<Bound<'py, PyAny>> {
    sizes_of(plan, plan.bytes()).plan(
        py,
        |keys| plan.error_at(keys),
        |fields| {
            fields.set_item("storage", plan.storage.name())?;
            fields.set_item("fraction_bits", plan.fraction_bits)?;
            fields.set_item("policy", plan.policy.name())?;
            fields.set_item("rounding", plan.rounding.name())?;
            fields.set_item("decay", plan.fade.decay)?;
            fields.set_item("half_life", plan.fade.half_life)?;
            fields.set_item("epoch", plan.fade.epoch)?;
            fields.set_item("origin", plan.fade.origin)
        },
    )
}

/// The plan of a `Plan` record.
pub(super) fn plan_of_record(plan: &Bound<'_, PyAny>) -> PyResult<DecayingPlan> {
    let py = plan.py();
    params::require_kind(plan, "tbf")?;
    let text = |name| field::<String>(plan, name);
    DecayingPlan {
        placement: placement_of(plan)?,
        storage: DecayStorage::parse(&text("storage")?).or_raise(py)?,
        fade: Fade {
            decay: field(plan, "decay")?,
            epoch: field(plan, "epoch")?,
            origin: field(plan, "origin")?,
            half_life: field(plan, "half_life")?,
        },
        rounding: Rounding::parse(&text("rounding")?).or_raise(py)?,
        policy: Policy::parse(&text("policy")?).or_raise(py)?,
        counter_bits: field(plan, "counter_bits")?,
        fraction_bits: field(plan, "fraction_bits")?,
        capacity: field(plan, "capacity")?,
        error_rate: field(plan, "error_rate")?,
    }
    .checked()
    .or_raise(py)
}

/// The filter in one line.
pub(super) fn repr(plan: &DecayingPlan) -> String {
    let goal = shown_goal(plan.capacity, plan.error_rate);
    let half_life = plan.fade.half_life.map_or(String::new(), |h| format!("half_life={h} "));
    format!(
        "<TimeDecayingBloomFilter {goal}{half_life}decay={} epoch={} storage={} rounding={} policy={} \
         counter_bits={} fraction_bits={} layout={} cells={} hashes={}>",
        plan.fade.decay,
        plan.fade.epoch,
        plan.storage.name(),
        plan.rounding.name(),
        plan.policy.name(),
        plan.counter_bits,
        plan.fraction_bits,
        plan.placement.layout.name(),
        plan.cells(),
        plan.hashes(),
    )
}
