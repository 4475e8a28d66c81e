//! What a user wants of a filter of growing counters, from Python's words to the core's plans.

use crate::errors::{OrRaise, parameter};
use crate::params::{self, DEFAULT_ERROR_RATE, field};
use crate::records::record;
use bloomtide_core::cells::{Cut, DynamicShape, OnFull, SpectralCells, SpectralShape};
use bloomtide_core::filters::{
    CountGoal, CountPlan, base_bits, check_base_bits, check_shrink, design_bits, dynamic_bytes,
    second_plan,
};
use bloomtide_core::{Derivation, Layout, Placement, Policy};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The words that all four constructors share.
pub(crate) struct Words<'a, 'py> {
    pub(crate) capacity: Option<&'a Bound<'py, PyAny>>,
    pub(crate) error_rate: Option<&'a Bound<'py, PyAny>>,
    pub(crate) total: Option<&'a Bound<'py, PyAny>>,
    pub(crate) cells: Option<&'a Bound<'py, PyAny>>,
    pub(crate) hashes: Option<&'a Bound<'py, PyAny>>,
    pub(crate) layout: Option<&'a str>,
    pub(crate) derivation: &'a str,
    pub(crate) policy: &'a str,
    /// None in the classes that are not partitioned.
    pub(crate) partitions: Option<&'a Bound<'py, PyAny>>,
}

/// Sizes that do not depend on the cells.
struct Sizes {
    goal: CountGoal,
    placement: Placement,
    expected: u64,
    total: u64,
    partitions: u64,
    adaptive: bool,
}

impl Words<'_, '_> {
    fn sizes(&self, py: Python<'_>) -> PyResult<Sizes> {
        let error_rate = match (self.error_rate, self.cells) {
            (Some(value), _) => Some(params::rate("error_rate", value)?),
            (None, None) if self.capacity.is_some() => Some(DEFAULT_ERROR_RATE),
            _ => None,
        };
        let goal = CountGoal {
            capacity: params::maybe_whole("capacity", self.capacity)?,
            error_rate,
            cells: params::maybe_whole("cells", self.cells)?,
            hashes: self.hashes.map(|value| params::small("hashes", value)).transpose()?,
            total: params::maybe_whole("total", self.total)?,
            layout: self.layout.map(Layout::parse).transpose().or_raise(py)?,
            derivation: params::derivation(py, self.derivation)?,
        };
        let placement = goal.placement().or_raise(py)?;
        let expected = goal.expected(&placement);
        let total = goal.total(expected).or_raise(py)?;
        let (partitions, adaptive) = match self.partitions {
            None => (1, false),
            Some(words) => partitions(words, placement.cells)?,
        };
        Ok(Sizes { goal, placement, expected, total, partitions, adaptive })
    }

    fn plan<S: Copy + PartialEq>(
        &self,
        py: Python<'_>,
        offered: &[Policy],
        shape: impl FnOnce(&Sizes) -> PyResult<S>,
    ) -> PyResult<CountPlan<S>> {
        let policy = Policy::parse(self.policy, offered).or_raise(py)?;
        let sizes = self.sizes(py)?;
        CountPlan {
            placement: sizes.placement,
            policy,
            shape: shape(&sizes)?,
            partitioned: self.partitions.is_some(),
            partitions: sizes.partitions,
            total: sizes.total,
            capacity: sizes.goal.capacity,
            error_rate: sizes.goal.error_rate,
        }
        .checked()
        .or_raise(py)
    }

    pub(crate) fn dynamic(
        &self,
        py: Python<'_>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        shrink: f64,
    ) -> PyResult<CountPlan<DynamicShape>> {
        self.plan(py, &Policy::USUAL, |sizes| {
            let width = match counter_bits {
                Some(bits) => params::small("counter_bits", bits)?,
                None => base_bits(sizes.total, sizes.expected),
            };
            check_base_bits(width).or_raise(py)?;
            check_shrink(shrink).or_raise(py)?;
            Ok(DynamicShape { width, shrink, adaptive: sizes.adaptive })
        })
    }

    pub(crate) fn spectral(
        &self,
        py: Python<'_>,
        slack: f64,
        on_full: &str,
    ) -> PyResult<CountPlan<SpectralShape>> {
        self.plan(py, &Policy::SPECTRAL, |sizes| {
            let design_bits = design_bits(&sizes.placement, sizes.expected, sizes.total);
            let shape = SpectralShape { design_bits, slack, on_full: parse_on_full(py, on_full)? };
            shape.check().or_raise(py)?;
            Ok(shape)
        })
    }
}

