//! The hot list: the keys that are hottest now, with counts that decay and bounds that hold.
//!
//! Papers   Metwally et al. 2005 (SpaceSaving), Cormode et al. 2008 and 2009 (decayed, by growing
//!          weights), Agarwal et al. 2012 (merging). Specification 10.2 and 10.8.
//! Idea     k places, each with a key and its weight. A key of the list raises its weight. Any other
//!          takes the place of the smallest weight m, and begins at m + its own: m is the most it
//!          can have had before.
//!              places   shop 9 | news 4 | mail 2     add "maps"    shop 9 | news 4 | maps 3 (at least 1)
//! Decay    Weights grow with time instead (`weight.rs`), so that order never changes by decay and nothing
//!          is done while time passes. In steps, an event is as of the begin of its epoch.
//! Time     `event_time` says which times of events are believed; the others are set aside (`aside.rs`).
//! Prefer   A counting filter for the count of any key; it cannot say which keys are hot.
//!
//! # Invariants
//! I1  A key has one place, and the index finds it there. There are at most k.
//! I2  0 <= low <= high of every place, and high is finite and not zero.
//! I3  When the list is full the heap orders its places by `high`, then by place; otherwise it is empty.
//! I4  The sum of all `high` is at most the total, but for rounding; so the smallest is at most total/k.
//!
//! # Errors in answers
//! low <= true count <= high for a key of the list; at most the smallest high for any other. So every
//! key with more than total/k is in the list. Rounding is outward and breaks none of this.

use crate::batch::{GROUP, KeySource};
use crate::error::{Error, Result};
use crate::event_time::{EventTime, Oddities};
use crate::hash::{Hasher, KeyHash};
use crate::key::{Key, OwnedKey};
use std::collections::TryReserveError;

mod aside;
mod heap;
mod index;
mod plan;
#[cfg(test)]
mod tests;
mod weight;
mod whole;

pub use plan::{HotPlan, Steps};

use heap::Heap;
use index::Index;
use plan::check_time;
use weight::{Bounds, Power, above, sum_up};

/// A weight may be 2^this times a count; then the shift is raised.
const HIGHEST: i64 = 512;

/// When the events of a batch happened, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub enum Times<'a> {
    /// All at once.
    All(f64),
    /// One instant for each row.
    Each(&'a [f64]),
}

/// A key of the list with the bounds of its count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotItem<'a> {
    /// The key as it was first spelled.
    pub key: Key<'a>,
    /// At least the true count.
    pub count: f64,
    /// At most the true count.
    pub lower: f64,
    /// `count` as a share of all events, at most 1.
    pub share: f64,
}

/// What a list holds besides its keys and its time, for snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HotState {
    pub(crate) shift: i64,
    /// All weights together, rounded up.
    pub(crate) total: f64,
}

const FRESH: HotState = HotState { shift: 0, total: 0.0 };

/// A key and how often it occurred.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) hash: KeyHash,
    pub(crate) key: OwnedKey,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: KeyHash,
    weight: Bounds,
}

/// The hottest keys.
#[derive(Debug)]
pub struct HotList {
    plan: HotPlan,
    hasher: Hasher,
    state: HotState,
    time: EventTime<Occurrence>,
    /// Instants up to this one need not be judged.
    calm_until: f64,
    places: Vec<Place>,
    /// The key of each place.
    keys: Vec<OwnedKey>,
    index: Index,
    heap: Heap,
    /// What an event of the instant beside it weighs, since many events share one.
    pace: (f64, Power),
}

impl HotList {
    /// An empty list. Memory comes with its keys.
    pub fn new(plan: HotPlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        Ok(HotList {
            plan,
            hasher,
            state: FRESH,
            time: EventTime::new(plan.far()),
            calm_until: f64::NEG_INFINITY,
            places: Vec::new(),
            keys: Vec::new(),
            index: Index::default(),
            heap: Heap::default(),
            pace: (f64::NAN, Power::ONE),
        })
    }

