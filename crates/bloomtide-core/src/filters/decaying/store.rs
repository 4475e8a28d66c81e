//! What holds a filter's cells: a level of either layout.
//!
//! Everything above sees this alone, so the layouts differ in nothing but memory and speed. Units are
//! those of the plan, 2^-`fraction_bits`.

use super::level::Level;
use super::plan::{DecayStorage, DecayingPlan};
use crate::cells::{BasicCells, OptimizedCells, ROOM_128B, ROOM_192B};
use crate::error::Result;

/// The cells of a filter.
#[derive(Debug)]
pub(super) enum Store {
    Basic(Level<BasicCells>),
    Records128B(Level<OptimizedCells<ROOM_128B>>),
    /// Optimized cells where an occurrence is more than a digit.
    Records192B(Level<OptimizedCells<ROOM_192B>>),
}

/// Runs an expression on the level.
macro_rules! on {
    ($store:expr, $level:ident => $work:expr) => {
        match $store {
            Store::Basic($level) => $work,
            Store::Records128B($level) => $work,
            Store::Records192B($level) => $work,
        }
    };
}

/// The same with the level of another store of the same kind; `$otherwise` if it is of another one, which plans
/// that were compared before rule out.
macro_rules! both {
    ($store:expr, $other:expr, ($level:ident, $theirs:ident) => $work:expr, $otherwise:expr) => {
        match ($store, $other) {
            (Store::Basic($level), Store::Basic($theirs)) => $work,
            (Store::Records128B($level), Store::Records128B($theirs)) => $work,
            (Store::Records192B($level), Store::Records192B($theirs)) => $work,
            _ => $otherwise,
        }
    };
}

pub(super) use {both, on};

impl Store {
    pub(super) fn new(plan: &DecayingPlan) -> Result<Self> {
        let (placement, bits) = (plan.placement, plan.counter_bits);
        Ok(match plan.storage {
            DecayStorage::Basic => Store::Basic(Level::new(placement, bits)?),
            DecayStorage::Optimized if plan.is_ample() => {
                Store::Records192B(Level::new(placement, bits)?)
            }
            DecayStorage::Optimized => Store::Records128B(Level::new(placement, bits)?),
        })
    }

    /// Whether readers must hold the gate.
    #[inline(always)]
    pub(super) fn tears(&self) -> bool {
        !matches!(self, Store::Basic(_))
    }
}
