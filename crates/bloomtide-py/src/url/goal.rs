//! The parameters of `UrlFilter`, and its plan as a record.

use crate::errors::{OrRaise, parameter};
use crate::params;
use crate::python::*;
use crate::records::{self, Sizes, fields};
use crate::words::{DEFAULT_ERROR_RATE, Words};
use bloomtide_core::UrlPlan;
use bloomtide_core::filters::{Bind, LayerSizes};
use pyo3::IntoPyObjectExt;
use pyo3::types::{PyList, PyString, PyTuple, PyType};

/// Words of Python's that become a plan.
pub(super) fn plan_of(_: &Bound<'_, PyType>, words: &Words<'_>) -> PyResult<UrlPlan> {
    words.require_kind(&["url"])?;
    let bind = words.paper("bind")?;
    let sizes = words.word("layer_sizes")?;
    UrlPlan {
        capacity: params::whole("capacity", &words.must("capacity")?)?,
        error_rate: words.error_rate()?.unwrap_or(DEFAULT_ERROR_RATE),
        max_layers: layers_of(words.word("max_layers")?.as_ref())?,
        bind: Bind::parse(bind.as_deref().unwrap_or("salted_xor")).or_raise(words.py)?,
        layer_sizes: sizes.map_or(Ok(LayerSizes::Uniform), |value| sizes_of(&value))?,
    }
    .checked()
    .or_raise(words.py)
}

/// How many layers there may be.
pub(super) fn layers_of(value: Option<&Object<'_>>) -> PyResult<u32> {
    const DEFAULT: u32 = 8;
    value.map_or(Ok(DEFAULT), |value| params::small("max_layers", value))
}

fn sizes_of(value: &Object<'_>) -> PyResult<LayerSizes> {
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
pub(super) fn sizes_object<'py>(py: Python<'py>, sizes: &LayerSizes) -> Answer<'py> {
    match sizes {
        LayerSizes::Expected(sizes) => Ok(PyList::new(py, sizes)?.into_any()),
        named => named.name().into_bound_py_any(py),
    }
}

/// The plan as a `Plan` record: all layers and X together, and each layer in `layers`.
pub(super) fn plan_record<'py>(py: Python<'py>, plan: &UrlPlan) -> Answer<'py> {
    let whole = plan.whole().or_raise(py)?;
    let layers =
        (1..=plan.max_layers).map(|depth| plan.layer(depth)).collect::<Result<Vec<_>, _>>();
    let layers = layers.or_raise(py)?;
    let records =
        layers.iter().map(|layer| records::plan_record(py, layer)).collect::<PyResult<Vec<_>>>()?;
    let (capacity, error_rate) = (Some(plan.capacity), Some(plan.error_rate));
    let mut sizes = Sizes { kind: "url", capacity, error_rate, ..Sizes::of_bloom(&whole) };
    sizes.placement.cells += layers.iter().map(|layer| layer.bits).sum::<u64>();
    sizes.bytes += layers.iter().map(|layer| layer.bytes()).sum::<u64>();
    sizes.plan(
        py,
        |keys| whole.error_at(keys),
        |dict| {
            let layer_sizes = sizes_object(py, &plan.layer_sizes)?;
            let (max_layers, bind) = (plan.max_layers, plan.bind.name());
            fields!(dict => max_layers, bind, layer_sizes, layers: PyTuple::new(py, records)?)
        },
    )
}