    /// The parameters.
    pub fn plan(&self) -> &HotPlan {
        &self.plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// How many keys are listed.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether no key is listed.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The instant of the stream, or what it is presumed to be if the last events agree on a later one.
    pub fn time(&self) -> Option<f64> {
        self.time.presumed()
    }

    /// How often the time of an event was not taken as it was.
    pub fn oddities(&self) -> Oddities {
        self.time.odd()
    }

    /// Memory of places, index, heap and keys in bytes.
    pub fn bytes(&self) -> u64 {
        let places = self.places.capacity() * size_of::<Place>();
        let keys = self.keys.capacity() * size_of::<OwnedKey>();
        let text: u64 = self.keys.iter().map(OwnedKey::heap_bytes).sum();
        let inside = (places + keys) as u64 + text + self.index.bytes() + self.heap.bytes();
        inside + self.bytes_aside()
    }

    // ---- adding

    /// Adds `count` occurrences at an instant. One before the list's time is late: it weighs what is left
    /// of it by now. An error changes nothing.
    pub fn add(&mut self, key: Key<'_>, count: u64, at: f64) -> Result<()> {
        check_time(at)?;
        self.raise(key.hash(&self.hasher), || Ok(key), count, at)
    }

    /// Adds `count` occurrences now, by a clock. An error changes nothing but the time.
    #[inline(always)]
    pub fn add_now(&mut self, key: Key<'_>, count: u64, now: f64) -> Result<()> {
        let at = self.plan.stepped(now);
        // As a rule the clock shows what it showed, or a little more.
        if at <= self.calm_until && self.time.is_at_most(at) {
            self.raise_at(key.hash(&self.hasher), || Ok(key), count, at)?;
            self.time.pass(at);
            return Ok(());
        }
        let at = self.by_clock(now)?;
        self.add(key, count, at)
    }

    /// Adds every row in order, `counts[i]` times if there are counts. On an error, the number of rows
    /// that went in comes with it.
    pub fn add_many(
        &mut self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        times: Times<'_>,
    ) -> std::result::Result<(), (usize, Error)> {
        let hasher = self.hasher;
        let mut digests = [KeyHash::default(); GROUP];
        for start in (0..keys.len()).step_by(GROUP) {
            let digests = &mut digests[..GROUP.min(keys.len() - start)];
            keys.fill(&hasher, start, digests);
            digests.iter().for_each(|digest| self.index.prefetch(*digest));
            for (row, hash) in (start..).zip(digests) {
                let at = match times {
                    Times::All(at) => at,
                    Times::Each(all) => all[row],
                };
                let count = counts.map_or(1, |counts| counts[row]);
                let key = || keys.key(row).ok_or_else(no_key);
                check_time(at)
                    .and_then(|()| self.raise(*hash, key, count, at))
                    .map_err(|error| (row, error))?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn raise<'k>(
        &mut self,
        hash: KeyHash,
        key: impl FnOnce() -> Result<Key<'k>>,
        count: u64,
        at: f64,
    ) -> Result<()> {
        let at = self.plan.stepped(at);
        if at > self.calm_until {
            return self.raise_judged(hash, key()?, count, at);
        }
        self.raise_at(hash, key, count, at)?;
        self.time.pass(at);
        Ok(())
    }

    /// Raises a key by what an event of this instant weighs.
    #[inline(always)]
    fn raise_at<'k>(
        &mut self,
        hash: KeyHash,
        key: impl FnOnce() -> Result<Key<'k>>,
        count: u64,
        at: f64,
    ) -> Result<()> {
        // What can fail comes first.
        let found = match self.find(hash) {
            Some(place) => Ok(place),
            None => Err(self.make_room(hash, key()?)?),
        };
        if self.pace.0 != at {
            self.set_pace(at);
        }
        let weight = self.pace.1.times(count);
        match found {
            Ok(place) => {
                let place = &mut self.places[place];
                place.weight = place.weight.plus(weight);
            }
            Err(place) => {
                let place = &mut self.places[place];
                // The one it replaces is the most it can have had.
                let high = sum_up(place.weight.high, weight.high);
                place.weight = Bounds { low: weight.low, high };
            }
        }
        self.state.total = sum_up(self.state.total, weight.high);
        Ok(())
    }

    #[inline(always)]
    fn find(&self, hash: KeyHash) -> Option<usize> {
        self.index.find(hash, |place| self.places[place].hash == hash)
    }

    /// A place for a new key, which keeps the weight of the key it takes it from.
    #[inline(always)]
    fn make_room(&mut self, hash: KeyHash, key: Key<'_>) -> Result<usize> {
        let too_large = |_| Error::Capacity { needed: u64::MAX, limit: isize::MAX as u64 };
        let place = self.places.len();
        if (place as u64) < self.plan.k {
            self.reserve_one(key).map_err(too_large)?;
            self.places.push(Place { hash, weight: Bounds::ZERO });
            self.index.insert(hash, place);
            return Ok(place);
        }
        if self.heap.is_empty() {
            let weights = self.places.iter().map(|place| place.weight.high);
            self.heap.build(weights).map_err(too_large)?;
        }
        let place = self.heap.least(|place| self.places[place].weight.high);
        self.keys[place].set(key).map_err(too_large)?;
        self.index.remove(self.places[place].hash, place);
        self.index.insert(hash, place);
        self.places[place].hash = hash;
        Ok(place)
    }

    /// Room for one more place everywhere, and its key.
    fn reserve_one(&mut self, key: Key<'_>) -> std::result::Result<(), TryReserveError> {
        self.places.try_reserve(1)?;
        self.keys.try_reserve(1)?;
        if self.index.room() == self.places.len() {
            self.index.grow()?;
        }
        let mut owned = OwnedKey::default();
        owned.set(key)?;
        self.keys.push(owned);
        Ok(())
    }

    fn set_pace(&mut self, at: f64) {
        let Some(half_life) = self.plan.half_life else { return };
        let mut power = Power::of(at, half_life, self.state.shift, false);
        // The first event sets the shift; later ones only when weights become too large.
        if self.state.total == 0.0 || power.exponent() > HIGHEST {
            self.shift_by(power.exponent());
            power = Power::of(at, half_life, self.state.shift, false);
        }
        self.pace = (at, power);
    }

    /// Raises the shift, which changes no count.
    fn shift_by(&mut self, halvings: i64) {
        self.state.shift += halvings;
        for place in &mut self.places {
            place.weight = place.weight.shifted(-halvings);
        }
        self.state.total = Bounds { low: 0.0, high: self.state.total }.shifted(-halvings).high;
        // Small weights may have become equal, so the order is made again when it is asked for.
        self.heap.clear();
        self.pace.0 = f64::NAN;
    }

    // ---- asking

    /// The factor that makes counts of weights at an instant, which is not before the list's time.
    fn factor(&self, now: f64) -> Result<Power> {
        check_time(now)?;
        let now = self.plan.stepped(now);
        if self.time.now().is_some_and(|own| now < own) {
            return Err(Error::parameter(
                "at",
                now,
                "no earlier than the list's time",
                "a hot list knows only what is hot now",
            ));
        }
        Ok(match self.plan.half_life {
            Some(half_life) => Power::of(now, half_life, self.state.shift, true),
            None => Power::ONE,
        })
    }

    /// The most that a key outside the list can weigh.
    fn floor(&self) -> f64 {
        if (self.places.len() as u64) < self.plan.k {
            return 0.0;
        }
        let weight = |place: usize| self.places[place].weight.high;
        if self.heap.is_empty() {
            return (0..self.places.len()).map(weight).fold(f64::MAX, f64::min);
        }
        self.heap.peek(weight)
    }

    /// Whether the key is listed, or has an event that is set aside.
    pub fn contains(&self, hash: KeyHash) -> bool {
        let waits = || self.time.aside().iter().any(|event| event.what.hash == hash);
        self.find(hash).is_some() || waits()
    }

    /// (lower, count) of any key at an instant: its true count is between them.
    pub fn estimate(&self, hash: KeyHash, now: f64) -> Result<(f64, f64)> {
        let factor = self.factor(now)?;
        let weight = match self.find(hash) {
            Some(place) => self.places[place].weight,
            None => Bounds { low: 0.0, high: self.floor() },
        };
        let waiting = self.waiting(now, |event| event.hash == hash);
        let Bounds { low, high } = factor.of_bounds(weight).plus(waiting);
        Ok((low, high))
    }

    /// The weight of all events together. Rounding raises it and the smallest weight each its own way;
    /// this keeps I4 in the answer.
    fn whole(&self) -> f64 {
        let least = self.floor() * self.plan.k as f64;
        if least > self.state.total { above(least) } else { self.state.total }
    }

    /// The decayed count of all events together, rounded up. What is not listed has at most a k-th of it.
    pub fn total(&self, now: f64) -> Result<f64> {
        let factor = self.factor(now)?;
        let inside = factor.of_bounds(Bounds { low: 0.0, high: self.whole() });
        Ok(inside.plus(self.waiting(now, |_| true)).high)
    }

    /// The `n` hottest keys, or all that are listed, the hottest first.
    pub fn top(&self, n: Option<usize>, now: f64) -> Result<Vec<HotItem<'_>>> {
        let factor = self.factor(now)?;
        let total = self.total(now)?;
        let mut order: Vec<(Bounds, u32)> =
            (0..).zip(&self.places).map(|(i, place)| (place.weight, i)).collect();
        let hotter = |(a, i): &(Bounds, u32), (b, j): &(Bounds, u32)| {
            b.high.total_cmp(&a.high).then(b.low.total_cmp(&a.low)).then(i.cmp(j))
        };
        let extra = self.listed_aside(now);
        if !extra.is_empty() {
            // Weights do not compare with counts, so all become counts.
            order.iter_mut().for_each(|(bounds, _)| *bounds = factor.of_bounds(*bounds));
            for (place, waiting) in &extra {
                if *place < self.places.len() {
                    order[*place].0 = order[*place].0.plus(*waiting);
                } else {
                    order.push((*waiting, *place as u32));
                }
            }
        }
        let n = n.unwrap_or(order.len()).min(order.len());
        if n > 0 && n < order.len() {
            order.select_nth_unstable_by(n - 1, hotter);
        }
        order.truncate(n);
        order.sort_unstable_by(hotter);
        let item = |(bounds, place): (Bounds, u32)| {
            let bounds = if extra.is_empty() { factor.of_bounds(bounds) } else { bounds };
            let share = (bounds.high / total).min(1.0);
            HotItem {
                key: self.key_at(place as usize),
                count: bounds.high,
                lower: bounds.low,
                share,
            }
        };
        Ok(order.into_iter().map(item).collect())
    }

    // ---- whole lists

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.forget_counts();
        self.time.clear();
        self.calm_until = f64::NEG_INFINITY;
    }

    fn forget_counts(&mut self) {
        self.places.clear();
        self.keys.clear();
        self.index = Index::default();
        self.heap.clear();
        self.state = FRESH;
        self.pace = (f64::NAN, Power::ONE);
    }
}

#[cold]
fn no_key() -> Error {
    Error::Invariant { invariant: "digests alone have no keys to list".to_owned() }
}
