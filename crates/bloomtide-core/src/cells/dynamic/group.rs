//! Keys whose counters lie in one block: those of a batch, and a single one.
//!
//! An add is short unless one of the key's base counters is zero or has no room, or is about to pass the
//! threshold of shrinking; each of these is seldom, but hard to foresee. So there is one question for all of
//! the key's counters. Of the overflow counters, which are mostly far away, only those are looked at that
//! a carry or the threshold goes to, or that may say that the key is new. What else there is (no room, a
//! rebuild) is left to `try_change`.
//!
//! Loops have no closures: a function that is compiled for newer processors does not inline all of them.

use super::overflow::Overflow;
use super::{DynamicCells, Partition};
use crate::cells::growing::{GrowingCells, Stopped, raise_key};
use crossbeam_epoch::{self as epoch, Guard};
use std::ops::Range;

/// Base counters up to this size stay in a core's own cache, where asking ahead only costs.
const IN_CACHE: u64 = 1 << 20;

/// Compiles a call for each number of hashes, and for whole base counters and others.
macro_rules! by_hashes {
    ($hashes:expr, $this:ident.$method:ident($($argument:expr),*)) => {
        match ($hashes, $this.whole) {
            (1, _) => $this.$method::<1, N, false>($($argument),*),
            (2, _) => $this.$method::<2, N, false>($($argument),*),
            (4, true) => $this.$method::<4, N, true>($($argument),*),
            (4, false) => $this.$method::<4, N, false>($($argument),*),
            (_, true) => $this.$method::<8, N, true>($($argument),*),
            (_, false) => $this.$method::<8, N, false>($($argument),*),
        }
    };
}

/// Whether the processor shifts without flags.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn shifts_well() -> bool {
    is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("lzcnt")
}

impl DynamicCells {
    pub(super) fn raise_keys<const N: usize>(
        &self,
        cells: &[[u64; N]],
        by: &[u64; N],
        keys: Range<usize>,
        new: &mut [bool],
    ) -> Result<(), Stopped> {
        #[cfg(target_arch = "x86_64")]
        if shifts_well() {
            #[target_feature(enable = "bmi1,bmi2,lzcnt")]
            unsafe fn newer<const N: usize>(
                this: &DynamicCells,
                cells: &[[u64; N]],
                by: &[u64; N],
                keys: Range<usize>,
                new: &mut [bool],
            ) -> Result<(), Stopped> {
                by_hashes!(cells.len(), this.raise_each(cells, by, keys, new))
            }
            // SAFETY: the processor has the instructions.
            return unsafe { newer(self, cells, by, keys, new) };
        }
        by_hashes!(cells.len(), self.raise_each(cells, by, keys, new))
    }

    pub(super) fn smallest_keys<const N: usize>(
        &self,
        cells: &[[u64; N]],
        least: &mut [u64; N],
        guard: &Guard,
    ) {
        #[cfg(target_arch = "x86_64")]
        if shifts_well() {
            #[target_feature(enable = "bmi1,bmi2,lzcnt")]
            unsafe fn newer<const N: usize>(
                this: &DynamicCells,
                cells: &[[u64; N]],
                least: &mut [u64; N],
                guard: &Guard,
            ) {
                by_hashes!(cells.len(), this.smallest_each(cells, least, guard));
            }
            // SAFETY: the processor has the instructions.
            return unsafe { newer(self, cells, least, guard) };
        }
        by_hashes!(cells.len(), self.smallest_each(cells, least, guard));
    }

    #[inline(always)]
    fn raise_each<const K: usize, const N: usize, const WHOLE: bool>(
        &self,
        cells: &[[u64; N]],
        by: &[u64; N],
        keys: Range<usize>,
        new: &mut [bool],
    ) -> Result<(), Stopped> {
        for key in keys {
            let mut own = [0; K];
            for (own, row) in own.iter_mut().zip(cells) {
                *own = row[key];
            }
            new[key] = match self.raise_short_key::<K, WHOLE>(own, by[key]) {
                Some(new) => new,
                None => raise_key(self, cells, key, by[key])?,
            };
        }
        Ok(())
    }

