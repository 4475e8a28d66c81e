//! `CountingBloomFilter` for Python.

use crate::errors::{OrRaise, parameter, to_python};
use crate::key::hash_key;
use crate::keys::{self, Options, Part, Verb, to_numpy};
use crate::params::{self, Goal, field};
use crate::records::record;
use crate::{files, writers};
use bloomtide_core::snapshot::{Kind, Loaded};
use bloomtide_core::{
    CountingBloomFilter as Core, CountingPlan, Crew, Derivation, Error, Layout, Placement, Policy,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use std::sync::atomic::AtomicUsize;

/// Counts keys and forgets them again, in a few bits per counter.
///
/// A count is never too small while the counters are not full and only added keys are removed.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct CountingBloomFilter {
    core: Core,
    /// Batches that write without holding the interpreter.
    writers: AtomicUsize,
}

fn plan_of(
    py: Python<'_>,
    goal: Goal,
    counter_bits: &Bound<'_, PyAny>,
    policy: &str,
    layout: Option<&str>,
    derivation: &str,
) -> PyResult<CountingPlan> {
    let counter_bits = params::small("counter_bits", counter_bits)?;
    let policy = Policy::parse(policy, &Policy::USUAL).or_raise(py)?;
    let layout = layout.map(Layout::parse).transpose().or_raise(py)?;
    let derivation = params::derivation(py, derivation)?;
    match goal {
        Goal::Keys { capacity, error_rate } => {
            CountingPlan::for_goal(capacity, error_rate, counter_bits, policy, layout, derivation)
        }
        Goal::Sizes { bits, hashes } => {
            CountingPlan::for_sizes(bits, hashes, counter_bits, policy, layout, derivation)
        }
    }
    .or_raise(py)
}

impl CountingBloomFilter {
    pub(crate) fn new(core: Core) -> Self {
        CountingBloomFilter { core, writers: AtomicUsize::new(0) }
    }

    /// `count`, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn count_one(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.core.count(hash_key(self.core.hasher(), key, None)?))
    }

    /// `add` of one occurrence, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.add_times(key, 1)
    }

    #[inline(always)]
    fn add_times(&self, key: &Bound<'_, PyAny>, count: u64) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            return Ok(unsafe { self.core.add_unsynchronised(hash, count) });
        }
        Ok(self.core.add(hash, count))
    }

    fn from_loaded(py: Python<'_>, loaded: Loaded) -> PyResult<Self> {
        match loaded {
            Loaded::Counting(core) => Ok(CountingBloomFilter::new(core)),
            other => {
                let got = other.kind().name().to_owned();
                Err(to_python(py, Error::Kind { expected: "counting", got }))
            }
        }
    }
}

