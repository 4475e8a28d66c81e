//! The two dynamic count classes: what makes each of them.

use super::goal::{self, Words, plan_of, plan_record};
use super::{Any, CountFilter, to_object};
use crate::errors::OrRaise;
use crate::params::{self, field};
use crate::{files, writers};
use bloomtide_core::Policy;
use bloomtide_core::cells::DynamicShape;
use bloomtide_core::filters::{CountFilter as Core, CountPlan, check_base_bits, check_shrink};
use bloomtide_core::snapshot::Kind;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// Counts keys in counters of two parts, of which the upper one grows with the largest count.
#[pyclass(frozen, extends = CountFilter, module = "bloomtide")]
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
#[pyclass(frozen, extends = CountFilter, module = "bloomtide")]
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
