//! The cells of the dynamic count filter: a base array of x bits a counter (CBFV) and, where it is
//! needed, overflow counters of y bits (OFV).
//!
//! Paper    J. Aguilar-Saborit et al., "Dynamic count filters", SIGMOD Record 2006, and its partitioned
//!          form, sections 3.4 and 4. Specification sections 4 and 5.
//!              value = OF * 2^x + C            x = 8: 1026 = 4 * 256 + 2
//! Rebuild  A counter that outgrows x + y bits widens the overflow counters of its partition by what it
//!          needs; when no counter is high any more they are narrowed again. One partition is the
//!          unpartitioned filter.
//! Shrink   to y - 1 when every counter is below T(y-1), T(l) = 2^(x+l-1) (1 + s) for l >= 1 and
//!          T(0) = s (2^x - 1). The paper keeps a table of levels to know this; since only the level
//!          below the present one is ever asked for, one number a partition is enough: how many
//!          counters are at or above T(y-1). It is recounted when y changes, which touches every counter
//!          anyway.
//!
//! # Invariants
//! I1  A partition without overflow counters has only values below 2^x.
//! I2  `above` equals a recount.
//! I3  A partition's y is never below what its largest counter needs.

mod group;
mod lay;
mod overflow;
mod rebuild;
mod shift;
#[cfg(test)]
mod tests;

use crate::batch::on_the_best_processor;
use crate::cells::growing::{CellValues, Cut, GrowingCells, Pauses, Refused, STUCK, Stopped};
use crate::cells::{Version, Words, bytes_for, packed};
use crate::error::{Error, Result};
use crate::placement::BLOCK_CELLS;
use crossbeam_epoch::{self as epoch, Atomic, Guard};
use overflow::Overflow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the cells are like, beside their number and their partitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicShape {
    /// Width of a base counter, x.
    pub width: u32,
    /// Shrink hysteresis, lambda_s in 0..=1: 1 shrinks as soon as it can.
    pub shrink: f64,
}

/// Counters of a partition where nothing else is said: few, so that a hot key widens few of its neighbours, and
/// enough to be worth an entry. At any skew within a fifth of the least memory, and mostly within a fiftieth
/// (measured: decision 12).
const USUAL: u64 = 512;

/// One entry of the partition vector.
#[derive(Debug, Default)]
struct Partition {
    version: Version,
    /// Null while y = 0.
    overflow: Atomic<Overflow>,
}

impl Partition {
    #[inline(always)]
    fn overflow<'g>(&self, guard: &'g Guard) -> Option<&'g Overflow> {
        // SAFETY: the pointer is null or comes from an Owned; what it points to is destroyed by
        // `epoch` after every guard of its time is gone, or by `drop`, which has exclusive access.
        unsafe { self.overflow.load(Ordering::Acquire, guard).as_ref() }
    }

    /// The same, and whether its threshold lies between two values of a base counter: if not, no base
    /// counter passes it without overflowing. It is in the pointer's tag, so that nothing is read.
    #[inline(always)]
    fn edged<'g>(&self, guard: &'g Guard) -> (Option<&'g Overflow>, bool) {
        let overflow = self.overflow.load(Ordering::Acquire, guard);
        // SAFETY: as above.
        (unsafe { overflow.as_ref() }, overflow.tag() != 0)
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let overflow = std::mem::replace(&mut self.overflow, Atomic::null());
        // SAFETY: nobody else has the partition any more.
        drop(unsafe { overflow.try_into_owned() });
    }
}

/// m counters of x + y bits.
#[derive(Debug)]
pub struct DynamicCells {
    cut: Cut,
    shape: DynamicShape,
    /// Bits from one partition's base counters to the next one's: whole words, so that no word belongs
    /// to two partitions.
    stride: u64,
    /// Whether no base counter lies in two words, and no partition has bits to spare behind them.
    whole: bool,
    base: Words,
    partitions: Box<[Partition]>,
    pauses: Arc<Pauses>,
}

impl DynamicCells {
    /// Bits from one partition's base counters to the next one's.
    fn stride(cut: &Cut, width: u32) -> u64 {
        let per_partition = if cut.partitions() == 1 { cut.cells() } else { cut.per_partition() };
        packed::words_for(per_partition.saturating_mul(u64::from(width))).saturating_mul(64)
    }

