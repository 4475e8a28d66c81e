//! Whole filters: merge, copy, clear, compare, measure, and what files keep.

use super::{DecayingPlan, NEVER, TimeDecayingBloomFilter};
use crate::cells::{DecayingCells, OLDEST};
use crate::error::{Error, Result};
use crate::filters::Measure;
use crate::hash::Hasher;
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
        let Some(theirs) = other.now() else { return Ok(()) };
        let _entered = self.gate.enter();
        let ours = self.now().unwrap_or(theirs);
        // Stamps of both must be within reach of the later time (I3).
        if ours < theirs {
            self.move_on(theirs);
        }
        if theirs < ours {
            other.move_on(ours);
        }
        let now = ours.max(theirs);
        self.level.merge(&other.level, now, now, &self.decay);
        self.now.store(now, Ordering::Release);
        let oldest = other.oldest.load(Ordering::Relaxed);
        let own = self.oldest.load(Ordering::Relaxed);
        self.oldest.store(if own == NEVER { oldest } else { own.min(oldest) }, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets everything, the time too.
    pub fn clear(&self) {
        let _entered = self.gate.enter();
        self.level.clear();
        self.now.store(NEVER, Ordering::Release);
        self.oldest.store(NEVER, Ordering::Relaxed);
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let copy = Self::new(self.plan, self.hasher)?;
        let _entered = self.gate.enter();
        copy.level.take_over(&self.level);
        copy.now.store(self.now.load(Ordering::Relaxed), Ordering::Release);
        copy.oldest.store(self.oldest.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(copy)
    }

    /// Whether both have the same parameters, time and cells.
    pub fn same_as(&self, other: &TimeDecayingBloomFilter) -> bool {
        self.require_compatible(other).is_ok()
            && self.now() == other.now()
            && self.level.same_as(&other.level)
    }

    /// Every cell as of an epoch or, if that is later, of the filter's time.
    pub fn values(&self, epoch: i64) -> Vec<f64> {
        let count =
            |cell| self.count_of(u64::from(self.level.get(cell, self.asked(epoch), &self.decay)));
        match self.now() {
            None => vec![0.0; self.plan.cells() as usize],
            Some(_) => (0..self.plan.cells()).map(count).collect(),
        }
    }

    /// Memory in bytes: cells and stamps.
    pub fn bytes(&self) -> u64 {
        self.level.cells.bytes() + self.level.stamps.bytes()
    }

    /// Measures the cells as of an epoch: one pass over all of them. `saturated` counts blocks.
    pub fn measure(&self, epoch: i64) -> Measure {
        let (items, fill, error) = match self.now() {
            None => (0.0, 0.0, 0.0),
            Some(_) => {
                let used = |cell| self.level.get(cell, self.asked(epoch), &self.decay) != 0;
                self.plan.placement.measure((0..self.plan.cells()).map(used))
            }
        };
        let blocks = 0..self.level.stamps.len();
        let saturated = blocks.filter(|block| self.level.stamps.is_full(*block)).count() as u64;
        Measure { items, fill, error, saturated }
    }

    /// Checks I1 and I3.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        self.plan.checked()?;
        let _entered = self.gate.enter();
        self.level.cells.validate()?;
        let (now, oldest) = (self.now.load(Ordering::Relaxed), self.oldest.load(Ordering::Relaxed));
        for block in (0..self.level.stamps.len()).filter(|block| !self.level.is_empty(*block)) {
            if now == NEVER {
                return broken(format!("block {block} holds something, but there was no time yet"));
            }
            let age = self.level.stamps.age(block, now);
            if age > OLDEST || now - (age as i64) < oldest {
                return broken(format!("block {block} is older than the filter knows"));
            }
        }
        Ok(())
    }

    // ---- files

    /// One moment of the filter: its time, then for each of its arrays of cells how many there are, what is
    /// kept of a block, and what of a cell.
    pub(crate) fn still<T>(
        &self,
        look: impl FnOnce(Option<i64>, &[Frozen<'_>]) -> Result<T>,
    ) -> Result<T> {
        let _entered = self.gate.enter();
        let level = &self.level;
        let stored = |block| level.stored(block);
        let value = |cell| level.cells.get(cell);
        look(self.now(), &[Frozen { cells: level.placement.cells, stored: &stored, value: &value }])
    }

    /// A filter with the time, stamps and values that were kept.
    pub(crate) fn restored(
        plan: DecayingPlan,
        hasher: Hasher,
        now: Option<i64>,
        kept: &[Frozen<'_>],
    ) -> Result<Self> {
        let wrong = |got: &str| Err(Error::Field { name: "cells", got: got.to_owned() });
        let filter = Self::new(plan, hasher)?;
        let level = &filter.level;
        let [kept] = kept else { return wrong("another number of levels") };
        for cell in 0..level.placement.cells {
            match (kept.value)(cell) {
                0 => {}
                value if value > level.max => return wrong("a value beyond the largest"),
                value => level.cells.set(cell, value),
            }
        }
        let time = now.unwrap_or(0);
        let mut oldest = time;
        for block in 0..level.stamps.len() {
            level.stamps.restore(block, (kept.stored)(block));
            if level.stored(block) != (kept.stored)(block) {
                return wrong("the stamp of an empty block");
            }
            if !level.is_empty(block) {
                oldest = oldest.min(time - level.stamps.age(block, time) as i64);
            }
        }
        filter.now.store(now.unwrap_or(NEVER), Ordering::Release);
        filter.oldest.store(now.map_or(NEVER, |_| oldest), Ordering::Relaxed);
        filter.validate()?;
        Ok(filter)
    }
}

/// An array of cells as files keep it.
pub(crate) struct Frozen<'a> {
    /// How many cells there are.
    pub(crate) cells: u64,
    /// Stamp and state of a block.
    pub(crate) stored: &'a dyn Fn(u64) -> u32,
    /// Value of a cell.
    pub(crate) value: &'a dyn Fn(u64) -> u32,
}
