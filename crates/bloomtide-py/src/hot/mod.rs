//! `HotList` for Python.
//!
//! One lock around the list. Nobody asks for the interpreter while holding it, so waiting for it cannot
//! deadlock; so what a question answers is copied out before Python objects are made of it.

use crate::errors::parameter;
use crate::instants::{self, Instants, require_near};
use crate::key::{to_object, with_key};
use crate::keys::Needs;
use crate::structure::prelude::*;
use bloomtide_core::event_time::Oddities;
use bloomtide_core::{HotList as Core, HotPlan, OwnedKey, Steps, Times};
use pyo3::types::PyList;
use std::sync::OnceLock;

/// The keys that are hottest now, with counts that decay and bounds that hold.
#[pyclass(frozen, module = "bloomtide")]
pub(crate) struct HotList {
    core: Locked<Core>,
    plan: HotPlan,
    hasher: Hasher,
    clock: Clock,
}

behind_lock!(
    HotList,
    Core,
    Hot,
    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }
);
whole!(HotList);
merged!(HotList);
loaded!(HotList, Hot, clock);
by_words!(
    HotList,
    #[new]
    py_new,
    "(k, *, half_life=None, epoch=None, origin=None, max_jump=None, clock=None, hash='xxh3', seed=0, secret=None)",
    |_cls, words| {
        let half_life = words.word("half_life")?;
        let half_life = half_life.map(|value| instants::duration(&value, "half_life"));
        let epoch = words.word("epoch")?.map(|value| instants::duration(&value, "epoch"));
        let origin = words.word("origin")?.map(|value| instants::instant(&value, "origin"));
        let (epoch, origin) = (epoch.transpose()?, origin.transpose()?);
        if let (None, Some(origin)) = (epoch, origin) {
            let hint = "give the length of an epoch too, or neither";
            return Err(parameter(words.py, "origin", origin, "left out without `epoch`", hint));
        }
        let plan = HotPlan {
            k: params::whole("k", &words.must("k")?)?,
            half_life: half_life.transpose()?,
            steps: epoch.map(|epoch| Steps { epoch, origin: origin.unwrap_or(0.0) }),
            max_jump: instants::max_jump(words.word("max_jump")?)?,
        };
        let core = Core::new(plan, words.hasher()?).or_raise(words.py)?;
        files::to_object(words.py, Loaded::Hot(Box::new(core)), words.word("clock")?.as_ref())
    }
);

impl HotList {
    pub(crate) fn new(core: Core, clock: Clock) -> Self {
        let (plan, hasher) = (*core.plan(), *core.hasher());
        HotList { core: Locked::new(core), plan, hasher, clock }
    }

    /// The list's own time; the clock's before the first event.
    fn own_time(&self, py: Python<'_>) -> PyResult<f64> {
        let own = self.read().now();
        own.map_or_else(|| self.clock.now(py), Ok)
    }

    /// The instant that is said.
    fn said(&self, name: &str, value: &Object<'_>) -> PyResult<f64> {
        let at = instants::instant(value, name)?;
        require_near(value.py(), name, None, at, self.own_time(value.py())?)?;
        self.see_clock(value.py(), at)?;
        Ok(at)
    }

    /// Looks at the clock, before events come that Python does not see.
    pub(crate) fn look_at_clock(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.clock.now(py)?;
        self.write().clock_is_at(now);
        Ok(())
    }

    /// Seconds that the time of one event may move the list's.
    pub(crate) fn far(&self) -> f64 {
        self.plan.far()
    }

    /// Looks at the clock if an event of this instant wants it.
    fn see_clock(&self, py: Python<'_>, at: f64) -> PyResult<()> {
        if self.read().wants_clock(at) {
            let now = self.clock.now(py)?;
            self.write().clock_is_at(now);
        }
        Ok(())
    }

    /// The instant of a question: what is said, or now, but never before the list's time.
    fn asked(&self, py: Python<'_>, at: Option<&Object<'_>>) -> PyResult<f64> {
        match at {
            Some(at) => self.said("at", at),
            None => Ok(self.clock.now(py)?.max(self.read().now().unwrap_or(0.0))),
        }
    }

    /// Adds one occurrence now, which `short_calls.rs` puts on the class.
    #[inline(always)]
    pub(crate) fn add_one(&self, key: &Object<'_>) -> PyResult<Py<PyAny>> {
        self.add_now(key, 1).map(|()| key.py().None())
    }

