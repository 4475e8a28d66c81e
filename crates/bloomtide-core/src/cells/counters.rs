//! Counters of 4, 8, 16 or 32 bits packed into words. A counter never crosses a word.
//!
//! A counter that reaches its largest value sticks there: lowering it again could bring it to zero
//! while keys still use it, which would be a false negative (specification, section 2).

use crate::cells::Words;
use crate::error::{Result, require};
use std::sync::atomic::{AtomicU64, Ordering};

/// m packed counters.
#[derive(Debug)]
pub struct Counters {
    words: Words,
    cells: u64,
    /// log2 of the counter's width.
    log_width: u32,
}

impl Counters {
    /// `cells` counters at zero. `width` is 4, 8, 16 or 32.
    pub fn zeroed(cells: u64, width: u32) -> Result<Self> {
        Self::check_width(width)?;
        let words = Words::zeroed(cells.saturating_mul(u64::from(width)))?;
        Ok(Counters { words, cells, log_width: width.trailing_zeros() })
    }

    /// Counters over words that were read from a snapshot.
    pub(crate) fn over(words: Words, cells: u64, width: u32) -> Self {
        Counters { words, cells, log_width: width.trailing_zeros() }
    }

    /// Refuses other widths than the four.
    pub fn check_width(width: u32) -> Result<()> {
        let hint = "4 is enough for sets, 16 for most streams";
        require(matches!(width, 4 | 8 | 16 | 32), "counter_bits", width, "4, 8, 16 or 32", hint)
    }

    /// Width of a counter in bits.
    pub fn width(&self) -> u32 {
        1 << self.log_width
    }

    /// Number of counters.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// The largest value, at which a counter sticks.
    #[inline(always)]
    pub fn max(&self) -> u64 {
        (1 << self.width()) - 1
    }

    /// The words below.
    pub fn words(&self) -> &Words {
        &self.words
    }

    #[inline(always)]
    fn locate(&self, cell: u64) -> (&AtomicU64, u32) {
        debug_assert!(cell < self.cells);
        let bit = cell << self.log_width;
        // SAFETY: cell < cells, and the words hold cells * width bits.
        let word = unsafe { self.words.atomics().get_unchecked((bit >> 6) as usize) };
        (word, (bit & 63) as u32)
    }

    /// Asks the processor for the counter's line.
    #[inline(always)]
    pub fn prefetch(&self, cell: u64) {
        self.words.prefetch(((cell << self.log_width) >> 6) as usize);
    }

    /// The counter's value.
    #[inline(always)]
    pub fn get(&self, cell: u64) -> u64 {
        let (word, shift) = self.locate(cell);
        (word.load(Ordering::Relaxed) >> shift) & self.max()
    }

    /// Replaces the value by `change(old)`, which must fit, and returns the old one. The caller is
    /// the only writer of this word (inside the gate, or owner of the word's range).
    #[inline(always)]
    pub fn update(&self, cell: u64, change: impl FnOnce(u64) -> u64) -> u64 {
        let (word, shift) = self.locate(cell);
        let whole = word.load(Ordering::Relaxed);
        let old = (whole >> shift) & self.max();
        let new = change(old);
        word.store(whole ^ ((old ^ new) << shift), Ordering::Relaxed);
        old
    }

    /// Adds one, unless the counter is full, and returns the old value. As `update`, but shorter: it is
    /// what a batch of adds is made of.
    #[inline(always)]
    pub fn increment(&self, cell: u64) -> u64 {
        let (word, shift) = self.locate(cell);
        let whole = word.load(Ordering::Relaxed);
        let old = (whole >> shift) & self.max();
        word.store(whole + (u64::from(old != self.max()) << shift), Ordering::Relaxed);
        old
    }

    /// Adds the counters of others, as many and as wide, word by word; those that would pass the largest value
    /// stick there. The caller is the only writer.
    #[inline(always)]
    pub fn add_all(&self, others: &Counters) {
        // Every other counter of a word, so that each has as many bits again above it for the carry.
        let ones = u64::MAX / ((1u128 << (2 * self.width())) - 1) as u64;
        let lanes = ones * self.max();
        let add = |mine: u64, theirs: u64| {
            let sum = (mine & lanes) + (theirs & lanes);
            let carries = (sum >> self.width()) & ones;
            (sum & lanes) | (carries * self.max())
        };
        for (word, theirs) in self.words.atomics().iter().zip(others.words.atomics()) {
            let (mine, theirs) = (word.load(Ordering::Relaxed), theirs.load(Ordering::Relaxed));
            let high = add(mine >> self.width(), theirs >> self.width());
            word.store(add(mine, theirs) | high << self.width(), Ordering::Relaxed);
        }
    }

    /// Every value, in order.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.cells).map(|cell| self.get(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_words_are_counters_added_one_by_one_and_full_ones_stick() {
        for width in [4, 8, 16, 32] {
            let (ours, theirs) =
                (Counters::zeroed(99, width).unwrap(), Counters::zeroed(99, width).unwrap());
            let value = |cell: u64, by: u64| match cell.wrapping_mul(by) % 5 {
                0 => ours.max(),
                1 => 0,
                _ => cell.wrapping_mul(by.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & ours.max(),
            };
            for cell in 0..99 {
                ours.update(cell, |_| value(cell, 3));
                theirs.update(cell, |_| value(cell, 7));
            }
            ours.add_all(&theirs);
            let sum = |cell| (value(cell, 3) + value(cell, 7)).min(ours.max());
            assert!(ours.values().eq((0..99).map(sum)), "{width}");
            assert!(theirs.values().eq((0..99).map(|cell| value(cell, 7))), "{width}");
        }
    }
}
