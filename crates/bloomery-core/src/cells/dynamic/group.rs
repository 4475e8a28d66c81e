//! A group of keys at once: the blocks of a batch (`block.rs` has those of one key).
//!
//! An add to counters of x <= 4 bits is short unless one of the key's base counters is zero or full,
//! or about to pass the threshold of shrinking; each of these is seldom, but hard to foresee. So all
//! the key's counters are asked at once: bit v of `seen` says that one of them is v.

use super::overflow::{Even, Overflow};
use super::{DynamicCells, Partition};
use crate::cells::growing::{Refused, Stopped};
use crate::cells::packed;
use crossbeam_epoch::{self as epoch, Guard};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A base counter: its word and its place in it.
#[derive(Clone, Copy)]
struct Base<'a> {
    word: &'a AtomicU64,
    shift: u32,
}

impl Base<'_> {
    #[inline(always)]
    fn get(self, max: u64) -> u64 {
        (self.word.load(Ordering::Relaxed) >> self.shift) & max
    }

    /// Adds to a counter with room for it; the caller is the only writer.
    #[inline(always)]
    fn add(self, by: u64) {
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word + (by << self.shift), Ordering::Relaxed);
    }

    /// Adds one, or brings a full counter to zero. Same caller.
    #[inline(always)]
    fn raise(self, full: bool, max: u64) {
        let step = if full { max.wrapping_neg() } else { 1 };
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word.wrapping_add(step << self.shift), Ordering::Relaxed);
    }
}

/// Compiles a method for the usual numbers of hashes K and widths X, and calls the right one; X is 0 where
/// the width is known at run time only.
macro_rules! by_shape {
    ($newer:literal, $cells:ident, $this:ident.$method:ident($($argument:expr),*)) => {
        match ($cells.len(), $this.shape.width) {
            (4, 4) => $this.$method::<4, 4, N, $newer>($cells, $($argument),*),
            (8, 4) => $this.$method::<8, 4, N, $newer>($cells, $($argument),*),
            (1, _) => $this.$method::<1, 0, N, $newer>($cells, $($argument),*),
            (2, _) => $this.$method::<2, 0, N, $newer>($cells, $($argument),*),
            (4, _) => $this.$method::<4, 0, N, $newer>($cells, $($argument),*),
            _ => $this.$method::<8, 0, N, $newer>($cells, $($argument),*),
        }
    };
}

