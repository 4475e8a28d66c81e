//! The cells of one key at once: what a blocked layout makes of `try_change` and `get`.
//!
//! They lie in one partition, so that is found once. Base counters of 1, 2, 4, 8, 16 or 32 bits are WHOLE:
//! none crosses a word, and one load and one store do.

use super::overflow::Overflow;
use super::{DynamicCells, Partition};
use crate::cells::growing::{Refused, STUCK};
use crate::cells::packed;
use crossbeam_epoch::{self as epoch, Guard};
use std::sync::atomic::Ordering;

impl DynamicCells {
    #[inline(always)]
    fn base_at<const WHOLE: bool>(&self, bit: u64) -> u64 {
        if !WHOLE {
            return packed::read(self.base.atomics(), bit, self.shape.width);
        }
        debug_assert!(bit / 64 < self.base.atomics().len() as u64);
        // SAFETY: a cut locates cells below m, and the base has room for all of them.
        let word = unsafe { self.base.atomics().get_unchecked((bit >> 6) as usize) };
        (word.load(Ordering::Relaxed) >> (bit & 63)) & self.base_max()
    }

    /// Adds `by` to a base counter that has room for it.
    #[inline(always)]
    fn add_base<const WHOLE: bool>(&self, entry: &Partition, bit: u64, low: u64, by: u64) {
        if !WHOLE {
            return self.write_base(entry, bit, low + by);
        }
        // SAFETY: as above.
        let word = unsafe { self.base.atomics().get_unchecked((bit >> 6) as usize) };
        word.store(word.load(Ordering::Relaxed) + (by << (bit & 63)), Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn raise_together<const WHOLE: bool>(
        &self,
        cells: &[u64],
        by: u64,
    ) -> std::result::Result<bool, (usize, Refused)> {
        let Some(first) = cells.first() else { return Ok(false) };
        let (partition, slot) = self.cut.locate(*first);
        let entry = self.partition(partition);
        if entry.version.is_locked() {
            return Err((0, Refused::Busy));
        }
        let (x, max) = (self.shape.width, self.base_max());
        // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
        let overflow = entry.overflow(unsafe { epoch::unprotected() });
        // Where within the base counter the threshold lies: passing it is noticed on the longer way.
        let edge = overflow.map_or(0, |overflow| overflow.threshold & max);
        let mut new = false;
        for (i, cell) in cells.iter().enumerate() {
            let slot = slot + (cell - first);
            let bit = self.bit(partition, slot);
            let low = self.base_at::<WHOLE>(bit);
            let raised = low.saturating_add(by);
            let passes = low < edge && edge <= raised;
            // Most adds end here, without a look at the overflow counter.
            if raised <= max && !passes && (low != 0 || overflow.is_none()) {
                self.add_base::<WHOLE>(entry, bit, low, by);
                new |= low == 0;
                continue;
            }
            let Some(overflow) = overflow else { return Err((i, Refused::NoRoom)) };
            let high = overflow.get(slot);
            let old = high << x | low;
            let value = if old == STUCK { old } else { old.saturating_add(by) };
            if value >> x == high {
                self.add_base::<WHOLE>(entry, bit, low, value - old);
            } else {
                if !overflow.fits(slot, value >> x) {
                    return Err((i, Refused::NoRoom));
                }
                entry.version.change(|| {
                    packed::write(self.base.atomics(), bit, x, value & max);
                    overflow.set(slot, value >> x);
                });
            }
            overflow.moved(old, value);
            new |= old == 0;
        }
        Ok(new)
    }

    /// Base and overflow counters: under skew most keys that come have both.
    #[inline(always)]
    pub(super) fn prefetch_together(&self, cells: &[u64], guard: &Guard) {
        let Some(first) = cells.first() else { return };
        let (partition, slot) = self.cut.locate(*first);
        let overflow = self.partition(partition).overflow(guard);
        // A block of narrow counters is one line.
        let lines = if self.shape.width > 4 { cells } else { &cells[..1] };
        for cell in lines {
            let bit = self.bit(partition, slot + (cell - first));
            self.base.prefetch((bit >> 6) as usize);
        }
        if let Some(overflow) = overflow {
            cells.iter().for_each(|cell| overflow.prefetch(slot + (cell - first)));
        }
    }

    #[inline(always)]
    pub(super) fn smallest_together<const WHOLE: bool>(&self, cells: &[u64], guard: &Guard) -> u64 {
        let Some(first) = cells.first() else { return 0 };
        let (partition, slot) = self.cut.locate(*first);
        let entry = self.partition(partition);
        // A loop for each case, and no closures in them: they are not inlined.
        entry.version.read(|| {
            let mut least = u64::MAX;
            let overflow = entry.overflow(guard);
            match overflow.and_then(Overflow::even) {
                None => {
                    for cell in cells {
                        let slot = slot + (cell - first);
                        let low = self.base_at::<WHOLE>(self.bit(partition, slot));
                        let high = overflow.map_or(0, |overflow| overflow.get(slot));
                        least = least.min(high << self.shape.width | low);
                    }
                }
                Some((fields, width)) => {
                    for cell in cells {
                        let slot = slot + (cell - first);
                        let low = self.base_at::<WHOLE>(self.bit(partition, slot));
                        let high = packed::read(fields, slot * u64::from(width), width);
                        least = least.min(high << self.shape.width | low);
                    }
                }
            }
            least
        })
    }
}
