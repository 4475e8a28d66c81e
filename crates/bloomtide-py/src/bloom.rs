//! `BloomFilter` for Python. No algorithm here: words in, core calls, records out.

use crate::errors::{OrRaise, raise, to_python};
use crate::key::hash_key;
use crate::keys::{self, Options, Part, Verb};
use crate::open::{Words, open_shared};
use crate::params::{self, Goal, field};
use crate::records::{plan_record, stats_record};
use crate::{files, fork, writers};
use bloomtide_core::snapshot::{Kind, Loaded};
use bloomtide_core::{BloomFilter as Core, BloomPlan, Crew, Derivation, Error, Layout};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A set that may wrongly say "present", never wrongly "absent".
///
/// Give a goal, `BloomFilter(capacity, error_rate)`, or sizes, `BloomFilter(bits=..., hashes=...)`.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct BloomFilter {
    core: Core,
    /// Batches that write without holding the interpreter.
    writers: AtomicUsize,
    /// `close` was called: no new use may begin.
    closing: AtomicBool,
    /// How often this process had been forked when the filter was made.
    forks: usize,
}

/// Words of Python's that become a plan.
pub(crate) fn plan_of(
    py: Python<'_>,
    goal: Goal,
    layout: Option<&str>,
    derivation: &str,
) -> PyResult<BloomPlan> {
    let layout = layout.map(Layout::parse).transpose().or_raise(py)?;
    let derivation = params::derivation(py, derivation)?;
    match goal {
        Goal::Keys { capacity, error_rate } => {
            BloomPlan::for_goal(capacity, error_rate, layout, derivation)
        }
        Goal::Sizes { bits, hashes } => BloomPlan::for_sizes(bits, hashes, layout, derivation),
    }
    .or_raise(py)
}

impl BloomFilter {
    pub(crate) fn new(core: Core) -> Self {
        BloomFilter {
            core,
            writers: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            forks: fork::count(),
        }
    }

    fn from_loaded(py: Python<'_>, loaded: Loaded) -> PyResult<Self> {
        match loaded {
            Loaded::Bloom(core) => Ok(BloomFilter::new(core)),
            other => {
                let got = other.kind().name().to_owned();
                Err(to_python(py, Error::Kind { expected: "bloom", got }))
            }
        }
    }