/// Whether the processor shifts without flags.
#[inline(always)]
fn shifts_well() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("lzcnt");
    #[cfg(not(target_arch = "x86_64"))]
    false
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
        keys: Range<usize>,
        new: &mut [bool],
    ) -> Result<(), Stopped> {
        assert!(keys.end <= N);
        #[cfg(target_arch = "x86_64")]
        if shifts_well() {
            #[target_feature(enable = "bmi1,bmi2,lzcnt")]
            unsafe fn newer<const N: usize>(
                this: &DynamicCells,
                cells: &[[u64; N]],
                keys: Range<usize>,
                new: &mut [bool],
            ) -> Result<(), Stopped> {
                by_shape!(true, cells, this.raise_each(keys, new))
            }
            // SAFETY: the processor has the instructions.
            return unsafe { newer(self, cells, keys, new) };
        }
        by_shape!(false, cells, self.raise_each(keys, new))
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
                by_shape!(true, cells, this.smallest_each(least, guard));
            }
            // SAFETY: the processor has the instructions.
            return unsafe { newer(self, cells, least, guard) };
        }
        by_shape!(false, cells, self.smallest_each(least, guard));
    }

    /// x, known to the compiler where X is.
    #[inline(always)]
    fn width<const X: u32>(&self) -> u32 {
        if X == 0 { self.shape.width } else { X }
    }

    /// The base counter of a cell where `takes_groups`.
    #[inline(always)]
    fn base_of<const X: u32>(&self, cell: u64) -> Base<'_> {
        let bit = cell << self.width::<X>().trailing_zeros();
        debug_assert!(bit / 64 < self.base.atomics().len() as u64);
        // SAFETY: cells are below m, and the base has room for all of them.
        let word = unsafe { self.base.atomics().get_unchecked((bit >> 6) as usize) };
        Base { word, shift: (bit & 63) as u32 }
    }

    #[inline(always)]
    fn raise_each<const K: usize, const X: u32, const N: usize, const NEWER: bool>(
        &self,
        cells: &[[u64; N]],
        keys: Range<usize>,
        new: &mut [bool],
    ) -> Result<(), Stopped> {
        let max = packed::largest(self.width::<X>());
        for (key, new) in (0..).zip(new).take(keys.end).skip(keys.start) {
            let own = cells_of::<K, N>(cells, key);
            let entry = self.partition(self.cut.locate(own[0]).0);
            if entry.version.is_locked() {
                return Err(Stopped { key, done: 0, refused: Refused::Busy });
            }
            // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
            let (overflow, edged) = entry.edged(unsafe { epoch::unprotected() });
            // Full ones; zero, too: only the overflow counter knows whether the key is new.
            let mut longer = 1u64 << max | u64::from(overflow.is_some());
            if let Some(overflow) = overflow.filter(|_| edged) {
                longer |= (1 << (overflow.threshold & max)) >> 1;
            }
            let bases: [Base<'_>; K] = own.map(|cell| self.base_of::<X>(cell));
            let seen = bases.iter().fold(0, |seen, base| seen | 1u64 << base.get(max));
            if seen & longer == 0 {
                bases.iter().for_each(|base| base.add(1));
                *new = seen & 1 != 0;
                continue;
            }
            let raised = match overflow.and_then(Overflow::even) {
                Some(even) => self.raise_outlined::<K, X, N, NEWER>(entry, even, cells, key),
                None => self.raise_together::<true>(&own, 1),
            };
            *new = raised.map_err(|(done, refused)| Stopped { key, done, refused })?;
        }
        Ok(())
    }

    /// `raise_even`, compiled for the processor at hand, and out of the way of the shorter one.
    #[inline(always)]
    fn raise_outlined<const K: usize, const X: u32, const N: usize, const NEWER: bool>(
        &self,
        entry: &Partition,
        even: Even<'_>,
        cells: &[[u64; N]],
        key: usize,
    ) -> Result<bool, (usize, Refused)> {
        #[cfg(target_arch = "x86_64")]
        if NEWER {
            #[inline(never)]
            #[target_feature(enable = "bmi1,bmi2,lzcnt")]
            unsafe fn newer<const K: usize, const X: u32, const N: usize>(
                this: &DynamicCells,
                entry: &Partition,
                even: Even<'_>,
                cells: &[[u64; N]],
                key: usize,
            ) -> Result<bool, (usize, Refused)> {
                this.raise_even::<K, X>(entry, even, cells_of::<K, N>(cells, key))
            }
            // SAFETY: NEWER says that the processor has the instructions.
            return unsafe { newer::<K, X, N>(self, entry, even, cells, key) };
        }
        self.raise_even::<K, X>(entry, even, cells_of::<K, N>(cells, key))
    }

    /// Adds one to the cells of a key whatever they are. Which of them overflows is as good as random, so
    /// none is asked: those that do not add zero to their overflow counters.
    #[inline(always)]
    fn raise_even<const K: usize, const X: u32>(
        &self,
        entry: &Partition,
        even: Even<'_>,
        cells: [u64; K],
    ) -> Result<bool, (usize, Refused)> {
        let (x, max) = (self.width::<X>(), packed::largest(self.width::<X>()));
        let slot = self.cut.locate(cells[0]).1;
        let slots = cells.map(|cell| slot + (cell - cells[0]));
        let bases: [Base<'_>; K] = cells.map(|cell| self.base_of::<X>(cell));
        let lows = bases.map(|base| base.get(max));
        let (mut new, mut no_room, mut passing) = (false, false, 0);
        for (low, slot) in lows.iter().zip(slots) {
            // SAFETY: a cut locates cells within their partition.
            let high = unsafe { even.get(slot) };
            let old = high << x | low;
            new |= old == 0;
            no_room |= (*low == max) & (high == even.max());
            passing += u64::from(old.wrapping_add(1) == even.of.threshold);
        }
        if no_room {
            // Or stuck. Cell by cell.
            return self.raise_together::<true>(&cells, 1);
        }
        let _changing = entry.version.write();
        for ((base, low), slot) in bases.iter().zip(lows).zip(slots) {
            base.raise(low == max, max);
            // SAFETY: as above; one that is raised is below the largest value.
            unsafe { even.add(slot, u64::from(low == max)) };
        }
        if passing != 0 {
            let above = even.of.above.load(Ordering::Relaxed);
            even.of.above.store(above + passing, Ordering::Relaxed);
        }
        Ok(new)
    }

    #[inline(always)]
    fn smallest_each<const K: usize, const X: u32, const N: usize, const NEWER: bool>(
        &self,
        cells: &[[u64; N]],
        least: &mut [u64; N],
        guard: &Guard,
    ) {
        let (x, max) = (self.width::<X>(), packed::largest(self.width::<X>()));
        for (key, least) in least.iter_mut().enumerate() {
            let own = cells_of::<K, N>(cells, key);
            let bases: [Base<'_>; K] = own.map(|cell| self.base_of::<X>(cell));
            let (partition, slot) = self.cut.locate(own[0]);
            let entry = self.partition(partition);
            // No closure around all this: it would not be inlined.
            loop {
                let before = entry.version.begin();
                let mut smallest = u64::MAX;
                let overflow = entry.overflow(guard);
                if let Some(even) = overflow.and_then(Overflow::even) {
                    for (base, cell) in bases.iter().zip(own) {
                        // SAFETY: a cut locates cells within their partition.
                        let high = unsafe { even.get(slot + (cell - own[0])) };
                        smallest = smallest.min(high << x | base.get(max));
                    }
                } else {
                    for (base, cell) in bases.iter().zip(own) {
                        let slot = slot + (cell - own[0]);
                        let high = overflow.map_or(0, |overflow| overflow.get(slot));
                        smallest = smallest.min(high << x | base.get(max));
                    }
                }
                if entry.version.held(before) {
                    *least = smallest;
                    break;
                }
            }
        }
    }
}

/// The cells of one key of a group.
#[inline(always)]
fn cells_of<const K: usize, const N: usize>(cells: &[[u64; N]], key: usize) -> [u64; K] {
    debug_assert!(cells.len() == K && key < N);
    // SAFETY: `by_shape` chose K by the number of rows, and callers have a key below N.
    std::array::from_fn(|i| unsafe { *cells.get_unchecked(i).get_unchecked(key) })
}
