//! Copies and merges.
//!
//! A merged count adds what both lists say; a list that does not have the key adds the most it can have
//! missed, its smallest weight. The k heaviest of both stay. Let m be the sum of the smallest weights
//! and D = total/k - m: all excesses over m together are at most k D, so the k-th largest is at most D,
//! and the smallest place of the merged list at most total/k. What is left out is below it: I4 holds.

use super::weight::{Bounds, sum_up};
use super::{FRESH, HotList, HotState, Place};
use crate::error::{Error, Result};
use crate::key::Key;

impl HotList {
    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let rows = self.rows().map(|(low, high, key)| Ok((low, high, key.view())));
        HotList::over(self.plan, self.hasher, self.state, rows)
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
            time: self.state.time.max(other.state.time),
            total: sum_up(total(self, here), total(other, there)),
            late: self.state.late.saturating_add(other.state.late),
            clock_jumps: self.state.clock_jumps.saturating_add(other.state.clock_jumps),
        };
        let rows = rows.iter().map(|(place, key)| Ok((place.weight.low, place.weight.high, *key)));
        *self = HotList::over(self.plan, self.hasher, state, rows)?;
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