    /// Adds to the cells of one key, if that is short: whether one of them was zero. None if it is not, and
    /// then nothing was changed.
    #[inline(always)]
    pub(super) fn raise_short_key<const K: usize, const WHOLE: bool>(
        &self,
        cells: [u64; K],
        by: u64,
    ) -> Option<bool> {
        let (x, max) = (u64::from(self.shape.width), self.base_max());
        let (partition, slot) = self.cut.locate(cells[0]);
        let entry = self.partition(partition);
        // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
        let (overflow, edged) = entry.edged(unsafe { epoch::unprotected() });
        let start = self.bit(partition, slot);
        // One question for all cells, since each answer alone is hard to foresee.
        let (longer, zero) = if x <= 6 {
            // Bit v of `seen` says that a counter is v.
            let mut seen = 0u64;
            for cell in cells {
                seen |= 1 << self.low_of::<WHOLE>(cell, cells[0], start);
            }
            let mut refused = u64::MAX << (max + 1).saturating_sub(by);
            if let (Some(overflow), true) = (overflow, edged) {
                let edge = overflow.threshold & max;
                refused |= (1 << edge) - (1 << edge.saturating_sub(by));
            }
            (seen & refused != 0, seen & 1 != 0)
        } else {
            let (mut least, mut most) = (max, 0);
            for cell in cells {
                let low = self.low_of::<WHOLE>(cell, cells[0], start);
                (least, most) = (least.min(low), most.max(low));
            }
            (edged || by > max || most + by > max, least == 0)
        };
        if entry.version.is_locked() {
            return None;
        }
        if longer {
            let overflow = overflow?;
            return self.raise_carrying::<K, WHOLE>(entry, overflow, (start, slot), cells, by);
        }
        let mut new = zero;
        if let (Some(overflow), true) = (overflow, zero) {
            // Only the overflow counter of one that is zero knows whether the key is new: no branch, since it
            // would be hard to foresee.
            new = false;
            for cell in cells {
                let from_first = cell - cells[0];
                new |= overflow.get(slot + from_first)
                    | self.low_of::<WHOLE>(cell, cells[0], start)
                    == 0;
            }
        }
        for cell in cells {
            self.raise_low::<WHOLE>(entry, self.bit_of::<WHOLE>(cell, cells[0], start), by);
        }
        Some(new)
    }

    /// Adds to the cells of a key, of which the first is at `slot` of its partition. Whether one of them was
    /// zero; None if one has no room, and then nothing was changed.
    #[inline(always)]
    fn raise_carrying<const K: usize, const WHOLE: bool>(
        &self,
        entry: &Partition,
        overflow: &Overflow,
        (start, slot): (u64, u64),
        cells: [u64; K],
        by: u64,
    ) -> Option<bool> {
        let (x, max) = (self.shape.width, self.base_max());
        // A base counter may pass the threshold here without a carry; nowhere if this is zero.
        let edge = overflow.threshold & max;
        // No sum below overflows.
        let (mut new, mut refused) = (false, by > u64::from(u32::MAX));
        for cell in cells {
            let slot = slot + (cell - cells[0]);
            let low = self.low_of::<WHOLE>(cell, cells[0], start);
            let sum = low.wrapping_add(by);
            if sum > max || low == 0 && !new {
                let high = overflow.get(slot);
                new |= high | low == 0;
                refused |= !overflow.fits(high.wrapping_add(sum >> x));
            }
        }
        if refused {
            return None;
        }
        for cell in cells {
            let slot = slot + (cell - cells[0]);
            let bit = self.bit_of::<WHOLE>(cell, cells[0], start);
            let low = self.low_of::<WHOLE>(cell, cells[0], start);
            let sum = low + by;
            if sum <= max {
                self.raise_low::<WHOLE>(entry, bit, by);
                if low < edge && edge <= sum {
                    let high = overflow.get(slot) << x;
                    overflow.moved(high | low, high | sum);
                }
                continue;
            }
            let high = overflow.get(slot);
            self.set_both(entry, overflow, (bit, slot), (high << x) + sum);
            overflow.moved(high << x | low, (high << x) + sum);
        }
        Some(new)
    }

    /// Where the base counter of a cell begins; that of the key's first cell is at `start`. Of whole ones the
    /// cell alone says it: then nothing waits for the partition to be found.
    #[inline(always)]
    fn bit_of<const WHOLE: bool>(&self, cell: u64, first: u64, start: u64) -> u64 {
        if WHOLE {
            return cell << self.shape.width.trailing_zeros();
        }
        start + (cell - first) * u64::from(self.shape.width)
    }

    /// The base counter of a cell.
    #[inline(always)]
    fn low_of<const WHOLE: bool>(&self, cell: u64, first: u64, start: u64) -> u64 {
        let bit = self.bit_of::<WHOLE>(cell, first, start);
        if WHOLE { self.low_in_word(bit) } else { self.low(bit) }
    }

    /// Asks for the line of the base counters, of which a block of narrow ones is one. Overflow counters are
    /// asked for only where there are many: the few of a small filter stay near.
    #[inline(always)]
    pub(super) fn prefetch_key(&self, cells: &[u64], guard: &Guard) {
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
    fn smallest_each<const K: usize, const N: usize, const WHOLE: bool>(
        &self,
        cells: &[[u64; N]],
        least: &mut [u64; N],
        guard: &Guard,
    ) {
        let x = u64::from(self.shape.width);
        for (key, least) in least.iter_mut().enumerate() {
            let first = cells[0][key];
            let (partition, slot) = self.cut.locate(first);
            let entry = self.partition(partition);
            let start = self.bit(partition, slot);
            // No closure around all this: it would not be inlined.
            loop {
                let before = entry.version.begin();
                *least = u64::MAX;
                if let Some(overflow) = entry.overflow(guard) {
                    for row in cells.iter().take(K) {
                        let from_first = row[key] - first;
                        let low = self.low_of::<WHOLE>(row[key], first, start);
                        let high = overflow.get(slot + from_first);
                        *least = (*least).min(high << x | low);
                    }
                } else {
                    for row in cells.iter().take(K) {
                        *least = (*least).min(self.low_of::<WHOLE>(row[key], first, start));
                    }
                }
                if entry.version.held(before) {
                    break;
                }
            }
        }
    }
}
