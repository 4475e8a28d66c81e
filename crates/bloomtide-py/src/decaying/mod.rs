//! `TimeDecayingBloomFilter` for Python. The clock is read here; the core gets epochs.

mod goal;
mod moments;

use crate::instants;
use crate::keys::to_numpy;
use crate::records::estimate_record;
use crate::structure::prelude::*;
use bloomtide_core::event_time::Oddities;
use bloomtide_core::filters::When;
use bloomtide_core::{KeyHash, TimeDecayingBloomFilter as Core};
use goal::{plan_of, plan_record, repr, sizes_of};

/// Counts keys, and lets the counts fade: how hot is it now?
///
/// A count is the decayed sum of a key's occurrences, never too small (rounding="strict").
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct TimeDecayingBloomFilter {
    pub(crate) core: Core,
    clock: Clock,
    /// Batches that write without holding the interpreter.
    pub(crate) writers: AtomicUsize,
    watch: Watch,
}

shared!(
    TimeDecayingBloomFilter,
    Core,
    |core| Loaded::Decaying(core.into()),
    |core| core.freeze()?,
    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    },
    watched!();
);
whole!(TimeDecayingBloomFilter);
merged!(TimeDecayingBloomFilter);
loaded!(TimeDecayingBloomFilter, Decaying, clock);
planned!(
    TimeDecayingBloomFilter,
    Core,
    "(capacity=None, error_rate=None, *, half_life=None, decay=None, epoch=None, storage='basic', rounding='strict', policy='plain', counter_bits=32, fraction_bits=8, origin=0, max_jump=None, clock=None, layout=None, cells=None, hashes=None, paper=None, hash='xxh3', seed=0, secret=None)",
    "($type, capacity=None, error_rate=None, *, half_life=None, decay=None, epoch=None, storage='basic', rounding='strict', policy='plain', counter_bits=32, fraction_bits=8, origin=0, max_jump=None, layout=None, cells=None, hashes=None, paper=None)",
    "($type, plan, *, clock=None, hash='xxh3', seed=0, secret=None)"
);

impl TimeDecayingBloomFilter {
    pub(crate) fn new(core: Core, clock: Clock) -> Self {
        let watch = Watch::new(core.plan().capacity);
        TimeDecayingBloomFilter { core, clock, writers: AtomicUsize::new(0), watch }
    }

    /// `add` of one occurrence now, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Object<'_>) -> PyResult<bool> {
        self.add_times(key, 1, self.by_clock(key.py())?)
    }

    /// `count` now, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn count_one(&self, key: &Object<'_>) -> PyResult<f64> {
        let epoch = self.by_clock(key.py())?.epoch;
        Ok(self.core.count(hash_key(self.core.hasher(), key, None)?, epoch))
    }

    #[inline(always)]
    fn add_times(&self, key: &Object<'_>, count: u64, when: When) -> PyResult<bool> {
        let hash = hash_key(self.core.hasher(), key, None)?;
        if !writers::alone(&self.writers) || self.watch.is_due(hash) {
            return self.add_longer(key.py(), hash, count, when);
        }
        // SAFETY: this thread holds the interpreter, and no batch writes without it.
        Ok(unsafe { self.core.add_unsynchronised(hash, count, when) })
    }

    /// The same beside batches, or with a look afterwards.
    #[cold]
    fn add_longer(&self, py: Python<'_>, hash: KeyHash, count: u64, when: When) -> PyResult<bool> {
        let new = self.core.add(hash, count, when);
        if self.watch.is_due(hash) && new {
            self.look(py)?;
        }
        Ok(new)
    }
}

#[pymethods]
impl TimeDecayingBloomFilter {
    /// Adds `count` occurrences of the key at an instant; True iff it was certainly absent before.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, count=params::Times::ONCE, at=None), text_signature = "($self, key, count=1, at=None)")]
    fn add(
        &self,
        key: &Object<'_>,
        count: params::Times<'_>,
        at: Option<&Object<'_>>,
    ) -> PyResult<bool> {
        let count = count.beside(at)?;
        self.add_times(key, count, self.when(key.py(), "at", at)?)
    }

