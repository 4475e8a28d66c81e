//! `ScalableBloomFilter` for Python.
//!
//! Growing replaces nothing but adds a layer, so the whole filter sits behind one lock: many readers or
//! one writer. Nobody asks for the interpreter while holding it, so waiting for it cannot deadlock.

use crate::errors::{OrRaise, to_python};
use crate::files;
use crate::key::hash_key;
use crate::keys::{self, Options, Part, Verb};
use crate::params::{self, field};
use crate::records::{record, stats_record};
use bloomtide_core::snapshot::{Kind, Loaded};
use bloomtide_core::{Crew, Derivation, Error, Hasher, ScalableBloomFilter as Core, ScalablePlan};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A Bloom filter that grows when it is full and keeps its error under the target.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct ScalableBloomFilter {
    core: RwLock<Core>,
    plan: ScalablePlan,
    hasher: Hasher,
}

fn plan_of(
    py: Python<'_>,
    capacity: Option<&Bound<'_, PyAny>>,
    error_rate: Option<&Bound<'_, PyAny>>,
    growth: f64,
    tightening: f64,
    derivation: &str,
) -> PyResult<ScalablePlan> {
    const DEFAULT_CAPACITY: u64 = 1024;
    ScalablePlan {
        capacity: params::maybe_whole("capacity", capacity)?.unwrap_or(DEFAULT_CAPACITY),
        error_rate: error_rate
            .map_or(Ok(params::DEFAULT_ERROR_RATE), |value| params::rate("error_rate", value))?,
        growth,
        tightening,
        derivation: params::derivation(py, derivation)?,
    }
    .checked()
    .or_raise(py)
}

impl ScalableBloomFilter {
    pub(crate) fn new(core: Core) -> Self {
        let (plan, hasher) = (*core.plan(), *core.hasher());
        ScalableBloomFilter { core: RwLock::new(core), plan, hasher }
    }

