//! Counters without an upper end, in few bits: what the spectral and the dynamic storage have in common.
//!
//! The cells are cut into partitions. A rebuild (a counter needs more bits than it has, or memory can be
//! given back) touches one partition. One writer at a time changes a partition; readers may look at any
//! time and never wait for a rebuild (`version.rs`).

use crate::cells::divisor::Divisor;
use crate::cells::version::Version;
use crate::error::Result;
use crossbeam_epoch::Guard;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A counter at this value has lost count: it never changes again.
pub const STUCK: u64 = u64::MAX;

/// Why a cell was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The value needs more bits than the cell has.
    NoRoom,
    /// The partition is being rebuilt by another writer.
    Busy,
}

/// The key of a group at which adding stopped: those before it are raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Its place in the group.
    pub key: usize,
    /// How many of its cells are raised.
    pub done: usize,
    /// Whether one of those was zero.
    pub new: bool,
}

/// The values that cells shall have. A function of a cell is one.
pub trait CellValues {
    /// The values of the cells from `first` on. Quickest for cells that lie in one chunk.
    fn fill(&self, first: u64, values: &mut [u64]);
}

impl<F: Fn(u64) -> u64> CellValues for F {
    #[inline(always)]
    fn fill(&self, first: u64, values: &mut [u64]) {
        (first..).zip(values).for_each(|(cell, value)| *value = self(cell));
    }
}

/// Cells that are asked for together.
pub const CHUNK: usize = 128;

/// The chunks that some cells lie in. No closure is called for each: it would not be compiled for the processor
/// that its caller is compiled for.
#[inline(always)]
pub fn chunks(cells: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let each = CHUNK as u64;
    let chunk = move |i: u64| cells.start.max(i * each)..cells.end.min((i + 1) * each);
    (cells.start / each..cells.end.div_ceil(each)).map(chunk)
}

/// The values that cells have now.
#[derive(Debug)]
pub struct Held<'a, C>(&'a C, &'a Guard);

impl<C: GrowingCells> CellValues for Held<'_, C> {
    #[inline(always)]
    fn fill(&self, first: u64, values: &mut [u64]) {
        self.0.fill(first, values, self.1);
    }
}

/// Counters that grow.
pub trait GrowingCells: Send + Sync + Sized {
    /// What such cells are like, beside their number and their partitions.
    type Shape: Copy + std::fmt::Debug + PartialEq + Send + Sync;

    /// Bytes of one more partition, beside its counters.
    const ENTRY_BYTES: u64;

    /// How many partitions so many cells are cut into where nothing else is said.
    fn usual_partitions(cells: u64, shape: &Self::Shape) -> u64;

    /// Cells of given values.
    fn laid_out(
        cut: Cut,
        shape: Self::Shape,
        pauses: Arc<Pauses>,
        values: impl CellValues,
    ) -> Result<Self>;

    /// A copy that counts its own rebuilds. No writer is inside meanwhile.
    fn copied(&self, pauses: Arc<Pauses>) -> Result<Self>;
    /// Refuses to go on when cells of one shape cannot take the place of cells of the other.
    fn require_same_shape(ours: &Self::Shape, theirs: &Self::Shape) -> Result<()> {
        let _ = (ours, theirs);
        Ok(())
    }

    /// Number of cells, m.
    fn len(&self) -> u64;

    /// Whether there is no cell at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the cells are cut.
    fn cut(&self) -> &Cut;

    /// Asks the processor for what `get` will read first.
    fn prefetch(&self, cell: u64);

    /// The value. The guard keeps what a rebuild replaces alive; it may be unprotected while nobody else
    /// can write.
    fn get(&self, cell: u64, guard: &Guard) -> u64;

    /// The values of the cells from `first` on, each as `get` would see it: what a pass over all cells reads.
    fn fill(&self, first: u64, values: &mut [u64], guard: &Guard);