    /// Memory of such cells in bytes while no counter needs more than its base.
    pub fn bytes_of(cut: &Cut, width: u32) -> u64 {
        let base = bytes_for(cut.partitions().saturating_mul(Self::stride(cut, width)));
        base.saturating_add(cut.partitions().saturating_mul(size_of::<Partition>() as u64))
    }

    /// Memory of the overflow counters of so many cells, of y bits each, in bytes.
    pub fn overflow_bytes(cells: u64, y: u32) -> u64 {
        Overflow::bytes_of(cells, y)
    }

    /// Empty partitions for these base counters.
    fn over(base: Words, cut: Cut, shape: DynamicShape, pauses: Arc<Pauses>) -> Result<Self> {
        let stride = Self::stride(&cut, shape.width);
        let mut partitions = Vec::new();
        let refused =
            |_| Error::Capacity { needed: cut.partitions() * 16, limit: isize::MAX as u64 };
        partitions.try_reserve_exact(cut.partitions() as usize).map_err(refused)?;
        partitions.resize_with(cut.partitions() as usize, Partition::default);
        let partitions = partitions.into_boxed_slice();
        let whole =
            shape.width.is_power_of_two() && stride == cut.per_partition() * u64::from(shape.width);
        Ok(DynamicCells { cut, shape, stride, whole, base, partitions, pauses })
    }

    #[inline(always)]
    fn base_max(&self) -> u64 {
        packed::largest(self.shape.width)
    }

    #[inline(always)]
    fn bit(&self, partition: u64, slot: u64) -> u64 {
        partition * self.stride + slot * u64::from(self.shape.width)
    }

    #[inline(always)]
    fn partition(&self, partition: u64) -> &Partition {
        debug_assert!(partition < self.cut.partitions());
        // SAFETY: a cut locates cells below m in partitions below c.
        unsafe { self.partitions.get_unchecked(partition as usize) }
    }

    /// The base counter at a bit.
    #[inline(always)]
    fn low(&self, bit: u64) -> u64 {
        if !self.shape.width.is_power_of_two() {
            return packed::read(self.base.atomics(), bit, self.shape.width);
        }
        self.low_in_word(bit)
    }

    /// The same where no base counter lies in two words.
    #[inline(always)]
    fn low_in_word(&self, bit: u64) -> u64 {
        (self.word(bit).load(Ordering::Relaxed) >> (bit & 63)) & self.base_max()
    }

    /// The word that a bit of the base counters is in.
    #[inline(always)]
    fn word(&self, bit: u64) -> &AtomicU64 {
        debug_assert!(bit / 64 < self.base.atomics().len() as u64);
        // SAFETY: a cut locates cells below m, and the base has room for all of them.
        unsafe { self.base.atomics().get_unchecked((bit >> 6) as usize) }
    }

    /// Adds to the base counter at a bit, which has room for it.
    #[inline(always)]
    fn raise_low<const WHOLE: bool>(&self, entry: &Partition, bit: u64, by: u64) {
        if !WHOLE && !self.shape.width.is_power_of_two() {
            return self.set_low(entry, bit, self.low(bit) + by);
        }
        let word = self.word(bit);
        word.store(word.load(Ordering::Relaxed) + (by << (bit & 63)), Ordering::Relaxed);
    }

    /// Replaces the base counter at a bit: in one word or, seldom, in two.
    #[inline(always)]
    fn set_low(&self, entry: &Partition, bit: u64, value: u64) {
        if packed::crosses(bit, self.shape.width) {
            let _changing = entry.version.write();
            packed::write(self.base.atomics(), bit, self.shape.width, value);
        } else {
            packed::write(self.base.atomics(), bit, self.shape.width, value);
        }
    }

    /// Replaces the base counter at a bit and the overflow counter at a slot, by what `value` has for each.
    #[inline(always)]
    fn set_both(
        &self,
        entry: &Partition,
        overflow: &Overflow,
        (bit, slot): (u64, u64),
        value: u64,
    ) {
        let _changing = entry.version.write();
        let low = value & self.base_max();
        packed::write(self.base.atomics(), bit, self.shape.width, low);
        overflow.set(slot, value >> self.shape.width);
    }
}

