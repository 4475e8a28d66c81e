//! A group of keys at once: the blocks of a batch (`block.rs` has those of one key).
//!
//! An add to counters of x <= 4 bits is short unless one of the key's base counters is zero or has no room,
//! or is about to pass the threshold of shrinking; each of these is seldom, but hard to foresee. So all
//! the key's counters are asked at once: bit v of `seen` says that one of them is v.

use super::overflow::{Even, Overflow};
use super::{DynamicCells, Partition};
use crate::cells::growing::{Refused, STUCK, Stopped};
use crossbeam_epoch::{self as epoch, Guard};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A base counter: its word and its place in it.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    word: &'a AtomicU64,
    shift: u32,
}

impl Base<'_> {
    #[inline(always)]
    pub(super) fn get(self, max: u64) -> u64 {
        (self.word.load(Ordering::Relaxed) >> self.shift) & max
    }

    /// Adds to a counter with room for it; the caller is the only writer.
    #[inline(always)]
    pub(super) fn add(self, by: u64) {
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word + (by << self.shift), Ordering::Relaxed);
    }

    /// Gives a counter another value.
    #[inline(always)]
    pub(super) fn set(self, value: u64, max: u64) {
        let word = self.word.load(Ordering::Relaxed) & !(max << self.shift);
        self.word.store(word | value << self.shift, Ordering::Relaxed);
    }
}