    // A poisoned lock means a panic inside the core, which has none; its data is still sound.
    fn read(&self) -> RwLockReadGuard<'_, Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Core> {
        self.core.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn from_loaded(py: Python<'_>, loaded: Loaded) -> PyResult<Self> {
        match loaded {
            Loaded::Scalable(core) => Ok(ScalableBloomFilter::new(core)),
            other => {
                let got = other.kind().name().to_owned();
                Err(to_python(py, Error::Kind { expected: "scalable", got }))
            }
        }
    }
}

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, growth=2.0, tightening=0.5,
                     derivation="enhanced", hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity=1024, error_rate=0.01, *, growth=2.0, tightening=0.5, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        growth: f64,
        tightening: f64,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let plan = plan_of(py, capacity, error_rate, growth, tightening, derivation)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(ScalableBloomFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Sizes and predicted error of the first layer for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, growth=2.0, tightening=0.5,
                     derivation="enhanced"),
        text_signature = "($type, capacity=1024, error_rate=0.01, *, growth=2.0, tightening=0.5, derivation='enhanced')"
    )]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        growth: f64,
        tightening: f64,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let plan = plan_of(py, capacity, error_rate, growth, tightening, derivation)?;
        let first = plan.layer(0).or_raise(py)?;
        // Twice the capacity is a second layer, with the smaller error that its number gives it.
        let second = plan.layer(1).or_raise(py)?;
        let n = plan.capacity as f64;
        let overfull = [first.error_at(n), second.error_at(n)];
        record(py, "Plan", |fields| {
            fields.set_item("kind", "scalable")?;
            fields.set_item("capacity", plan.capacity)?;
            fields.set_item("error_rate", plan.error_rate)?;
            fields.set_item("layout", first.layout.name())?;
            fields.set_item("derivation", plan.derivation.name())?;
            fields.set_item("cells", first.bits)?;
            fields.set_item("hashes", first.hashes)?;
            fields.set_item("counter_bits", 1)?;
            fields.set_item("bytes", first.bytes())?;
            fields.set_item("predicted_error", overfull[0])?;
            let compound = bloomtide_core::sizing::compound_error(overfull.into_iter());
            fields.set_item("predicted_error_overfull", compound)?;
            fields.set_item("growth", plan.growth)?;
            fields.set_item("tightening", plan.tightening)
        })
    }

    /// An empty filter with a plan's goals.
    #[classmethod]
    #[pyo3(signature = (plan, *, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        params::require_kind(plan, "scalable")?;
        let plan = ScalablePlan {
            capacity: field(plan, "capacity")?,
            error_rate: field(plan, "error_rate")?,
            growth: field(plan, "growth")?,
            tightening: field(plan, "tightening")?,
            derivation: Derivation::parse(&field::<String>(plan, "derivation")?).or_raise(py)?,
        };
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(ScalableBloomFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::load(path, Some(Kind::Scalable))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::from_bytes(data, Some(Kind::Scalable))?)
    }

    /// Adds the key unless it may be inside; True iff it was certainly absent before.
    #[pyo3(signature = (key, /))]
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = hash_key(&self.hasher, key, None)?;
        self.write().add(hash).or_raise(key.py())
    }

    /// Adds every key in order; a NumPy array of what `add` would have answered.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Growing goes key by key, so threads would only wait for each other.
        let add =
            |part: Part<'_>, out: &mut [bool], _: &mut Crew| self.write().add_many(part.keys, out);
        let options = Options::parse(keys.py(), nulls, threads)?;
        keys::run(&Verb::new(&self.hasher, &add), keys, options)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.read().contains(hash_key(&self.hasher, key, None)?))
    }

    /// `key in filter` for every key, as a NumPy array.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ask = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.read().contains_many(part.keys, out, crew);
            Ok(())
        };
        let options = Options::parse(keys.py(), nulls, threads)?;
        keys::run(&Verb::new(&self.hasher, &ask), keys, options)
    }

    /// A copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.read().copy()).or_raise(py).map(ScalableBloomFilter::new)
    }

    /// Forgets every key and goes back to one layer.
    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.write().clear());
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> bool {
        let other = other.get();
        // One lock at a time: two filters compared both ways at once must not wait for each other.
        py.detach(|| {
            std::ptr::eq(self, other) || {
                let theirs = other.read().copy();
                theirs.is_ok_and(|theirs| self.read().same_as(&theirs))
            }
        })
    }

    /// Estimated number of distinct keys inside, from the fill of the layers.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.read().measure().0.items)
    }

    /// Fill, estimated keys, compound error now and memory; each layer in `layers`.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (whole, layers, plans, bytes) = py.detach(|| {
            let core = self.read();
            let (whole, layers) = core.measure();
            let plans: Vec<_> = core.layers().map(|filter| *filter.plan()).collect();
            (whole, layers, plans, core.bytes())
        });
        let records = plans
            .iter()
            .zip(&layers)
            .map(|(plan, layer)| stats_record(py, plan, layer, None))
            .collect::<PyResult<Vec<_>>>()?;
        record(py, "Stats", |fields| {
            fields.set_item("kind", "scalable")?;
            fields.set_item("items", whole.items)?;
            fields.set_item("capacity", self.plan.capacity)?;
            fields.set_item("error_rate", self.plan.error_rate)?;
            fields.set_item("predicted_error", whole.error)?;
            fields.set_item("fill", whole.fill)?;
            fields.set_item("cells", plans.iter().map(|plan| plan.bits).sum::<u64>())?;
            fields.set_item("hashes", plans.iter().map(|plan| plan.hashes).max())?;
            fields.set_item("counter_bits", 1)?;
            fields.set_item("bytes", bytes)?;
            fields.set_item("rebuilds", plans.len() - 1)?;
            fields.set_item("layers", PyTuple::new(py, records)?)
        })
    }

    /// Checks every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.read().validate()).or_raise(py)
    }

    /// The bits of a key in each layer, oldest first.
    fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u64>>> {
        let hash = hash_key(&self.hasher, key, None)?;
        Ok(self.read().layers().map(|filter| filter.positions(hash)).collect())
    }

    /// Replaces the file by a snapshot, atomically and durably.
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = path.py();
        let core = py.detach(|| self.read().copy()).or_raise(py)?;
        files::save(py, &core, path)
    }

    /// The snapshot as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let core = py.detach(|| self.read().copy()).or_raise(py)?;
        files::to_bytes(py, &core)
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = this.py();
        Ok((this.get_type().getattr("from_bytes")?, (this.get().to_bytes(py)?,)))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.copy(py)
    }

    fn __repr__(&self) -> String {
        let ScalablePlan { capacity, error_rate, growth, tightening, .. } = self.plan;
        let layers = self.read().layers().len();
        format!(
            "<ScalableBloomFilter capacity={capacity} error_rate={error_rate} growth={growth} \
             tightening={tightening} layers={layers}>"
        )
    }

    #[getter]
    fn capacity(&self) -> u64 {
        self.plan.capacity
    }

    #[getter]
    fn error_rate(&self) -> f64 {
        self.plan.error_rate
    }

    #[getter]
    fn growth(&self) -> f64 {
        self.plan.growth
    }

    #[getter]
    fn tightening(&self) -> f64 {
        self.plan.tightening
    }

    #[getter]
    fn derivation(&self) -> &'static str {
        self.plan.derivation.name()
    }

    #[getter]
    fn hash(&self) -> &'static str {
        self.hasher.name()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.hasher.seed()
    }
}