    /// The same, to be laid out elsewhere.
    fn held<'a>(&'a self, guard: &'a Guard) -> Held<'a, Self> {
        Held(self, guard)
    }

    /// All values, in order.
    fn values<'a>(&'a self, guard: &'a Guard) -> impl Iterator<Item = u64> + 'a {
        (0..self.len()).step_by(CHUNK).flat_map(move |first| {
            let count = CHUNK.min((self.len() - first) as usize);
            let mut held = [0; CHUNK];
            self.fill(first, &mut held[..count], guard);
            held.into_iter().take(count)
        })
    }

    /// Replaces the value by `change(old)` and returns the old one; or refuses and changes nothing. A
    /// stuck cell stays as it is. The caller is the only writer of cells.
    fn try_change(
        &self,
        cell: u64,
        change: impl FnOnce(u64) -> u64,
    ) -> std::result::Result<u64, Refused>;

    /// Adds a change of either sign to all cells of a key if that is short: the least of them after it. None
    /// if it is not, and then nothing was changed. Same caller.
    #[inline(always)]
    fn shift(&self, _cells: &[u64], _change: i64) -> Option<u64> {
        None
    }

    /// Adds `by` to one cell in each group of the block that begins at a cell, as `choice` says, if that is
    /// short: whether one of them was zero. None if it is not, and then nothing was changed. Same caller.
    #[inline(always)]
    fn raise_shortly(&self, _block: u64, _choice: u64, _hashes: u32, _by: u64) -> Option<bool> {
        None
    }

    /// Asks the processor for what a block's cells will be read from first.
    #[inline(always)]
    fn prefetch_block(&self, cells: &[u64], guard: &Guard) {
        let _ = guard;
        cells.iter().for_each(|cell| self.prefetch(*cell));
    }

    /// Adds `by[key]` to the cells of some keys of a group, `cells[i][key]`; those of a key lie in one block.
    /// `new[key]` is whether one of them was zero. Or stops at a key of which it refuses a cell. Same caller.
    #[inline(always)]
    fn raise_group<const N: usize>(
        &self,
        cells: &[[u64; N]],
        by: &[u64; N],
        keys: Range<usize>,
        new: &mut [bool],
    ) -> std::result::Result<(), Stopped> {
        for key in keys {
            new[key] = raise_key(self, cells, key, by[key])?;
        }
        Ok(())
    }

    /// The smallest of the cells of each key of such a group.
    #[inline(always)]
    fn smallest_of_group<const N: usize>(
        &self,
        cells: &[[u64; N]],
        least: &mut [u64; N],
        guard: &Guard,
    ) {
        smallest_each(self, cells, least, guard);
    }

    /// The version of a partition, which is locked while a writer rebuilds it.
    fn version(&self, partition: u64) -> &Version;

    /// Rebuilds the cell's partition so that `value` fits. The caller locked the partition, or is the only
    /// writer of it.
    fn make_room(&self, cell: u64, value: u64) -> Result<()>;

    /// Whether `tidy` would give memory back.
    fn is_untidy(&self, partition: u64) -> bool;

    /// Gives memory of the partition back. Same caller as `make_room`.
    fn tidy(&self, partition: u64) -> Result<()>;

    /// Memory in bytes: cells, index, partition vector.
    fn bytes(&self) -> u64;

    /// What counts the rebuilds.
    fn pauses(&self) -> &Arc<Pauses>;

    /// Checks every invariant.
    fn validate(&self) -> Result<()>;
}

/// `raise_group` for one key, cell by cell.
#[inline(always)]
pub(super) fn raise_key<const N: usize>(
    store: &impl GrowingCells,
    cells: &[[u64; N]],
    key: usize,
    by: u64,
) -> std::result::Result<bool, Stopped> {
    let mut new = false;
    for (done, row) in cells.iter().enumerate() {
        let old = store.try_change(row[key], |value| value.saturating_add(by));
        new |= old.map_err(|_| Stopped { key, done, new })? == 0;
    }
    Ok(new)
}

