//! Where the counters of a key lie: shared by every structure that counts.
//!
//!   `classic`  k independent cells (`positions.rs`): fewest counters, k cache misses a key
//!   `blocked`  one block of 128 cells a key, cut into k = 1, 2, 4 or 8 groups; one cell in each
//!              group. The block is one line of 4-bit counters, two of 8-bit counters.
//!
//!   h1 -> block      block  [ group 0 ............ | group 1 ............ | group 2 ... | group 3 ... ]
//!   h2 -> a cell in each          ^ 5 bits of h2         ^ the next 5 bits
//!
//! A blocked key has its cells in different groups, so no cell comes twice and nothing needs to be
//! stepped modulo m. It costs a fifth more counters at 1 % (specification 10.4), with k = 4 instead of 7.

use crate::error::{Result, require, require_same};
use crate::filters::{check_capacity, check_error_rate, check_hashes};
use crate::hash::KeyHash;
use crate::named::named;
use crate::positions::{Cells, Derivation, MAX_HASHES, Positions, reduce};
use crate::sizing;

/// Cells in one block.
pub const BLOCK_CELLS: u64 = sizing::COUNTER_BLOCK;
/// Blocked down to this error rate; below it the blocks cost more than a quarter of the memory.
const BLOCKED_FROM: f64 = 0.005;
/// Cells beyond this are refused before any arithmetic could overflow.
const MAX_CELLS: u64 = 1 << 51;

/// How a key's cells lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All cells of a key in one block: one cache miss a key, or few.
    Blocked,
    /// k independent positions: fewest cells, k cache misses a key.
    Classic,
}

named! {
    Layout: "layout", "\"blocked\" or \"classic\"", "leave it out to have it chosen by the error rate";
    Blocked = "blocked", Classic = "classic"
}

/// Which cells a key has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// Where a key's cells lie.
    pub layout: Layout,
    /// How classic positions come from a digest. The blocked layout has its own, see above.
    pub derivation: Derivation,
    /// Number of cells, m.
    pub cells: u64,
    /// Cells per key, k.
    pub hashes: u32,
}

impl Placement {
    /// The fewest cells whose chance of a wrong "present" is `error_rate` when `capacity` different
    /// keys are inside.
    pub fn for_goal(
        capacity: u64,
        error_rate: f64,
        layout: Option<Layout>,
        derivation: Derivation,
    ) -> Result<Self> {
        check_capacity(capacity)?;
        check_error_rate(error_rate)?;
        // Another derivation is a question about classic positions, so asking for it asks for them.
        let by_itself = if error_rate >= BLOCKED_FROM && derivation == Derivation::Enhanced {
            Layout::Blocked
        } else {
            Layout::Classic
        };
        let n = capacity as f64;
        let layout = layout.unwrap_or(by_itself);
        let (cells, hashes) = match layout {
            Layout::Blocked => {
                let (blocks, hashes) = sizing::counter_block_plan(n, error_rate);
                (blocks.saturating_mul(BLOCK_CELLS), hashes)
            }
            Layout::Classic => sizing::classic_plan(n, error_rate, derivation),
        };
        Ok(Placement { layout, derivation, cells, hashes })
    }

    /// Given sizes; a blocked filter has whole blocks.
    pub fn for_sizes(
        cells: u64,
        hashes: u32,
        layout: Option<Layout>,
        derivation: Derivation,
    ) -> Self {
        let layout = layout.unwrap_or(Layout::Classic);
        let cells = match layout {
            Layout::Blocked => cells.checked_next_multiple_of(BLOCK_CELLS).unwrap_or(u64::MAX),
            Layout::Classic => cells,
        };
        Placement { layout, derivation, cells, hashes }
    }

    /// The placement, if every field is one that can be built.
    pub fn checked(self) -> Result<Self> {
        check_hashes(self.hashes, MAX_HASHES)?;
        let (cells, hint) = (self.cells, "about 10 counters a key give 1 % error");
        require((1..=MAX_CELLS).contains(&cells), "cells", cells, "between 1 and 2**51", hint)?;
        if self.layout == Layout::Blocked {
            let powers = matches!(self.hashes, 1 | 2 | 4 | 8);
            let allowed = "1, 2, 4 or 8 in the blocked layout";
            let hint =
                "a block of counters has that many groups; use layout=\"classic\" for others";
            require(powers, "hashes", self.hashes, allowed, hint)?;
            let (whole, allowed) =
                (cells.is_multiple_of(BLOCK_CELLS), "a multiple of 128 in the blocked layout");
            require(whole, "cells", cells, allowed, "round it up to whole blocks")?;
            let enhanced = self.derivation == Derivation::Enhanced;
            let hint = "use layout=\"classic\" with other derivations";
            let got = self.derivation.name();
            require(enhanced, "derivation", got, "\"enhanced\" in the blocked layout", hint)?;
        }
        if self.derivation == Derivation::Slices {
            let allowed = "a power of two with derivation \"slices\"";
            let hint = "a slice of b bits names one of 2**b counters";
            require(cells.is_power_of_two(), "cells", cells, allowed, hint)?;
        }
        Ok(self)
    }