/// The cells of a key in the block that begins at a cell: one in each of K groups.
#[inline(always)]
fn chosen<const K: usize>(block: u64, choice: u64) -> [u64; K] {
    let bits = BLOCK_CELLS.trailing_zeros() - K.trailing_zeros();
    let mut cells = [block; K];
    for (i, cell) in (0..).zip(&mut cells) {
        *cell += (u64::from(i) << bits) + (choice >> (i * bits) & ((1 << bits) - 1));
    }
    cells
}

/// Bits that a number needs; none for zero.
fn bits_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

on_the_best_processor!(read_some(
    &DynamicCells,
    first: u64,
    values: &mut [u64],
    guard: &Guard
));

impl DynamicCells {
    #[inline(always)]
    fn read_some(&self, first: u64, values: &mut [u64], guard: &Guard) {
        let (mut cell, mut left) = (first, values);
        while !left.is_empty() {
            let (partition, slot) = self.cut.locate(cell);
            let inside = (self.cut.range(partition).end - cell) as usize;
            let (now, later) = left.split_at_mut(inside.min(left.len()));
            let entry = self.partition(partition);
            loop {
                let before = entry.version.begin();
                let bit = self.bit(partition, slot);
                packed::unpack(self.base.atomics(), bit, self.shape.width, now);
                if let Some(overflow) = entry.overflow(guard) {
                    overflow.add_to(now, slot, self.shape.width);
                }
                if entry.version.held(before) {
                    break;
                }
            }
            (cell, left) = (cell + now.len() as u64, later);
        }
    }
}

impl GrowingCells for DynamicCells {
    type Shape = DynamicShape;

    const ENTRY_BYTES: u64 = (size_of::<Partition>() + size_of::<Overflow>()) as u64;

    fn usual_partitions(cells: u64, _: &DynamicShape) -> u64 {
        cells.div_ceil(USUAL)
    }

    fn laid_out(
        cut: Cut,
        shape: DynamicShape,
        pauses: Arc<Pauses>,
        values: impl CellValues,
    ) -> Result<Self> {
        // The base is the largest piece: what does not fit is refused before anything else is made.
        let base = Words::zeroed(cut.partitions().saturating_mul(Self::stride(&cut, shape.width)))?;
        let this = Self::over(base, cut, shape, pauses)?;
        this.lay_all(&values)?;
        Ok(this)
    }

    /// Word by word: whoever keeps writers out for a copy does so for milliseconds.
    fn copied(&self, pauses: Arc<Pauses>) -> Result<Self> {
        let copy = Self::over(self.base.to_owned()?, self.cut, self.shape, pauses)?;
        let guard = &epoch::pin();
        for (partition, entry) in (0..).zip(&self.partitions) {
            if let Some(overflow) = entry.overflow(guard) {
                copy.put(partition, overflow.copied()?);
            }
        }
        Ok(copy)
    }

    fn require_same_shape(ours: &DynamicShape, theirs: &DynamicShape) -> Result<()> {
        if ours.width == theirs.width {
            return Ok(());
        }
        Err(Error::incompatible("counter_bits", ours.width, theirs.width))
    }

    fn len(&self) -> u64 {
        self.cut.cells()
    }

    fn cut(&self) -> &Cut {
        &self.cut
    }

    #[inline(always)]
    fn prefetch(&self, cell: u64) {
        let (partition, slot) = self.cut.locate(cell);
        self.base.prefetch((self.bit(partition, slot) >> 6) as usize);
    }

    #[inline(always)]
    fn get(&self, cell: u64, guard: &Guard) -> u64 {
        let (partition, slot) = self.cut.locate(cell);
        let entry = self.partition(partition);
        let bit = self.bit(partition, slot);
        // No closure around all this: it would not be inlined.
        loop {
            let before = entry.version.begin();
            let low = self.low(bit);
            let high = match entry.overflow(guard) {
                None => 0,
                Some(overflow) => overflow.get(slot),
            };
            if entry.version.held(before) {
                return high << self.shape.width | low;
            }
        }
    }

    fn fill(&self, first: u64, values: &mut [u64], guard: &Guard) {
        read_some(self, first, values, guard);
    }

