//! What a user wants of a `CountFilter`, from Python's words to the core's plans and back.

use super::Any;
use crate::errors::{OrRaise, parameter};
use crate::params::{self, field};
use crate::records::Sizes;
use crate::words::{DEFAULT_ERROR_RATE, Words, placement_of};
use bloomtide_core::cells::{Cut, DynamicShape, OnFull, SpectralCells, SpectralShape};
use bloomtide_core::filters::{
    CountFilter as Core, CountGoal, CountPlan, base_bits, check_base_bits, check_shrink,
    design_bits, dynamic_bytes,
};
use bloomtide_core::snapshot::Kind;
use bloomtide_core::{Hasher, Policy};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// The keywords that a plan of either storage is made from.
pub(super) const SIZING: &[&str] = &["total", "policy", "layout", "cells", "hashes", "paper"];
/// Those that choose a kind; the paper's names have chosen.
pub(super) const CHOOSING: &[&str] = &["storage", "partitions"];
/// Those of one storage.
pub(super) const DYNAMIC: &[&str] = &["counter_bits", "shrink"];
pub(super) const SPECTRAL: &[&str] = &["slack", "on_full"];

/// The plan of either storage.
pub(super) enum AnyPlan {
    Dynamic(CountPlan<DynamicShape>),
    Spectral(CountPlan<SpectralShape>),
}

/// The keywords of a call on the class of that kind, or on `CountFilter` itself.
pub(super) fn words<'a, 'py>(
    py: Python<'py>,
    given: Option<&'a Bound<'py, PyDict>>,
    kind: Option<Kind>,
    more: &[&str],
) -> PyResult<Words<'a, 'py>> {
    let own: &[&[&str]] = match kind {
        None => &[CHOOSING, DYNAMIC, SPECTRAL],
        Some(Kind::Dynamic) => &[DYNAMIC],
        Some(Kind::PartitionedDynamic) => &[DYNAMIC, &["partitions"]],
        Some(Kind::Spectral) => &[SPECTRAL],
        Some(_) => &[SPECTRAL, &["partitions"]],
    };
    Words::new(py, given, &[own, &[SIZING, more]].concat())
}

impl AnyPlan {
    /// The plan of these words, for a class of that kind or for `CountFilter` itself.
    pub(super) fn of<'py>(
        words: &Words<'_, 'py>,
        kind: Option<Kind>,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let py = words.py;
        let cuts = words.word("partitions")?;
        let one = cuts.as_ref().is_none_or(|cuts| cuts.eq(1).unwrap_or(false));
        let (spectral, partitioned) = match kind {
            Some(Kind::Dynamic) => (false, false),
            Some(Kind::PartitionedDynamic) => (false, true),
            Some(Kind::Spectral) => (true, false),
            Some(_) => (true, true),
            None => (chosen_storage(words)?, !one),
        };
        let auto = PyString::new(py, "auto").into_any();
        let cuts = partitioned.then_some(cuts.unwrap_or(auto));
        let sizes = Wanted::of(words, capacity, error_rate, cuts.as_ref())?;
        if spectral {
            let bits = design_bits(&sizes.plan.placement, sizes.expected, sizes.plan.total);
            let on_full = parse_on_full(py, &words.text("on_full", "grow")?)?;
            let shape = spectral_shape(py, bits, words.get("slack", 0.1)?, on_full)?;
            return sizes.with(words, shape).map(AnyPlan::Spectral);
        }
        let usual = || base_bits(sizes.plan.total, sizes.expected);
        let width = words.small("counter_bits")?.unwrap_or_else(usual);
        let shape = dynamic_shape(py, width, words.get("shrink", 0.5)?, sizes.adaptive)?;
        sizes.with(words, shape).map(AnyPlan::Dynamic)
    }

    /// The plan of a `Plan` record.
    pub(super) fn of_record(plan: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = plan.py();
        let kind: String = field(plan, "kind")?;
        let partitioned = kind.starts_with('p');
        if kind.ends_with("sbf") {
            let on_full = parse_on_full(py, &field::<String>(plan, "on_full")?)?;
            let (bits, slack) = (field(plan, "design_bits")?, field(plan, "slack")?);
            let shape = spectral_shape(py, bits, slack, on_full)?;
            return plan_of(plan, partitioned, shape).map(AnyPlan::Spectral);
        }
        let width = field(plan, "counter_bits")?;
        let shape = dynamic_shape(py, width, field(plan, "shrink")?, field(plan, "adaptive")?)?;
        plan_of(plan, partitioned, shape).map(AnyPlan::Dynamic)
    }

    /// An empty filter.
    pub(super) fn make(self, py: Python<'_>, hasher: Hasher) -> PyResult<Any> {
        match self {
            AnyPlan::Dynamic(plan) => Core::new(plan, hasher).map(Any::Dynamic),
            AnyPlan::Spectral(plan) => Core::new(plan, hasher).map(Any::Spectral),
        }
        .or_raise(py)
    }

    pub(super) fn to_record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            AnyPlan::Dynamic(plan) => to_record(py, ["dcf", "pdcf"], plan),
            AnyPlan::Spectral(plan) => to_record(py, ["sbf", "psbf"], plan),
        }
    }
}

