//! Cells that fade, in blocks of 128 with a stamp each. What holds the values is one of the layouts behind
//! `DecayingCells`; stamps, decay and everything above are the same for all, so they answer alike.

mod basic;
mod decay;
mod optimized;
mod stamps;

pub use basic::BasicCells;
pub use decay::{Decay, Fading, Rounding};
pub use optimized::{OptimizedCells, ROOM_128B, ROOM_192B};
pub use stamps::{OLDEST, Stamps};

use crate::error::Result;

/// Cells in one block.
pub const DECAY_BLOCK: u64 = crate::placement::BLOCK_CELLS;

/// The values of a block.
pub type BlockValues = [u32; DECAY_BLOCK as usize];

/// Where fixed point values are kept. A value has at most 32 bits. Whoever changes one is the only
/// writer. Readers may look at any moment, and throw away what they saw in the middle of a change,
/// unless cells tear.
pub trait DecayingCells: std::fmt::Debug + Send + Sync + Sized {
    /// Whether setting one cell is more than one store. Who reads must then hold the gate, as writers do.
    const TEARS: bool;

    /// `cells` zeroes of `bits` bits.
    fn zeroed(cells: u64, bits: u32) -> Result<Self>;

    /// Asks the processor for the cell's line.
    fn prefetch(&self, cell: u64);

    /// Asks for what else the cell's block has, once its line is there. The caller may read.
    fn prefetch_table(&self, _cell: u64) {}

    /// The value of a cell.
    fn get(&self, cell: u64) -> u32;

    /// The values of a block; zeroes behind the last cell.
    fn values(&self, block: u64) -> BlockValues;

    /// The block has these values from now on; zeroes behind the last cell.
    fn hold(&self, block: u64, values: &BlockValues);

    /// Changes the value of a cell.
    fn set(&self, cell: u64, value: u32);

    /// Adds to at most 64 different cells, up to `max`: (whether one was zero, a bit for each cell that could
    /// not rise so far). `together` are those of one block.
    fn raise(&self, cells: &[u64], weight: u64, max: u32, together: bool) -> (bool, u64);

    /// Fades all cells of a block.
    fn fade(&self, block: u64, fading: &Fading);

    /// The values of others, as many as these. Only while nobody else sees these, which are zero.
    fn take_over(&self, others: &Self, cells: u64) {
        for cell in 0..cells {
            match others.get(cell) {
                0 => {}
                value => self.set(cell, value),
            }
        }
    }

    /// Sets all cells of a block to zero.
    fn clear(&self, block: u64);

    /// Memory in bytes.
    fn bytes(&self) -> u64;

