//! Whole lists: copies, merges, checks, and what snapshots are made of.
//!
//! A merged count adds what both lists say; a list that does not have the key adds the most it can have
//! missed, its smallest weight. The k heaviest of both stay. Let m be the sum of the smallest weights
//! and D = total/k - m: all excesses over m together are at most k D, so the k-th largest is at most D,
//! and the smallest place of the merged list at most total/k. What is left out is below it: I4 holds.

use super::plan::check_time;
use super::weight::{Bounds, sum_up};
use super::{FRESH, HotList, HotPlan, HotState, Occurrence, Place};
use crate::error::{Error, Result};
use crate::event_time::EventTime;
use crate::hash::Hasher;
use crate::key::{Key, OwnedKey};

impl HotList {
    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let rows = self.rows().map(|(low, high, key)| Ok((low, high, key.view())));
        HotList::over(self.plan, self.hasher, self.state, self.time.clone(), rows)
    }

    /// Refuses to go on when `other` was made with other parameters.
    pub fn require_compatible(&self, other: &HotList) -> Result<()> {
        self.plan.require_same(&other.plan)?;
        self.hasher.require_same(&other.hasher)
    }

    /// Takes the other's events in. Bounds and guarantee are those of one list for both streams, but the
    /// bounds may be wider. An error changes nothing.
    pub fn merge(&mut self, other: &HotList) -> Result<()> {
        self.require_compatible(other)?;
        let shift = self.common_shift(other);
        let (here, there) = (shift(self), shift(other));
        let missed = |list: &HotList, by| Bounds { low: 0.0, high: list.floor() }.shifted(by);
        let (missed_here, missed_there) = (missed(self, here), missed(other, there));
        let mut rows: Vec<(Place, Key<'_>)> = Vec::new();
        let too_large = |_| Error::Capacity { needed: u64::MAX, limit: isize::MAX as u64 };
        rows.try_reserve_exact(self.len() + other.len()).map_err(too_large)?;
        for (place, key) in self.places.iter().zip(&self.keys) {
            let theirs = other.find(place.hash);
            let theirs = theirs.map_or(missed_there, |i| other.places[i].weight.shifted(there));
            let weight = place.weight.shifted(here).plus(theirs);
            rows.push((Place { hash: place.hash, weight }, key.view()));
        }
        for (place, key) in other.places.iter().zip(&other.keys) {
            if self.find(place.hash).is_none() {
                let weight = place.weight.shifted(there).plus(missed_here);
                rows.push((Place { hash: place.hash, weight }, key.view()));
            }
        }
        // The same order whichever list is merged into the other.
        rows.sort_unstable_by(|(a, _), (b, _)| {
            let heavier = b.weight.high.total_cmp(&a.weight.high);
            let surer = b.weight.low.total_cmp(&a.weight.low);
            heavier.then(surer).then(a.hash.as_u128().cmp(&b.hash.as_u128()))
        });
        rows.truncate(usize::try_from(self.plan.k).unwrap_or(usize::MAX));
        let total =
            |list: &HotList, by| Bounds { low: 0.0, high: list.state.total }.shifted(by).high;
        let state = HotState {
            shift: self.state.shift - here,
            total: sum_up(total(self, here), total(other, there)),
        };
        let mut time = self.time.clone();
        let due = time.merge(&other.time);
        let rows = rows.iter().map(|(place, key)| Ok((place.weight.low, place.weight.high, *key)));
        let mut merged = HotList::over(self.plan, self.hasher, state, time, rows)?;
        merged.take_in(&due)?;
        *self = merged;
        Ok(())
    }

    /// By how many halvings each list's weights change so that both have one shift: the larger one. An
    /// empty list has none.
    fn common_shift(&self, other: &HotList) -> impl Fn(&HotList) -> i64 + use<> {
        let of = |list: &HotList| (!list.is_empty()).then_some(list.state.shift);
        let common = of(self).max(of(other)).unwrap_or(FRESH.shift);
        move |list| list.state.shift - common
    }
}

