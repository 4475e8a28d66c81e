//! The four filters of growing counters for Python: `SpectralBloomFilter`, `DynamicCountFilter` and both
//! partitioned.
//!
//! They have the same verbs, so these are on one base class, `CountFilter`; a class of its own has what
//! makes it: its constructor and its plan (`spectral.rs`,
//! `dynamic.rs`).

mod any;
mod dynamic;
mod goal;
mod spectral;

pub(crate) use any::Any;
pub(crate) use dynamic::{DynamicCountFilter, PartitionedDynamicCountFilter};
pub(crate) use spectral::{PartitionedSpectralBloomFilter, SpectralBloomFilter};

use crate::errors::{OrRaise, parameter};
use crate::key::hash_key;
use crate::keys::{self, Options, Part, Verb, to_numpy};
use crate::records::record;
use crate::{files, params, weights, writers};
use any::Common;
use bloomtide_core::snapshot::Kind;
use bloomtide_core::{Crew, KeyHash, epoch};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::AtomicUsize;

/// Counts keys under skew: what the spectral and dynamic count filters have in common.
#[pyclass(frozen, subclass, module = "bloomtide")]
pub(crate) struct CountFilter {
    core: Any,
    /// Batches that write without holding the interpreter.
    writers: AtomicUsize,
}

impl CountFilter {
    pub(crate) fn new(core: Any) -> Self {
        any::each!(&core, filter => filter.set_clock(any::clock));
        CountFilter { core, writers: AtomicUsize::new(0) }
    }

    pub(crate) fn core(&self) -> &Any {
        &self.core
    }

    /// For who adds without holding the interpreter.
    pub(crate) fn register(&self) -> writers::Registered<'_> {
        writers::Registered::new(&self.writers)
    }

    /// `count`, which `short_calls.rs` puts on the classes.
    #[inline(always)]
    pub(crate) fn count_one(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            return Ok(self.core.count(hash, unsafe { epoch::unprotected() }));
        }
        Ok(self.core.count(hash, &epoch::pin()))
    }

    /// `add` of one occurrence, which `short_calls.rs` puts on the classes.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.add_times(key, 1)
    }

    #[inline(always)]
    fn add_times(&self, key: &Bound<'_, PyAny>, count: u64) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers)
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            && let Some(new) = unsafe { self.core.add_shortly(hash, count) }
        {
            return Ok(new);
        }
        self.add_longer(key.py(), hash, count)
    }

    /// What is not short, out of the way of what is.
    #[inline(never)]
    fn add_longer(&self, py: Python<'_>, hash: KeyHash, count: u64) -> PyResult<bool> {
        let added = if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            unsafe { self.core.add_unsynchronised(hash, count) }
        } else {
            self.core.add(hash, count)
        };
        added.or_raise(py)
    }

    fn common(&self) -> Common {
        self.core.common()
    }
}

#[pymethods]
impl CountFilter {
    /// Adds `count` occurrences of the key; True iff it was certainly absent before.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, count=None), text_signature = "($self, key, count=1)")]
    fn add(&self, key: &Bound<'_, PyAny>, count: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.add_times(key, params::maybe_whole("count", count)?.unwrap_or(1))
    }

