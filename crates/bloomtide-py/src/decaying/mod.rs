//! `TimeDecayingBloomFilter` for Python. The clock is read here; the core gets epochs.

mod answers;
mod goal;
mod moments;
mod row_times;

use crate::errors::{OrRaise, parameter, to_python};
use crate::instants::Clock;
use crate::key::hash_key;
use crate::keys::{self, Options, Part, Verb, to_numpy};
use crate::{files, params, weights, writers};
use bloomtide_core::filters::{Added, When};
use bloomtide_core::snapshot::{Kind, Loaded};
use bloomtide_core::{Crew, Error, TimeDecayingBloomFilter as Core};
use goal::{MAKING, SIZING, Words, plan_of, plan_record, repr};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use std::sync::atomic::AtomicUsize;

/// Counts keys, and lets the counts fade: how hot is it now?
///
/// A count is the decayed sum of a key's occurrences, never too small (rounding="strict").
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct TimeDecayingBloomFilter {
    pub(crate) core: Core,
    clock: Clock,
    /// Batches that write without holding the interpreter.
    pub(crate) writers: AtomicUsize,
}

impl TimeDecayingBloomFilter {
    pub(crate) fn new(core: Core, clock: Clock) -> Self {
        TimeDecayingBloomFilter { core, clock, writers: AtomicUsize::new(0) }
    }

    fn from_loaded(py: Python<'_>, loaded: Loaded, clock: Clock) -> PyResult<Self> {
        match loaded {
            Loaded::Decaying(core) => Ok(Self::new(*core, clock)),
            other => {
                let got = other.kind().name().to_owned();
                Err(to_python(py, Error::Kind { expected: "tbf", got }))
            }
        }
    }

    /// `add` of one occurrence now, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.add_times(key, 1, self.by_clock(key.py())?)
    }

    /// `count` now, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn count_one(&self, key: &Bound<'_, PyAny>) -> PyResult<f64> {
        let epoch = self.by_clock(key.py())?.epoch;
        Ok(self.core.count(hash_key(self.core.hasher(), key, None)?, epoch))
    }

    #[inline(always)]
    fn add_times(&self, key: &Bound<'_, PyAny>, count: u64, when: When) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if writers::alone(&self.writers) {
            // SAFETY: this thread holds the interpreter, and no batch writes without it.
            return self
                .added(key.py(), unsafe { self.core.add_unsynchronised(hash, count, when) });
        }
        self.added(key.py(), self.core.add(hash, count, when))
    }

    #[inline(always)]
    fn added(&self, py: Python<'_>, added: Added) -> PyResult<bool> {
        added.map_err(|refused| to_python(py, self.core.refusal(refused)))
    }
}

