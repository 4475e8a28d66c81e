//! Storage of cells. No probability and no hashing here.

mod counters;
mod decaying;
pub(crate) mod divisor;
mod dynamic;
mod gate;
mod growing;
#[cfg(test)]
mod growing_laws;
pub mod packed;
pub(crate) mod runs;
mod spectral;
mod version;
mod words;

pub use counters::Counters;
pub use decaying::{
    BasicCells, BlockValues, DECAY_BLOCK, Decay, DecayingCells, Fading, OLDEST, OptimizedCells,
    ROOM_128B, ROOM_192B, Rounding, Stamps,
};
pub use dynamic::{DynamicCells, DynamicShape};
pub use gate::{Entered, Gate};
pub use growing::{
    CHUNK, CellValues, Cut, GrowingCells, Held, Pauses, Rebuilds, Refused, STUCK, Stopped,
    smallest_each,
};
pub use spectral::{SpectralCells, SpectralShape};
pub use version::Version;
pub use words::{LINE_BYTES, LINE_WORDS, Words, bytes_for, physical_memory};