    /// Refuses use after `close`.
    #[inline(always)]
    fn require_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.file().is_some() && self.closing.load(Ordering::SeqCst) {
            return Err(self.closed_error(py));
        }
        Ok(())
    }

    #[cold]
    fn closed_error(&self, py: Python<'_>) -> PyErr {
        let path = self.path().unwrap_or_default();
        let hint = "open it again with BloomFilter.open(path)";
        raise(py, "ClosedError", &format!("the filter was closed: {path}"), hint, |fields| {
            fields.set_item("path", &path)
        })
    }

    /// Refuses changes after `close`, and to a filter opened for reading.
    #[inline(always)]
    fn require_writable(&self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = self.core.file() else { return Ok(()) };
        self.require_open(py)?;
        if self.forks != fork::count() {
            return Err(fork::error(py, file.path()));
        }
        if file.writable() {
            return Ok(());
        }
        Err(to_python(py, Error::ReadOnly { path: file.path().to_owned() }))
    }

    /// `add`, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.require_writable(key.py())?;
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            return Ok(unsafe { self.core.add_unsynchronised(hash) });
        }
        let _registered = writers::Registered::new(&self.writers);
        self.require_writable(key.py())?;
        Ok(self.core.add(hash))
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn hasher(&self) -> &bloomtide_core::Hasher {
        self.core.hasher()
    }

    /// For who adds without holding the interpreter.
    pub(crate) fn to_write(&self, py: Python<'_>) -> PyResult<(writers::Registered<'_>, &Core)> {
        self.require_writable(py)?;
        Ok((writers::Registered::new(&self.writers), &self.core))
    }

    fn other<'a>(&self, py: Python<'_>, other: &'a Bound<'_, Self>) -> PyResult<&'a Core> {
        self.require_open(py)?;
        other.get().require_open(py)?;
        Ok(&other.get().core)
    }
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, layout=None, bits=None, hashes=None,
                     derivation="enhanced", hash="xxh3", seed=0, secret=None)
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        layout: Option<&str>,
        bits: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let goal = params::goal(py, capacity, error_rate, bits, hashes)?;
        let plan = plan_of(py, goal, layout, derivation)?;
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(BloomFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, *, layout=None, bits=None, hashes=None,
                     derivation="enhanced")
    )]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        layout: Option<&str>,
        bits: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let goal = params::goal(py, capacity, error_rate, bits, hashes)?;
        plan_record(py, &plan_of(py, goal, layout, derivation)?)
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
        params::require_kind(plan, "bloom")?;
        let plan = BloomPlan {
            layout: Layout::parse(&field::<String>(plan, "layout")?).or_raise(py)?,
            derivation: Derivation::parse(&field::<String>(plan, "derivation")?).or_raise(py)?,
            bits: field(plan, "cells")?,
            hashes: field(plan, "hashes")?,
            capacity: field(plan, "capacity")?,
            error_rate: field(plan, "error_rate")?,
        };
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(BloomFilter::new(Core::new(plan, hasher).or_raise(py)?))
    }

    /// Maps a filter's file into memory, shared by every process that opens it.
    ///
    /// mode "r" asks only, "r+" adds to an existing file, "c" makes the file if there is none.
    /// Parameters that are given must be those of the file.
    #[classmethod]
    #[pyo3(
        signature = (path, capacity=None, error_rate=None, *, mode="r", layout=None, bits=None,
                     hashes=None, derivation=None, hash=None, seed=None, secret=None)
    )]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn open(
        cls: &Bound<'_, PyType>,
        path: &Bound<'_, PyAny>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        mode: &str,
        layout: Option<&str>,
        bits: Option<&Bound<'_, PyAny>>,
        hashes: Option<&Bound<'_, PyAny>>,
        derivation: Option<&str>,
        hash: Option<&str>,
        seed: Option<i128>,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let path = params::path(path)?;
        let words =
            Words { capacity, error_rate, layout, bits, hashes, derivation, hash, seed, secret };
        open_shared(cls.py(), &path, mode, &words).map(BloomFilter::new)
    }

    /// Reads a file that `save` wrote, or that was closed after `open`.
    #[classmethod]
    fn load(cls: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::load(path, Some(Kind::Bloom))?)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_loaded(cls.py(), files::from_bytes(data, Some(Kind::Bloom))?)
    }

    /// Adds every key in order; a NumPy array of what `add` would have answered.
    #[pyo3(signature = (keys, *, nulls="refuse", threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let options = Options::parse(py, nulls, threads)?;
        self.require_writable(py)?;
        let ready = |py: Python<'_>| self.require_writable(py);
        let add = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.core.add_many(part.keys, out, crew);
            Ok(())
        };
        let verb = Verb::new(self.core.hasher(), &add).writers(&self.writers).ready(&ready);
        keys::run(&verb, keys, options)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.require_open(key.py())?;
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
        let py = keys.py();
        let options = Options::parse(py, nulls, threads)?;
        self.require_open(py)?;
        let ask = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            self.core.contains_many(part.keys, out, crew);
            Ok(())
        };
        keys::run(&Verb::new(self.core.hasher(), &ask), keys, options)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let other = self.other(py, other)?;
        self.core.require_compatible(other).or_raise(py)?;
        let made = py.detach(|| self.core.copy().and_then(|copy| copy.merge(other).map(|()| copy)));
        made.or_raise(py).map(BloomFilter::new)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other)
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let other = self.other(py, other)?;
        self.core.require_compatible(other).or_raise(py)?;
        let made =
            py.detach(|| self.core.copy().and_then(|copy| copy.intersect(other).map(|()| copy)));
        made.or_raise(py).map(BloomFilter::new)
    }

    fn __iand__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.require_writable(py)?;
        let other = self.other(py, other)?;
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.intersect(other)).or_raise(py)
    }

    /// Becomes the filter of both sets of keys, bit for bit.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.require_writable(py)?;
        let other = self.other(py, other)?;
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.merge(other)).or_raise(py)
    }

    /// A copy in memory.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        self.require_open(py)?;
        py.detach(|| self.core.copy()).or_raise(py).map(BloomFilter::new)
    }

    /// Forgets every key.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.require_writable(py)?;
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.clear());
        Ok(())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        let other = self.other(py, other)?;
        Ok(py.detach(|| self.core.same_as(other)))
    }

    /// Estimated number of distinct keys inside, from the fill; infinite when every bit is set.
    fn estimated_items(&self, py: Python<'_>) -> PyResult<f64> {
        self.require_open(py)?;
        Ok(py.detach(|| self.core.measure().items))
    }

    /// Fill, estimated keys, error rate now and memory, measured from the cells.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.require_open(py)?;
        stats_record(py, self.core.plan(), &py.detach(|| self.core.measure()), None)
    }

    /// Checks every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        self.require_open(py)?;
        py.detach(|| self.core.validate()).or_raise(py)
    }

    /// The bits of a key, in the order they are derived.
    fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        Ok(self.core.positions(hash_key(self.core.hasher(), key, None)?))
    }

    /// Replaces the file by a snapshot, atomically and durably.
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        self.require_open(path.py())?;
        files::save(path.py(), &self.core, path)
    }

    /// The snapshot as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.require_open(py)?;
        files::to_bytes(py, &self.core)
    }

    /// Returns when every add made before the call survives a crash. Nothing to do in memory.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.require_open(py)?;
        py.detach(|| self.core.flush()).or_raise(py)
    }

    /// Gives a mapped file back; the last writer seals it with checksums. Nothing to do in memory.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.core.file().is_none() {
            return Ok(());
        }
        // Sequentially consistent with a writer that registers and then asks whether it may write.
        self.closing.store(true, Ordering::SeqCst);
        py.detach(|| {
            // Batches of other threads that began before finish first.
            while self.writers.load(Ordering::SeqCst) != 0 {
                std::thread::yield_now();
            }
            self.core.close()
        })
        .or_raise(py)
    }

    fn __enter__(this: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        this.get().require_open(this.py())?;
        Ok(this)
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, py: Python<'_>, exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = exc;
        self.close(py)
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
        let path = self.path().map_or_else(String::new, |path| format!(" path={path:?}"));
        let (layout, bits, hashes) = (plan.layout.name(), plan.bits, plan.hashes);
        format!("<BloomFilter {goal}layout={layout} bits={bits} hashes={hashes}{path}>")
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
    fn layout(&self) -> &'static str {
        self.core.plan().layout.name()
    }

    #[getter]
    fn bits(&self) -> u64 {
        self.core.plan().bits
    }

    #[getter]
    fn hashes(&self) -> u32 {
        self.core.plan().hashes
    }

    #[getter]
    fn derivation(&self) -> &'static str {
        self.core.plan().derivation.name()
    }

    #[getter]
    fn hash(&self) -> &'static str {
        self.core.hasher().name()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.core.hasher().seed()
    }

    #[getter]
    fn path(&self) -> Option<String> {
        self.core.file().map(|file| file.path().to_string_lossy().into_owned())
    }

    #[getter]
    fn closed(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}