    #[inline(always)]
    fn try_change(
        &self,
        cell: u64,
        change: impl FnOnce(u64) -> u64,
    ) -> std::result::Result<u64, Refused> {
        let (partition, slot) = self.cut.locate(cell);
        let entry = self.partition(partition);
        if entry.version.is_locked() {
            return Err(Refused::Busy);
        }
        let (x, max) = (self.shape.width, self.base_max());
        let bit = self.bit(partition, slot);
        let low = self.low(bit);
        // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
        let Some(overflow) = entry.overflow(unsafe { epoch::unprotected() }) else {
            let new = change(low);
            if new > max {
                return Err(Refused::NoRoom);
            }
            self.set_low(entry, bit, new);
            return Ok(low);
        };
        let high = overflow.get(slot);
        let old = high << x | low;
        let new = if old == STUCK { old } else { change(old) };
        let new_high = new >> x;
        if new_high == high {
            self.set_low(entry, bit, new & max);
        } else {
            if !overflow.fits(new_high) {
                return Err(Refused::NoRoom);
            }
            self.set_both(entry, overflow, (bit, slot), new);
        }
        overflow.moved(old, new);
        Ok(old)
    }

    #[inline(always)]
    fn shift(&self, cells: &[u64], change: i64) -> Option<u64> {
        if self.shape.width.is_power_of_two() { self.shift_scattered(cells, change) } else { None }
    }

    #[inline(always)]
    fn raise_shortly(&self, block: u64, choice: u64, hashes: u32, by: u64) -> Option<bool> {
        match (hashes, self.whole) {
            (4, true) => self.raise_short_key::<4, true>(chosen(block, choice), by),
            (4, false) => self.raise_short_key::<4, false>(chosen(block, choice), by),
            (8, true) => self.raise_short_key::<8, true>(chosen(block, choice), by),
            _ => None,
        }
    }

    #[inline(always)]
    fn raise_group<const N: usize>(
        &self,
        cells: &[[u64; N]],
        by: &[u64; N],
        keys: Range<usize>,
        new: &mut [bool],
    ) -> std::result::Result<(), Stopped> {
        self.raise_keys(cells, by, keys, new)
    }

    #[inline(always)]
    fn smallest_of_group<const N: usize>(
        &self,
        cells: &[[u64; N]],
        least: &mut [u64; N],
        guard: &Guard,
    ) {
        self.smallest_keys(cells, least, guard);
    }

    #[inline(always)]
    fn prefetch_block(&self, cells: &[u64], guard: &Guard) {
        self.prefetch_key(cells, guard);
    }

    fn version(&self, partition: u64) -> &Version {
        &self.partition(partition).version
    }

    fn make_room(&self, cell: u64, value: u64) -> Result<()> {
        let (partition, _) = self.cut.locate(cell);
        let need = bits_of(value >> self.shape.width);
        self.pauses.time(|| self.widen(partition, need))
    }

    #[inline(always)]
    fn is_untidy(&self, partition: u64) -> bool {
        // SAFETY: only the caller writes.
        let overflow = self.partition(partition).overflow(unsafe { epoch::unprotected() });
        overflow.is_some_and(|overflow| overflow.above.load(Ordering::Relaxed) == 0)
    }

    fn tidy(&self, partition: u64) -> Result<()> {
        self.pauses.time(|| self.narrow(partition))
    }

    fn bytes(&self) -> u64 {
        let guard = &epoch::pin();
        let overflow = |entry: &Partition| entry.overflow(guard).map_or(0, Overflow::bytes);
        self.base.bytes()
            + size_of_val(&*self.partitions) as u64
            + self.partitions.iter().map(overflow).sum::<u64>()
    }

    fn pauses(&self) -> &Arc<Pauses> {
        &self.pauses
    }

    fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        let guard = &epoch::pin();
        for (i, entry) in (0..).zip(&self.partitions) {
            let Some(overflow) = entry.overflow(guard) else { continue };
            let recount = self.above(i, overflow, overflow.threshold);
            let above = overflow.above.load(Ordering::Relaxed);
            if above != recount {
                return broken(format!(
                    "partition {i} counts {above} high counters, not {recount}"
                ));
            }
        }
        Ok(())
    }
}
