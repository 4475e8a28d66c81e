//! The cells of one key at once: what a blocked layout makes of `try_change` and `get`.
//!
//! They lie in one partition, so that is found once. Base counters of 1, 2, 4, 8, 16 or 32 bits are WHOLE:
//! none crosses a word, and one load and one store do.

use super::overflow::Overflow;
use super::{DynamicCells, Partition};
use crate::cells::growing::{GrowingCells, Refused, STUCK};
use crate::cells::packed;
use crossbeam_epoch::{self as epoch, Guard};
use std::sync::atomic::Ordering;

/// Base counters up to this size stay in a core's own cache, where asking ahead only costs.
const IN_CACHE: u64 = 1 << 20;

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

    /// The same, whether or not base counters are whole.
    #[inline(always)]
    pub(super) fn base_of_any(&self, bit: u64) -> u64 {
        if self.shape.width.is_power_of_two() {
            self.base_at::<true>(bit)
        } else {
            self.base_at::<false>(bit)
        }
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

    /// Adds `by` to the cells of one key.
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
        // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
        let overflow = entry.overflow(unsafe { epoch::unprotected() });
        let start = self.bit(partition, slot);
        if WHOLE && by < self.base_max() {
            // One question for all cells, because each answer alone is hard to foresee.
            let has = u64::from(overflow.is_some());
            let edge = overflow.map_or(0, |overflow| overflow.threshold & self.base_max());
            let (mut longer, mut new) = (false, false);
            for cell in cells {
                let bit = start + (cell - first) * u64::from(self.shape.width);
                let low = self.base_at::<WHOLE>(bit);
                // Zero below an overflow counter, or no room: one comparison, since 0 - 1 is large.
                longer |= low.wrapping_sub(has) > self.base_max() - by - has;
                longer |= edge.wrapping_sub(low + 1) < by;
                new |= low == 0;
            }
            if !longer {
                for cell in cells {
                    let bit = start + (cell - first) * u64::from(self.shape.width);
                    self.add_base::<WHOLE>(entry, bit, 0, by);
                }
                return Ok(new);
            }
        }
        self.raise_longer::<WHOLE>(entry, overflow, (start, slot), cells, by)
    }

    /// The same where a cell's overflow counter matters.
    #[inline(never)]
    fn raise_longer<const WHOLE: bool>(
        &self,
        entry: &Partition,
        overflow: Option<&Overflow>,
        (start, slot): (u64, u64),
        cells: &[u64],
        by: u64,
    ) -> std::result::Result<bool, (usize, Refused)> {
        let (x, max) = (self.shape.width, self.base_max());
        let mut new = false;
        for (i, cell) in cells.iter().enumerate() {
            let from_first = cell - cells[0];
            let bit = start + from_first * u64::from(x);
            let low = self.base_at::<WHOLE>(bit);
            let Some(overflow) = overflow else {
                if low.saturating_add(by) > max {
                    return Err((i, Refused::NoRoom));
                }
                self.add_base::<WHOLE>(entry, bit, low, by);
                new |= low == 0;
                continue;
            };
            let slot = slot + from_first;
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

    /// The line of the base counters, of which a block of narrow ones is one. Overflow counters are asked
    /// for only where there are many: the few of a small filter stay near.
    #[inline(always)]
    pub(super) fn prefetch_together(&self, cells: &[u64], guard: &Guard) {
        let Some(first) = cells.first() else { return };
        if self.whole {
            let lines = if self.shape.width > 4 { cells } else { &cells[..1] };
            let word = |cell: &u64| (cell * u64::from(self.shape.width)) >> 6;
            lines.iter().for_each(|cell| self.base.prefetch(word(cell) as usize));
            if self.base.bytes() <= IN_CACHE {
                return;
            }
        } else {
            cells.iter().for_each(|cell| self.prefetch(*cell));
        }
        let (partition, slot) = self.cut.locate(*first);
        if let Some(overflow) = self.partition(partition).overflow(guard) {
            cells.iter().for_each(|cell| overflow.prefetch(slot + (cell - first)));
        }
    }

    #[inline(always)]
    pub(super) fn smallest_together<const WHOLE: bool>(&self, cells: &[u64], guard: &Guard) -> u64 {
        let Some(first) = cells.first() else { return 0 };
        let (partition, slot) = self.cut.locate(*first);
        let entry = self.partition(partition);
        entry.version.read(|| {
            let mut least = u64::MAX;
            let overflow = entry.overflow(guard);
            for cell in cells {
                let slot = slot + (cell - first);
                let low = self.base_at::<WHOLE>(self.bit(partition, slot));
                let high = overflow.map_or(0, |overflow| overflow.get(slot));
                least = least.min(high << self.shape.width | low);
            }
            least
        })
    }
}