/// Whether `storage` is the spectral one. The words of the other storage are refused.
fn chosen_storage(words: &Words<'_, '_>) -> PyResult<bool> {
    let py = words.py;
    let storage = words.text("storage", "dynamic")?;
    let others = match storage.as_str() {
        "dynamic" => SPECTRAL,
        "spectral" => DYNAMIC,
        _ => {
            let hint = "\"dynamic\" begins small and grows, \"spectral\" takes its memory at once";
            let allowed = "\"dynamic\" or \"spectral\"";
            return Err(parameter(py, "storage", storage, allowed, hint));
        }
    };
    for name in others {
        if words.word(name)?.is_some() {
            let allowed = format!("left out with storage={storage:?}");
            let hint = "the other storage has it";
            return Err(parameter(py, name, "a value", &allowed, hint));
        }
    }
    Ok(storage == "spectral")
}

/// Sizes that do not depend on the storage.
struct Wanted {
    plan: CountPlan<()>,
    /// Distinct keys expected.
    expected: u64,
    adaptive: bool,
}

impl Wanted {
    fn of<'py>(
        words: &Words<'_, 'py>,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
        cuts: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let py = words.py;
        let cells = words.whole("cells")?;
        let error_rate = match (error_rate, cells) {
            (Some(value), _) => Some(params::rate("error_rate", value)?),
            (None, None) if capacity.is_some() => Some(DEFAULT_ERROR_RATE),
            _ => None,
        };
        let capacity = params::maybe_whole("capacity", capacity)?;
        let goal = CountGoal {
            capacity,
            error_rate,
            cells,
            hashes: words.small("hashes")?,
            total: words.whole("total")?,
            layout: words.layout()?,
            derivation: words.derivation()?,
        };
        let placement = goal.placement().or_raise(py)?;
        let expected = goal.expected(&placement);
        let total = goal.total(expected).or_raise(py)?;
        let (partitions, adaptive) = match cuts {
            None => (1, false),
            Some(words) => partitions(words, placement.cells)?,
        };
        let (policy, partitioned) = (Policy::Plain, cuts.is_some());
        let plan = CountPlan {
            placement,
            policy,
            shape: (),
            partitioned,
            partitions,
            total,
            capacity,
            error_rate,
        };
        Ok(Wanted { plan, expected, adaptive })
    }

    /// The plan with this storage's shape.
    fn with<S: Copy + PartialEq>(&self, words: &Words<'_, '_>, shape: S) -> PyResult<CountPlan<S>> {
        let policy = Policy::parse(&words.text("policy", "plain")?).or_raise(words.py)?;
        let CountPlan { placement, partitioned, partitions, total, .. } = self.plan;
        let (capacity, error_rate) = (self.plan.capacity, self.plan.error_rate);
        CountPlan { placement, policy, shape, partitioned, partitions, total, capacity, error_rate }
            .checked()
            .or_raise(words.py)
    }
}

fn dynamic_shape(
    py: Python<'_>,
    width: u32,
    shrink: f64,
    adaptive: bool,
) -> PyResult<DynamicShape> {
    check_base_bits(width).or_raise(py)?;
    check_shrink(shrink).or_raise(py)?;
    Ok(DynamicShape { width, shrink, adaptive })
}

fn spectral_shape(
    py: Python<'_>,
    design_bits: f64,
    slack: f64,
    on_full: OnFull,
) -> PyResult<SpectralShape> {
    let shape = SpectralShape { design_bits, slack, on_full };
    shape.check().or_raise(py).map(|()| shape)
}