    /// Whether nothing lies beyond the last cell, and the like.
    fn validate(&self) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few numbers without any order; equal seeds give equal ones.
    fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        }
    }

    #[test]
    fn all_layouts_hold_the_same_whatever_is_set_and_faded() {
        for (cells, seed) in [(1, 1), (128, 2), (300, 3), (128 * 70 + 5, 4)] {
            let basic = BasicCells::zeroed(cells, 32).unwrap();
            let optimized = OptimizedCells::<ROOM_128B>::zeroed(cells, 32).unwrap();
            let ample = OptimizedCells::<ROOM_192B>::zeroed(cells, 32).unwrap();
            let mut draw = numbers(seed);
            for step in 0..4000 {
                let cell = draw(cells);
                if draw(5) == 0 {
                    let rounding = [Rounding::Strict, Rounding::Expiring][draw(2) as usize];
                    let decay = Decay::new(draw(1000) as f64 / 1000.0, rounding);
                    let fading = decay.of_age(1 + draw(5));
                    basic.fade(cell / DECAY_BLOCK, &fading);
                    optimized.fade(cell / DECAY_BLOCK, &fading);
                    ample.fade(cell / DECAY_BLOCK, &fading);
                } else {
                    let value = (draw(1 << 31) >> draw(31)) as u32 * 2;
                    basic.set(cell, value);
                    optimized.set(cell, value);
                    ample.set(cell, value);
                }
                let other = draw(cells);
                assert_eq!(basic.get(other), optimized.get(other));
                if step % 200 == 0 {
                    assert!((0..cells).all(|cell| basic.get(cell) == optimized.get(cell)));
                    assert!((0..cells).all(|cell| basic.get(cell) == ample.get(cell)));
                    optimized.validate().unwrap();
                    ample.validate().unwrap();
                    copies_hold_the_same(&basic, cells);
                    copies_hold_the_same(&optimized, cells);
                    copies_hold_the_same(&ample, cells);
                }
            }
        }
    }

    /// Of every form that a block has, and from each to the next: cells come one by one, and a few are raised
    /// by what has a low digit, has none, is nothing at all, or more than a cell holds.
    fn raised_alike<C: DecayingCells>(bits: u32, seed: u64) {
        let (cells, max) = (128 * 3, ((1u64 << bits) - 1) as u32);
        let basic = BasicCells::zeroed(cells, bits).unwrap();
        let other = C::zeroed(cells, bits).unwrap();
        let mut draw = numbers(seed);
        for step in 0..6000 {
            let weight = match draw(40) {
                0 => 0,
                1 => draw(1 << 31) >> draw(31) << draw(10),
                2..20 => 256 * draw(4),
                _ => 1 + draw(20),
            };
            let block = draw(3) * 128;
            let some = [draw(32), 32 + draw(32), 64 + draw(32), 96 + draw(32)].map(|i| block + i);
            let apart = [some[0], (some[1] + 128) % cells, some[2], (some[3] + 256) % cells];
            for (cells, together) in [(some, true), (apart, false)] {
                let raised = basic.raise(&cells, weight, max, together);
                assert_eq!(raised, other.raise(&cells, weight, max, together), "{weight}");
            }
            if step % 50 == 0 {
                let decay = Decay::new(draw(1000) as f64 / 1000.0, Rounding::Strict);
                let (block, fading) = (draw(3), decay.of_age(1 + draw(3)));
                basic.fade(block, &fading);
                other.fade(block, &fading);
            }
            let block = draw(3);
            assert_eq!(basic.values(block), other.values(block));
        }
        other.validate().unwrap();
    }

    #[test]
    fn all_layouts_rise_alike_and_tell_alike_what_was_zero_or_full() {
        for seed in 0..4 {
            for bits in [16, 32] {
                raised_alike::<OptimizedCells<ROOM_128B>>(bits, seed);
                raised_alike::<OptimizedCells<ROOM_192B>>(bits, seed);
            }
        }
    }

    /// And go their own way: a copy that is cleared takes nothing from where it came from.
    fn copies_hold_the_same<C: DecayingCells>(original: &C, cells: u64) {
        let before: Vec<u32> = (0..cells).map(|cell| original.get(cell)).collect();
        let copy = C::zeroed(cells, 32).unwrap();
        copy.take_over(original, cells);
        assert!((0..cells).all(|cell| copy.get(cell) == before[cell as usize]));
        copy.validate().unwrap();
        let again = C::zeroed(cells, 32).unwrap();
        (0..cells.div_ceil(DECAY_BLOCK)).for_each(|block| again.hold(block, &copy.values(block)));
        assert!((0..cells).all(|cell| again.get(cell) == before[cell as usize]));
        again.validate().unwrap();
        (0..cells.div_ceil(DECAY_BLOCK)).for_each(|block| copy.clear(block));
        copy.validate().unwrap();
        assert!((0..cells).all(|cell| original.get(cell) == before[cell as usize]));
    }

    #[test]
    fn the_optimized_layout_is_never_a_tenth_larger_and_gives_memory_back() {
        never_a_tenth_larger::<ROOM_128B>(16);
        never_a_tenth_larger::<ROOM_128B>(32);
        never_a_tenth_larger::<ROOM_192B>(16);
        never_a_tenth_larger::<ROOM_192B>(32);
    }

    fn never_a_tenth_larger<const ROOM: usize>(bits: u32) {
        let cells = 128 * 400;
        let basic = BasicCells::zeroed(cells, bits).unwrap().bytes() + 400 * 8;
        let optimized = OptimizedCells::<ROOM>::zeroed(cells, bits).unwrap();
        let empty = optimized.bytes();
        assert_eq!(empty, OptimizedCells::<ROOM>::bytes_of(cells));
        let mut draw = numbers(7);
        for _ in 0..cells * 12 {
            optimized.set(draw(cells), (draw(1 << 31) as u32 * 2) >> (32 - bits) | 1 << (bits - 1));
        }
        let full = optimized.bytes() + 400 * 8;
        assert!(full as f64 <= 1.1 * basic as f64, "{full} {basic}");
        let decay = Decay::new(0.5, Rounding::Strict);
        (0..400).for_each(|block| optimized.fade(block, &decay.of_age(40)));
        assert!((0..cells).all(|cell| optimized.get(cell) <= 1));
        assert_eq!(optimized.bytes(), empty);
    }
}