    #[inline(always)]
    fn add_now(&self, key: &Object<'_>, count: u64) -> PyResult<()> {
        let now = self.clock.now(key.py())?;
        // The lock is taken only around the list, and the key's own code has run before.
        with_key(key, None, |key| self.write().add_now(key, count, now))?.or_raise(key.py())
    }

    /// The instants of a batch, each refused as it would be one by one.
    fn instants(&self, py: Python<'_>, at: Option<&Object<'_>>) -> PyResult<Instants> {
        let Some(at) = at else { return self.clock.now(py).map(Instants::One) };
        let all = instants::instants(at, "at")?;
        let own = self.own_time(py)?;
        let rows: &[f64] = match &all {
            Instants::One(at) => &[*at],
            Instants::Each(all) => all,
        };
        for (row, at) in rows.iter().enumerate() {
            let row = matches!(all, Instants::Each(_)).then_some(row);
            require_near(py, "at", row, *at, own)?;
        }
        self.see_clock(py, rows.iter().copied().fold(0.0, f64::max))?;
        Ok(all)
    }
}

/// Refuses counts that are more than 64 bits hold, which other structures take as full counters: a list has none,
/// and its bounds would be wrong.
fn require_countable(py: Python<'_>, counts: &[u64]) -> PyResult<()> {
    match counts.iter().position(|count| *count == u64::MAX) {
        Some(row) => {
            let got =
                if counts.len() > 1 { format!("more in row {row}") } else { "more".to_owned() };
            let hint = "leave events that did not happen out";
            Err(parameter(py, "count", got, "below 2**64 - 1", hint))
        }
        None => Ok(()),
    }
}

#[pymethods]
impl HotList {
    /// Adds `count` occurrences of the key, at an instant or now. A late one weighs what is left of it.
    ///
    /// Calls with the key alone take a shorter way, see `short_calls.rs`.
    #[pyo3(signature = (key, count=params::Times::ONCE, at=None), text_signature = "($self, key, count=1, at=None)")]
    fn add(
        &self,
        key: &Object<'_>,
        count: params::Times<'_>,
        at: Option<&Object<'_>>,
    ) -> PyResult<()> {
        let py = key.py();
        let count = count.beside(at)?;
        require_countable(py, &[count])?;
        let Some(at) = at else { return self.add_now(key, count) };
        let at = self.said("at", at)?;
        with_key(key, None, |key| self.write().add(key, count, at))?.or_raise(py)
    }