#[pymethods]
impl CountingBloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, counter_bits=None, policy="plain", layout=None,
                     bits=None, hashes=None, derivation="enhanced", hash="xxh3", seed=0, secret=None),
        text_signature = "(capacity=None, error_rate=None, *, counter_bits=4, policy='plain', layout=None, bits=None, hashes=None, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        policy: &str,
        layout: Option<&str>,
        bits: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let goal = params::goal(py, capacity, error_rate, bits, hashes)?;
        let plan = plan_of(py, goal, &or_four(py, counter_bits), policy, layout, derivation)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(CountingBloomFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, counter_bits=None, policy="plain", layout=None,
                     bits=None, hashes=None, derivation="enhanced"),
        text_signature = "($type, capacity=None, error_rate=None, *, counter_bits=4, policy='plain', layout=None, bits=None, hashes=None, derivation='enhanced')"
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        counter_bits: Option<&Bound<'_, PyAny>>,
        policy: &str,
        layout: Option<&str>,
        bits: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let goal = params::goal(py, capacity, error_rate, bits, hashes)?;
        let plan = plan_of(py, goal, &or_four(py, counter_bits), policy, layout, derivation)?;
        let error_at = |factor: f64| plan.capacity.map(|n| plan.error_at(n as f64 * factor));
        record(py, "Plan", |fields| {
            fields.set_item("kind", "counting")?;
            fields.set_item("capacity", plan.capacity)?;
            fields.set_item("error_rate", plan.error_rate)?;
            fields.set_item("layout", plan.placement.layout.name())?;
            fields.set_item("derivation", plan.placement.derivation.name())?;
            fields.set_item("cells", plan.cells())?;
            fields.set_item("hashes", plan.hashes())?;
            fields.set_item("counter_bits", plan.counter_bits)?;
            fields.set_item("bytes", plan.bytes())?;
            fields.set_item("predicted_error", error_at(1.0))?;
            fields.set_item("predicted_error_overfull", error_at(2.0))?;
            fields.set_item("policy", plan.policy.name())
        })
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
    ) -> PyResult<Self> {
        let py = cls.py();
        params::require_kind(plan, "counting")?;
        let plan = CountingPlan {
            placement: Placement {
                layout: Layout::parse(&field::<String>(plan, "layout")?).or_raise(py)?,
                derivation: Derivation::parse(&field::<String>(plan, "derivation")?)
                    .or_raise(py)?,
                cells: field(plan, "cells")?,
                hashes: field(plan, "hashes")?,
            },
            counter_bits: field(plan, "counter_bits")?,
            policy: Policy::parse(&field::<String>(plan, "policy")?, &Policy::USUAL)
                .or_raise(py)?,
            capacity: field(plan, "capacity")?,
            error_rate: field(plan, "error_rate")?,
        };
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(CountingBloomFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::load(path, Some(Kind::Counting))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::from_bytes(data, Some(Kind::Counting))?)
    }

    /// Adds `count` occurrences of the key; True iff it was certainly absent before.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, count=None), text_signature = "($self, key, count=1)")]
    fn add(&self, key: &Bound<'_, PyAny>, count: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.add_times(key, params::maybe_whole("count", count)?.unwrap_or(1))
    }

    /// Adds every key once, in order; a NumPy array of what `add` would have answered.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.core.add_many(part.keys, out, crew);
            Ok(())
        };
        let verb = Verb::new(self.core.hasher(), &add).writers(&self.writers);
        keys::run(&verb, keys, Options::parse(keys.py(), nulls, threads)?)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.core.contains(hash_key(self.core.hasher(), key, None)?))
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
            self.core.contains_many(part.keys, out, crew);
            Ok(())
        };
        let options = Options::parse(keys.py(), nulls, threads)?;
        keys::run(&Verb::new(self.core.hasher(), &ask), keys, options)
    }

    /// `count` for every key, as a NumPy array.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn count_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ask = |part: Part<'_>, out: &mut [u32], crew: &mut Crew| {
            self.core.count_many(part.keys, out, crew);
            Ok(())
        };
        let options = Options::parse(keys.py(), nulls, threads)?;
        keys::run(&Verb::new(self.core.hasher(), &ask), keys, options)
    }

    /// The count with its bounds: at most `upper` for certain, at least `lower` with `confidence`.
    #[pyo3(signature = (key, *, confidence=0.95))]
    fn estimate<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        confidence: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if !(confidence > 0.0 && confidence < 1.0) {
            let hint = "0.95 is right in 19 of 20 cases";
            return Err(parameter(py, "confidence", confidence, "between 0 and 1", hint));
        }
        let hash = hash_key(self.core.hasher(), key, None)?;
        let estimate = py.detach(|| self.core.estimate(hash, confidence));
        record(py, "Estimate", |fields| {
            fields.set_item("value", estimate.value)?;
            fields.set_item("lower", estimate.lower)?;
            fields.set_item("upper", (!estimate.saturated).then_some(estimate.value))?;
            fields.set_item("confidence", confidence)?;
            fields.set_item("saturated", estimate.saturated)
        })
    }

    /// Takes `count` occurrences away again, from all of the key's counters or from none.
    #[pyo3(signature = (key, count=None), text_signature = "($self, key, count=1)")]
    fn remove(&self, key: &Bound<'_, PyAny>, count: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let count = params::maybe_whole("count", count)?.unwrap_or(1);
        let hash = hash_key(self.core.hasher(), key, None)?;
        self.core.remove(hash, count).or_raise(key.py())
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let other = &other.get().core;
        self.core.require_compatible(other).or_raise(py)?;
        let made = py.detach(|| self.core.copy().and_then(|copy| copy.merge(other).map(|()| copy)));
        made.or_raise(py).map(CountingBloomFilter::new)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other)
    }

    /// Adds the other's counters to these, sticking at the largest value.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = &other.get().core;
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.merge(other)).or_raise(py)
    }

    /// A copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.core.copy()).or_raise(py).map(CountingBloomFilter::new)
    }

    /// Forgets every key.
    fn clear(&self, py: Python<'_>) {
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.clear());
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> bool {
        let other = &other.get().core;
        py.detach(|| self.core.same_as(other))
    }

    /// Estimated number of distinct keys inside, from the fill; infinite when every counter is set.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.core.measure().items)
    }

    /// Fill, estimated keys, error rate now, full counters and memory, measured from the cells.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let measure = py.detach(|| self.core.measure());
        let plan = self.core.plan();
        record(py, "Stats", |fields| {
            fields.set_item("kind", "counting")?;
            fields.set_item("items", measure.items)?;
            fields.set_item("capacity", plan.capacity)?;
            fields.set_item("error_rate", plan.error_rate)?;
            fields.set_item("predicted_error", measure.error)?;
            fields.set_item("fill", measure.fill)?;
            fields.set_item("cells", plan.cells())?;
            fields.set_item("hashes", plan.hashes())?;
            fields.set_item("counter_bits", plan.counter_bits)?;
            fields.set_item("bytes", plan.bytes())?;
            fields.set_item("saturated", measure.saturated)
        })
    }

    /// Checks every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.core.validate()).or_raise(py)
    }

    /// The counters of a key, each once, in the order they are derived.
    fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        Ok(self.core.positions(hash))
    }

    /// Every counter's value, as a NumPy array.
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counters = self.core.counters();
        // Counters have at most 32 bits.
        let values: Vec<u32> = py.detach(|| counters.values().map(|value| value as u32).collect());
        to_numpy(py, &values, "uint32")
    }

    /// Replaces the file by a snapshot, atomically and durably.
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        files::save(path.py(), &self.core, path)
    }

    /// The snapshot as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        files::to_bytes(py, &self.core)
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
        let plan = self.core.plan();
        let goal = match (plan.capacity, plan.error_rate) {
            (Some(capacity), Some(rate)) => format!("capacity={capacity} error_rate={rate} "),
            _ => String::new(),
        };
        let (cells, hashes, layout) = (plan.cells(), plan.hashes(), plan.placement.layout.name());
        let (width, policy) = (plan.counter_bits, plan.policy.name());
        format!(
            "<CountingBloomFilter {goal}layout={layout} counter_bits={width} policy={policy} \
             cells={cells} hashes={hashes}>"
        )
    }

    #[getter]
    fn capacity(&self) -> Option<u64> {
        self.core.plan().capacity
    }

    #[getter]
    fn error_rate(&self) -> Option<f64> {
        self.core.plan().error_rate
    }

    #[getter]
    fn bits(&self) -> u64 {
        self.core.plan().cells() * u64::from(self.core.plan().counter_bits)
    }

    #[getter]
    fn hashes(&self) -> u32 {
        self.core.plan().hashes()
    }

    #[getter]
    fn counter_bits(&self) -> u32 {
        self.core.plan().counter_bits
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.core.plan().placement.layout.name()
    }

    #[getter]
    fn policy(&self) -> &'static str {
        self.core.plan().policy.name()
    }

    #[getter]
    fn derivation(&self) -> &'static str {
        self.core.plan().placement.derivation.name()
    }

    #[getter]
    fn hash(&self) -> &'static str {
        self.core.hasher().name()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.core.hasher().seed()
    }
}

fn or_four<'py>(py: Python<'py>, counter_bits: Option<&Bound<'py, PyAny>>) -> Bound<'py, PyAny> {
    counter_bits.cloned().unwrap_or_else(|| pyo3::types::PyInt::new(py, 4).into_any())
}