/// Compiles a method three times over, by the number of hashes, and calls the right one.
macro_rules! by_hashes {
    ($newer:literal, $cells:expr, $this:ident.$method:ident($($argument:expr),*)) => {
        match $cells.len() {
            1 => $this.$method::<1, N, $newer>($cells, $($argument),*),
            2 => $this.$method::<2, N, $newer>($cells, $($argument),*),
            4 => $this.$method::<4, N, $newer>($cells, $($argument),*),
            _ => $this.$method::<8, N, $newer>($cells, $($argument),*),
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
    /// Whether blocks of so many cells a key can be taken here.
    #[inline(always)]
    pub(super) fn takes_groups(&self, hashes: usize) -> bool {
        self.whole && matches!(hashes, 1 | 2 | 4 | 8)
    }

    /// Whether they can be raised here.
    #[inline(always)]
    pub(super) fn raises_groups(&self, hashes: usize) -> bool {
        self.takes_groups(hashes) && self.shape.width <= 4
    }

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
                by_hashes!(true, cells, this.raise_each(by, keys, new))
            }
            // SAFETY: the processor has the instructions.
            return unsafe { newer(self, cells, by, keys, new) };
        }
        by_hashes!(false, cells, self.raise_each(by, keys, new))
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
                by_hashes!(true, cells, this.smallest_each(least, guard));
            }
            // SAFETY: the processor has the instructions.
            return unsafe { newer(self, cells, least, guard) };
        }
        by_hashes!(false, cells, self.smallest_each(least, guard));
    }

    /// The base counter of a cell where `takes_groups`.
    #[inline(always)]
    pub(super) fn base_of(&self, cell: u64) -> Base<'_> {
        let bit = cell << self.shape.width.trailing_zeros();
        debug_assert!(bit / 64 < self.base.atomics().len() as u64);
        // SAFETY: cells are below m, and the base has room for all of them.
        let word = unsafe { self.base.atomics().get_unchecked((bit >> 6) as usize) };
        Base { word, shift: (bit & 63) as u32 }
    }

    #[inline(always)]
    fn raise_each<const K: usize, const N: usize, const NEWER: bool>(
        &self,
        cells: &[[u64; N]],
        by: &[u64; N],
        keys: Range<usize>,
        new: &mut [bool],
    ) -> Result<(), Stopped> {
        let max = self.base_max();
        for key in keys {
            let by = by[key];
            let own: [u64; K] = std::array::from_fn(|i| cells[i][key]);
            let (partition, slot) = self.cut.locate(own[0]);
            let entry = self.partition(partition);
            if entry.version.is_locked() {
                return Err(Stopped { key, done: 0, refused: Refused::Busy });
            }
            // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
            let (overflow, edged) = entry.edged(unsafe { epoch::unprotected() });
            // Those without room.
            let mut longer = u64::MAX << (max + 1).saturating_sub(by);
            if let Some(overflow) = overflow.filter(|_| edged) {
                let edge = overflow.threshold & max;
                longer |= (1 << edge) - (1 << edge.saturating_sub(by));
            }
            let bases: [Base<'_>; K] = own.map(|cell| self.base_of(cell));
            let seen = bases.iter().fold(0, |seen, base| seen | 1u64 << base.get(max));
            if seen & (longer | u64::from(overflow.is_some())) == 0 {
                bases.iter().for_each(|base| base.add(by));
                new[key] = seen & 1 != 0;
                continue;
            }
            let even = overflow.and_then(Overflow::even);
            // Only the overflow counter of one that is zero knows whether the key is new.
            if seen & longer == 0
                && let Some(even) = even
            {
                let slots = own.map(|cell| slot + (cell - own[0]));
                new[key] = self.any_zero(even, &bases, &slots);
                bases.iter().for_each(|base| base.add(by));
                continue;
            }
            let raised = match even {
                Some(even) => self.raise_longer_at_best::<K, NEWER>(entry, even, &own, slot, by),
                None => self.raise_together::<true>(&own, by),
            };
            new[key] = raised.map_err(|(done, refused)| Stopped { key, done, refused })?;
        }
        Ok(())
    }

    /// Whether a counter of a key is zero in both parts: without a branch, which would be hard to foresee.
    #[inline(always)]
    fn any_zero<const K: usize>(
        &self,
        even: Even<'_>,
        bases: &[Base<'_>; K],
        slots: &[u64; K],
    ) -> bool {
        let zero = |(base, slot): (&Base<'_>, &u64)| {
            // SAFETY: a cut locates cells within their partition.
            let high = unsafe { even.get(*slot) };
            (high | base.get(self.base_max())) == 0
        };
        bases.iter().zip(slots).fold(false, |any, of| any | zero(of))
    }

    /// `raise_even`, compiled for the processor at hand, and out of the way of the shorter one.
    #[inline(always)]
    fn raise_longer_at_best<const K: usize, const NEWER: bool>(
        &self,
        entry: &Partition,
        even: Even<'_>,
        cells: &[u64; K],
        slot: u64,
        by: u64,
    ) -> Result<bool, (usize, Refused)> {
        #[cfg(target_arch = "x86_64")]
        if NEWER {
            #[inline(never)]
            #[target_feature(enable = "bmi1,bmi2,lzcnt")]
            unsafe fn newer<const K: usize>(
                this: &DynamicCells,
                entry: &Partition,
                even: Even<'_>,
                cells: &[u64; K],
                slot: u64,
                by: u64,
            ) -> Result<bool, (usize, Refused)> {
                this.raise_even(entry, even, cells, slot, by)
            }
            // SAFETY: NEWER says that the processor has the instructions.
            return unsafe { newer(self, entry, even, cells, slot, by) };
        }
        self.raise_even(entry, even, cells, slot, by)
    }

    /// Adds to the cells of a key, of which the first is at `slot` of a partition.
    #[inline(always)]
    fn raise_even<const K: usize>(
        &self,
        entry: &Partition,
        even: Even<'_>,
        cells: &[u64; K],
        slot: u64,
        by: u64,
    ) -> Result<bool, (usize, Refused)> {
        let max = self.base_max();
        let mut new = false;
        for (done, cell) in cells.iter().enumerate() {
            let base = self.base_of(*cell);
            let slot = slot + (cell - cells[0]);
            let low = base.get(max);
            // SAFETY: a cut locates cells within their partition.
            let high = unsafe { even.get(slot) };
            let old = high << self.shape.width | low;
            let value = old.saturating_add(by);
            if by <= max - low {
                base.add(by);
            } else if old == STUCK {
                continue;
            } else if value >> self.shape.width > even.max() {
                return Err((done, Refused::NoRoom));
            } else {
                let _changing = entry.version.write();
                base.set(value & max, max);
                even.set(slot, value >> self.shape.width);
            }
            new |= old == 0;
            even.of.moved(old, value);
        }
        Ok(new)
    }

    #[inline(always)]
    fn smallest_each<const K: usize, const N: usize, const NEWER: bool>(
        &self,
        cells: &[[u64; N]],
        least: &mut [u64; N],
        guard: &Guard,
    ) {
        let (x, max) = (self.shape.width, self.base_max());
        for (key, least) in least.iter_mut().enumerate() {
            let own: [u64; K] = std::array::from_fn(|i| cells[i][key]);
            let bases: [Base<'_>; K] = own.map(|cell| self.base_of(cell));
            let (partition, slot) = self.cut.locate(own[0]);
            let version = &self.partition(partition).version;
            // No closure around all this: it would not be inlined.
            loop {
                let before = version.begin();
                let mut smallest = u64::MAX;
                match self.partition(partition).overflow(guard) {
                    None => {
                        for base in bases {
                            smallest = smallest.min(base.get(max));
                        }
                    }
                    Some(overflow) => match overflow.even() {
                        Some(even) => {
                            for (base, cell) in bases.iter().zip(own) {
                                // SAFETY: a cut locates cells within their partition.
                                let high = unsafe { even.get(slot + (cell - own[0])) };
                                smallest = smallest.min(high << x | base.get(max));
                            }
                        }
                        None => {
                            for (base, cell) in bases.iter().zip(own) {
                                let high = overflow.get(slot + (cell - own[0]));
                                smallest = smallest.min(high << x | base.get(max));
                            }
                        }
                    },
                }
                if version.held(before) {
                    *least = smallest;
                    break;
                }
            }
        }
    }
}
