//! Rebuilds: new overflow counters for one partition, with the values of the old ones.
//!
//! Under skew few counters have overflowed, so only those are looked at one by one; the others matter
//! only while the threshold of shrinking lies within the base counters, and are then counted by words.

use super::DynamicCells;
use super::overflow::Overflow;
use crate::cells::packed;
use crate::error::Result;
use crossbeam_epoch::{self as epoch, Owned, Shared};
use std::sync::atomic::Ordering;

impl DynamicCells {
    /// T(y - 1): while a counter is at or above it, y stays. At least what (1 + s) demands, rounded up.
    pub(super) fn threshold(&self, y: u32) -> u64 {
        let (x, s) = (self.shape.width, self.shape.shrink);
        let threshold = match y {
            0 => return 0,
            1 => s * (self.base_max() as f64),
            _ => (1u64 << (x + y - 2)) as f64 * (1.0 + s),
        };
        threshold.ceil() as u64
    }

    /// Cells of a partition; the last one may have fewer than the others.
    pub(super) fn size(&self, partition: u64) -> u64 {
        let range = self.cut.range(partition);
        range.end - range.start
    }

    /// Makes room for a value of `need` overflow bits; how many cells that moved.
    pub(super) fn widen(&self, partition: u64, need: u32) -> Result<u64> {
        let guard = &epoch::pin();
        let old = self.partition(partition).overflow(guard);
        let y = old.map_or(0, |old| old.width).max(need);
        self.put(partition, self.lay(partition, y, old)?);
        Ok(self.size(partition))
    }

    /// Gives back what the rule of shrinking allows; how many cells that moved.
    pub(super) fn narrow(&self, partition: u64) -> Result<u64> {
        let guard = &epoch::pin();
        let Some(old) = self.partition(partition).overflow(guard) else { return Ok(0) };
        let mut y = old.width;
        while y > 0 && self.above(partition, old, self.threshold(y)) == 0 {
            y -= 1;
        }
        let made = match y {
            0 => None,
            _ => Some(self.lay(partition, y, Some(old))?),
        };
        self.put(partition, made);
        Ok(self.size(partition))
    }

    /// New overflow counters of y bits for a partition with the values of the `old` ones.
    fn lay(&self, partition: u64, y: u32, old: Option<&Overflow>) -> Result<Overflow> {
        let mut made = Overflow::zeroed(self.size(partition), y)?;
        let (threshold, mut above) = (self.threshold(y), 0);
        if let Some(old) = old {
            let from = threshold >> self.shape.width;
            old.each_set(|slot, high| {
                made.set(slot, high);
                above += u64::from(high >= from);
            });
        }
        if threshold == 0 || threshold & self.base_max() != 0 {
            self.recount(partition, &mut made);
        } else {
            // Overflow counters alone say who is at or above it.
            made.threshold = threshold;
            made.above.store(above, Ordering::Relaxed);
        }
        Ok(made)
    }

    /// Sets the threshold and counts the counters at or above it.
    pub(super) fn recount(&self, partition: u64, overflow: &mut Overflow) {
        overflow.threshold = self.threshold(overflow.width);
        let above = self.above(partition, overflow, overflow.threshold);
        overflow.above.store(above, Ordering::Relaxed);
    }

    /// How many counters are at or above a threshold: by their base alone, and then those that are above it
    /// with their overflow.
    pub(super) fn above(&self, partition: u64, overflow: &Overflow, threshold: u64) -> u64 {
        let x = self.shape.width;
        let mut above = self.lows_from(partition, threshold);
        overflow.each_set(|slot, high| {
            let low = packed::read(self.base.atomics(), self.bit(partition, slot), x);
            above += u64::from(high << x | low >= threshold) - u64::from(low >= threshold);
        });
        above
    }

    /// How many base counters of a partition are at or above a value.
    fn lows_from(&self, partition: u64, least: u64) -> u64 {
        let (x, cells) = (self.shape.width, self.size(partition));
        if least == 0 {
            return cells;
        }
        if least > self.base_max() {
            return 0;
        }
        if !x.is_power_of_two() {
            let low = |slot| packed::read(self.base.atomics(), self.bit(partition, slot), x);
            return (0..cells).filter(|slot| low(*slot) >= least).count() as u64;
        }
        // Every other counter of a word, so that each has as many bits again above it: adding 2^x - least
        // carries into them where the counter is at or above. Places behind the last cell are zero.
        let first = (self.bit(partition, 0) >> 6) as usize;
        let words = packed::words_for(cells * u64::from(x)) as usize;
        let ones = u64::MAX / packed::largest(2 * x);
        let (lanes, carries) = (ones * self.base_max(), ones << x);
        let add = ones * (self.base_max() + 1 - least);
        let count = |word: u64| {
            let from = |half: u64| ((half & lanes) + add) & carries;
            u64::from(from(word).count_ones() + from(word >> x).count_ones())
        };
        let words = &self.base.atomics()[first..first + words];
        words.iter().map(|word| count(word.load(Ordering::Relaxed))).sum()
    }

    /// Exchanges a partition's overflow counters; readers of the old ones keep them until they are done.
    pub(super) fn put(&self, partition: u64, overflow: impl Into<Option<Overflow>>) {
        let entry = self.partition(partition);
        let guard = &epoch::pin();
        let new = overflow.into().map_or(Shared::null(), |made| {
            let edged = made.threshold & self.base_max() != 0;
            Owned::new(made).into_shared(guard).with_tag(usize::from(edged))
        });
        let old = {
            let _changing = entry.version.write();
            entry.overflow.swap(new, Ordering::AcqRel, guard)
        };
        if !old.is_null() {
            // SAFETY: it was unlinked above, and only this writer could have unlinked it.
            unsafe { guard.defer_destroy(old) };
        }
    }
}
