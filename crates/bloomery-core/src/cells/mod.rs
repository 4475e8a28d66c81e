//! Storage of cells. No probability and no hashing here.

mod counters;
mod gate;
pub mod packed;
mod words;

pub use counters::Counters;
pub use gate::{Entered, Gate};
pub use words::{LINE_BYTES, LINE_WORDS, Words};
