//! Whole filters: merge, copy, clear, compare, measure, and what files keep.

use super::store::{Store, both, on};
use super::{DecayingPlan, Frozen, KeptArrivals, NEVER, TimeDecayingBloomFilter};
use crate::cells::DECAY_BLOCK;
use crate::error::{Error, Result};
use crate::filters::overfull::sample;
use crate::filters::{Measure, Overfull};
use crate::hash::Hasher;
use crate::placement::Placement;
use crate::sizing;
use std::sync::atomic::Ordering;

impl TimeDecayingBloomFilter {
    /// Refuses to go on when `other` was made with other parameters.
    pub fn require_compatible(&self, other: &TimeDecayingBloomFilter) -> Result<()> {
        self.plan.require_same(&other.plan)?;
        self.hasher.require_same(&other.hasher)
    }

    /// Adds the other's cells to ours, at the later of both times. Under `plain` the filter of both
    /// streams up to rounding; under `conservative` an upper bound.
    pub fn merge(&self, other: &TimeDecayingBloomFilter) -> Result<()> {
        self.require_compatible(other)?;
        // One moment of the other, which others may write to; and two gates could shut each other.
        let other = other.copy()?;
        let _entered = self.gate.enter();
        self.merge_arrivals(&other, || {
            both!(&self.store, &other.store, (level, theirs) => level.merge(theirs, &self.time), ());
        });
        Ok(())
    }

    /// Forgets everything, the time too.
    pub fn clear(&self) {
        let _entered = self.gate.enter();
        on!(&self.store, level => level.clear());
        self.forget_arrivals();
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let copy = Self::new(self.plan, self.hasher)?;
        let _entered = self.gate.enter();
        both!(&copy.store, &self.store, (level, original) => level.take_over(original), ());
        copy.arrivals.take_over(&self.arrivals);
        copy.time.now.store(self.time.now(), Ordering::Release);
        copy.time.calm.store(self.time.calm.load(Ordering::Relaxed), Ordering::Release);
        Ok(copy)
    }

    /// Whether both have the same parameters, time and cells.
    pub fn same_as(&self, other: &TimeDecayingBloomFilter) -> bool {
        if self.require_compatible(other).is_err()
            || self.now() != other.now()
            || !self.arrivals.same_as(&other.arrivals)
        {
            return false;
        }
        let same = |other: &Self| both!(&self.store, &other.store, (ours, theirs) => ours.same_as(theirs, &self.time), false);
        if !self.store.tears() {
            return same(other);
        }
        // One moment of the other: two gates could shut each other.
        let Ok(other) = other.copy() else { return false };
        let _entered = self.gate.enter();
        same(&other)
    }

    /// Every cell as of an epoch or, if that is later, of the filter's time.
    pub fn values(&self, epoch: i64) -> Vec<f64> {
        let count = |cell| self.count_of(self.unit_of_cell(cell, epoch));
        match self.now() {
            None => vec![0.0; self.plan.cells() as usize],
            Some(_) => (0..self.plan.cells()).map(count).collect(),
        }
    }

    /// Memory in bytes: cells and stamps.
    pub fn bytes(&self) -> u64 {
        on!(&self.store, level => level.bytes())
    }

    /// Measures the cells as of an epoch: one pass over all of them. `saturated` counts blocks.
    pub fn measure(&self, epoch: i64) -> Measure {
        let (items, fill, error) = match self.now() {
            None => (0.0, 0.0, 0.0),
            Some(_) => {
                let used = |block| {
                    let _entered = self.enter_to_read();
                    let block = on!(&self.store, level => level.block(block, epoch, &self.time));
                    block.map(|units| units != 0)
                };
                let blocks = 0..self.plan.cells().div_ceil(DECAY_BLOCK);
                let cells = blocks.flat_map(used).take(self.plan.cells() as usize);
                self.plan.placement.measure(cells)
            }
        };
        let saturated = on!(&self.store, level => level.full_blocks());
        Measure { items, fill, error, saturated }
    }

    /// Whether it holds more than twice the keys it was made for, as of its latest epoch, by looking at some of its
    /// blocks.
    pub fn overfull(&self) -> Option<Overfull> {
        let epoch = self.now()?;
        let items = |sample| self.sampled_items(epoch, sample);
        Overfull::of(self.plan.capacity, items, |items| self.plan.error_at(items))
    }

    fn sampled_items(&self, epoch: i64, most: u64) -> f64 {
        let Placement { cells, hashes, .. } = self.plan.placement;
        let (mut seen, mut used) = (0u64, 0u64);
        for block in sample(cells.div_ceil(DECAY_BLOCK), most / DECAY_BLOCK) {
            let _entered = self.enter_to_read();
            let values = on!(&self.store, level => level.block(block, epoch, &self.time));
            let inside = DECAY_BLOCK.min(cells - block * DECAY_BLOCK);
            seen += inside;
            used += values[..inside as usize].iter().filter(|units| **units != 0).count() as u64;
        }
        sizing::keys_from_fill(used as f64 / seen as f64, cells as f64, f64::from(hashes))
    }

    /// Checks I1 and I3.
    pub fn validate(&self) -> Result<()> {
        self.plan.checked()?;
        let _entered = self.gate.enter();
        let oldest = on!(&self.store, level => level.validate(&self.time))?;
        require_times(self.time.now(), oldest)
    }

    // ---- files

    /// One moment of the filter: its time and its cells.
    pub(crate) fn still<T>(
        &self,
        look: impl FnOnce(Option<i64>, &Frozen<'_>, KeptArrivals) -> Result<T>,
    ) -> Result<T> {
        let _entered = self.gate.enter();
        let cells = on!(&self.store, level => level.frozen(&self.time));
        look(self.now(), &cells, self.arrivals.kept())
    }

    /// A filter with the time, stamps and values that were kept.
    pub(crate) fn restored(
        plan: DecayingPlan,
        hasher: Hasher,
        kept: &Frozen<'_>,
        arrivals: KeptArrivals,
    ) -> Result<Self> {
        let now = arrivals.time.now.map(|now| now as i64);
        let filter = Self::new(plan.checked()?, hasher)?;
        filter.time.now.store(now.unwrap_or(NEVER), Ordering::Release);
        let oldest = on!(&filter.store, level => level.restore(kept, &filter.time))?;
        // Cells that were laid out by their values are sound; that leaves the times.
        require_times(now.unwrap_or(NEVER), oldest)?;
        filter.restore_arrivals(arrivals);
        Ok(filter)
    }
}

/// I3: at `now`, the oldest block that holds something may be of that age.
fn require_times(now: i64, oldest: Option<u64>) -> Result<()> {
    let broken = |invariant: &str| Err(Error::Invariant { invariant: invariant.to_owned() });
    match oldest {
        None => Ok(()),
        Some(_) if now == NEVER => broken("a block holds something, but there was no time yet"),
        // Ages are taken modulo 2^46.
        Some(age) if age >= 1 << 45 => broken("a block is ahead of the filter's time"),
        Some(_) => Ok(()),
    }
}