#[pymethods]
impl TimeDecayingBloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, **words),
        text_signature = "(capacity=None, error_rate=None, *, half_life=None, decay=None, epoch=None, layout='basic', rounding='strict', policy='plain', counter_bits=32, fraction_bits=8, pool='grow', pool_cells=None, origin=0, clock=None, placement=None, cells=None, hashes=None, derivation='enhanced', hash='xxh3', seed=0, secret=None)"
    )]
    fn py_new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        words: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let words = Words::new(py, words, &[SIZING, MAKING])?;
        let plan = words.plan(capacity, error_rate)?;
        let hasher = words.hasher()?;
        let clock = words.word("clock")?;
        Ok(Self::new(Core::new(plan, hasher).or_raise(py)?, Clock::parse(clock.as_ref())?))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, **words),
        text_signature = "($type, capacity=None, error_rate=None, *, half_life=None, decay=None, epoch=None, layout='basic', rounding='strict', policy='plain', counter_bits=32, fraction_bits=8, pool='grow', pool_cells=None, origin=0, placement=None, cells=None, hashes=None, derivation='enhanced')"
    )]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
        words: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = Words::new(cls.py(), words, &[SIZING])?;
        plan_record(cls.py(), &words.plan(capacity, error_rate)?)
    }

    /// The filter that a plan describes.
    #[classmethod]
    #[pyo3(signature = (plan, *, clock=None, hash="xxh3", seed=0, secret=None))]
    fn from_plan(
        cls: &Bound<'_, PyType>,
        plan: &Bound<'_, PyAny>,
        clock: Option<&Bound<'_, PyAny>>,
        hash: &str,
        seed: i128,
        secret: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        let hasher = params::hasher(py, hash, seed, secret)?;
        Ok(Self::new(Core::new(plan_of(plan)?, hasher).or_raise(py)?, Clock::parse(clock)?))
    }

    /// Reads a file that `save` wrote.
    #[classmethod]
    #[pyo3(signature = (path, *, clock=None))]
    fn load(
        cls: &Bound<'_, PyType>,
        path: &Bound<'_, PyAny>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let clock = Clock::parse(clock)?;
        Self::from_loaded(cls.py(), files::load(path, Some(Kind::Decaying))?, clock)
    }

    /// Reads what `to_bytes` returned.
    #[classmethod]
    #[pyo3(signature = (data, *, clock=None))]
    fn from_bytes(
        cls: &Bound<'_, PyType>,
        data: &Bound<'_, PyAny>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let clock = Clock::parse(clock)?;
        Self::from_loaded(cls.py(), files::from_bytes(data, Some(Kind::Decaying))?, clock)
    }

    /// Adds `count` occurrences of the key at an instant; True iff it was certainly absent before.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, count=None, at=None), text_signature = "($self, key, count=1, at=None)")]
    fn add(
        &self,
        key: &Bound<'_, PyAny>,
        count: Option<&Bound<'_, PyAny>>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let count = params::maybe_whole("count", count)?.unwrap_or(1);
        self.add_times(key, count, self.when(key.py(), "at", at)?)
    }

    /// Adds every key in order, as often as `counts` says, at one instant or each at its own.
    #[pyo3(signature = (keys, counts=None, at=None, *, nulls="refuse", threads=1))]
    fn add_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        counts: Option<&Bound<'py, PyAny>>,
        at: Option<&Bound<'py, PyAny>>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let options = Options::parse(py, nulls, threads)?;
        let (keys, counts) = weights::of(keys, counts)?;
        let times = self.row_times(py, at)?;
        let keys = times.fit(&keys)?;
        // Time goes in order, so threads would only wait for each other.
        let add = |part: Part<'_>, out: &mut [bool], _: &mut Crew| {
            let counts = counts.as_deref().map(|all| part.of(all));
            times.with(&part, |times| {
                let added = self.core.add_many(part.keys, counts.as_deref(), times, out);
                added.map_err(|(row, refused)| (row, self.core.refusal(refused)))
            })
        };
        keys::run(&Verb::new(self.core.hasher(), &add).writers(&self.writers), &keys, options)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.count_one(key)? > 0.0)
    }

    /// `key in filter` for every key, as a NumPy array.
    #[pyo3(signature = (keys, at=None, *, nulls="refuse", threads=1))]
    fn contains_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at: Option<&Bound<'py, PyAny>>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = Options::parse(keys.py(), nulls, threads)?;
        let times = self.asked_rows(keys.py(), at)?;
        let keys = times.fit(keys)?;
        let ask = |part: Part<'_>, out: &mut [bool], crew: &mut Crew| {
            let present = |units| units != 0;
            times.with(&part, |times| self.core.ask_many(part.keys, times, out, crew, present));
            Ok(())
        };
        keys::run(&Verb::new(self.core.hasher(), &ask), &keys, options)
    }

    /// The decayed sum of the key's occurrences.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, at=None))]
    fn count(&self, key: &Bound<'_, PyAny>, at: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        let epoch = self.asked(key.py(), at)?;
        Ok(self.core.count(hash_key(self.core.hasher(), key, None)?, epoch))
    }

    /// `count` for every key, as a NumPy array.
    #[pyo3(signature = (keys, at=None, *, nulls="refuse", threads=1))]
    fn count_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        at: Option<&Bound<'py, PyAny>>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask_many(keys, at, nulls, threads, 1.0)
    }

    /// How often the key occurs in that time, as a fading average.
    #[pyo3(signature = (key, per=None, at=None), text_signature = "($self, key, per='1h', at=None)")]
    fn rate(
        &self,
        key: &Bound<'_, PyAny>,
        per: Option<&Bound<'_, PyAny>>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<f64> {
        let scale = self.rate_scale(key.py(), per)?;
        Ok(self.count(key, at)? * scale)
    }

    /// `rate` for every key, as a NumPy array.
    #[pyo3(signature = (keys, per=None, at=None, *, nulls="refuse", threads=1),
           text_signature = "($self, keys, per='1h', at=None, *, nulls='refuse', threads=1)")]
    fn rate_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        per: Option<&Bound<'py, PyAny>>,
        at: Option<&Bound<'py, PyAny>>,
        nulls: &str,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scale = self.rate_scale(keys.py(), per)?;
        self.ask_many(keys, at, nulls, threads, scale)
    }

    /// The count with its bounds: at most `upper` for certain, at least `lower` with `confidence`.
    #[pyo3(signature = (key, *, confidence=0.95, at=None))]
    fn estimate<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        confidence: f64,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if !(confidence > 0.0 && confidence < 1.0) {
            let hint = "0.95 is right in 19 of 20 cases";
            return Err(parameter(py, "confidence", confidence, "between 0 and 1", hint));
        }
        let epoch = self.asked(py, at)?;
        let hash = hash_key(self.core.hasher(), key, None)?;
        answers::estimate(py, &self.core, hash, epoch, confidence)
    }

    /// Moves the filter's time on, to the clock's or to `now`, and brings some of its blocks up to it.
    #[pyo3(signature = (now=None))]
    fn advance(&self, py: Python<'_>, now: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let when = self.when(py, "now", now)?;
        py.detach(|| self.core.advance(when));
        Ok(())
    }

    /// This filter and a list of its k hottest keys, kept in step from now on: a `bloomtide.hot.HotFilter`.
    fn with_hot_list<'py>(
        this: &Bound<'py, Self>,
        k: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        moments::beside_hot_list(this, k)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Self> {
        let other = &other.get().core;
        self.core.require_compatible(other).or_raise(py)?;
        let made = py.detach(|| self.core.copy().and_then(|copy| copy.merge(other).map(|()| copy)));
        Ok(Self::new(made.or_raise(py)?, self.clock.clone_ref(py)))
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(py, other)
    }

    /// Adds the other's counts to these, at the later of both times.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = &other.get().core;
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.merge(other)).or_raise(py)
    }

    /// A copy, with the same clock.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let copy = py.detach(|| self.core.copy()).or_raise(py)?;
        Ok(Self::new(copy, self.clock.clone_ref(py)))
    }

    /// Forgets every key, and the time.
    fn clear(&self, py: Python<'_>) {
        let _registered = writers::Registered::new(&self.writers);
        py.detach(|| self.core.clear());
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> bool {
        let other = &other.get().core;
        py.detach(|| self.core.same_as(other))
    }

    /// Estimated number of distinct keys inside, from the fill; infinite when every cell is set.
    fn estimated_items(&self, py: Python<'_>) -> PyResult<f64> {
        let epoch = self.by_clock(py)?.epoch;
        Ok(py.detach(|| self.core.measure(epoch).items))
    }

    /// Fill, estimated keys, error rate now, full blocks, memory, and what happened to the time.
    #[pyo3(signature = (at=None))]
    fn stats<'py>(
        &self,
        py: Python<'py>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let epoch = self.asked(py, at)?;
        answers::stats(py, &self.core, epoch)
    }

    /// Checks every invariant.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.core.validate()).or_raise(py)
    }

    /// The cells of a key, each once, in the order they are derived.
    fn positions(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        Ok(self.core.positions(hash_key(self.core.hasher(), key, None)?))
    }

    /// Every cell's decayed value, as a NumPy array.
    #[pyo3(signature = (at=None))]
    fn cells<'py>(
        &self,
        py: Python<'py>,
        at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let epoch = self.asked(py, at)?;
        let values = py.detach(|| self.core.values(epoch));
        to_numpy(py, &values, "float64")
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

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.copy(py)
    }

    fn __repr__(&self) -> String {
        repr(self.core.plan())
    }

    /// The filter's time: when the latest epoch began that it was told of, in seconds since 1970.
    #[getter]
    fn time(&self) -> Option<f64> {
        self.core.now().map(|epoch| self.core.plan().fade.begin_of(epoch))
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
    fn half_life(&self) -> Option<f64> {
        self.core.plan().fade.half_life
    }

    #[getter]
    fn decay(&self) -> f64 {
        self.core.plan().fade.decay
    }

    #[getter]
    fn epoch(&self) -> f64 {
        self.core.plan().fade.epoch
    }

    #[getter]
    fn origin(&self) -> f64 {
        self.core.plan().fade.origin
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
    fn fraction_bits(&self) -> u32 {
        self.core.plan().fraction_bits
    }

    #[getter]
    fn pool(&self) -> &'static str {
        self.core.plan().pool.name()
    }

    #[getter]
    fn pool_cells(&self) -> Option<u64> {
        self.core.plan().pool.digits()
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.core.plan().layout.name()
    }

    #[getter]
    fn placement(&self) -> &'static str {
        self.core.plan().placement.layout.name()
    }

    #[getter]
    fn rounding(&self) -> &'static str {
        self.core.plan().rounding.name()
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