impl HotList {
    /// Whether both have the same parameters, keys and weights, and will go on alike.
    pub fn same_as(&self, other: &HotList) -> bool {
        let same = |(a, b): (&Place, &Place)| a.hash == b.hash && a.weight == b.weight;
        self.plan == other.plan
            && self.hasher == other.hasher
            && self.state == other.state
            && self.time.now() == other.time.now()
            && self.time.odd() == other.time.odd()
            && self.time.aside() == other.time.aside()
            && self.places.len() == other.places.len()
            && self.places.iter().zip(&other.places).all(same)
            && self.keys.iter().zip(&other.keys).all(|(a, b)| a.view() == b.view())
    }

    /// Checks I1 to I3.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        self.plan.checked()?;
        if self.places.len() as u64 > self.plan.k || self.keys.len() != self.places.len() {
            return broken(format!("{} places of {}", self.places.len(), self.plan.k));
        }
        if self.index.len() != self.places.len() {
            return broken(format!("{} keys in the index", self.index.len()));
        }
        for (i, (place, key)) in self.places.iter().zip(&self.keys).enumerate() {
            if key.view().hash(&self.hasher) != place.hash || self.find(place.hash) != Some(i) {
                return broken(format!("place {i} is not where its key leads"));
            }
            let Bounds { low, high } = place.weight;
            if !(0.0 <= low && low <= high && high > 0.0 && high <= f64::MAX) {
                return broken(format!("place {i} weighs {low} to {high}"));
            }
        }
        let (total, time) = (self.state.total, self.time.now());
        if !(0.0..=f64::MAX).contains(&total) || (total == 0.0) != self.places.is_empty() {
            return broken(format!("a total of {total}"));
        }
        let possible = time.map_or(self.is_empty(), |time| {
            check_time(time).is_ok() || check_time(time + self.epoch()).is_ok()
        });
        if !possible {
            return broken(format!("a time of {time:?}"));
        }
        self.check_aside()?;
        let weights: Vec<f64> = self.places.iter().map(|place| place.weight.high).collect();
        if !self.heap.is_empty() && !self.heap.is_sound(&weights) {
            return broken("the heap does not order the places".to_owned());
        }
        Ok(())
    }

    // ---- snapshots

    pub(crate) fn state(&self) -> &HotState {
        &self.state
    }

    pub(crate) fn event_time(&self) -> &EventTime<Occurrence> {
        &self.time
    }

    /// Seconds that the begin of an epoch may be before an instant of it.
    fn epoch(&self) -> f64 {
        self.plan.steps.map_or(0.0, |steps| steps.epoch)
    }

    /// Every place: its weight's bounds and its key.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (f64, f64, &OwnedKey)> {
        let row = |(place, key)| {
            let Place { weight, .. } = place;
            (weight.low, weight.high, key)
        };
        self.places.iter().copied().zip(&self.keys).map(row)
    }

    /// A list of rows, as they were given out; refuses what no list holds.
    pub(crate) fn over<'k>(
        plan: HotPlan,
        hasher: Hasher,
        state: HotState,
        time: EventTime<Occurrence>,
        rows: impl Iterator<Item = Result<(f64, f64, Key<'k>)>>,
    ) -> Result<Self> {
        let mut list = HotList::new(plan, hasher)?;
        for row in rows {
            let (low, high, key) = row?;
            let hash = key.hash(&hasher);
            if list.find(hash).is_some() || list.len() as u64 == plan.k {
                return Err(Error::Invariant { invariant: "a key twice, or too many".to_owned() });
            }
            let place = list.make_room(hash, key)?;
            list.places[place].weight = Bounds { low, high };
        }
        (list.state, list.calm_until, list.time) = (state, time.calm_until(), time);
        list.validate()?;
        Ok(list)
    }
}
