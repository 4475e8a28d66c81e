//! What a user wants of a `CountFilter`, from Python's words to the core's plans and back.

use super::kind_of;
use crate::errors::{OrRaise, parameter};
use crate::params;
use crate::python::*;
use crate::records::{Sizes, fields};
use crate::words::{DEFAULT_ERROR_RATE, Words};
use bloomtide_core::cells::{
    DynamicCells, DynamicShape, GrowingCells, SpectralCells, SpectralShape,
};
use bloomtide_core::filters::{
    CountGoal, CountPlan, Stream, base_bits, check_base_bits, check_shrink, design_bits,
};
use bloomtide_core::snapshot::Kind;
use pyo3::types::{PyString, PyType};

/// Skew of a stream where nothing else is said: that of words and pages.
const USUAL_SKEW: f64 = 1.0;

/// The words of one storage.
const DYNAMIC: &[&str] = &["counter_bits", "shrink", "skew"];
const SPECTRAL: &[&str] = &["slack"];

/// The plan of either storage. What a dynamic one takes depends on its stream: how many keys are expected, and
/// their skew.
pub(super) enum AnyPlan {
    Dynamic(CountPlan<DynamicShape>, (u64, f64)),
    Spectral(CountPlan<SpectralShape>),
}

/// The plan of these words, for one of the paper's names or for `CountFilter` itself.
pub(super) fn plan_of(cls: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<AnyPlan> {
    let py = words.py;
    let (spectral, partitioned) = chosen(kind_of(cls)?, words)?;
    let (base, expected) = sizes(words, partitioned)?;
    if spectral {
        let design_bits = design_bits(&base.placement, expected, base.total);
        let shape = SpectralShape {
            design_bits: words.get("design_bits", design_bits)?,
            slack: words.get("slack", 0.1)?,
        };
        shape.check().or_raise(py)?;
        return with_shape::<SpectralCells>(words, &base, shape).map(AnyPlan::Spectral);
    }
    let usual = || base_bits(base.total, expected);
    let width = words.small("counter_bits")?.unwrap_or_else(usual);
    let shape = DynamicShape { width, shrink: words.get("shrink", 0.5)? };
    check_base_bits(width).and_then(|()| check_shrink(shape.shrink)).or_raise(py)?;
    let stream = (expected, words.get("skew", USUAL_SKEW)?);
    with_shape::<DynamicCells>(words, &base, shape).map(|plan| AnyPlan::Dynamic(plan, stream))
}

/// Whether the storage is spectral, and whether there are partitions. The words of others are refused.
fn chosen(kind: Option<Kind>, words: &Words<'_>) -> PyResult<(bool, bool)> {
    let (spectral, partitioned) = match kind {
        Some(Kind::Dynamic) => (false, false),
        Some(Kind::PartitionedDynamic) => (false, true),
        Some(Kind::Spectral) => (true, false),
        Some(_) => (true, true),
        None if words.planned() => {
            words.require_kind(&["dcf", "pdcf", "sbf", "psbf"])?;
            let kind = words.text("kind", "")?;
            (kind.ends_with("sbf"), kind.starts_with('p'))
        }
        None => {
            let cuts = words.word("partitions")?;
            (chosen_storage(words)?, !cuts.is_none_or(|cuts| cuts.eq(1).unwrap_or(false)))
        }
    };
    if let Some(kind) = kind {
        words.require_kind(&[kind.name()])?;
        words.refuse(&["storage"])?;
        words.refuse(if spectral { DYNAMIC } else { SPECTRAL })?;
        words.refuse(if partitioned { &[] } else { &["partitions"] })?;
    }
    Ok((spectral, partitioned))
}

/// Whether a storage is the spectral one.
pub(super) fn is_spectral(py: Python<'_>, storage: &str) -> PyResult<bool> {
    match storage {
        "dynamic" => Ok(false),
        "spectral" => Ok(true),
        _ => {
            let hint = "\"dynamic\" begins small and grows, \"spectral\" takes its memory at once";
            let allowed = "\"dynamic\" or \"spectral\"";
            Err(parameter(py, "storage", storage, allowed, hint))
        }
    }
}

/// Whether `storage` is the spectral one. The words of the other storage are refused.
fn chosen_storage(words: &Words<'_>) -> PyResult<bool> {
    let py = words.py;
    let storage = words.text("storage", "dynamic")?;
    let spectral = is_spectral(py, &storage)?;
    for name in if spectral { DYNAMIC } else { SPECTRAL } {
        if words.word(name)?.is_some() {
            let allowed = format!("left out with storage={storage:?}");
            let hint = "the other storage has it";
            return Err(parameter(py, name, "a value", &allowed, hint));
        }
    }
    Ok(spectral)
}

/// Sizes that do not depend on the storage, and the distinct keys expected. Not cut yet.
fn sizes(words: &Words<'_>, partitioned: bool) -> PyResult<(CountPlan<()>, u64)> {
    let py = words.py;
    let (capacity, mut error_rate) = (words.whole("capacity")?, words.error_rate()?);
    let (placement, expected, total);
    if words.planned() {
        (placement, expected, total) = (words.placement()?, 1, words.field("total")?);
    } else {
        let cells = words.whole("cells")?;
        if capacity.is_some() && cells.is_none() {
            error_rate = error_rate.or(Some(DEFAULT_ERROR_RATE));
        }
        let hashes = words.small("hashes")?;
        let (layout, derivation) = (words.layout()?, words.derivation()?);
        let given = words.whole("total")?;
        let goal =
            CountGoal { capacity, error_rate, cells, hashes, total: given, layout, derivation };
        placement = goal.placement().or_raise(py)?;
        expected = goal.expected(&placement);
        total = goal.total(expected).or_raise(py)?;
    }
    let plan = CountPlan {
        placement,
        policy: words.policy()?,
        shape: (),
        partitioned,
        partitions: 1,
        total,
        capacity,
        error_rate,
    };
    Ok((plan, expected))
}

/// The plan with this storage's shape, cut into partitions if it has any.
fn with_shape<C: GrowingCells>(
    words: &Words<'_>,
    base: &CountPlan<()>,
    shape: C::Shape,
) -> PyResult<CountPlan<C::Shape>> {
    let usual = C::usual_partitions(base.cells(), &shape);
    let partitions = match (base.partitioned, words.word("partitions")?) {
        (false, _) => 1,
        (true, None) => usual,
        (true, Some(given)) => partitions(&given, base.cells(), usual)?,
    };
    CountPlan { partitions, ..base.with_shape(shape) }.checked().or_raise(words.py)
}

/// How many partitions are meant: a number, "auto", which is `usual`, or a model of `bloomtide.partitions`.
pub(super) fn partitions(words: &Object<'_>, cells: u64, usual: u64) -> PyResult<u64> {
    let py = words.py();
    let refuse = |got: String| {
        let allowed = "a whole number from 1 to the number of counters, \"auto\" or a model";
        parameter(py, "partitions", got, allowed, "bloomtide.partitions has the models")
    };
    let chosen = if let Ok(word) = words.cast::<PyString>() {
        match word.to_str()? {
            "auto" => usual,
            other => return Err(refuse(format!("{other:?}"))),
        }
    } else if let Ok(number) = params::whole("partitions", words) {
        number
    } else if words.hasattr("choose")? && !words.hasattr("dtype")? {
        // NumPy's numbers and arrays have a `choose` of their own.
        let chosen = words.call_method1("choose", (cells,))?;
        let got = || params::shown(&chosen);
        chosen.extract::<u64>().map_err(|_| refuse(got()))?
    } else {
        return Err(refuse(params::shown(words)));
    };
    if chosen == 0 || chosen > cells {
        return Err(refuse(format!("{chosen} for {cells} counters")));
    }
    Ok(chosen)
}

/// A plan as a `Plan` record.
pub(super) fn plan_record<'py>(py: Python<'py>, plan: &AnyPlan) -> Answer<'py> {
    match plan {
        AnyPlan::Dynamic(plan, (keys, skew)) => {
            let DynamicShape { width, shrink } = plan.shape;
            let stream = Stream::new(*keys, plan.total, *skew).or_raise(py)?;
            let sizes = (["dcf", "pdcf"], width, plan.bytes(&stream), plan.bytes_at_most());
            let more = |dict: &Dict<'py>| fields!(dict => storage: "dynamic", shrink, skew: *skew);
            to_record(py, plan, sizes, more)
        }
        AnyPlan::Spectral(plan) => {
            let SpectralShape { slack, design_bits } = plan.shape;
            let sizes = (["sbf", "psbf"], 1, plan.bytes(), plan.bytes_at_most());
            let more = |dict: &Dict<'py>| fields!(dict => storage: "spectral", slack, design_bits);
            to_record(py, plan, sizes, more)
        }
    }
}

fn to_record<'py, S: Copy + PartialEq>(
    py: Python<'py>,
    plan: &CountPlan<S>,
    (kinds, counter_bits, bytes, at_most): ([&'static str; 2], u32, u64, u64),
    more: impl FnOnce(&Dict<'py>) -> PyResult<()>,
) -> Answer<'py> {
    let CountPlan { placement, capacity, error_rate, total, .. } = *plan;
    let kind = kinds[usize::from(plan.partitioned)];
    let sizes = Sizes { kind, capacity, error_rate, placement, counter_bits, bytes };
    let (policy, partitions) = (plan.policy.name(), plan.cut().partitions());
    let all = |dict: &Dict<'py>| {
        fields!(dict => policy, total, partitions, bytes_at_most: at_most)?;
        more(dict)
    };
    sizes.plan(py, |keys| plan.error_at(keys), all)
}
