//! What holds a filter's cells: one level of either layout, or two tiers.
//!
//! Everything above sees this alone, so the layouts differ in nothing but memory and speed. Units are
//! those of the plan, 2^-`fraction_bits`.

use super::level::{Asked, Level};
use super::plan::{DecayLayout, DecayingPlan};
use super::pool::{Pool, Refused};
use super::tiers::Tiers;
use crate::cells::{AMPLE, BasicCells, BlockValues, Decay, OptimizedCells, PackedCells, SCANT};
use crate::error::{Error, Result};
use crate::filters::Policy;
use crate::hash::KeyHash;

/// The cells of a filter.
#[derive(Debug)]
pub(super) enum Store {
    Basic(Level<BasicCells>),
    Optimized(Level<OptimizedCells<SCANT>>),
    /// The same where an occurrence is more than a digit.
    Ample(Level<OptimizedCells<AMPLE>>),
    Packed(Level<PackedCells>),
    Tiered(Box<Tiers>),
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

/// Runs an expression on every level there is.
macro_rules! every {
    ($store:expr, $level:ident => $work:expr) => {
        match $store {
            Store::Basic($level) => $work,
            Store::Optimized($level) => $work,
            Store::Ample($level) => $work,
            Store::Packed($level) => $work,
            Store::Tiered(tiers) => {
                let $level = &tiers.first;
                $work;
                let $level = &tiers.second;
                $work
            }
        }
    };
}

/// The same with the level of another store of the same kind.
macro_rules! both {
    ($store:expr, $other:expr, ($level:ident, $theirs:ident) => $work:expr) => {
        match ($store, $other) {
            (Store::Basic($level), Store::Basic($theirs)) => $work,
            (Store::Optimized($level), Store::Optimized($theirs)) => $work,
            (Store::Ample($level), Store::Ample($theirs)) => $work,
            (Store::Packed($level), Store::Packed($theirs)) => $work,
            (Store::Tiered(ours), Store::Tiered(others)) => {
                let ($level, $theirs) = (&ours.first, &others.first);
                let first = $work;
                let ($level, $theirs) = (&ours.second, &others.second);
                let second = $work;
                first & second
            }
            // Plans were compared before.
            _ => false,
        }
    };
}

/// Runs an expression on the level that has the filter's own positions.
macro_rules! first {
    ($store:expr, $level:ident => $work:expr) => {
        match $store {
            Store::Basic($level) => $work,
            Store::Optimized($level) => $work,
            Store::Ample($level) => $work,
            Store::Packed($level) => $work,
            Store::Tiered(tiers) => {
                let $level = &tiers.first;
                $work
            }
        }
    };
}

impl Store {
    pub(super) fn new(plan: &DecayingPlan) -> Result<Self> {
        let (placement, bits) = (plan.placement, plan.counter_bits);
        Ok(match plan.layout {
            DecayLayout::Basic => Store::Basic(Level::new(placement, bits)?),
            DecayLayout::Optimized => {
                let pool = Pool::new(plan.pool);
                if plan.is_packed() {
                    Store::Packed(Level { pool, ..Level::new(placement, bits)? })
                } else if plan.is_ample() {
                    Store::Ample(Level { pool, ..Level::new(placement, bits)? })
                } else {
                    Store::Optimized(Level { pool, ..Level::new(placement, bits)? })
                }
            }
            DecayLayout::Tiered => Store::Tiered(Box::new(Tiers::new(plan)?)),
        })
    }

    /// Whether readers must hold the gate.
    #[inline(always)]
    pub(super) fn tears(&self) -> bool {
        matches!(self, Store::Optimized(_) | Store::Ample(_) | Store::Packed(_))
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, cells: &[u64]) {
        first!(self, level => level.prefetch(cells));
    }

    #[inline(always)]
    pub(super) fn prefetch_tables(&self, cells: &[u64]) {
        first!(self, level => level.prefetch_tables(cells));
    }

    // ---- decay

    #[inline(always)]
    pub(super) fn sweep(&self, first: u64, now: i64, decay: &Decay) {
        every!(self, level => level.sweep(first, now, decay));
    }

    pub(super) fn sweep_many(&self, count: u64, now: i64, decay: &Decay) {
        every!(self, level => level.sweep_many(count, now, decay));
    }

    // ---- keys

    /// Raises a key by so many units; true iff it was certainly absent before. The only writer.
    #[inline(always)]
    pub(super) fn raise(
        &self,
        cells: &[u64],
        hash: KeyHash,
        weight: u64,
        policy: Policy,
        now: i64,
        decay: &Decay,
    ) -> bool {
        match self {
            Store::Basic(level) => level.raise(cells, weight, policy, now, decay),
            Store::Optimized(level) => level.raise(cells, weight, policy, now, decay),
            Store::Ample(level) => level.raise(cells, weight, policy, now, decay),
            Store::Packed(level) => level.raise(cells, weight, policy, now, decay),
            Store::Tiered(tiers) => tiers.raise(cells, hash, weight, policy, now, decay),
        }
    }

    /// Whether the pool has the digits that `raise` would borrow.
    pub(super) fn room_to_raise(
        &self,
        cells: &[u64],
        weight: u64,
        policy: Policy,
        now: i64,
        decay: &Decay,
    ) -> std::result::Result<(), Refused> {
        match self {
            Store::Optimized(level) => level.room_to_raise(cells, weight, policy, now, decay),
            Store::Ample(level) => level.room_to_raise(cells, weight, policy, now, decay),
            Store::Packed(level) => level.room_to_raise(cells, weight, policy, now, decay),
            _ => Ok(()),
        }
    }

