//! How much memory a filter takes when it is as full as planned. Formulas only; nothing is allocated.
//!
//! A block of the optimized layout has a table once more of its cells need an entry than its record has. A cell needs
//! one if its keys take more than a digit together: one key, or some where an occurrence is less than a digit. Of n
//! keys, a block has Poisson(128 n/m), each of which is in one of the 128/k cells of all k groups; in the classic
//! layout each cell is for itself.

use super::plan::{DecayStorage, DecayingPlan};
use crate::cells::{DECAY_BLOCK, OptimizedCells, ROOM_128B, ROOM_192B};
use crate::placement::Layout;
use crate::sizing;

impl DecayingPlan {
    /// Bytes with the planned keys inside, each of which came once in the present epoch. They may come more often, as
    /// long as they take no more than 16 bits beyond a digit.
    pub fn bytes_at_capacity(&self) -> u64 {
        let tables = self.blocks() * self.with_table() * self.table_bytes(16) as f64;
        self.bytes().saturating_add(tables.round() as u64)
    }

    /// Bytes that no stream exceeds.
    pub fn bytes_at_most(&self) -> u64 {
        let tables = self.blocks() * self.table_bytes(self.counter_bits) as f64;
        self.bytes().saturating_add(tables.round() as u64)
    }

    fn blocks(&self) -> f64 {
        self.cells().div_ceil(DECAY_BLOCK) as f64
    }

    /// Bytes of a block's table, whose widest cell has so many bits.
    fn table_bytes(&self, bits: u32) -> u64 {
        match self.storage {
            DecayStorage::Basic => 0,
            DecayStorage::Optimized if self.is_ample() => {
                OptimizedCells::<ROOM_192B>::table_bytes(bits)
            }
            DecayStorage::Optimized => OptimizedCells::<ROOM_128B>::table_bytes(bits),
        }
    }

    /// The share of blocks whose keys need more entries than a record has.
    fn with_table(&self) -> f64 {
        let (cells, hashes) = (self.cells() as f64, f64::from(self.hashes()));
        let half = cells * std::f64::consts::LN_2 / hashes;
        let keys = self.capacity.map_or(half, |keys| keys as f64);
        let room = match self.is_ample() {
            true => OptimizedCells::<ROOM_192B>::ENTRIES,
            false => OptimizedCells::<ROOM_128B>::ENTRIES,
        };
        let (room, block) = (room as f64 + 0.5, DECAY_BLOCK as f64);
        let beyond =
            |mean: f64, variance: f64| sizing::normal_tail((room - mean) / variance.sqrt());
        // Keys of a cell that take more than its digit together.
        let together = (16 >> self.fraction_bits.min(4)).max(1);
        match self.placement.layout {
            Layout::Blocked if together == 1 => {
                sizing::poisson_mean(keys * block / cells, |keys| {
                    let (mean, variance) = sizing::occupied(keys, block / hashes);
                    beyond(hashes * mean, hashes * variance)
                })
            }
            Layout::Blocked => sizing::poisson_mean(keys * block / cells, |keys| {
                let share = at_least(together, keys * hashes / block);
                beyond(block * share, block * share * (1.0 - share))
            }),
            Layout::Classic => {
                let share = at_least(together, hashes * keys / cells);
                beyond(block * share, block * share * (1.0 - share))
            }
        }
    }
}

/// Chance that a Poisson variable is so large.
fn at_least(least: u32, mean: f64) -> f64 {
    let (mut below, mut term) = (0.0, (-mean).exp());
    for i in 0..least {
        below += term;
        term *= mean / f64::from(i + 1);
    }
    1.0 - below
}
