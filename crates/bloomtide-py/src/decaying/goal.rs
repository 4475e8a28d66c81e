//! What a user wants of a time-decaying filter, from Python's words to the core's plan and back.

use crate::errors::{OrRaise, parameter};
use crate::instants;
use crate::params;
use crate::python::*;
use crate::records::{Sizes, fields, shown_goal};
use crate::words::Words;
use bloomtide_core::DecayingPlan;
use bloomtide_core::cells::Rounding;
use bloomtide_core::filters::{DecayStorage, Fade};
use pyo3::types::{PyBool, PyType};

/// Words of Python's that become a plan.
pub(super) fn plan_of(_: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<DecayingPlan> {
    words.require_kind(&["tbf"])?;
    let py = words.py;
    let fade = fade_of(words)?;
    let (placement, capacity, error_rate) = words.counters()?;
    DecayingPlan {
        placement,
        storage: DecayStorage::parse(&words.text("storage", "basic")?).or_raise(py)?,
        fade,
        rounding: Rounding::parse(&words.text("rounding", "strict")?).or_raise(py)?,
        policy: words.policy()?,
        counter_bits: words.small("counter_bits")?.unwrap_or(32),
        fraction_bits: fraction_bits(words)?,
        capacity,
        error_rate,
    }
    .checked()
    .or_raise(py)
}

fn fraction_bits(words: &Words<'_>) -> PyResult<u32> {
    let Some(bits) = words.word("fraction_bits")? else { return Ok(8) };
    bits.extract().ok().filter(|_| !bits.is_instance_of::<PyBool>()).ok_or_else(|| {
        let got = params::shown(&bits);
        let hint = "8 bits behind the point round to 1/256 of an occurrence";
        parameter(words.py, "fraction_bits", got, "a whole number, at least 0", hint)
    })
}

/// `half_life`, with or without `epoch`, or `decay` with `epoch`.
fn fade_of(words: &Words<'_>) -> PyResult<Fade> {
    let py = words.py;
    if words.planned() {
        let (decay, half_life) = (words.field("decay")?, words.get("half_life", None)?);
        let (epoch, origin) = (words.field("epoch")?, words.field("origin")?);
        return Ok(Fade {
            decay,
            epoch,
            origin,
            half_life,
            max_jump: words.get("max_jump", None)?,
        });
    }
    let max_jump = instants::max_jump(words.word("max_jump")?)?;
    let epoch = words.word("epoch")?.map(|epoch| instants::duration(&epoch, "epoch"));
    let epoch = epoch.transpose()?;
    let origin = words.word("origin")?.map(|origin| instants::instant(&origin, "origin"));
    let origin = origin.transpose()?.unwrap_or(0.0);
    let fade = match (words.word("half_life")?, words.word("decay")?, epoch) {
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
    }?;
    Fade { max_jump, ..fade }.checked().or_raise(py)
}

/// What every record of the filter tells.
pub(super) fn sizes_of(plan: &DecayingPlan, bytes: u64) -> Sizes {
    let DecayingPlan { placement, counter_bits, capacity, error_rate, .. } = *plan;
    Sizes { kind: "tbf", capacity, error_rate, placement, counter_bits, bytes }
}

/// A plan as a `Plan` record.
pub(super) fn plan_record<'py>(py: Python<'py>, plan: &DecayingPlan) -> Answer<'py> {
    let Fade { decay, half_life, epoch, origin, max_jump } = plan.fade;
    let DecayingPlan { storage, fraction_bits, policy, rounding, .. } = *plan;
    sizes_of(plan, plan.bytes_at_capacity()).plan(
        py,
        |keys| plan.error_at(keys),
        |dict| {
            fields!(dict => bytes_at_most: plan.bytes_at_most(),
                storage: storage.name(), fraction_bits, policy: policy.name(),
                rounding: rounding.name(), decay, half_life, epoch, origin, max_jump)
        },
    )
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
