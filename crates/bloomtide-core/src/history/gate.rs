//! The gate: a Bloom filter of all keys of a segment, the paper's global filter.
//!
//! A key that never came to the segment is stopped here with one or two reads, and where it is not, the
//! matrix must err too: the chances multiply.

use super::bits::set;
use super::mark::{Mark, Part, Spread};
use crate::error::{Error, Result};

/// A gate while it is made.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) bits: u64,
    pub(super) words: Vec<u64>,
}

impl Gate {
    pub(super) fn new(bits: u64) -> Result<Self> {
        let words = usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX);
        let refused = |_| Error::Capacity { needed: bits / 8, limit: isize::MAX as u64 };
        let mut out = Vec::new();
        out.try_reserve_exact(words).map_err(refused)?;
        out.resize(words, 0);
        Ok(Gate { bits, words: out })
    }

    pub(super) fn add(&mut self, mark: Mark, hashes: u32) {
        let spread = Spread::of(mark, Part::Gate);
        (0..hashes).for_each(|i| set(&mut self.words, spread.position(i, self.bits)));
    }

    /// Share of the bits that are on.
    pub(super) fn fill(&self) -> f64 {
        let on: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        on as f64 / self.bits as f64
    }
}