pub(crate) fn parse_on_full(py: Python<'_>, name: &str) -> PyResult<OnFull> {
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

pub(crate) fn on_full_name(on_full: OnFull) -> &'static str {
    match on_full {
        OnFull::Grow => "grow",
        OnFull::Saturate => "saturate",
    }
}

/// (number of partitions, adaptive): a number, "auto", "adaptive" or a model of `bloomtide.partitions`.
pub(crate) fn partitions(words: &Bound<'_, PyAny>, cells: u64) -> PyResult<(u64, bool)> {
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
        let got = || chosen.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        chosen.extract::<u64>().map_err(|_| refuse(got()))?
    } else {
        params::whole("partitions", words).map_err(|_| {
            refuse(words.repr().map_or_else(|_| "?".into(), |text| text.to_string()))
        })?
    };
    if chosen == 0 || chosen > cells {
        return Err(refuse(format!("{chosen} for {cells} counters")));
    }
    Ok((chosen, false))
}

/// What only one of the storages has, as fields of a `Plan`.
pub(crate) trait ShapeFields: Copy + PartialEq {
    fn counter_bits(&self) -> u32;
    fn bytes(&self, cut: &Cut) -> u64;
    fn fields(&self, fields: &Bound<'_, pyo3::types::PyDict>) -> PyResult<()>;
}

impl ShapeFields for DynamicShape {
    fn counter_bits(&self) -> u32 {
        self.width
    }

    fn bytes(&self, cut: &Cut) -> u64 {
        dynamic_bytes(cut, self.width)
    }

    fn fields(&self, fields: &Bound<'_, pyo3::types::PyDict>) -> PyResult<()> {
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

    fn fields(&self, fields: &Bound<'_, pyo3::types::PyDict>) -> PyResult<()> {
        fields.set_item("slack", self.slack)?;
        fields.set_item("design_bits", self.design_bits)?;
        fields.set_item("on_full", on_full_name(self.on_full))
    }
}

/// A plan as a `Plan` record.
pub(crate) fn plan_record<'py, S: ShapeFields>(
    py: Python<'py>,
    kind: &str,
    plan: &CountPlan<S>,
) -> PyResult<Bound<'py, PyAny>> {
    let error_at = |factor: f64| plan.capacity.map(|n| plan.error_at(n as f64 * factor));
    record(py, "Plan", |fields| {
        fields.set_item("kind", kind)?;
        fields.set_item("capacity", plan.capacity)?;
        fields.set_item("error_rate", plan.error_rate)?;
        fields.set_item("layout", plan.placement.layout.name())?;
        fields.set_item("derivation", plan.placement.derivation.name())?;
        fields.set_item("cells", plan.cells())?;
        fields.set_item("hashes", plan.hashes())?;
        fields.set_item("counter_bits", plan.shape.counter_bits())?;
        let second = second_plan(plan).map_or(0, |second| second.shape.bytes(&second.cut()));
        fields.set_item("bytes", plan.shape.bytes(&plan.cut()) + second)?;
        fields.set_item("predicted_error", error_at(1.0))?;
        fields.set_item("predicted_error_overfull", error_at(2.0))?;
        fields.set_item("policy", plan.policy.name())?;
        fields.set_item("total", plan.total)?;
        fields.set_item("partitions", plan.cut().partitions())?;
        plan.shape.fields(fields)
    })
}

/// The plan of a `Plan` record.
pub(crate) fn plan_of<S: ShapeFields>(
    plan: &Bound<'_, PyAny>,
    partitioned: bool,
    offered: &[Policy],
    shape: S,
) -> PyResult<CountPlan<S>> {
    let py = plan.py();
    CountPlan {
        placement: Placement {
            layout: Layout::parse(&field::<String>(plan, "layout")?).or_raise(py)?,
            derivation: Derivation::parse(&field::<String>(plan, "derivation")?).or_raise(py)?,
            cells: field(plan, "cells")?,
            hashes: field(plan, "hashes")?,
        },
        policy: Policy::parse(&field::<String>(plan, "policy")?, offered).or_raise(py)?,
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
