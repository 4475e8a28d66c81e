//! The basic layout (paper, section 3.1): every cell has 16 or 32 bits, whatever its value is.

use super::{BlockValues, DECAY_BLOCK, DecayingCells, Fading};
use crate::batch::at_best;
use crate::cells::{Counters, bytes_for};
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Cells of equal width.
#[derive(Debug)]
pub struct BasicCells {
    counters: Counters,
}

impl BasicCells {
    /// Memory that such cells take, in bytes.
    pub fn bytes_of(cells: u64, bits: u32) -> u64 {
        bytes_for(cells.saturating_mul(u64::from(bits)))
    }

    /// The words of a block; the last block may have fewer.
    fn words(&self, block: u64) -> &[AtomicU64] {
        let each = (DECAY_BLOCK * u64::from(self.counters.width()) / 64) as usize;
        let words = self.counters.words().atomics();
        let start = block as usize * each;
        &words[start.min(words.len())..(start + each).min(words.len())]
    }
}

impl DecayingCells for BasicCells {
    const TEARS: bool = false;

    fn zeroed(cells: u64, bits: u32) -> Result<Self> {
        Ok(BasicCells { counters: Counters::zeroed(cells, bits)? })
    }

    #[inline(always)]
    fn prefetch(&self, cell: u64) {
        self.counters.prefetch(cell);
    }

    #[inline(always)]
    fn get(&self, cell: u64) -> u32 {
        self.counters.get(cell) as u32
    }

    fn values(&self, block: u64) -> BlockValues {
        let bits = self.counters.width();
        let mut values = [0; DECAY_BLOCK as usize];
        for (some, word) in values.chunks_exact_mut((64 / bits) as usize).zip(self.words(block)) {
            let word = word.load(Ordering::Relaxed);
            for (i, value) in (0..).zip(some) {
                *value = (word >> (bits * i) & ((1 << bits) - 1)) as u32;
            }
        }
        values
    }

    fn hold(&self, block: u64, values: &BlockValues) {
        let bits = self.counters.width();
        for (some, word) in values.chunks_exact((64 / bits) as usize).zip(self.words(block)) {
            let joined =
                (0..).zip(some).fold(0, |all, (i, value)| all | u64::from(*value) << (bits * i));
            word.store(joined, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn set(&self, cell: u64, value: u32) {
        self.counters.update(cell, |_| u64::from(value));
    }

    #[inline(always)]
    fn raise(&self, cells: &[u64], weight: u64, max: u32, _: bool) -> (bool, u64) {
        let (mut least, mut full, max) = (u64::MAX, 0, u64::from(max));
        for (i, cell) in cells.iter().enumerate() {
            let old = self.counters.update(*cell, |old| (old + weight).min(max));
            least = least.min(old);
            full |= u64::from(old + weight > max) << i;
        }
        (least == 0, full)
    }

    fn fade(&self, block: u64, fading: &Fading) {
        let words = self.words(block);
        match self.counters.width() {
            16 => at_best(|| fade_halves(words, fading)),
            _ => at_best(|| fade_wholes(words, fading)),
        }
    }

    fn clear(&self, block: u64) {
        self.words(block).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn bytes(&self) -> u64 {
        self.counters.words().bytes()
    }

    fn validate(&self) -> Result<()> {
        let inside = self.counters.cells() * u64::from(self.counters.width());
        if self.counters.words().is_zero_from(inside) {
            return Ok(());
        }
        let invariant = format!("a counter beyond {} is set", self.counters.cells());
        Err(Error::Invariant { invariant })
    }
}

/// Two cells of 32 bits in each word. Through an array: atomic words by themselves do not vectorise.
#[inline(always)]
fn fade_wholes(words: &[AtomicU64], fading: &Fading) {
    let mut values = [0u32; DECAY_BLOCK as usize];
    for (pair, word) in values.chunks_exact_mut(2).zip(words) {
        let word = word.load(Ordering::Relaxed);
        (pair[0], pair[1]) = (word as u32, (word >> 32) as u32);
    }
    for value in &mut values {
        *value = fading.fade(*value);
    }
    for (pair, word) in values.chunks_exact(2).zip(words) {
        word.store(u64::from(pair[0]) | u64::from(pair[1]) << 32, Ordering::Relaxed);
    }
}

/// Four cells of 16 bits in each word.
#[inline(always)]
fn fade_halves(words: &[AtomicU64], fading: &Fading) {
    let mut values = [0u16; DECAY_BLOCK as usize];
    for (four, word) in values.chunks_exact_mut(4).zip(words) {
        let word = word.load(Ordering::Relaxed);
        (0..4).for_each(|i| four[i] = (word >> (16 * i)) as u16);
    }
    for value in &mut values {
        // A faded value is not larger.
        *value = fading.fade(u32::from(*value)) as u16;
    }
    for (four, word) in values.chunks_exact(4).zip(words) {
        let joined = (0..4).fold(0, |joined, i| joined | u64::from(four[i]) << (16 * i));
        word.store(joined, Ordering::Relaxed);
    }
}
