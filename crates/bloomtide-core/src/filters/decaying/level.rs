//! Cells with their stamps: fades what it touches, raises and asks. Knows cells and epochs, no keys.

use super::NEVER;
use crate::cells::{BlockValues, DECAY_BLOCK, Decay, DecayingCells, OLDEST, Stamps};
use crate::error::{Error, Result};
use crate::filters::Policy;
use crate::placement::{Layout, Placement};
use std::sync::atomic::{AtomicI64, Ordering};

/// Blocks that one `advance` brings up to date.
const SWEPT_BY_ADVANCE: u64 = 1024;

/// One array of cells.
#[derive(Debug)]
pub(super) struct Level<C> {
    pub(super) placement: Placement,
    pub(super) cells: C,
    pub(super) stamps: Stamps,
    /// The largest value of a cell.
    pub(super) max: u32,
}

/// The time of a filter, and how values fade with it.
#[derive(Debug)]
pub(super) struct Time {
    /// The epoch of the stream.
    pub(super) now: AtomicI64,
    /// The same while events of this epoch need not be judged, else `NEVER`.
    pub(super) calm: AtomicI64,
    pub(super) decay: Decay,
}

impl Time {
    #[inline(always)]
    pub(super) fn now(&self) -> i64 {
        self.now.load(Ordering::Acquire)
    }

    /// The same, but zero for a filter that has no time yet.
    fn now_or_zero(&self) -> i64 {
        Some(self.now()).filter(|now| *now != NEVER).unwrap_or(0)
    }
}

/// An array of cells as files keep it.
pub(crate) struct Frozen<'a> {
    /// How many cells there are.
    pub(crate) cells: u64,
    /// Stamp and state of a block.
    pub(crate) stored: Box<dyn Fn(u64) -> u32 + 'a>,
    /// The values of a block; zeroes behind the last cell.
    pub(crate) values: Box<dyn Fn(u64) -> BlockValues + 'a>,
}

impl<C: DecayingCells> Level<C> {
    pub(super) fn new(placement: Placement, bits: u32) -> Result<Self> {
        Ok(Level {
            placement,
            cells: C::zeroed(placement.cells, bits)?,
            stamps: Stamps::zeroed(placement.cells.div_ceil(DECAY_BLOCK))?,
            max: ((1u64 << bits) - 1) as u32,
        })
    }

    /// The cells of a block.
    pub(super) fn cells_of(&self, block: u64) -> std::ops::Range<u64> {
        block * DECAY_BLOCK..((block + 1) * DECAY_BLOCK).min(self.placement.cells)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, cells: &[u64]) {
        match self.placement.layout {
            Layout::Blocked => {
                // A block that tears is asked for as a whole.
                let each = if C::TEARS { &cells[..1] } else { cells };
                each.iter().for_each(|cell| self.cells.prefetch(*cell));
                self.stamps.prefetch(cells[0] / DECAY_BLOCK);
            }
            Layout::Classic => {
                for cell in cells {
                    self.cells.prefetch(*cell);
                    self.stamps.prefetch(*cell / DECAY_BLOCK);
                }
            }
        }
    }

    /// The same for what the lines asked for before lead to. The caller may read.
    #[inline(always)]
    pub(super) fn prefetch_tables(&self, cells: &[u64]) {
        match self.placement.layout {
            Layout::Blocked => self.cells.prefetch_table(cells[0]),
            Layout::Classic => cells.iter().for_each(|cell| self.cells.prefetch_table(*cell)),
        }
    }

    // ---- decay

    /// Brings a block up to date. The caller is the only writer.
    #[inline(always)]
    fn settle(&self, block: u64, time: &Time) {
        let now = time.now();
        let age = self.stamps.age(block, now);
        if age != 0 {
            self.fade(block, age, now, &time.decay);
        }
    }

    /// Fades a block by `age` and stamps it.
    #[inline(never)]
    fn fade(&self, block: u64, age: u64, stamp: i64, decay: &Decay) {
        let _changing = self.stamps.change(block, stamp);
        if age != 0 {
            self.cells.fade(block, &decay.of_age(age));
        }
    }

    /// Brings another block along: a few of all adds do, so that in time every block is up to date.
    /// Which one depends on the key and the epoch alone, so filters that saw the same are the same.
    #[inline(always)]
    pub(super) fn sweep(&self, first: u64, time: &Time) {
        let now = time.now();
        if (first as i64).wrapping_add(now) & 7 == 0 {
            let block = ((first / DECAY_BLOCK) as i64).wrapping_add(now);
            self.settle(self.wrapped(block), time);
        }
    }

