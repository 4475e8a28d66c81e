//! Numbers of any width from 1 to 64 bits, one after the other in words; a number may cross into the
//! next word.
//!
//! One writer at a time. A reader may run beside it and then sees each *word* before or after the
//! change, so a number that crosses can be seen torn: `crosses` tells the owner, who must make readers
//! try again (`version.rs`).

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of different widths that are read or put at once, where one word holds them.
const JOINED: usize = 8;

/// The largest number of `width` bits.
#[inline(always)]
pub fn largest(width: u32) -> u64 {
    debug_assert!((1..=64).contains(&width));
    u64::MAX >> (64 - width)
}

/// How many words hold `bits` bits.
pub fn words_for(bits: u64) -> u64 {
    bits.div_ceil(64)
}

/// Whether the number of `width` bits at `bit` lies in two words.
#[inline(always)]
pub fn crosses(bit: u64, width: u32) -> bool {
    (bit & 63) + u64::from(width) > 64
}

/// The number of `width` bits that begins at `bit`.
#[inline(always)]
pub fn read(words: &[AtomicU64], bit: u64, width: u32) -> u64 {
    assert!(bit >> 6 < words.len() as u64);
    // SAFETY: compared above.
    unsafe { read_unchecked(words, bit, width) }
}

/// The same without a look at the number of words.
///
/// # Safety
/// `bit` is inside the words.
#[inline(always)]
pub unsafe fn read_unchecked(words: &[AtomicU64], bit: u64, width: u32) -> u64 {
    let (at, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
    debug_assert!(at < words.len());
    // Without a branch: of a number inside one word the second half is cut off again.
    let next = (at + 1).min(words.len() - 1);
    // SAFETY: the caller's promise, and at most the last one.
    let (low, next) = unsafe { (words.get_unchecked(at), words.get_unchecked(next)) };
    let (low, next) = (low.load(Ordering::Relaxed) >> shift, next.load(Ordering::Relaxed));
    (low | ((next << 1) << (63 - shift))) & largest(width)
}

/// The numbers of `width` bits, one after the other, the first of which begins at `bit`.
#[inline(always)]
pub fn unpack(words: &[AtomicU64], bit: u64, width: u32, values: &mut [u64]) {
    // As many at a time as fit a word.
    match width {
        0 => values.fill(0),
        1..=4 => unpack_by::<16>(words, bit, width, values),
        5..=8 => unpack_by::<8>(words, bit, width, values),
        9..=16 => unpack_by::<4>(words, bit, width, values),
        17..=32 => unpack_by::<2>(words, bit, width, values),
        _ => unpack_by::<1>(words, bit, width, values),
    }
}

#[inline(always)]
fn unpack_by<const N: usize>(words: &[AtomicU64], bit: u64, width: u32, values: &mut [u64]) {
    let (step, mask) = (N as u32 * width, largest(width));
    let (many, rest) = values.as_chunks_mut::<N>();
    let mut bit = bit;
    for some in many {
        let joined = read(words, bit, step);
        for (i, value) in (0..).zip(some) {
            *value = joined >> (i * width) & mask;
        }
        bit += u64::from(step);
    }
    for value in rest {
        *value = read(words, bit, width);
        bit += u64::from(width);
    }
}

/// Numbers of different widths: each runs from its start to the next one.
///
/// # Safety
/// The starts are one more than the numbers, ascend by 1 to 64 and are inside the words.
#[inline(always)]
pub unsafe fn unpack_fields(words: &[AtomicU64], starts: &[u64], values: &mut [u64]) {
    for (some, first) in values.chunks_mut(JOINED).zip((0..).step_by(JOINED)) {
        let starts = &starts[first..=first + some.len()];
        if some.len() == JOINED && starts[JOINED] - starts[0] <= 64 {
            // SAFETY: the caller's promise.
            let joined = unsafe { read_unchecked(words, starts[0], 64) };
            for (value, ends) in some.iter_mut().zip(starts.windows(2)) {
                *value = joined >> (ends[0] - starts[0]) & largest((ends[1] - ends[0]) as u32);
            }
        } else {
            for (value, ends) in some.iter_mut().zip(starts.windows(2)) {
                // SAFETY: likewise.
                *value = unsafe { read_unchecked(words, ends[0], (ends[1] - ends[0]) as u32) };
            }
        }
    }
}

/// Replaces the number of `width` bits that begins at `bit` by `value`, which must fit.
#[inline(always)]
pub fn write(words: &[AtomicU64], bit: u64, width: u32, value: u64) {
    debug_assert!(value <= largest(width));
    let (at, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
    let mask = largest(width);
    replace(&words[at], mask << shift, value << shift);
    if crosses(bit, width) {
        let inside = 64 - shift;
        replace(&words[at + 1], mask >> inside, value >> inside);
    }
}

/// Numbers that are put one after the other: hands out each word when it is full.
#[derive(Debug, Default)]
pub struct Packer {
    open: u64,
    /// Bits of the open word, fewer than 64.
    used: u32,
}

impl Packer {
    /// Puts a number of `width` bits, which must fit; the word that it fills, if it does.
    #[inline(always)]
    pub fn push(&mut self, value: u64, width: u32) -> Option<u64> {
        debug_assert!(value <= largest(width));
        let full = self.open | value << self.used;
        self.used += width;
        if self.used < 64 {
            self.open = full;
            return None;
        }
        self.used -= 64;
        // What did not fit: none of it if the word ended with the number.
        self.open = if self.used == 0 { 0 } else { value >> (width - self.used) };
        Some(full)
    }

    /// Puts one number after the other, each of `width` bits; hands out the words that they fill.
    #[inline(always)]
    pub fn push_all(&mut self, values: &[u64], width: u32, mut put: impl FnMut(u64)) {
        // As many as fit a word become one number first.
        match width {
            0..=8 => self.push_by::<8>(values, width, &mut put),
            9..=16 => self.push_by::<4>(values, width, &mut put),
            17..=32 => self.push_by::<2>(values, width, &mut put),
            _ => self.push_by::<1>(values, width, &mut put),
        }
    }

    #[inline(always)]
    fn push_by<const N: usize>(&mut self, values: &[u64], width: u32, mut put: impl FnMut(u64)) {
        let (many, rest) = values.as_chunks::<N>();
        for some in many {
            let join = |all, (i, value): (u32, &u64)| all | value << (i * width);
            self.push((0..).zip(some).fold(0, join), N as u32 * width).map(&mut put);
        }
        for value in rest {
            self.push(*value, width).map(&mut put);
        }
    }

    /// Puts numbers of different widths: each runs from its start to the next one.
    #[inline(always)]
    pub fn push_fields(&mut self, values: &[u64], starts: &[u64], mut put: impl FnMut(u64)) {
        for (some, first) in values.chunks(JOINED).zip((0..).step_by(JOINED)) {
            let starts = &starts[first..=first + some.len()];
            let bits = starts[some.len()] - starts[0];
            if some.len() == JOINED && bits <= 64 {
                let join = |all, (value, start): (&u64, &u64)| all | value << (start - starts[0]);
                self.push(some.iter().zip(starts).fold(0, join), bits as u32).map(&mut put);
            } else {
                for (value, ends) in some.iter().zip(starts.windows(2)) {
                    self.push(*value, (ends[1] - ends[0]) as u32).map(&mut put);
                }
            }
        }
    }

    /// The last word, and how many bits of it are in use.
    pub fn rest(&self) -> (u64, u32) {
        (self.open, self.used)
    }
}

#[inline(always)]
fn replace(word: &AtomicU64, mask: u64, bits: u64) {
    let old = word.load(Ordering::Relaxed);
    word.store((old & !mask) | bits, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_keep_to_themselves() {
        for width in 1..=64 {
            let count = 50u64;
            let words: Vec<AtomicU64> = (0..words_for(count * u64::from(width)))
                .map(|_| AtomicU64::new(u64::MAX))
                .collect();
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & largest(width);
            for i in (0..count).rev() {
                write(&words, i * u64::from(width), width, value(i));
            }
            for i in 0..count {
                assert_eq!(read(&words, i * u64::from(width), width), value(i), "width {width}");
            }
        }
    }

    #[test]
    fn packed_words_are_those_of_numbers_written_one_by_one() {
        for width in 1..=64 {
            let count = 150u64;
            let words: Vec<AtomicU64> =
                (0..words_for(count * u64::from(width))).map(|_| AtomicU64::new(0)).collect();
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & largest(width);
            let mut packer = Packer::default();
            let mut packed = Vec::new();
            for i in 0..count {
                write(&words, i * u64::from(width), width, value(i));
                packed.extend(packer.push(value(i), width));
            }
            let (last, used) = packer.rest();
            assert_eq!(u64::from(used), count * u64::from(width) % 64);
            packed.extend((used > 0).then_some(last));
            let written: Vec<u64> = words.iter().map(|w| w.load(Ordering::Relaxed)).collect();
            assert_eq!(packed, written, "width {width}");
            let (mut packer, mut together) = (Packer::default(), Vec::new());
            let values: Vec<u64> = (0..count).map(value).collect();
            packer.push_all(&values, width, |word| together.push(word));
            together.extend((used > 0).then_some(packer.rest().0));
            assert_eq!(together, written, "width {width}");
        }
    }

    #[test]
    fn numbers_of_different_widths_come_back_as_they_were() {
        for widest in [3, 9, 64] {
            let width = |i: u64| 1 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % widest;
            let starts: Vec<u64> = (0..=100).map(|i| (0..i).map(width).sum()).collect();
            let values: Vec<u64> =
                (0..100).map(|i| width(!i).wrapping_neg() & largest(width(i) as u32)).collect();
            let (mut packer, mut words) = (Packer::default(), Vec::new());
            packer.push_fields(&values, &starts, |word| words.push(AtomicU64::new(word)));
            words.push(AtomicU64::new(packer.rest().0));
            let mut found = [0; 100];
            // SAFETY: they were put there.
            unsafe { unpack_fields(&words, &starts, &mut found) };
            assert_eq!(found[..], values, "{widest}");
        }
    }

    #[test]
    fn a_number_crosses_when_its_bits_lie_in_two_words() {
        assert!(!crosses(0, 64) && !crosses(60, 4) && crosses(61, 4) && crosses(1, 64));
    }
}