    /// Adds every key in order, as often as `counts` says, at one instant or each at its own.
    #[pyo3(signature = (keys, counts=None, at=None, **options))]
    #[pyo3(text_signature = "($self, keys, counts=None, at=None, *, nulls='refuse', threads=1)")]
    fn add_many<'py>(
        &self,
        keys: &Object<'py>,
        counts: Option<&Object<'py>>,
        at: Option<&Object<'py>>,
        options: Option<&Dict<'py>>,
    ) -> Answer<'py> {
        let py = keys.py();
        let options = Options::of(py, options)?;
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
        let verb = Verb::new(self.core.hasher(), &add).writers(&self.writers);
        let answers = keys::run(&verb, &keys, options)?;
        self.look_after(py, answers.len()?)?;
        Ok(answers)
    }

    fn __contains__(&self, key: &Object<'_>) -> PyResult<bool> {
        Ok(self.count_one(key)? > 0.0)
    }

    /// `key in filter` for every key, as a NumPy array.
    #[pyo3(signature = (keys, at=None, **options))]
    #[pyo3(text_signature = "($self, keys, at=None, *, nulls='refuse', threads=1)")]
    fn contains_many<'py>(
        &self,
        keys: &Object<'py>,
        at: Option<&Object<'py>>,
        options: Option<&Dict<'py>>,
    ) -> Answer<'py> {
        self.ask_many(keys, at, options, |units| units != 0)
    }

    /// The decayed sum of the key's occurrences.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, at=None))]
    fn count(&self, key: &Object<'_>, at: Option<&Object<'_>>) -> PyResult<f64> {
        let epoch = self.asked(key.py(), at)?;
        Ok(self.core.count(hash_key(self.core.hasher(), key, None)?, epoch))
    }

    /// `count` for every key, as a NumPy array.
    #[pyo3(signature = (keys, at=None, **options))]
    #[pyo3(text_signature = "($self, keys, at=None, *, nulls='refuse', threads=1)")]
    fn count_many<'py>(
        &self,
        keys: &Object<'py>,
        at: Option<&Object<'py>>,
        options: Option<&Dict<'py>>,
    ) -> Answer<'py> {
        self.ask_many(keys, at, options, |units| self.core.count_of(units))
    }

    /// How often the key occurs in that time, as a fading average.
    #[pyo3(signature = (key, per=None, at=None), text_signature = "($self, key, per='1h', at=None)")]
    fn rate(
        &self,
        key: &Object<'_>,
        per: Option<&Object<'_>>,
        at: Option<&Object<'_>>,
    ) -> PyResult<f64> {
        let scale = self.rate_scale(key.py(), per)?;
        Ok(self.count(key, at)? * scale)
    }

    /// `rate` for every key, as a NumPy array.
    #[pyo3(signature = (keys, per=None, at=None, **options))]
    #[pyo3(text_signature = "($self, keys, per='1h', at=None, *, nulls='refuse', threads=1)")]
    fn rate_many<'py>(
        &self,
        keys: &Object<'py>,
        per: Option<&Object<'py>>,
        at: Option<&Object<'py>>,
        options: Option<&Dict<'py>>,
    ) -> Answer<'py> {
        let scale = self.rate_scale(keys.py(), per)?;
        self.ask_many(keys, at, options, |units| self.core.count_of(units) * scale)
    }

    /// The count with its bounds: at most `upper` for certain, at least `lower` with `confidence`.
    #[pyo3(signature = (key, *, confidence=0.95, at=None))]
    fn estimate<'py>(
        &self,
        key: &Object<'py>,
        confidence: f64,
        at: Option<&Object<'py>>,
    ) -> Answer<'py> {
        let py = key.py();
        params::check_confidence(py, confidence)?;
        let epoch = self.asked(py, at)?;
        let hash = hash_key(self.core.hasher(), key, None)?;
        let found = py.detach(|| self.core.estimate(hash, epoch, confidence));
        estimate_record(py, &found, confidence, |units| self.core.count_of(units))
    }

    /// Moves the filter's time on, to the clock's or to `now`, and brings some of its blocks up to it.
    #[pyo3(signature = (now=None))]
    fn advance(&self, py: Python<'_>, now: Option<&Object<'_>>) -> PyResult<()> {
        let when = self.when(py, "now", now)?;
        if self.core.is_ahead(when.epoch) && !when.by_clock {
            return Err(instants::beyond_clock(py, self.core.plan().fade.begin_of(when.epoch)));
        }
        py.detach(|| self.core.advance(when));
        Ok(())
    }

    /// This filter and a list of the k hottest keys, kept in step from now on: a `bloomtide.hot.HotFilter`. The list
    /// starts empty, whatever the filter holds.
    fn with_hot_list<'py>(this: &Bound<'py, Self>, k: &Object<'py>) -> Answer<'py> {
        moments::beside_hot_list(this, k)
    }

    /// Estimated number of distinct keys inside, from the fill; infinite when every cell is set.
    fn estimated_items(&self, py: Python<'_>) -> PyResult<f64> {
        let epoch = self.by_clock(py)?.epoch;
        Ok(py.detach(|| self.core.measure(epoch).items))
    }

    /// Fill, estimated keys, error rate now, full blocks, memory, and what happened to the time.
    #[pyo3(signature = (at=None))]
    fn stats<'py>(&self, py: Python<'py>, at: Option<&Object<'py>>) -> Answer<'py> {
        let epoch = self.asked(py, at)?;
        let measure = py.detach(|| self.core.measure(epoch));
        self.look(py)?;
        let (Oddities { late, clock_jumps, ahead }, aside) =
            (self.core.oddities(), self.core.aside());
        let sizes = sizes_of(self.core.plan(), self.core.bytes());
        sizes.stats(py, &measure, |dict| fields!(dict => late, clock_jumps, ahead, aside))
    }

    /// The cells of a key, each once, in the order they are derived.
    fn positions(&self, key: &Object<'_>) -> PyResult<Vec<u64>> {
        Ok(self.core.positions(hash_key(self.core.hasher(), key, None)?))
    }

    /// Every cell's decayed value, as a NumPy array.
    #[pyo3(signature = (at=None))]
    fn cells<'py>(&self, py: Python<'py>, at: Option<&Object<'py>>) -> Answer<'py> {
        let epoch = self.asked(py, at)?;
        let values = py.detach(|| self.core.values(epoch));
        to_numpy(py, &values)
    }

    fn __repr__(&self) -> String {
        repr(self.core.plan())
    }
}

getters!(TimeDecayingBloomFilter, this =>
    /// The filter's time: when the latest epoch began that it believes, in seconds since 1970.
    time: Option<f64> = this.core.presumed().map(|epoch| this.core.plan().fade.begin_of(epoch));
    capacity: Option<u64> = this.core.plan().capacity;
    error_rate: Option<f64> = this.core.plan().error_rate;
    half_life: Option<f64> = this.core.plan().fade.half_life;
    /// Seconds that one event may move the filter's time on, if that was given.
    max_jump: Option<f64> = this.core.plan().fade.max_jump;
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
