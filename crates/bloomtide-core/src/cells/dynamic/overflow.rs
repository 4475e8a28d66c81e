//! The overflow counters (OFV) of one partition: what did not fit into the x bits of the base array. All of
//! them have y bits, as the paper has it.

use crate::cells::divisor::Divisor;
use crate::cells::growing::CHUNK;
use crate::cells::packed;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// The overflow counters of one partition, at least one bit wide.
#[derive(Debug)]
pub(super) struct Overflow {
    /// y.
    pub(super) width: u32,
    pub(super) fields: Box<[AtomicU64]>,
    /// No counter at or above this value: y may fall (`Shrink`).
    pub(super) threshold: u64,
    /// How many counters are at or above it.
    pub(super) above: AtomicU64,
}

impl Overflow {
    /// Zeroed counters of y bits.
    pub(super) fn zeroed(cells: u64, y: u32) -> Result<Self> {
        let fields = zeroed(packed::words_for(cells * u64::from(y)))?;
        Ok(Overflow { width: y, fields, threshold: 0, above: AtomicU64::new(0) })
    }

    /// A copy; no writer is inside meanwhile.
    pub(super) fn copied(&self) -> Result<Self> {
        let fields = zeroed(self.fields.len() as u64)?;
        for (to, from) in fields.iter().zip(&self.fields) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let above = AtomicU64::new(self.above.load(Ordering::Relaxed));
        Ok(Overflow { fields, above, ..*self })
    }

    /// Hands out every counter that is not zero, by looking for the next bit that is set: under skew most
    /// words have none.
    pub(super) fn each_set(&self, mut take: impl FnMut(u64, u64)) {
        let (end, width_of) = (self.fields.len() as u64 * 64, Divisor::new(u64::from(self.width)));
        let mut bit = 0;
        while bit < end {
            let word = self.fields[(bit >> 6) as usize].load(Ordering::Relaxed) >> (bit & 63);
            if word == 0 {
                bit = (bit | 63) + 1;
                continue;
            }
            let at = bit + u64::from(word.trailing_zeros());
            let (slot, inside) = width_of.split(at);
            take(slot, packed::read(&self.fields, at - inside, self.width));
            bit = at - inside + u64::from(self.width);
        }
    }

    /// Puts the counters of the cells from `slot` on above the `shift` bits that their values have.
    #[inline(always)]
    pub(super) fn add_to(&self, values: &mut [u64], slot: u64, shift: u32) {
        let mut highs = [0; CHUNK];
        for (some, first) in values.chunks_mut(CHUNK).zip((slot..).step_by(CHUNK)) {
            let highs = &mut highs[..some.len()];
            packed::unpack(&self.fields, self.bit(first), self.width, highs);
            some.iter_mut().zip(highs).for_each(|(value, high)| *value |= *high << shift);
        }
    }

    /// Where a counter begins.
    #[inline(always)]
    fn bit(&self, slot: u64) -> u64 {
        slot * u64::from(self.width)
    }

    /// Asks the processor for the counter's line.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u64) {
        let at = (self.bit(slot) >> 6) as usize;
        crate::batch::prefetch(self.fields.as_ptr().wrapping_add(at));
    }

    /// Whether a counter holds `value`.
    #[inline(always)]
    pub(super) fn fits(&self, value: u64) -> bool {
        u64::BITS - value.leading_zeros() <= self.width
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u64) -> u64 {
        packed::read(&self.fields, self.bit(slot), self.width)
    }

    #[inline(always)]
    pub(super) fn set(&self, slot: u64, value: u64) {
        packed::write(&self.fields, self.bit(slot), self.width, value);
    }

    /// Keeps `above` true when a counter went from `old` to `new`.
    #[inline(always)]
    pub(super) fn moved(&self, old: u64, new: u64) {
        let (was, is) = (old >= self.threshold, new >= self.threshold);
        if was != is {
            let above = self.above.load(Ordering::Relaxed);
            let above = if is { above + 1 } else { above - 1 };
            self.above.store(above, Ordering::Relaxed);
        }
    }

    /// Memory of so many counters of y bits in bytes, with their record.
    pub(super) fn bytes_of(cells: u64, y: u32) -> u64 {
        size_of::<Self>() as u64 + packed::words_for(cells.saturating_mul(u64::from(y))) * 8
    }

    /// Memory in bytes, with itself.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.fields)) as u64
    }
}

fn zeroed(words: u64) -> Result<Box<[AtomicU64]>> {
    let refused = || Error::Capacity { needed: words.saturating_mul(8), limit: isize::MAX as u64 };
    let mut made = Vec::new();
    let len = usize::try_from(words).map_err(|_| refused())?;
    made.try_reserve_exact(len).map_err(|_| refused())?;
    made.resize_with(len, AtomicU64::default);
    Ok(made.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_that_is_set_is_handed_out_once_and_in_order() {
        for cells in [1u64, 15, 16, 17, 100, 1001] {
            for width in [1, 3, 7, 13, 40, 64] {
                let overflow = Overflow::zeroed(cells, width).unwrap();
                let chosen = (0..cells).filter(|slot| slot % 3 == 0 || slot % 37 == 5);
                let expected: Vec<_> = chosen.map(|slot| (slot, packed::largest(width))).collect();
                expected.iter().for_each(|(slot, value)| overflow.set(*slot, *value));
                let mut seen = Vec::new();
                overflow.each_set(|slot, value| seen.push((slot, value)));
                assert_eq!(seen, expected, "{cells} cells of {width} bits");
                assert_eq!(overflow.bytes(), Overflow::bytes_of(cells, width));
            }
        }
    }
}
