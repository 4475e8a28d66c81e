//! Cells that fade, in blocks of 128 with a stamp each. What holds the values is one of the layouts behind
//! `DecayingCells`; stamps, decay and everything above are the same for all, so they answer alike.

mod basic;
mod decay;
mod stamps;

pub use basic::BasicCells;
pub use decay::{Decay, Fading, Rounding};
pub use stamps::{OLDEST, Stamps};

use crate::error::Result;

/// Cells in one block.
pub const DECAY_BLOCK: u64 = crate::placement::BLOCK_CELLS;

/// Where fixed point values are kept. A value has at most 32 bits. Whoever changes one is the only
/// writer; readers may look at any moment, and throw away what they saw in the middle of a change.
pub trait DecayingCells: std::fmt::Debug + Send + Sync + Sized {
    /// Whether setting one cell is more than one store, so that readers must be told of it.
    const TEARS: bool;

    /// `cells` zeroes of `bits` bits.
    fn zeroed(cells: u64, bits: u32) -> Result<Self>;

    /// Asks the processor for the cell's line.
    fn prefetch(&self, cell: u64);

    /// The value of a cell.
    fn get(&self, cell: u64) -> u32;

    /// Changes the value of a cell.
    fn set(&self, cell: u64, value: u32);

    /// Fades all cells of a block.
    fn fade(&self, block: u64, fading: &Fading);

    /// Memory in bytes.
    fn bytes(&self) -> u64;

    /// Whether nothing lies beyond the last cell, and the like.
    fn validate(&self) -> Result<()>;
}
