//! The overflow counters (OFV) of one partition: what did not fit into the x bits of the base array.
//!
//! All of them have y bits, as the paper has it. In an adaptive filter the partition is cut into equal
//! parts with a width of their own wherever that takes less memory: a hot counter then widens the
//! counters of its part instead of all of the partition (the paper's future work).

use crate::cells::divisor::Divisor;
use crate::cells::growing::CHUNK;
use crate::cells::packed;
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cells in the smallest part; below that the directory costs more than it saves.
pub(super) const GRAIN: usize = 16;
/// Bits a part costs in the directory.
const PART_BITS: u64 = 64;

/// Where a part begins and how wide its counters are, in one word.
#[derive(Clone, Copy, Debug)]
struct Part(u64);

impl Part {
    fn new(start: u64, width: u32) -> Self {
        Part(start << 7 | u64::from(width))
    }

    #[inline(always)]
    fn start(self) -> u64 {
        self.0 >> 7
    }

    #[inline(always)]
    fn width(self) -> u32 {
        (self.0 & 127) as u32
    }
}

/// The overflow counters of one partition, at least one bit wide somewhere.
#[derive(Debug)]
pub(super) struct Overflow {
    /// Width of the widest counter, y.
    pub(super) width: u32,
    /// log2 of the cells in a part; meaningless with one part.
    part_shift: u32,
    /// The parts; none when the partition is one part.
    parts: Box<[Part]>,
    pub(super) fields: Box<[AtomicU64]>,
    /// No counter at or above this value: y may fall (`Shrink`).
    pub(super) threshold: u64,
    /// How many counters are at or above it.
    pub(super) above: AtomicU64,
}

impl Overflow {
    /// Zeroed counters of y bits.
    pub(super) fn flat(cells: usize, y: u32) -> Result<Self> {
        Self::over(y, 0, Vec::new(), cells as u64 * u64::from(y))
    }

    /// Zeroed counters; each grain has at least the width given for it. In one part or in many, whichever
    /// takes less memory.
    pub(super) fn in_parts(cells: usize, widths: &[u32]) -> Result<Self> {
        let widest = widths.iter().copied().max().unwrap_or(0);
        let flat = cells as u64 * u64::from(widest);
        let (mut best, mut size, mut fields) = (flat, 0, flat);
        let mut parts = widths.to_vec();
        let mut candidate = GRAIN;
        while candidate < cells {
            let bits = Self::bits(cells, candidate, &parts);
            let all = bits + parts.len() as u64 * PART_BITS;
            if all < best {
                (best, size, fields) = (all, candidate, bits);
            }
            parts = parts.chunks(4).map(|four| four.iter().copied().max().unwrap_or(0)).collect();
            candidate *= 4;
        }
        if size == 0 {
            return Self::flat(cells, widest);
        }
        let mut start = 0;
        let parts = widths
            .chunks(size / GRAIN)
            .enumerate()
            .map(|(i, grains)| {
                let part = Part::new(start, grains.iter().copied().max().unwrap_or(0));
                start += size.min(cells - i * size) as u64 * u64::from(part.width());
                part
            })
            .collect();
        Self::over(widest, size.trailing_zeros(), parts, fields)
    }

    /// Bits of all counters in parts of `size` cells.
    fn bits(cells: usize, size: usize, widths: &[u32]) -> u64 {
        let part =
            |(i, width): (usize, &u32)| size.min(cells - i * size) as u64 * u64::from(*width);
        widths.iter().enumerate().map(part).sum()
    }

    fn over(width: u32, part_shift: u32, parts: Vec<Part>, bits: u64) -> Result<Self> {
        Ok(Overflow {
            width,
            part_shift,
            parts: parts.into_boxed_slice(),
            fields: zeroed(packed::words_for(bits))?,
            threshold: 0,
            above: AtomicU64::new(0),
        })
    }

    /// A copy; no writer is inside meanwhile.
    pub(super) fn copied(&self) -> Result<Self> {
        let fields = zeroed(self.fields.len() as u64)?;
        for (to, from) in fields.iter().zip(&self.fields) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let above = AtomicU64::new(self.above.load(Ordering::Relaxed));
        Ok(Overflow { parts: self.parts.clone(), fields, above, ..*self })
    }

    /// The width that each grain of the cells has.
    pub(super) fn widths(&self, cells: usize) -> Vec<u32> {
        (0..cells).step_by(GRAIN).map(|slot| self.locate(slot as u64).1).collect()
    }

    /// Hands out every counter that is not zero, by looking for the next bit that is set: under skew most
    /// words have none.
    pub(super) fn each_set(&self, mut take: impl FnMut(u64, u64)) {
        let all = self.fields.len() as u64 * 64;
        if self.parts.is_empty() {
            return self.each_set_in(0..all, 0, self.width, &mut take);
        }
        for (i, part) in (0..).zip(&self.parts) {
            let end = self.parts.get(i as usize + 1).map_or(all, |next| next.start());
            let first = i << self.part_shift;
            self.each_set_in(part.start()..end, first, part.width(), &mut take);
        }
    }

