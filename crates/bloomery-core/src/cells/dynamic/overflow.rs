//! The overflow counters (OFV) of one partition: what did not fit into the x bits of the base array.
//!
//! All of them have y bits, as the paper has it. In an adaptive filter the partition is cut into equal
//! parts with a width of their own wherever that takes less memory: a hot counter then widens the
//! counters of its part instead of all of the partition (the paper's future work).

use crate::cells::packed;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Cells in the smallest part; below that the directory costs more than it saves.
const SMALLEST_PART: usize = 16;
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
    width: u32,
    /// log2 of the cells in a part; meaningless with one part.
    part_shift: u32,
    /// The parts; none when the partition is one part.
    parts: Box<[Part]>,
    fields: Box<[AtomicU64]>,
    /// No counter at or above this value: y may fall (`Shrink`).
    pub(super) threshold: u64,
    /// How many counters are at or above it.
    pub(super) above: AtomicU64,
}

impl Overflow {
    /// Zeroed counters, `width(slot)` bits or more for each; `adaptive` may cut them into parts.
    pub(super) fn new(
        cells: usize,
        adaptive: bool,
        width_of: impl Fn(usize) -> u32,
    ) -> Result<Self> {
        let widest = (0..cells).map(&width_of).max().unwrap_or(0);
        let flat = cells as u64 * u64::from(widest);
        let (mut best, mut part_shift, mut parts) = (flat, 0, Vec::new());
        let mut size = SMALLEST_PART;
        while adaptive && size < cells {
            let cut: Vec<Part> = Self::cut(cells, size, &width_of);
            let fields: u64 = Self::fields(&cut, cells, size);
            let bits = fields + cut.len() as u64 * PART_BITS;
            if bits < best {
                (best, part_shift, parts) = (bits, size.trailing_zeros(), cut);
            }
            size *= 4;
        }
        let bits =
            if parts.is_empty() { flat } else { Self::fields(&parts, cells, 1 << part_shift) };
        Ok(Overflow {
            width: widest,
            part_shift,
            parts: parts.into_boxed_slice(),
            fields: zeroed(packed::words_for(bits))?,
            threshold: 0,
            above: AtomicU64::new(0),
        })
    }

    /// Parts of `size` cells, each as wide as its widest counter.
    fn cut(cells: usize, size: usize, width_of: &impl Fn(usize) -> u32) -> Vec<Part> {
        let mut start = 0;
        let widest =
            |first: usize| (first..cells.min(first + size)).map(width_of).max().unwrap_or(0);
        (0..cells)
            .step_by(size)
            .map(|first| {
                let part = Part::new(start, widest(first));
                start += (size.min(cells - first)) as u64 * u64::from(part.width());
                part
            })
            .collect()
    }

    fn fields(parts: &[Part], cells: usize, size: usize) -> u64 {
        let last = cells - (parts.len() - 1) * size;
        parts.last().map_or(0, |part| part.start() + last as u64 * u64::from(part.width()))
    }

    /// y: the width of the widest counter.
    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// How many parts the partition is cut into.
    pub(super) fn parts(&self) -> usize {
        self.parts.len().max(1)
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

    /// The counter's width.
    pub(super) fn width_of(&self, slot: u64) -> u32 {
        self.locate(slot).1
    }

    /// Whether `value` fits the counter.
    #[inline(always)]
    pub(super) fn fits(&self, slot: u64, value: u64) -> bool {
        u64::BITS - value.leading_zeros() <= self.locate(slot).1
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u64) -> u64 {
        let (bit, width) = self.locate(slot);
        if width == 0 { 0 } else { packed::read(&self.fields, bit, width) }
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

    #[test]
    fn a_hot_counter_widens_its_part_only_when_adaptive() {
        let width_of = |slot: usize| if slot == 777 { 20 } else { 0 };
        let flat = Overflow::new(1000, false, width_of).unwrap();
        let cut = Overflow::new(1000, true, width_of).unwrap();
        assert_eq!((flat.parts(), flat.width()), (1, 20));
        assert!(cut.parts() > 1 && cut.bytes() * 2 < flat.bytes(), "{cut:?}");
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
        let even = Overflow::new(1000, true, |_| 5).unwrap();
        assert_eq!(even.parts(), 1);
        for cells in [1, 15, 16, 17, 100, 1001] {
            let odd =
                Overflow::new(cells, true, |slot| if slot + 1 == cells { 40 } else { 1 }).unwrap();
            for slot in 0..cells as u64 {
                odd.set(slot, 1);
            }
            odd.set(cells as u64 - 1, 1 << 39);
            assert_eq!(odd.get(cells as u64 - 1), 1 << 39);
            assert!((0..cells as u64 - 1).all(|slot| odd.get(slot) == 1));
        }
    }
}