    /// Adds every key, once or as often as `counts` says, in order; a NumPy array of what `add` would
    /// have answered.
    #[pyo3(signature = (keys, counts=None, *, nulls="refuse", threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        counts: Option<&Bound<'py, PyAny>>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = Options::parse(keys.py(), nulls, threads)?;
        let (keys, counts) = weights::of(keys, counts)?;
        let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            let counts = counts.as_deref().map(|all| part.of(all));
            self.core.add_many(part.keys, counts.as_deref(), out, crew)
        };
        keys::run(&Verb::new(self.core.hasher(), &add).writers(&self.writers), &keys, options)
    }

    /// Removes every key, once or as often as `counts` says, in order, until one is absent.
    #[pyo3(signature = (keys, counts=None, *, nulls="refuse"))]
    fn remove_many(
        &self,
        keys: &Bound<'_, PyAny>,
        counts: Option<&Bound<'_, PyAny>>,
        nulls: &str,
    ) -> PyResult<()> {
        let options = Options::parse(keys.py(), nulls, 1)?;
        let (keys, counts) = weights::of(keys, counts)?;
        let remove = |part: Part<'_>, out: &mut [bool], _: &mut Crew| {
            let counts = counts.as_deref().map(|all| part.of(all));
            self.core.remove_many(part.keys, counts.as_deref(), out)
        };
        let verb = Verb::new(self.core.hasher(), &remove).writers(&self.writers);
        keys::run(&verb, &keys, options).map(|_| ())
    }

    /// Adds (above zero), removes (below) or only counts (zero), in order, until a key to remove is absent.
    /// The counts after each row, as a NumPy array.
    #[pyo3(signature = (keys, changes, *, nulls="refuse"))]
    fn change_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        changes: &Bound<'py, PyAny>,
        nulls: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = Options::parse(keys.py(), nulls, 1)?;
        let (keys, changes) = weights::changes(keys, changes)?;
        let change = |part: Part<'_>, out: &mut [u64], _: &mut Crew| {
            self.core.change_many(part.keys, &part.of(&changes), out)
        };
        keys::run(&Verb::new(self.core.hasher(), &change).writers(&self.writers), &keys, options)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.count_one(key)? != 0)
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

    /// How often the key was added: never too small, unless a counter is stuck, see `estimate`.
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.count_one(key)
    }

    /// `count` for every key, as a NumPy array.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn count_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ask = |part: Part<'_>, out: &mut [u64], crew: &mut Crew| {
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

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let other = &other.get().core;
        self.core.require_compatible(other).or_raise(py)?;
        let made = py.detach(|| self.core.copy().and_then(|copy| copy.merge(other).map(|()| copy)));
        to_object(py, made.or_raise(py)?)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other)
    }

    /// Adds the other's counters to these.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = &other.get().core;
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.merge(other)).or_raise(py)
    }

    /// A copy.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = py.detach(|| self.core.copy()).or_raise(py)?;
        to_object(py, made)
    }

    /// Forgets every key.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.clear()).or_raise(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> bool {
        let other = &other.get().core;
        py.detach(|| self.core.same_as(other))
    }

    /// Estimated number of distinct keys inside, from the fill; infinite when every counter is set.
    fn estimated_items(&self, py: Python<'_>) -> f64 {
        py.detach(|| self.core.measure().items)
    }

    /// Fill, estimated keys, error rate now, memory, rebuilds and the longest pause.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let measure = py.detach(|| self.core.measure());
        let (common, rebuilds) = (self.common(), self.core.rebuilds());
        // A spectral counter has one bit at least.
        let counter_bits = self.core.dynamic().map_or(1, |shape| shape.width);
        record(py, "Stats", |fields| {
            fields.set_item("kind", self.core.kind().name())?;
            fields.set_item("items", measure.items)?;
            fields.set_item("capacity", common.capacity)?;
            fields.set_item("error_rate", common.error_rate)?;
            fields.set_item("predicted_error", measure.error)?;
            fields.set_item("fill", measure.fill)?;
            fields.set_item("cells", common.placement.cells)?;
            fields.set_item("hashes", common.placement.hashes)?;
            fields.set_item("counter_bits", counter_bits)?;
            fields.set_item("bytes", self.core.bytes())?;
            fields.set_item("saturated", measure.saturated)?;
            fields.set_item("partitions", common.partitions)?;
            fields.set_item("rebuilds", rebuilds.count)?;
            fields.set_item("moved", rebuilds.moved)?;
            fields.set_item("longest_pause", rebuilds.longest as f64 * 1e-9)?;
            fields.set_item("pauses", rebuilds.total as f64 * 1e-9)
        })
    }

    /// Checks every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.core.validate()).or_raise(py)
    }

    /// The counters of a key, each once, in the order they are derived.
    fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        Ok(self.core.positions(hash_key(self.core.hasher(), key, None)?))
    }

    /// Every counter's value, as a NumPy array.
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = py.detach(|| self.core.values());
        to_numpy(py, &values, "uint64")
    }

    /// Replaces the file by a snapshot, atomically and durably.
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = path.py();
        let frozen = py.detach(|| self.core.freeze()).or_raise(py)?;
        files::save(py, &frozen, path)
    }

    /// The snapshot as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let frozen = py.detach(|| self.core.freeze()).or_raise(py)?;
        files::to_bytes(py, &frozen)
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = this.py();
        Ok((this.get_type().getattr("from_bytes")?, (this.get().to_bytes(py)?,)))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = memo;
        self.copy(py)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        let common = this.get().common();
        let goal = match (common.capacity, common.error_rate) {
            (Some(capacity), Some(rate)) => format!("capacity={capacity} error_rate={rate} "),
            _ => String::new(),
        };
        let placement = common.placement;
        let core = &this.get().core;
        let dynamic = core
            .dynamic()
            .map(|shape| format!("counter_bits={} shrink={} ", shape.width, shape.shrink));
        let spectral = core.spectral().map(|shape| {
            format!("slack={} on_full={} ", shape.slack, goal::on_full_name(shape.on_full))
        });
        Ok(format!(
            "<{} {goal}total={} {}layout={} policy={} partitions={} cells={} hashes={}>",
            this.get_type().name()?,
            common.total,
            dynamic.or(spectral).unwrap_or_default(),
            placement.layout.name(),
            common.policy.name(),
            common.partitions,
            placement.cells,
            placement.hashes,
        ))
    }

    #[getter]
    fn capacity(&self) -> Option<u64> {
        self.common().capacity
    }

    #[getter]
    fn error_rate(&self) -> Option<f64> {
        self.common().error_rate
    }

    #[getter]
    fn total(&self) -> u64 {
        self.common().total
    }

    #[getter]
    fn hashes(&self) -> u32 {
        self.common().placement.hashes
    }

    #[getter]
    fn partitions(&self) -> u64 {
        self.common().partitions
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.common().placement.layout.name()
    }

    #[getter]
    fn policy(&self) -> &'static str {
        self.common().policy.name()
    }

    #[getter]
    fn derivation(&self) -> &'static str {
        self.common().placement.derivation.name()
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
