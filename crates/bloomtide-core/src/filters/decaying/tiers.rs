//! The tiered layout: the "series of filters" of the paper's introduction.
//!
//! The first level has small cells that stop at 15 occurrences; a key whose cells are all there goes on in the
//! second one, an eighth as many wide cells with hashes of their own. A key's count is the *sum* of both
//! minima, always: what a key added to a level is at most the smallest of its cells there, and fading keeps
//! that so. (A full first level alone would not do: once it fades, the second must still count.)
//!
//! Adding never makes the first level lose count: a cell stops rising at the cap, but so does the part of each
//! of its keys. A merge may: cells that would go beyond the cap stop there, and their block is flagged.

use super::level::{Asked, Level};
use super::plan::DecayingPlan;
use super::{FEW, MOST};
use crate::cells::{BasicCells, Decay, DecayingCells};
use crate::error::Result;
use crate::filters::Policy;
use crate::hash::KeyHash;
use crate::placement::{Layout, Placement};
use crate::positions::{Cells, Derivation};

/// Width of a cell of the first level, and where it stops, in occurrences.
pub(super) const FIRST_BITS: u32 = 8;
const CAP: u32 = 15;
/// Bits behind the point that fit beside the cap.
const FIRST_FRACTION: u32 = 4;

/// Small cells for all keys, wide ones for those that are hot.
#[derive(Debug)]
pub(super) struct Tiers {
    pub(super) first: Level<BasicCells>,
    pub(super) second: Level<BasicCells>,
    /// Bits behind the point that only the second level has.
    pub(super) shift: u32,
}

/// Where the second level's cells lie.
pub(super) fn second_placement(first: &Placement) -> Placement {
    let eighth = first.cells.div_ceil(8);
    let cells = match (first.layout, first.derivation) {
        (Layout::Blocked, _) => eighth.next_multiple_of(crate::placement::BLOCK_CELLS),
        // A power of two, and so is its eighth, down to one.
        (Layout::Classic, Derivation::Slices) => (first.cells / 8).max(1),
        (Layout::Classic, _) => eighth,
    };
    Placement { cells, ..*first }
}

impl Tiers {
    pub(super) fn new(plan: &DecayingPlan) -> Result<Self> {
        let fraction = plan.fraction_bits.min(FIRST_FRACTION);
        let mut first = Level::new(plan.placement, FIRST_BITS)?;
        first.max = CAP << fraction;
        let second = Level::new(second_placement(&plan.placement), plan.counter_bits)?;
        Ok(Tiers { first, second, shift: plan.fraction_bits - fraction })
    }

    #[inline(always)]
    pub(super) fn second_cells(&self, hash: KeyHash) -> Cells<MOST> {
        self.second.placement.distinct(hash.extend(1))
    }

    #[inline(always)]
    fn on_second<T>(&self, hash: KeyHash, work: impl FnOnce(&[u64]) -> T) -> T {
        let hash = hash.extend(1);
        match self.second.placement.hashes as usize {
            ..=FEW => work(self.second.placement.distinct::<FEW>(hash).as_slice()),
            _ => work(self.second.placement.distinct::<MOST>(hash).as_slice()),
        }
    }

    /// Raises the first level as far as it goes, and the second by the rest.
    pub(super) fn raise(
        &self,
        cells: &[u64],
        hash: KeyHash,
        weight: u64,
        policy: Policy,
        now: i64,
        decay: &Decay,
    ) -> bool {
        let least = self.first.settled(cells, now, decay);
        let room = u64::from(self.first.max - least.min(self.first.max));
        let small = weight.div_ceil(1 << self.shift).min(room);
        if small != 0 {
            for cell in cells {
                let old = self.first.cells.get(*cell);
                let new = match policy {
                    Policy::Conservative => old.max(least + small as u32),
                    _ => (old + small as u32).min(self.first.max),
                };
                self.first.cells.set(*cell, new);
            }
        }
        let rest = weight.saturating_sub(small << self.shift);
        if rest == 0 && least != 0 {
            return false;
        }
        self.on_second(hash, |cells| {
            let absent = self.second.settled(cells, now, decay) == 0;
            if rest != 0 {
                self.second.raise(cells, rest, policy, now, decay);
            }
            absent && least == 0
        })
    }

    #[inline(always)]
    pub(super) fn units(
        &self,
        cells: &[u64],
        hash: KeyHash,
        asked: Asked<'_>,
        decay: &Decay,
    ) -> u64 {
        let first = u64::from(self.first.smallest(cells, asked, decay)) << self.shift;
        let second = self.on_second(hash, |cells| self.second.smallest(cells, asked, decay));
        first + u64::from(second)
    }
}
