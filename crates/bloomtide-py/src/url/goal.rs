//! The parameters of `UrlFilter`, and its plan as a record.

use crate::errors::{OrRaise, parameter};
use crate::params::{self, field};
use crate::records::{Sizes, plan_record};
use crate::words::Words;
use bloomtide_core::UrlPlan;
use bloomtide_core::filters::{Bind, LayerSizes};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// The keywords that a plan is made from.
pub(super) const SIZING: &[&str] = &["layer_sizes", "paper"];

/// Words of Python's that become a plan.
pub(super) fn plan_of<'py>(
    words: &Words<'_, 'py>,
    capacity: &Bound<'py, PyAny>,
    error_rate: Option<&Bound<'py, PyAny>>,
    max_layers: Option<&Bound<'py, PyAny>>,
) -> PyResult<UrlPlan> {
    let bind = words.paper("bind")?;
    let bind = Bind::parse(bind.as_deref().unwrap_or("salted_xor")).or_raise(words.py)?;
    UrlPlan {
        capacity: params::whole("capacity", capacity)?,
        error_rate: params::error_rate(error_rate)?,
        max_layers: layers_of(max_layers)?,
        bind,
        layer_sizes: words
            .word("layer_sizes")?
            .map_or(Ok(LayerSizes::Uniform), |value| sizes_of(&value))?,
    }
    .checked()
    .or_raise(words.py)
}

/// How many layers there may be.
pub(super) fn layers_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
    const DEFAULT: u32 = 8;
    value.map_or(Ok(DEFAULT), |value| params::small("max_layers", value))
}

fn sizes_of(value: &Bound<'_, PyAny>) -> PyResult<LayerSizes> {
    let refuse = || {
        let got = params::shown(value);
        let allowed = "\"uniform\" or a list of numbers";
        let hint = "UrlFilter.measure(urls) counts the prefixes of a sample";
        parameter(value.py(), "layer_sizes", got, allowed, hint)
    };
    if let Ok(name) = value.cast::<PyString>() {
        return match name.to_string_lossy().as_ref() {
            "uniform" => Ok(LayerSizes::Uniform),
            _ => Err(refuse()),
        };
    }
    let sizes = value.try_iter().map_err(|_| refuse())?;
    let sizes = sizes.map(|size| params::whole("layer_sizes", &size?)).collect::<PyResult<_>>()?;
    Ok(LayerSizes::Expected(sizes))
}

/// The sizes as Python writes them.
pub(super) fn sizes_object<'py>(
    py: Python<'py>,
    sizes: &LayerSizes,
) -> PyResult<Bound<'py, PyAny>> {
    match sizes {
        LayerSizes::Expected(sizes) => Ok(PyList::new(py, sizes)?.into_any()),
        named => named.name().into_bound_py_any(py),
    }
}

/// The plan as a `Plan` record: all layers and X together, and each layer in `layers`.
pub(super) fn to_record<'py>(py: Python<'py>, plan: &UrlPlan) -> PyResult<Bound<'py, PyAny>> {
    let whole = plan.whole().or_raise(py)?;
    let layers =
        (1..=plan.max_layers).map(|depth| plan.layer(depth)).collect::<Result<Vec<_>, _>>();
    let layers = layers.or_raise(py)?;
    let records =
        layers.iter().map(|layer| plan_record(py, layer)).collect::<PyResult<Vec<_>>>()?;
    let (capacity, error_rate) = (Some(plan.capacity), Some(plan.error_rate));
    let mut sizes = Sizes { kind: "url", capacity, error_rate, ..Sizes::of_bloom(&whole) };
    sizes.placement.cells += layers.iter().map(|layer| layer.bits).sum::<u64>();
    sizes.bytes += layers.iter().map(|layer| layer.bytes()).sum::<u64>();
    sizes.plan(
        py,
        |keys| whole.error_at(keys),
        |fields| {
            fields.set_item("max_layers", plan.max_layers)?;
            fields.set_item("bind", plan.bind.name())?;
            fields.set_item("layer_sizes", sizes_object(py, &plan.layer_sizes)?)?;
            fields.set_item("layers", PyTuple::new(py, records)?)
        },
    )
}

/// The plan of a `Plan` record.
pub(super) fn from_record(py: Python<'_>, plan: &Bound<'_, PyAny>) -> PyResult<UrlPlan> {
    params::require_kind(plan, "url")?;
    UrlPlan {
        capacity: field(plan, "capacity")?,
        error_rate: field(plan, "error_rate")?,
        max_layers: field(plan, "max_layers")?,
        bind: Bind::parse(&field::<String>(plan, "bind")?).or_raise(py)?,
        layer_sizes: sizes_of(&field::<Bound<'_, PyAny>>(plan, "layer_sizes")?)?,
    }
    .checked()
    .or_raise(py)
}
