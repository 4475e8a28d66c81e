//! The four classes: what makes each of them.

use super::goal::{self, ShapeFields, Words, parse_on_full, plan_record};
use super::{Any, CountFilter};
use crate::errors::OrRaise;
use crate::params::{self, field};
use crate::{files, writers};
use bloomery_core::cells::{DynamicShape, SpectralShape};
use bloomery_core::filters::{CountFilter as Core, CountPlan, check_base_bits, check_shrink};
use bloomery_core::snapshot::Kind;
use bloomery_core::{Derivation, Layout, Placement, Policy};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// Counts keys in counters that each take the bits they need.
#[pyclass(frozen, extends = CountFilter, module = "bloomery")]
pub(crate) struct SpectralBloomFilter;

#[pymethods]
impl SpectralBloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, slack=0.1, on_full="grow", policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced", hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity=None, error_rate=None, *, total=None, slack=0.1, on_full='grow', policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        slack: f64,
        on_full: &str,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: None,
        };
        let plan = words.spectral(py, slack, on_full)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        let core = Any::Spectral(Core::new(plan, hasher).or_raise(py)?);
        Ok(PyClassInitializer::from(CountFilter::new(core)).add_subclass(SpectralBloomFilter))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, slack=0.1, on_full="grow", policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced"),
        text_signature = "($type, capacity=None, error_rate=None, *, total=None, slack=0.1, on_full='grow', policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced')"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        slack: f64,
        on_full: &str,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: None,
        };
        let plan = words.spectral(py, slack, on_full)?;
        plan_record(py, "sbf", &plan)
    }

    /// An empty filter of a plan's sizes.
    #[classmethod]
    #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = cls.py();
        params::require_kind(plan, "sbf")?;
        let plan = spectral_of(plan, false)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        to_object(py, Any::Spectral(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::load(path, Some(Kind::Spectral))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::from_bytes(data, Some(Kind::Spectral))?)
    }

    #[getter]
    fn slack(this: &Bound<'_, Self>) -> Option<f64> {
        this.as_super().get().core.spectral().map(|shape| shape.slack)
    }

    #[getter]
    fn on_full(this: &Bound<'_, Self>) -> Option<&'static str> {
        this.as_super().get().core.spectral().map(|shape| goal::on_full_name(shape.on_full))
    }
}

/// A spectral Bloom filter in partitions: a rebuild touches one of them.
#[pyclass(frozen, extends = CountFilter, module = "bloomery")]
pub(crate) struct PartitionedSpectralBloomFilter;

#[pymethods]
impl PartitionedSpectralBloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, partitions=None, slack=0.1, on_full="grow", policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced", hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity=None, error_rate=None, *, total=None, partitions='auto', slack=0.1, on_full='grow', policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        partitions: Option<&Bound<'_, PyAny>>,
        slack: f64,
        on_full: &str,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let auto = PyString::new(py, "auto").into_any();
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: Some(partitions.unwrap_or(&auto)),
        };
        let plan = words.spectral(py, slack, on_full)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        let core = Any::Spectral(Core::new(plan, hasher).or_raise(py)?);
        Ok(PyClassInitializer::from(CountFilter::new(core))
            .add_subclass(PartitionedSpectralBloomFilter))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, partitions=None, slack=0.1, on_full="grow", policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced"),
        text_signature = "($type, capacity=None, error_rate=None, *, total=None, partitions='auto', slack=0.1, on_full='grow', policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced')"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        partitions: Option<&Bound<'_, PyAny>>,
        slack: f64,
        on_full: &str,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let auto = PyString::new(py, "auto").into_any();
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: Some(partitions.unwrap_or(&auto)),
        };
        let plan = words.spectral(py, slack, on_full)?;
        plan_record(py, "psbf", &plan)
    }

    /// An empty filter of a plan's sizes.
    #[classmethod]
    #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = cls.py();
        params::require_kind(plan, "psbf")?;
        let plan = spectral_of(plan, true)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        to_object(py, Any::Spectral(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::load(path, Some(Kind::PartitionedSpectral))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::from_bytes(data, Some(Kind::PartitionedSpectral))?)
    }

    /// Cuts the cells into `partitions` other partitions; every count stays the same.
    fn repartition(this: &Bound<'_, Self>, partitions: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = this.py();
        let base = this.as_super().get();
        let (partitions, adaptive) = goal::partitions(partitions, base.common().placement.cells)?;
        let _registered = writers::Registered::new(&base.writers);
        py.detach(|| base.core.repartition(partitions, adaptive)).or_raise(py)
    }

    #[getter]
    fn slack(this: &Bound<'_, Self>) -> Option<f64> {
        this.as_super().get().core.spectral().map(|shape| shape.slack)
    }

    #[getter]
    fn on_full(this: &Bound<'_, Self>) -> Option<&'static str> {
        this.as_super().get().core.spectral().map(|shape| goal::on_full_name(shape.on_full))
    }
}