    /// Brings the blocks of this epoch up to date.
    pub(super) fn sweep_many(&self, time: &Time) {
        let start = time.now().wrapping_mul(SWEPT_BY_ADVANCE as i64);
        for i in 0..SWEPT_BY_ADVANCE.min(self.stamps.blocks()) {
            self.settle(self.wrapped(start.wrapping_add(i as i64)), time);
        }
    }

    fn wrapped(&self, block: i64) -> u64 {
        block.rem_euclid(self.stamps.blocks() as i64) as u64
    }

    #[inline(always)]
    fn settle_all(&self, cells: &[u64], time: &Time) {
        match self.placement.layout {
            Layout::Blocked => self.settle(cells[0] / DECAY_BLOCK, time),
            Layout::Classic => cells.iter().for_each(|cell| self.settle(*cell / DECAY_BLOCK, time)),
        }
    }

    // ---- writing

    /// Raises different cells by the policy; true iff one of them was zero. The only writer.
    #[inline(always)]
    pub(super) fn raise(&self, cells: &[u64], weight: u64, policy: Policy, time: &Time) -> bool {
        self.settle_all(cells, time);
        if policy == Policy::Conservative {
            // Minimal increase: a cell that is higher already covers this key.
            let before = cells.iter().map(|cell| self.cells.get(*cell)).min().unwrap_or(0);
            let target = u64::from(before).saturating_add(weight);
            for cell in cells {
                if u64::from(self.cells.get(*cell)) < target {
                    self.put(*cell, target);
                }
            }
            return before == 0;
        }
        let together = self.placement.layout == Layout::Blocked;
        // No sum of these overflows.
        let (new, full) = self.cells.raise(cells, weight.min(1 << 40), self.max, together);
        if full != 0 {
            self.set_full(cells, full);
        }
        new
    }

    #[cold]
    fn set_full(&self, cells: &[u64], full: u64) {
        for (i, cell) in cells.iter().enumerate().filter(|(i, _)| full >> i & 1 == 1) {
            debug_assert_eq!(self.cells.get(*cell), self.max, "{i}");
            self.stamps.set_full(*cell / DECAY_BLOCK);
        }
    }

    /// Raises a cell as far as it goes.
    #[inline(always)]
    fn put(&self, cell: u64, value: u64) {
        let new = value.min(u64::from(self.max)) as u32;
        if value > u64::from(new) {
            self.stamps.set_full(cell / DECAY_BLOCK);
        }
        self.cells.set(cell, new);
    }

    // ---- asking

    /// The smallest of some cells as of an epoch or, if that is later, of the filter's time. Writes nothing.
    #[inline(always)]
    pub(super) fn smallest(&self, cells: &[u64], epoch: i64, time: &Time) -> u32 {
        match self.placement.layout {
            Layout::Blocked => self.smallest_of_block(cells, epoch, time),
            Layout::Classic => {
                let each = cells.chunks(1).map(|cell| self.smallest_of_block(cell, epoch, time));
                each.min().unwrap_or(0)
            }
        }
    }

    /// Fading keeps the order, so the smallest of a block is the one that was before.
    #[inline(always)]
    fn smallest_of_block(&self, cells: &[u64], epoch: i64, time: &Time) -> u32 {
        let least = || cells.iter().map(|cell| self.cells.get(*cell)).min().unwrap_or(0);
        let (value, age) = self.look(cells[0] / DECAY_BLOCK, epoch, time, least);
        time.decay.fade(value, age)
    }

    /// All cells of a block likewise; zeroes behind the last cell.
    pub(super) fn block(&self, block: u64, epoch: i64, time: &Time) -> BlockValues {
        let (values, age) = self.look(block, epoch, time, || self.cells.values(block));
        faded(values, age, &time.decay)
    }

    /// What `value` sees of a block in one moment, and how old that is in the epoch.
    #[inline(always)]
    fn look<T>(&self, block: u64, epoch: i64, time: &Time, value: impl Fn() -> T) -> (T, u64) {
        let look = |age: u64, now: i64| (value(), age + epoch.saturating_sub(now).max(0) as u64);
        self.stamps.read(block, || time.now(), look)
    }

    // ---- whole levels

    fn is_empty(&self, block: u64) -> bool {
        self.cells.values(block) == [0; DECAY_BLOCK as usize]
    }

    /// The values and stamps of another level of the same shape. Only while nobody else sees this one.
    pub(super) fn take_over(&self, other: &Self) {
        self.stamps.take_over(&other.stamps);
        self.cells.take_over(&other.cells, self.placement.cells);
    }

