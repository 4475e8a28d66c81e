//! Cells with their stamps: fades what it touches, raises and asks. Knows cells and epochs, no keys.

use super::store::Frozen;
use crate::cells::{DECAY_BLOCK, Decay, DecayingCells, Stamps};
use crate::error::{Error, Result};
use crate::filters::Policy;
use crate::placement::{Layout, Placement};

/// One array of cells.
#[derive(Debug)]
pub(super) struct Level<C> {
    pub(super) placement: Placement,
    pub(super) cells: C,
    pub(super) stamps: Stamps,
    /// The largest value of a cell.
    pub(super) max: u32,
}

/// The moment of a question, and how to learn of the filter's own time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) now: &'a std::sync::atomic::AtomicI64,
    pub(super) epoch: i64,
}

impl Asked<'_> {
    #[inline(always)]
    fn now(&self) -> i64 {
        self.now.load(std::sync::atomic::Ordering::Acquire)
    }
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

    /// Brings a block up to `now`. The caller is the only writer.
    #[inline(always)]
    pub(super) fn settle(&self, block: u64, now: i64, decay: &Decay) {
        let age = self.stamps.age(block, now);
        if age != 0 {
            self.fade(block, age, now, decay);
        }
    }

    /// Fades a block by `age` and stamps it.
    #[inline(never)]
    pub(super) fn fade(&self, block: u64, age: u64, stamp: i64, decay: &Decay) {
        let _changing = self.stamps.change(block, stamp);
        if age != 0 {
            self.cells.fade(block, &decay.of_age(age));
        }
    }

    /// Brings another block along: a few of all adds do, so that in time every block is up to date.
    /// Which one depends on the key and the epoch alone, so filters that saw the same are the same.
    #[inline(always)]
    pub(super) fn sweep(&self, first: u64, now: i64, decay: &Decay) {
        if (first as i64).wrapping_add(now) & 7 == 0 {
            let block = ((first / DECAY_BLOCK) as i64).wrapping_add(now);
            self.settle(self.wrapped(block), now, decay);
        }
    }

    /// Brings the `count` blocks of this epoch up to date.
    pub(super) fn sweep_many(&self, count: u64, now: i64, decay: &Decay) {
        let start = now.wrapping_mul(count as i64);
        for i in 0..count.min(self.stamps.len()) {
            self.settle(self.wrapped(start.wrapping_add(i as i64)), now, decay);
        }
    }

    fn wrapped(&self, block: i64) -> u64 {
        block.rem_euclid(self.stamps.len() as i64) as u64
    }

    #[inline(always)]
    fn settle_all(&self, cells: &[u64], now: i64, decay: &Decay) {
        match self.placement.layout {
            Layout::Blocked => self.settle(cells[0] / DECAY_BLOCK, now, decay),
            Layout::Classic => {
                cells.iter().for_each(|cell| self.settle(*cell / DECAY_BLOCK, now, decay));
            }
        }
    }

    /// Brings the blocks of some cells up to `now`; the smallest of the cells. The only writer.
    #[inline(always)]
    pub(super) fn settled(&self, cells: &[u64], now: i64, decay: &Decay) -> u32 {
        self.settle_all(cells, now, decay);
        cells.iter().map(|cell| self.cells.get(*cell)).min().unwrap_or(0)
    }

    /// Brings all blocks from the time `now` to a later epoch.
    pub(super) fn fade_all(&self, now: i64, epoch: i64, decay: &Decay) {
        for block in 0..self.stamps.len() {
            let age = self.stamps.age(block, now) + (epoch - now) as u64;
            self.fade(block, age, epoch, decay);
        }
    }

    // ---- writing

    /// Raises different cells by the policy; true iff one of them was zero. The only writer.
    #[inline(always)]
    pub(super) fn raise(
        &self,
        cells: &[u64],
        weight: u64,
        policy: Policy,
        now: i64,
        decay: &Decay,
    ) -> bool {
        self.settle_all(cells, now, decay);
        if policy == Policy::Conservative {
            let before = cells.iter().map(|cell| self.cells.get(*cell)).min().unwrap_or(0);
            // Minimal increase: a cell that is higher already covers this key.
            let target = u64::from(before).saturating_add(weight);
            for cell in cells {
                let old = u64::from(self.cells.get(*cell));
                if old < target {
                    self.put(*cell, target);
                }
            }
            return before == 0;
        }
        // No sum of these overflows.
        let (new, full) = self.cells.raise(cells, weight.min(1 << 40), self.max);
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

    /// Sets a cell as far as it goes.
    #[inline(always)]
    fn put(&self, cell: u64, value: u64) {
        if value > u64::from(self.max) {
            self.stamps.set_full(cell / DECAY_BLOCK);
        }
        self.cells.set(cell, value.min(u64::from(self.max)) as u32);
    }

    // ---- asking

    /// The smallest of some cells, faded to the moment of the question. Writes nothing.
    #[inline(always)]
    pub(super) fn smallest(&self, cells: &[u64], asked: Asked<'_>, decay: &Decay) -> u32 {
        match self.placement.layout {
            Layout::Blocked => {
                // Fading keeps the order, so the smallest is the smallest of its block before.
                let least = || cells.iter().map(|cell| self.cells.get(*cell)).min().unwrap_or(0);
                self.faded(cells[0] / DECAY_BLOCK, asked, decay, least)
            }
            Layout::Classic => {
                let each = |cell: &u64| {
                    self.faded(*cell / DECAY_BLOCK, asked, decay, || self.cells.get(*cell))
                };
                cells.iter().map(each).min().unwrap_or(0)
            }
        }
    }

    /// One cell as of the moment of the question.
    pub(super) fn get(&self, cell: u64, asked: Asked<'_>, decay: &Decay) -> u32 {
        self.faded(cell / DECAY_BLOCK, asked, decay, || self.cells.get(cell))
    }

    #[inline(always)]
    fn faded(&self, block: u64, asked: Asked<'_>, decay: &Decay, value: impl Fn() -> u32) -> u32 {
        let look =
            |age: u64, now: i64| (value(), age + asked.epoch.saturating_sub(now).max(0) as u64);
        let (value, age) = self.stamps.read(block, || asked.now(), look);
        decay.fade(value, age)
    }

    // ---- whole levels

    pub(super) fn is_empty(&self, block: u64) -> bool {
        self.cells_of(block).all(|cell| self.cells.get(cell) == 0)
    }

    /// The values and stamps of another level of the same shape. Only while nobody else sees this one.
    pub(super) fn take_over(&self, other: &Self) {
        for block in 0..self.stamps.len() {
            self.stamps.restore(block, other.stamps.stored(block));
        }
        for cell in 0..self.placement.cells {
            match other.cells.get(cell) {
                0 => {}
                value => self.cells.set(cell, value),
            }
        }
    }

    pub(super) fn clear(&self) {
        for block in 0..self.stamps.len() {
            let _changing = self.stamps.change(block, 0);
            self.cells.clear(block);
        }
        self.stamps.clear();
    }

    /// Adds another level's cells, each block as of the later of its two stamps: what was brought up to
    /// date need not be rounded again. `now` is the time of both filters.
    pub(super) fn merge(&self, other: &Self, now: i64, decay: &Decay) {
        for block in 0..self.stamps.len() {
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

    /// Whether both hold the same: the stamp of an empty block says nothing.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        (0..self.stamps.len()).all(|block| self.stored(block) == other.stored(block))
            && (0..self.placement.cells).all(|cell| self.cells.get(cell) == other.cells.get(cell))
    }

    /// The stamp of a block as files keep it.
    pub(super) fn stored(&self, block: u64) -> u32 {
        let stored = self.stamps.stored(block);
        if self.is_empty(block) { Stamps::without_stamp(stored) } else { stored }
    }

    pub(super) fn was_full(&self, cells: &[u64]) -> bool {
        cells.iter().any(|cell| self.stamps.is_full(*cell / DECAY_BLOCK))
    }

    pub(super) fn full_blocks(&self) -> u64 {
        (0..self.stamps.len()).filter(|block| self.stamps.is_full(*block)).count() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.cells.bytes() + self.stamps.bytes()
    }

    /// Whether the cells are sound, and how old the oldest block is that holds something.
    pub(super) fn validate(&self, now: i64) -> Result<Option<u64>> {
        self.cells.validate()?;
        let filled = (0..self.stamps.len()).filter(|block| !self.is_empty(*block));
        Ok(filled.map(|block| self.stamps.age(block, now)).max())
    }

    pub(super) fn frozen(&self) -> Frozen<'_> {
        Frozen {
            cells: self.placement.cells,
            stored: Box::new(|block| self.stored(block)),
            value: Box::new(|cell| self.cells.get(cell)),
        }
    }

    /// Takes over what a file kept.
    pub(super) fn restore(&self, kept: &Frozen<'_>) -> Result<()> {
        let wrong = |got: &str| Err(Error::Field { name: "cells", got: got.to_owned() });
        if kept.cells != self.placement.cells {
            return wrong("another number of them");
        }
        for cell in 0..self.placement.cells {
            match (kept.value)(cell) {
                0 => {}
                value if value > self.max => return wrong("a value beyond the largest"),
                value => self.cells.set(cell, value),
            }
        }
        for block in 0..self.stamps.len() {
            self.stamps.restore(block, (kept.stored)(block));
            if self.stored(block) != (kept.stored)(block) {
                return wrong("the stamp of an empty block");
            }
        }
        Ok(())
    }
}