    /// The same for the bits of one part, whose first cell is `slot`.
    fn each_set_in(
        &self,
        bits: Range<u64>,
        slot: u64,
        width: u32,
        take: &mut impl FnMut(u64, u64),
    ) {
        if width == 0 {
            return;
        }
        let width_of = Divisor::new(u64::from(width));
        let mut bit = bits.start;
        while bit < bits.end {
            let word = self.fields[(bit >> 6) as usize].load(Ordering::Relaxed) >> (bit & 63);
            if word == 0 {
                bit = (bit | 63) + 1;
                continue;
            }
            let at = bit + u64::from(word.trailing_zeros());
            if at >= bits.end {
                return;
            }
            let (counter, inside) = width_of.split(at - bits.start);
            take(slot + counter, packed::read(&self.fields, at - inside, width));
            bit = at - inside + u64::from(width);
        }
    }

    /// Puts the counters of the cells from `slot` on above the `shift` bits that their values have.
    #[inline(always)]
    pub(super) fn add_to(&self, values: &mut [u64], slot: u64, shift: u32) {
        let (mut slot, mut left, mut highs) = (slot, values, [0; CHUNK]);
        while !left.is_empty() {
            let (bit, width) = self.locate(slot);
            let inside = match self.parts.is_empty() {
                true => CHUNK,
                false => CHUNK
                    .min((1 << self.part_shift) - (slot as usize & ((1 << self.part_shift) - 1))),
            };
            let (now, later) = left.split_at_mut(inside.min(left.len()));
            let highs = &mut highs[..now.len()];
            packed::unpack(&self.fields, bit, width, highs);
            now.iter_mut().zip(highs).for_each(|(value, high)| *value |= *high << shift);
            (slot, left) = (slot + now.len() as u64, later);
        }
    }

    /// (first bit, width) of a counter.
    #[inline(always)]
    fn locate(&self, slot: u64) -> (u64, u32) {
        if self.parts.is_empty() {
            return (slot * u64::from(self.width), self.width);
        }
        let part = self.parts[(slot >> self.part_shift) as usize];
        let within = slot & ((1 << self.part_shift) - 1);
        (part.start() + within * u64::from(part.width()), part.width())
    }

    /// Asks the processor for the counter's line.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u64) {
        let at = (self.locate(slot).0 >> 6) as usize;
        crate::batch::prefetch(self.fields.as_ptr().wrapping_add(at));
    }

    /// Whether `value` fits the counter.
    #[inline(always)]
    pub(super) fn fits(&self, slot: u64, value: u64) -> bool {
        u64::BITS - value.leading_zeros() <= self.locate(slot).1
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u64) -> u64 {
        let (bit, width) = self.locate(slot);
        // With one part no width is zero.
        if !self.parts.is_empty() && width == 0 {
            return 0;
        }
        packed::read(&self.fields, bit, width)
    }

    #[inline(always)]
    pub(super) fn set(&self, slot: u64, value: u64) {
        let (bit, width) = self.locate(slot);
        if width != 0 {
            packed::write(&self.fields, bit, width, value);
        }
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

    /// Memory in bytes, with itself.
    pub(super) fn bytes(&self) -> u64 {
        let owned = size_of_val(&*self.parts) + size_of_val(&*self.fields);
        (size_of::<Self>() + owned) as u64
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

    fn widths(cells: usize, hot: usize, width: u32, others: u32) -> Vec<u32> {
        (0..cells.div_ceil(GRAIN)).map(|i| if i == hot / GRAIN { width } else { others }).collect()
    }

    #[test]
    fn a_hot_counter_widens_its_part_only_when_there_are_parts() {
        let flat = Overflow::flat(1000, 20).unwrap();
        let cut = Overflow::in_parts(1000, &widths(1000, 777, 20, 0)).unwrap();
        assert_eq!((flat.parts.len(), flat.width), (0, 20));
        assert!(cut.parts.len() > 1 && cut.bytes() * 2 < flat.bytes(), "{cut:?}");
        for overflow in [&flat, &cut] {
            assert!(overflow.fits(777, (1 << 20) - 1) && !overflow.fits(777, 1 << 20));
            overflow.set(777, 12_345);
            let seen: Vec<u64> = (0..1000).map(|slot| overflow.get(slot)).collect();
            assert!(seen.iter().enumerate().all(|(i, v)| *v == if i == 777 { 12_345 } else { 0 }));
        }
        assert!(flat.fits(0, 1) && !cut.fits(0, 1));
    }

    #[test]
    fn parts_are_cut_only_where_they_save() {
        assert!(Overflow::in_parts(1000, &widths(1000, 0, 5, 5)).unwrap().parts.is_empty());
        assert!(Overflow::in_parts(3, &[9]).unwrap().parts.is_empty());
    }

    #[test]
    fn every_counter_that_is_set_is_handed_out_once_and_in_order() {
        for cells in [1usize, 15, 16, 17, 100, 1001] {
            for width in [1, 3, 7, 13, 40, 64] {
                let hot = cells - 1;
                let parts = widths(cells, hot, width, if width > 3 { 2 } else { 0 });
                for overflow in [
                    Overflow::flat(cells, width).unwrap(),
                    Overflow::in_parts(cells, &parts).unwrap(),
                ] {
                    let mut expected = Vec::new();
                    for slot in (0..cells as u64).filter(|slot| slot % 3 == 0 || slot % 37 == 5) {
                        let value = packed::largest(overflow.locate(slot).1.max(1));
                        if overflow.fits(slot, value) {
                            overflow.set(slot, value);
                            expected.push((slot, value));
                        }
                    }
                    let mut seen = Vec::new();
                    overflow.each_set(|slot, value| seen.push((slot, value)));
                    assert_eq!(seen, expected, "{cells} cells of {width} bits");
                }
            }
        }
    }
}