/// `smallest_of_group`, cell by cell.
#[inline(always)]
pub fn smallest_each<const N: usize>(
    store: &impl GrowingCells,
    cells: &[[u64; N]],
    least: &mut [u64; N],
    guard: &Guard,
) {
    *least = [u64::MAX; N];
    for row in cells {
        for (least, cell) in least.iter_mut().zip(row) {
            *least = (*least).min(store.get(*cell, guard));
        }
    }
}

/// m cells cut into partitions of m' each; the last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    cells: u64,
    per_partition: Divisor,
}

impl Cut {
    /// About `partitions` partitions, each a multiple of `grain` cells. Both are at least 1.
    pub fn new(cells: u64, partitions: u64, grain: u64) -> Self {
        let per_partition = cells.div_ceil(partitions.max(1)).max(1).next_multiple_of(grain);
        Cut { cells, per_partition: Divisor::new(per_partition) }
    }

    /// Number of cells, m.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Number of partitions, c.
    pub fn partitions(&self) -> u64 {
        self.cells.div_ceil(self.per_partition.get())
    }

    /// Cells of a partition, m'.
    pub fn per_partition(&self) -> u64 {
        self.per_partition.get()
    }

    /// (partition, cell within it).
    #[inline(always)]
    pub fn locate(&self, cell: u64) -> (u64, u64) {
        self.per_partition.split(cell)
    }

    /// The cells of one partition.
    pub fn range(&self, partition: u64) -> Range<u64> {
        let first = (partition * self.per_partition()).min(self.cells);
        first..(first + self.per_partition()).min(self.cells)
    }
}

/// How often, how much and how long cells were rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuilds {
    /// How many rebuilds there were.
    pub count: u64,
    /// How many cells they moved.
    pub moved: u64,
    /// The longest one, in nanoseconds.
    pub longest: u64,
    /// All together, in nanoseconds.
    pub total: u64,
}

/// Counts rebuilds and times them with a clock it was given: the core has none of its own.
#[derive(Debug, Default)]
pub struct Pauses {
    clock: OnceLock<fn() -> u64>,
    count: AtomicU64,
    moved: AtomicU64,
    longest: AtomicU64,
    total: AtomicU64,
}

impl Pauses {
    /// Measures from now on with this clock, which gives nanoseconds. Without one all take no time.
    pub fn set_clock(&self, clock: fn() -> u64) {
        // Who was given a clock keeps it.
        let _ = self.clock.set(clock);
    }

    fn now(&self) -> u64 {
        self.clock.get().map_or(0, |clock| clock())
    }

    /// Runs one rebuild, which returns how many cells it moved.
    pub fn time(&self, rebuild: impl FnOnce() -> Result<u64>) -> Result<()> {
        let start = self.now();
        let moved = rebuild()?;
        if moved == 0 {
            return Ok(());
        }
        let took = self.now().saturating_sub(start);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.moved.fetch_add(moved, Ordering::Relaxed);
        self.longest.fetch_max(took, Ordering::Relaxed);
        self.total.fetch_add(took, Ordering::Relaxed);
        Ok(())
    }

    /// What was counted.
    pub fn so_far(&self) -> Rebuilds {
        Rebuilds {
            count: self.count.load(Ordering::Relaxed),
            moved: self.moved.load(Ordering::Relaxed),
            longest: self.longest.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_lies_in_the_range_of_its_partition() {
        for (cells, partitions, grain) in [(1, 1, 1), (1000, 7, 1), (3918, 58, 128), (300, 300, 1)]
        {
            let cut = Cut::new(cells, partitions, grain);
            assert!(cut.partitions() <= partitions && cut.per_partition().is_multiple_of(grain));
            for cell in 0..cells {
                let (partition, slot) = cut.locate(cell);
                assert!(cut.range(partition).contains(&cell));
                assert_eq!(cut.range(partition).start + slot, cell);
            }
        }
    }
}