fn parse_on_full(py: Python<'_>, name: &str) -> PyResult<OnFull> {
    match name {
        "grow" => Ok(OnFull::Grow),
        "saturate" => Ok(OnFull::Saturate),
        _ => Err(parameter(
            py,
            "on_full",
            name,
            "\"grow\" or \"saturate\"",
            "\"saturate\" is the paper's: a counter without room sticks and its answers are flagged",
        )),
    }
}

pub(super) fn on_full_name(on_full: OnFull) -> &'static str {
    match on_full {
        OnFull::Grow => "grow",
        OnFull::Saturate => "saturate",
    }
}

/// (number of partitions, adaptive): a number, "auto", "adaptive" or a model of `bloomtide.partitions`.
pub(super) fn partitions(words: &Bound<'_, PyAny>, cells: u64) -> PyResult<(u64, bool)> {
    let py = words.py();
    let refuse = |got: String| {
        parameter(
            py,
            "partitions",
            got,
            "a whole number from 1 to the number of counters, \"auto\", \"adaptive\" or a model",
            "bloomtide.partitions has the models",
        )
    };
    let models = || py.import("bloomtide.partitions");
    let chosen = if let Ok(word) = words.cast::<PyString>() {
        let adaptive = match word.to_str()? {
            "auto" => false,
            "adaptive" => true,
            other => return Err(refuse(format!("{other:?}"))),
        };
        return Ok((models()?.call_method1("auto", (cells,))?.extract()?, adaptive));
    } else if words.hasattr("choose")? {
        let chosen = words.call_method1("choose", (cells,))?;
        let got = || params::shown(&chosen);
        chosen.extract::<u64>().map_err(|_| refuse(got()))?
    } else {
        params::whole("partitions", words).map_err(|_| refuse(params::shown(words)))?
    };
    if chosen == 0 || chosen > cells {
        return Err(refuse(format!("{chosen} for {cells} counters")));
    }
    Ok((chosen, false))
}

/// What only one of the storages has, as fields of a `Plan`.
trait ShapeFields: Copy + PartialEq {
    fn counter_bits(&self) -> u32;
    fn bytes(&self, cut: &Cut) -> u64;
    fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()>;
}

impl ShapeFields for DynamicShape {
    fn counter_bits(&self) -> u32 {
        self.width
    }

    fn bytes(&self, cut: &Cut) -> u64 {
        dynamic_bytes(cut, self.width)
    }

    fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        fields.set_item("storage", "dynamic")?;
        fields.set_item("shrink", self.shrink)?;
        fields.set_item("adaptive", self.adaptive)
    }
}

impl ShapeFields for SpectralShape {
    fn counter_bits(&self) -> u32 {
        1
    }

    fn bytes(&self, cut: &Cut) -> u64 {
        SpectralCells::bytes_of(cut, self)
    }

    fn fields(&self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        fields.set_item("storage", "spectral")?;
        fields.set_item("slack", self.slack)?;
        fields.set_item("design_bits", self.design_bits)?;
        fields.set_item("on_full", on_full_name(self.on_full))
    }
}

fn to_record<'py, S: ShapeFields>(
    py: Python<'py>,
    kinds: [&'static str; 2],
    plan: &CountPlan<S>,
) -> PyResult<Bound<'py, PyAny>> {
    let sizes = Sizes {
        kind: kinds[usize::from(plan.partitioned)],
        capacity: plan.capacity,
        error_rate: plan.error_rate,
        placement: plan.placement,
        counter_bits: plan.shape.counter_bits(),
        bytes: plan.shape.bytes(&plan.cut()),
    };
    let error_at = |keys| plan.error_at(keys);
    sizes.plan(py, error_at, |fields| {
        fields.set_item("policy", plan.policy.name())?;
        fields.set_item("total", plan.total)?;
        fields.set_item("partitions", plan.cut().partitions())?;
        plan.shape.fields(fields)
    })
}

fn plan_of<S: Copy + PartialEq>(
    plan: &Bound<'_, PyAny>,
    partitioned: bool,
    shape: S,
) -> PyResult<CountPlan<S>> {
    let py = plan.py();
    CountPlan {
        placement: placement_of(plan)?,
        policy: Policy::parse(&field::<String>(plan, "policy")?).or_raise(py)?,
        shape,
        partitioned,
        partitions: field(plan, "partitions")?,
        total: field(plan, "total")?,
        capacity: field(plan, "capacity")?,
        error_rate: field(plan, "error_rate")?,
    }
    .checked()
    .or_raise(py)
}
