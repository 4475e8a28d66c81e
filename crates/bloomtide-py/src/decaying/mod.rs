//! `TimeDecayingBloomFilter` for Python. The clock is read here; the core gets epochs.

mod goal;
mod moments;
mod row_times;

use crate::instants::Clock;
use crate::keys::to_numpy;
use crate::records::estimate_record;
use crate::structure::prelude::*;
use bloomtide_core::TimeDecayingBloomFilter as Core;
use bloomtide_core::filters::When;
use goal::{SIZING, plan_of, plan_of_record, plan_record, repr, sizes_of};

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

shared!(
    TimeDecayingBloomFilter,
    Core,
    |this, py, made| {
        let made = TimeDecayingBloomFilter::new(made, this.clock.clone_ref(py));
        Ok(Py::new(py, made)?.into_any())
    },
    |core| core.freeze()?
);
whole!(TimeDecayingBloomFilter);
merged!(TimeDecayingBloomFilter);
loaded!(TimeDecayingBloomFilter, Decaying, clock);

impl TimeDecayingBloomFilter {
    pub(crate) fn new(core: Core, clock: Clock) -> Self {
        TimeDecayingBloomFilter { core, clock, writers: AtomicUsize::new(0) }
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
            return Ok(unsafe { self.core.add_unsynchronised(hash, count, when) });
        }
        Ok(self.core.add(hash, count, when))
    }
}

#[pymethods]
impl TimeDecayingBloomFilter {
    #[new]
    #[pyo3(
        signature = (capacity=None, error_rate=None, **words),
        text_signature = "(capacity=None, error_rate=None, *, half_life=None, decay=None, epoch=None, storage='basic', rounding='strict', policy='plain', counter_bits=32, fraction_bits=8, origin=0, clock=None, layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)"
    )]
    fn py_new<'py>(
        py: Python<'py>,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
        words: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let words = Words::new(py, words, &[SIZING, HASHING, &["clock"]])?;
        let plan = plan_of(&words, capacity, error_rate)?;
        let hasher = words.hasher()?;
        let clock = words.word("clock")?;
        Ok(Self::new(Core::new(plan, hasher).or_raise(py)?, Clock::parse(clock.as_ref())?))
    }

    /// Sizes, memory and predicted error for a goal; allocates nothing.
    #[classmethod]
    #[pyo3(
        signature = (capacity=None, error_rate=None, **words),
        text_signature = "($type, capacity=None, error_rate=None, *, half_life=None, decay=None, epoch=None, storage='basic', rounding='strict', policy='plain', counter_bits=32, fraction_bits=8, origin=0, layout=None, cells=None, hashes=None, paper=None)"
    )]
    fn plan<'py>(
        cls: &Bound<'py, PyType>,
        capacity: Option<&Bound<'py, PyAny>>,
        error_rate: Option<&Bound<'py, PyAny>>,
        words: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = Words::new(cls.py(), words, &[SIZING])?;
        plan_record(cls.py(), &plan_of(&words, capacity, error_rate)?)
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
        Ok(Self::new(Core::new(plan_of_record(plan)?, hasher).or_raise(py)?, Clock::parse(clock)?))
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
                self.core.add_many(part.keys, counts.as_deref(), times, out);
                Ok(())
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
        params::check_confidence(py, confidence)?;
        let epoch = self.asked(py, at)?;
        let hash = hash_key(self.core.hasher(), key, None)?;
        let found = py.detach(|| self.core.estimate(hash, epoch, confidence));
        estimate_record(py, &found, confidence, |units| self.core.count_of(units))
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
        let measure = py.detach(|| self.core.measure(epoch));
        let (late, clock_jumps) = self.core.history();
        sizes_of(self.core.plan(), self.core.bytes()).stats(py, &measure, |fields| {
            fields.set_item("late", late)?;
            fields.set_item("clock_jumps", clock_jumps)
        })
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

    fn __repr__(&self) -> String {
        repr(self.core.plan())
    }
}

getters!(TimeDecayingBloomFilter, this =>
    /// The filter's time: when the latest epoch began that it was told of, in seconds since 1970.
    time: Option<f64> = this.core.now().map(|epoch| this.core.plan().fade.begin_of(epoch));
    capacity: Option<u64> = this.core.plan().capacity;
    error_rate: Option<f64> = this.core.plan().error_rate;
    half_life: Option<f64> = this.core.plan().fade.half_life;
    decay: f64 = this.core.plan().fade.decay;
    epoch: f64 = this.core.plan().fade.epoch;
    origin: f64 = this.core.plan().fade.origin;
    hashes: u32 = this.core.plan().hashes();
    counter_bits: u32 = this.core.plan().counter_bits;
    fraction_bits: u32 = this.core.plan().fraction_bits;
    storage: &'static str = this.core.plan().storage.name();
    layout: &'static str = this.core.plan().placement.layout.name();
    rounding: &'static str = this.core.plan().rounding.name();
    policy: &'static str = this.core.plan().policy.name();
    derivation: &'static str = this.core.plan().placement.derivation.name();
);
