//! What holds a filter's cells: a level of either layout.
//!
//! Everything above sees this alone, so the layouts differ in nothing but memory and speed. Units are
//! those of the plan, 2^-`fraction_bits`.

use super::level::{Asked, Level};
use super::plan::{DecayStorage, DecayingPlan};
use crate::cells::{AMPLE, BasicCells, BlockValues, Decay, OptimizedCells, SCANT};
use crate::error::Result;
use crate::filters::Policy;

/// The cells of a filter.
#[derive(Debug)]
pub(super) enum Store {
    Basic(Level<BasicCells>),
    Optimized(Level<OptimizedCells<SCANT>>),
    /// The same where an occurrence is more than a digit.
    Ample(Level<OptimizedCells<AMPLE>>),
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

/// Runs an expression on the level.
macro_rules! on {
    ($store:expr, $level:ident => $work:expr) => {
        match $store {
            Store::Basic($level) => $work,
            Store::Optimized($level) => $work,
            Store::Ample($level) => $work,
        }
    };
}

/// The same with the level of another store of the same kind; `$otherwise` if it is of another one, which plans
/// that were compared before rule out.
macro_rules! both {
    ($store:expr, $other:expr, ($level:ident, $theirs:ident) => $work:expr, $otherwise:expr) => {
        match ($store, $other) {
            (Store::Basic($level), Store::Basic($theirs)) => $work,
            (Store::Optimized($level), Store::Optimized($theirs)) => $work,
            (Store::Ample($level), Store::Ample($theirs)) => $work,
            _ => $otherwise,
        }
    };
}

impl Store {
    pub(super) fn new(plan: &DecayingPlan) -> Result<Self> {
        let (placement, bits) = (plan.placement, plan.counter_bits);
        Ok(match plan.storage {
            DecayStorage::Basic => Store::Basic(Level::new(placement, bits)?),
            DecayStorage::Optimized if plan.is_ample() => {
                Store::Ample(Level::new(placement, bits)?)
            }
            DecayStorage::Optimized => Store::Optimized(Level::new(placement, bits)?),
        })
    }

    /// Whether readers must hold the gate.
    #[inline(always)]
    pub(super) fn tears(&self) -> bool {
        !matches!(self, Store::Basic(_))
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, cells: &[u64]) {
        on!(self, level => level.prefetch(cells));
    }

    #[inline(always)]
    pub(super) fn prefetch_tables(&self, cells: &[u64]) {
        on!(self, level => level.prefetch_tables(cells));
    }

    // ---- decay

    #[inline(always)]
    pub(super) fn sweep(&self, first: u64, now: i64, decay: &Decay) {
        on!(self, level => level.sweep(first, now, decay));
    }

    pub(super) fn sweep_many(&self, count: u64, now: i64, decay: &Decay) {
        on!(self, level => level.sweep_many(count, now, decay));
    }

    // ---- keys

    /// Raises a key by so many units; true iff it was certainly absent before. The only writer.
    #[inline(always)]
    pub(super) fn raise(
        &self,
        cells: &[u64],
        weight: u64,
        policy: Policy,
        now: i64,
        decay: &Decay,
    ) -> bool {
        on!(self, level => level.raise(cells, weight, policy, now, decay))
    }

    /// The units of a key at the moment of the question.
    #[inline(always)]
    pub(super) fn units(&self, cells: &[u64], asked: Asked<'_>, decay: &Decay) -> u64 {
        on!(self, level => u64::from(level.smallest(cells, asked, decay)))
    }

    /// The units of a cell.
    pub(super) fn get(&self, cell: u64, asked: Asked<'_>, decay: &Decay) -> u64 {
        on!(self, level => u64::from(level.get(cell, asked, decay)))
    }

    /// The cells of a block; zeroes behind the last cell.
    pub(super) fn block(&self, block: u64, asked: Asked<'_>, decay: &Decay) -> BlockValues {
        on!(self, level => level.block(block, asked, decay))
    }

    /// Whether a cell of the key may once have been full.
    pub(super) fn was_full(&self, cells: &[u64]) -> bool {
        on!(self, level => level.was_full(cells))
    }

    // ---- whole stores

    /// How many blocks were ever full.
    pub(super) fn full_blocks(&self) -> u64 {
        on!(self, level => level.full_blocks())
    }

    pub(super) fn bytes(&self) -> u64 {
        on!(self, level => level.bytes())
    }

    pub(super) fn clear(&self) {
        on!(self, level => level.clear());
    }

    /// Only while nobody else sees this one.
    pub(super) fn take_over(&self, other: &Store) {
        both!(self, other, (level, theirs) => level.take_over(theirs), ());
    }

    pub(super) fn merge(&self, other: &Store, now: i64, decay: &Decay) {
        both!(self, other, (level, theirs) => level.merge(theirs, now, decay), ());
    }

    pub(super) fn same_as(&self, other: &Store, now: i64, decay: &Decay) -> bool {
        both!(self, other, (level, theirs) => level.same_as(theirs, now, decay), false)
    }

    /// Whether the cells are sound, and how old the oldest block is that holds something.
    pub(super) fn validate(&self, now: i64) -> Result<Option<u64>> {
        on!(self, level => level.validate(now))
    }

    /// One moment of it.
    pub(super) fn frozen<'a>(&'a self, now: i64, decay: &'a Decay) -> Frozen<'a> {
        on!(self, level => level.frozen(now, decay))
    }

    /// Takes over what a file kept; how old the oldest block is that holds something.
    pub(super) fn restore(&self, kept: &Frozen<'_>, now: i64) -> Result<Option<u64>> {
        on!(self, level => level.restore(kept, now))
    }
}