    /// Adds every key in order, each with its count and instant if there are any.
    #[pyo3(signature = (keys, counts=None, at=None, *, nulls="refuse"))]
    fn add_many(
        &self,
        keys: &Object<'_>,
        counts: Option<&Object<'_>>,
        at: Option<&Object<'_>>,
        nulls: &str,
    ) -> PyResult<()> {
        let py = keys.py();
        let options = Options::parse(py, nulls)?;
        let (keys, counts) = weights::of(keys, counts)?;
        require_countable(py, counts.as_deref().unwrap_or_default())?;
        let instants = self.instants(py, at)?;
        let keys = instants.fit(&keys)?;
        // Whether the one instant is what the clock said; if so, what the list made of it.
        let by_clock = at.is_none().then(OnceLock::new);
        let add = |part: Part<'_>, _: &mut [()], _: &mut Crew| {
            let counts = counts.as_deref().map(|all| part.of(all));
            let mut core = self.write();
            let each;
            let times = match (&instants, &by_clock) {
                (Instants::Each(all), _) => {
                    each = part.of(all);
                    Times::Each(&each)
                }
                (Instants::One(now), Some(at)) => match at.get() {
                    Some(at) => Times::All(*at),
                    None => {
                        let own = core.by_clock(*now).map_err(|error| (0, error))?;
                        Times::All(*at.get_or_init(|| own))
                    }
                },
                (Instants::One(at), None) => Times::All(*at),
            };
            core.add_many(part.keys, counts.as_deref(), times)
        };
        let verb = Verb::new(&self.hasher, &add).needs(Needs::Keys);
        keys::answers(&verb, &keys, options).map(drop)
    }

    /// Whether the key is listed.
    fn __contains__(&self, key: &Object<'_>) -> PyResult<bool> {
        let hash = hash_key(&self.hasher, key, None)?;
        Ok(self.read().contains(hash))
    }

    /// How many keys are listed.
    fn __len__(&self) -> usize {
        self.read().len()
    }

    /// At least the key's decayed count now, or at a later instant.
    #[pyo3(signature = (key, at=None))]
    fn count(&self, key: &Object<'_>, at: Option<&Object<'_>>) -> PyResult<f64> {
        let py = key.py();
        let hash = hash_key(&self.hasher, key, None)?;
        let at = self.asked(py, at)?;
        let bounds = self.read().estimate(hash, at);
        bounds.or_raise(py).map(|bounds| bounds.1)
    }

    /// The count with both bounds, which hold for certain.
    #[pyo3(signature = (key, at=None))]
    fn estimate<'py>(&self, key: &Object<'py>, at: Option<&Object<'py>>) -> Answer<'py> {
        let py = key.py();
        let hash = hash_key(&self.hasher, key, None)?;
        let at = self.asked(py, at)?;
        let bounds = self.read().estimate(hash, at);
        let (lower, count) = bounds.or_raise(py)?;
        new_record!(py, "Estimate" => value: count, lower, upper: count, confidence: 1.0, saturated: false)
    }

    /// The `n` hottest keys, or all that are listed, the hottest first.
    #[pyo3(signature = (n=None, at=None))]
    fn top<'py>(
        &self,
        py: Python<'py>,
        n: Option<&Object<'py>>,
        at: Option<&Object<'py>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let n = n.map(|n| params::many("n", n)).transpose()?;
        let n = n.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let at = self.asked(py, at)?;
        let answer = py.detach(|| {
            let core = self.read();
            let items = core.top(n, at)?;
            let copied = |item: &bloomtide_core::HotItem<'_>| {
                Ok((OwnedKey::of(item.key)?, item.count, item.lower, item.share))
            };
            items.iter().map(copied).collect::<bloomtide_core::Result<Vec<_>>>()
        });
        let class = py.import("bloomtide.records")?.getattr("HotItem")?;
        let list = PyList::empty(py);
        for (key, count, lower, share) in answer.or_raise(py)? {
            list.append(class.call1((to_object(py, key.view()), count, lower, share))?)?;
        }
        Ok(list)
    }

    /// The decayed count of all events together; what is not listed has at most a k-th of it.
    #[pyo3(signature = (at=None))]
    fn total(&self, py: Python<'_>, at: Option<&Object<'_>>) -> PyResult<f64> {
        let at = self.asked(py, at)?;
        let total = self.read().total(at);
        total.or_raise(py)
    }

    /// Moves the list's time on, to an instant or to now. Counts decay by it, and earlier events are late.
    #[pyo3(signature = (now=None))]
    fn advance(&self, py: Python<'_>, now: Option<&Object<'_>>) -> PyResult<()> {
        let now = match now {
            Some(now) => {
                let now = self.said("now", now)?;
                if self.read().is_ahead(now) {
                    return Err(instants::beyond_clock(py, now));
                }
                now
            }
            None => self.clock.now(py)?,
        };
        let moved = self.write().advance(now);
        moved.or_raise(py)
    }

    /// Keys listed, late events, clock jumps and memory.
    fn stats<'py>(&self, py: Python<'py>) -> Answer<'py> {
        let (len, bytes, Oddities { late, clock_jumps, ahead }, aside) = {
            let core = self.read();
            (core.len(), core.bytes(), core.oddities(), core.aside())
        };
        let (k, items) = (self.plan.k, len as f64);
        // A counter is two bounds of 64 bits.
        new_record!(py, "Stats" =>
            kind: "hot", items, capacity: k, error_rate: py.None(), predicted_error: 0.0,
            fill: items / k as f64, cells: k, hashes: 1, counter_bits: 128, bytes, late,
            clock_jumps, ahead, aside)
    }

    fn __repr__(&self) -> String {
        let HotPlan { k, half_life, .. } = self.plan;
        let half_life = half_life.map_or_else(|| "None".to_owned(), |seconds| seconds.to_string());
        format!("<HotList k={k} half_life={half_life} keys={}>", self.read().len())
    }
}

getters!(HotList, this =>
    k: u64 = this.plan.k;
    half_life: Option<f64> = this.plan.half_life;
    /// Seconds of an epoch, if counts fade in steps.
    epoch: Option<f64> = this.plan.steps.map(|steps| steps.epoch);
    /// When epoch zero begins, if counts fade in steps.
    origin: Option<f64> = this.plan.steps.map(|steps| steps.origin);
    /// Seconds that one event may move the list's time on, if that was given.
    max_jump: Option<f64> = this.plan.max_jump;
    /// The latest instant that is believed, in seconds since 1970; None before the first.
    time: Option<f64> = this.read().time();
);