    /// log2 of the cells in a group.
    #[inline(always)]
    pub(crate) fn group_bits(&self) -> u32 {
        BLOCK_CELLS.trailing_zeros() - self.hashes.trailing_zeros()
    }

    /// The first cell of the key's block.
    #[inline(always)]
    pub(crate) fn block(&self, hash: KeyHash) -> u64 {
        reduce(hash.h1, self.cells / BLOCK_CELLS) * BLOCK_CELLS
    }

    /// The key's cells, each once, in the order they are derived. At most K of them.
    #[inline(always)]
    pub fn distinct<const K: usize>(&self, hash: KeyHash) -> Cells<K> {
        match self.layout {
            Layout::Blocked => self.in_block(hash),
            Layout::Classic => Cells::distinct(self.positions(hash)),
        }
    }

    /// The key's cells; one may come twice, which does not change a minimum.
    #[inline(always)]
    pub fn all<const K: usize>(&self, hash: KeyHash) -> Cells<K> {
        match self.layout {
            Layout::Blocked => self.in_block(hash),
            Layout::Classic => Cells::all(self.positions(hash)),
        }
    }

    #[inline(always)]
    fn positions(&self, hash: KeyHash) -> Positions {
        Positions::new(hash, self.derivation, self.cells, self.hashes)
    }

    #[inline(always)]
    fn in_block<const K: usize>(&self, hash: KeyHash) -> Cells<K> {
        let bits = self.group_bits();
        let (mut start, mut choice) = (self.block(hash), hash.h2);
        Cells::take(self.hashes, || {
            let cell = start + (choice & ((1 << bits) - 1));
            start += 1 << bits;
            choice >>= bits;
            cell
        })
    }

    /// Expected chance of a wrong "present" when `n` distinct keys are inside.
    pub fn error_at(&self, n: f64) -> f64 {
        match self.layout {
            Layout::Blocked => {
                sizing::counter_block_error(n, (self.cells / BLOCK_CELLS) as f64, self.hashes)
            }
            Layout::Classic => {
                sizing::derived_error(n, self.cells as f64, self.hashes, self.derivation)
            }
        }
    }

    /// (estimated keys, fill, chance of a wrong "present" now) of cells, of which `used` says which are
    /// not zero, in order.
    pub fn measure(&self, used: impl Iterator<Item = bool>) -> (f64, f64, f64) {
        let (m, k) = (self.cells as f64, self.hashes);
        let (fill, chance) = self.all_chosen(used, k);
        // Every group is a classic filter of one hash, so the blocked estimate is the same formula.
        let items = sizing::keys_from_fill(fill, m, f64::from(k));
        let error = match self.layout {
            Layout::Blocked => chance,
            Layout::Classic => sizing::measured_error(items, m, k, fill, self.derivation),
        };
        (items, fill, error)
    }

    /// (share of the chosen cells, chance that all `probes` different cells of a key are chosen).
    /// `chosen` tells of cells in order: of all, or of some whole blocks.
    pub fn all_chosen(&self, chosen: impl Iterator<Item = bool>, probes: u32) -> (f64, f64) {
        let group = match self.layout {
            Layout::Blocked => 1u64 << self.group_bits(),
            Layout::Classic => 1,
        };
        let (mut cells, mut total, mut in_group) = (0u64, 0u64, 0u64);
        let (mut in_block, mut blocks) = (1.0, 0.0);
        for chosen in chosen {
            cells += 1;
            in_group += u64::from(chosen);
            if cells.is_multiple_of(group) {
                // A key of this block has one cell in every group.
                in_block *= in_group as f64 / group as f64;
                total += in_group;
                in_group = 0;
            }
            if cells.is_multiple_of(BLOCK_CELLS) {
                blocks += in_block;
                in_block = 1.0;
            }
        }
        let share = total as f64 / cells as f64;
        match self.layout {
            // Blocks are equally likely. They differ in load, so share^k would be too low.
            Layout::Blocked => (share, blocks * BLOCK_CELLS as f64 / cells as f64),
            Layout::Classic => (share, share.powi(probes as i32)),
        }
    }

    /// Refuses to go on when `other` places keys elsewhere.
    pub fn require_same(&self, other: &Placement) -> Result<()> {
        require_same("layout", self.layout.name(), other.layout.name())?;
        // Before the sizes, which a goal derives from it.
        require_same("derivation", self.derivation.name(), other.derivation.name())?;
        require_same("cells", self.cells, other.cells)?;
        require_same("hashes", self.hashes, other.hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_each_group_is_taken_and_blocks_count_alike() {
        let placement = |layout| Placement::for_sizes(256, 2, Some(layout), Derivation::Enhanced);
        // A half of each group of the first block, and all of the first group of the second.
        let chosen = || (0u32..256).map(|cell| cell % 64 < 32 && cell < 128 || cell / 64 == 2);
        assert_eq!(placement(Layout::Blocked).all_chosen(chosen(), 2), (0.5, 0.125));
        assert_eq!(placement(Layout::Classic).all_chosen(chosen(), 2), (0.5, 0.25));
    }
}