/// Counts keys in counters of two parts, of which the upper one grows with the largest count.
#[pyclass(frozen, extends = CountFilter, module = "bloomery")]
pub(crate) struct DynamicCountFilter;

#[pymethods]
impl DynamicCountFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, counter_bits=None, shrink=0.5, policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced", hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity=None, error_rate=None, *, total=None, counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        shrink: f64,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: None,
        };
        let plan = words.dynamic(py, counter_bits, shrink)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        let core = Any::Dynamic(Core::new(plan, hasher).or_raise(py)?);
        Ok(PyClassInitializer::from(CountFilter::new(core)).add_subclass(DynamicCountFilter))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, counter_bits=None, shrink=0.5, policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced"),
        text_signature = "($type, capacity=None, error_rate=None, *, total=None, counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced')"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        shrink: f64,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: None,
        };
        let plan = words.dynamic(py, counter_bits, shrink)?;
        plan_record(py, "dcf", &plan)
    }

    /// An empty filter of a plan's sizes.
    #[classmethod]
    #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = cls.py();
        params::require_kind(plan, "dcf")?;
        let plan = dynamic_of(plan, false)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        to_object(py, Any::Dynamic(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::load(path, Some(Kind::Dynamic))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::from_bytes(data, Some(Kind::Dynamic))?)
    }

    #[getter]
    fn counter_bits(this: &Bound<'_, Self>) -> Option<u32> {
        this.as_super().get().core.dynamic().map(|shape| shape.width)
    }

    #[getter]
    fn shrink(this: &Bound<'_, Self>) -> Option<f64> {
        this.as_super().get().core.dynamic().map(|shape| shape.shrink)
    }
}

/// A dynamic count filter in partitions: a hot key widens the counters of its partition only.
#[pyclass(frozen, extends = CountFilter, module = "bloomery")]
pub(crate) struct PartitionedDynamicCountFilter;