    pub(super) fn clear(&self) {
        for block in 0..self.stamps.blocks() {
            let _changing = self.stamps.change(block, 0);
            self.cells.clear(block);
        }
        self.stamps.clear();
    }

    /// Adds another level's cells, each block as of the later of its two stamps: what was brought up to
    /// date need not be rounded again. The time is that of both filters.
    pub(super) fn merge(&self, other: &Self, time: &Time) {
        let (now, decay) = (time.now(), &time.decay);
        for block in 0..self.stamps.blocks() {
            if other.stamps.is_full(block) {
                self.stamps.set_full(block);
            }
            if other.is_empty(block) {
                continue;
            }
            let stamp = now - other.stamps.age(block, now) as i64;
            let mut later = stamp;
            if self.is_empty(block) {
                self.fade(block, 0, stamp, decay);
            } else {
                let own = now - self.stamps.age(block, now) as i64;
                later = own.max(stamp);
                self.fade(block, (later - own) as u64, later, decay);
            }
            for cell in self.cells_of(block) {
                let theirs = decay.fade(other.cells.get(cell), (later - stamp) as u64);
                if theirs != 0 {
                    self.put(cell, u64::from(self.cells.get(cell)) + u64::from(theirs));
                }
            }
        }
    }

    /// Whether both hold the same at their time: the stamp of an empty block says nothing.
    pub(super) fn same_as(&self, other: &Self, time: &Time) -> bool {
        let (ours, theirs) = (self.frozen(time), other.frozen(time));
        (0..self.stamps.blocks()).all(|block| {
            (ours.stored)(block) == (theirs.stored)(block)
                && (ours.values)(block) == (theirs.values)(block)
        })
    }

    pub(super) fn was_full(&self, cells: &[u64]) -> bool {
        cells.iter().any(|cell| self.stamps.is_full(*cell / DECAY_BLOCK))
    }

    pub(super) fn full_blocks(&self) -> u64 {
        (0..self.stamps.blocks()).filter(|block| self.stamps.is_full(*block)).count() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.cells.bytes() + self.stamps.bytes()
    }

    /// Whether the cells are sound, and how old the oldest block is that holds something.
    pub(super) fn validate(&self, time: &Time) -> Result<Option<u64>> {
        self.cells.validate()?;
        let filled = (0..self.stamps.blocks()).filter(|block| !self.is_empty(*block));
        Ok(filled.map(|block| self.stamps.age(block, time.now())).max())
    }

    /// As files keep it: a block that is older than they can tell is as of now.
    pub(super) fn frozen<'a>(&'a self, time: &'a Time) -> Frozen<'a> {
        let now = time.now_or_zero();
        let age = move |block| match self.stamps.age(block, now) {
            age if age > OLDEST => (0, age),
            age => (age, 0),
        };
        let values = move |block| faded(self.cells.values(block), age(block).1, &time.decay);
        let stored = move |block| {
            let empty = values(block) == [0; DECAY_BLOCK as usize];
            let epoch = if empty { 0 } else { now - age(block).0 as i64 };
            self.stamps.stored(block, epoch)
        };
        Frozen { cells: self.placement.cells, stored: Box::new(stored), values: Box::new(values) }
    }

    /// Takes over what a file kept; how old the oldest block is that holds something.
    pub(super) fn restore(&self, kept: &Frozen<'_>, time: &Time) -> Result<Option<u64>> {
        let (mut oldest, now) = (None, time.now_or_zero());
        let wrong = |got: &str| Err(Error::Field { name: "cells", got: got.to_owned() });
        if kept.cells != self.placement.cells {
            return wrong("another number of them");
        }
        for block in 0..self.stamps.blocks() {
            let values = (kept.values)(block);
            let largest = values.iter().fold(0, |largest, value| (*value).max(largest));
            if largest > self.max {
                return wrong("a value beyond the largest");
            }
            self.cells.hold(block, &values);
            let stored = (kept.stored)(block);
            self.stamps.restore(block, stored, now);
            if stored >> 31 != 0 || largest == 0 && stored != self.stamps.stored(block, 0) {
                return wrong("the stamp of an empty block, or more than a stamp");
            }
            if largest != 0 {
                oldest = oldest.max(Some(self.stamps.age(block, now)));
            }
        }
        Ok(oldest)
    }
}

/// The values of a block at that age.
fn faded(mut values: BlockValues, age: u64, decay: &Decay) -> BlockValues {
    if age != 0 {
        let fading = decay.of_age(age);
        values.iter_mut().for_each(|value| *value = fading.fade(*value));
    }
    values
}