    /// The same for `merge`.
    pub(super) fn room_to_merge(
        &self,
        other: &Store,
        now: i64,
        decay: &Decay,
    ) -> std::result::Result<(), Refused> {
        match (self, other) {
            (Store::Optimized(level), Store::Optimized(theirs)) => {
                level.room_to_merge(theirs, now, decay)
            }
            (Store::Ample(level), Store::Ample(theirs)) => level.room_to_merge(theirs, now, decay),
            (Store::Packed(level), Store::Packed(theirs)) => {
                level.room_to_merge(theirs, now, decay)
            }
            _ => Ok(()),
        }
    }

    /// The units of a key at the moment of the question.
    #[inline(always)]
    pub(super) fn units(
        &self,
        cells: &[u64],
        hash: KeyHash,
        asked: Asked<'_>,
        decay: &Decay,
    ) -> u64 {
        match self {
            Store::Basic(level) => u64::from(level.smallest(cells, asked, decay)),
            Store::Optimized(level) => u64::from(level.smallest(cells, asked, decay)),
            Store::Ample(level) => u64::from(level.smallest(cells, asked, decay)),
            Store::Packed(level) => u64::from(level.smallest(cells, asked, decay)),
            Store::Tiered(tiers) => tiers.units(cells, hash, asked, decay),
        }
    }

    /// The units of a cell of the first level.
    pub(super) fn get(&self, cell: u64, asked: Asked<'_>, decay: &Decay) -> u64 {
        match self {
            Store::Basic(level) => u64::from(level.get(cell, asked, decay)),
            Store::Optimized(level) => u64::from(level.get(cell, asked, decay)),
            Store::Ample(level) => u64::from(level.get(cell, asked, decay)),
            Store::Packed(level) => u64::from(level.get(cell, asked, decay)),
            Store::Tiered(tiers) => u64::from(tiers.first.get(cell, asked, decay)) << tiers.shift,
        }
    }

    /// The cells of a block of the first level; zeroes behind the last cell.
    pub(super) fn block(&self, block: u64, asked: Asked<'_>, decay: &Decay) -> BlockValues {
        first!(self, level => level.block(block, asked, decay))
    }

    /// Whether a cell of the key may once have been full.
    pub(super) fn was_full(&self, cells: &[u64], hash: KeyHash) -> bool {
        match self {
            Store::Basic(level) => level.was_full(cells),
            Store::Optimized(level) => level.was_full(cells),
            Store::Ample(level) => level.was_full(cells),
            Store::Packed(level) => level.was_full(cells),
            // A merge may have filled the first level.
            Store::Tiered(tiers) => {
                let second = tiers.second_cells(hash);
                tiers.first.was_full(cells) || tiers.second.was_full(second.as_slice())
            }
        }
    }

    /// Chance that the second level alone calls an absent key present.
    pub(super) fn second_error(&self, asked: Asked<'_>, decay: &Decay) -> f64 {
        let Store::Tiered(tiers) = self else { return 0.0 };
        let level = &tiers.second;
        let used = |cell| level.get(cell, asked, decay) != 0;
        level.placement.measure((0..level.placement.cells).map(used)).2
    }

    // ---- whole stores

    /// How many blocks were ever full.
    pub(super) fn full_blocks(&self) -> u64 {
        let mut full = 0;
        every!(self, level => full += level.full_blocks());
        full
    }

    pub(super) fn bytes(&self) -> u64 {
        let mut bytes = 0;
        every!(self, level => bytes += level.bytes());
        bytes
    }

    pub(super) fn clear(&self) {
        every!(self, level => level.clear());
    }

    /// Only while nobody else sees this one.
    pub(super) fn take_over(&self, other: &Store) -> bool {
        both!(self, other, (level, theirs) => {
            level.take_over(theirs);
            true
        })
    }

    pub(super) fn merge(&self, other: &Store, now: i64, decay: &Decay) -> bool {
        both!(self, other, (level, theirs) => {
            level.merge(theirs, now, decay);
            true
        })
    }

    pub(super) fn same_as(&self, other: &Store, now: i64, decay: &Decay) -> bool {
        both!(self, other, (level, theirs) => level.same_as(theirs, now, decay))
    }

    /// Whether the cells are sound, and how old the oldest block is that holds something.
    pub(super) fn validate(&self, now: i64) -> Result<Option<u64>> {
        let mut oldest = None;
        every!(self, level => oldest = oldest.max(level.validate(now)?));
        Ok(oldest)
    }

    /// One moment of it.
    pub(super) fn frozen<'a>(&'a self, now: i64, decay: &'a Decay) -> Vec<Frozen<'a>> {
        let mut levels = Vec::new();
        every!(self, level => levels.push(level.frozen(now, decay)));
        levels
    }

    /// Takes over what a file kept; how old the oldest block is that holds something.
    pub(super) fn restore(&self, kept: &[Frozen<'_>], now: i64) -> Result<Option<u64>> {
        let mut oldest = None;
        let mut kept = kept.iter();
        let none = || Error::Field { name: "sections", got: "too few".to_owned() };
        every!(self, level => {
            oldest = oldest.max(level.restore(kept.next().ok_or_else(none)?, now)?);
        });
        Ok(oldest)
    }
}