#[pymethods]
impl PartitionedDynamicCountFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, partitions=None, counter_bits=None, shrink=0.5, policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced", hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity=None, error_rate=None, *, total=None, partitions='auto', counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        partitions: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        shrink: f64,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let auto = PyString::new(py, "auto").into_any();
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: Some(partitions.unwrap_or(&auto)),
        };
        let plan = words.dynamic(py, counter_bits, shrink)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        let core = Any::Dynamic(Core::new(plan, hasher).or_raise(py)?);
        Ok(PyClassInitializer::from(CountFilter::new(core))
            .add_subclass(PartitionedDynamicCountFilter))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, total=None, partitions=None, counter_bits=None, shrink=0.5, policy="plain", layout=None,
                     cells=None, hashes=None, derivation="enhanced"),
        text_signature = "($type, capacity=None, error_rate=None, *, total=None, partitions='auto', counter_bits=None, shrink=0.5, policy='plain', layout=None, cells=None, hashes=None, derivation='enhanced')"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        total: Option<&Bound<'_, PyAny>>,
        partitions: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        shrink: f64,
        policy: &str,
        layout: Option<&str>,
        cells: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let auto = PyString::new(py, "auto").into_any();
        let words = Words {
            capacity,
            error_rate,
            total,
            cells,
            hashes,
            layout,
            derivation,
            policy,
            partitions: Some(partitions.unwrap_or(&auto)),
        };
        let plan = words.dynamic(py, counter_bits, shrink)?;
        plan_record(py, "pdcf", &plan)
    }

    /// An empty filter of a plan's sizes.
    #[classmethod]
    #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let py = cls.py();
        params::require_kind(plan, "pdcf")?;
        let plan = dynamic_of(plan, true)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        to_object(py, Any::Dynamic(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::load(path, Some(Kind::PartitionedDynamic))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        files::to_object(cls.py(), files::from_bytes(data, Some(Kind::PartitionedDynamic))?)
    }

    /// Cuts the cells into `partitions` other partitions; every count stays the same.
    fn repartition(this: &Bound<'_, Self>, partitions: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = this.py();
        let base = this.as_super().get();
        let (partitions, adaptive) = goal::partitions(partitions, base.common().placement.cells)?;
        let _registered = writers::Registered::new(&base.writers);
        py.detach(|| base.core.repartition(partitions, adaptive)).or_raise(py)
    }

    #[getter]
    fn counter_bits(this: &Bound<'_, Self>) -> Option<u32> {
        this.as_super().get().core.dynamic().map(|shape| shape.width)
    }

    #[getter]
    fn shrink(this: &Bound<'_, Self>) -> Option<f64> {
        this.as_super().get().core.dynamic().map(|shape| shape.shrink)
    }

    #[getter]
    fn adaptive(this: &Bound<'_, Self>) -> Option<bool> {
        this.as_super().get().core.dynamic().map(|shape| shape.adaptive)
    }
}

/// The Python object of a filter.
pub(crate) fn to_object(py: Python<'_>, core: Any) -> PyResult<Py<PyAny>> {
    let kind = core.kind();
    let base = PyClassInitializer::from(CountFilter::new(core));
    Ok(match kind {
        Kind::Spectral => Py::new(py, base.add_subclass(SpectralBloomFilter))?.into_any(),
        Kind::PartitionedSpectral => {
            Py::new(py, base.add_subclass(PartitionedSpectralBloomFilter))?.into_any()
        }
        Kind::PartitionedDynamic => {
            Py::new(py, base.add_subclass(PartitionedDynamicCountFilter))?.into_any()
        }
        _ => Py::new(py, base.add_subclass(DynamicCountFilter))?.into_any(),
    })
}

fn dynamic_of(plan: &Bound<'_, PyAny>, partitioned: bool) -> PyResult<CountPlan<DynamicShape>> {
    let py = plan.py();
    let shape = DynamicShape {
        width: field(plan, "counter_bits")?,
        shrink: field(plan, "shrink")?,
        adaptive: field(plan, "adaptive")?,
    };
    check_base_bits(shape.width).or_raise(py)?;
    check_shrink(shape.shrink).or_raise(py)?;
    plan_of(plan, partitioned, &Policy::USUAL, shape)
}

fn spectral_of(plan: &Bound<'_, PyAny>, partitioned: bool) -> PyResult<CountPlan<SpectralShape>> {
    let py = plan.py();
    let shape = SpectralShape {
        design_bits: field(plan, "design_bits")?,
        slack: field(plan, "slack")?,
        on_full: parse_on_full(py, &field::<String>(plan, "on_full")?)?,
    };
    shape.check().or_raise(py)?;
    plan_of(plan, partitioned, &Policy::SPECTRAL, shape)
}

fn plan_of<S: ShapeFields>(
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
