//! The two spectral classes: what makes each of them.

use super::goal::{self, Words, parse_on_full, plan_of, plan_record};
use super::{Any, CountFilter, to_object};
use crate::errors::OrRaise;
use crate::params::{self, field};
use crate::{files, writers};
use bloomtide_core::Policy;
use bloomtide_core::cells::SpectralShape;
use bloomtide_core::filters::{CountFilter as Core, CountPlan};
use bloomtide_core::snapshot::Kind;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// Counts keys in counters that each take the bits they need.
#[pyclass(frozen, extends = CountFilter, module = "bloomtide")]
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
#[pyclass(frozen, extends = CountFilter, module = "bloomtide")]
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
