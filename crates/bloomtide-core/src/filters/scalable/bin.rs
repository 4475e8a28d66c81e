//! One bin: a sorted set of small numbers in one cache line.
//!
//! A number is cut in two. Its low `width` bits, the *remainder*, are stored as they are; what is above, the
//! *quotient*, is stored by where the remainder stands:
//!
//! ```text
//! words 0 to 5   the remainders in the order of their numbers, `width` bits each
//! words 6 and 7  the heads: for each quotient in order a zero, then a one for every number that has it
//! ```
//!
//! So a number takes `width` bits and about two more, and is found by counting zeros. The code has few
//! branches, because numbers are random and so would be the branches.

/// Words in a bin: one cache line.
pub(super) const BIN_WORDS: usize = 8;
/// Bits of the heads.
pub(super) const HEAD_BITS: u32 = 128;
/// Bits of the remainders.
pub(super) const DATA_BITS: u32 = 384;
const DATA_WORDS: usize = 6;
/// Numbers in a bin at the most.
pub(super) const MOST: usize = 96;

/// The cells of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Bin([u64; BIN_WORDS]);

/// So many of the lowest bits: none if there are fewer than none, at most all.
#[inline(always)]
fn low(bits: i32) -> u64 {
    let bits = bits.clamp(0, 64) as u32;
    u64::MAX.wrapping_shr(64 - bits) & 0u64.wrapping_sub(u64::from(bits > 0))
}

/// Position of the zero with this number in two words, where it must be.
#[inline(always)]
fn select<const BMI2: bool>(words: [u64; 2], number: u32) -> u32 {
    let below = words[0].count_zeros();
    let high = number >= below;
    #[cfg(target_arch = "x86_64")]
    if BMI2 {
        use std::arch::x86_64::_pdep_u64;
        let above = number.wrapping_sub(below);
        // SAFETY: who says so has seen that the processor has the instruction.
        let (low, up) = unsafe {
            (_pdep_u64(1 << (number & 63), !words[0]), _pdep_u64(1 << (above & 63), !words[1]))
        };
        // Both are looked for, since which one it is could not be predicted.
        let choice = 0u32.wrapping_sub(u32::from(high));
        return low.trailing_zeros() & !choice | (64 + up.trailing_zeros()) & choice;
    }
    let mut zeros = !words[usize::from(high)];
    for _ in 0..if high { number - below } else { number } {
        zeros &= zeros.wrapping_sub(1);
    }
    zeros.trailing_zeros() + if high { 64 } else { 0 }
}

impl Bin {
    #[inline(always)]
    fn head(&self) -> u128 {
        u128::from(self.0[6]) | u128::from(self.0[7]) << 64
    }

    #[inline(always)]
    fn set_head(&mut self, head: u128) {
        (self.0[6], self.0[7]) = (head as u64, (head >> 64) as u64);
    }

    /// How many numbers are inside.
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.0[6].count_ones() + self.0[7].count_ones()
    }

    /// The remainder in a place.
    #[inline(always)]
    fn get(&self, place: u32, width: u32) -> u64 {
        let first = place * width;
        let (word, shift) = ((first / 64) as usize, first % 64);
        let above = self.0[(word + 1) % BIN_WORDS] << 1 << (63 - shift);
        (self.0[word % BIN_WORDS] >> shift | above) & ((1 << width) - 1)
    }

    /// The place that a number has or would have, and whether it is there.
    #[inline(always)]
    pub(super) fn find<const BMI2: bool>(
        &self,
        quotient: u32,
        remainder: u64,
        width: u32,
    ) -> (u32, bool) {
        let zero = select::<BMI2>([self.0[6], self.0[7]], quotient);
        let run = self.head() >> 1 >> zero;
        let start = zero - quotient;
        // Most quotients have two numbers at the most.
        let (one, two) = (run & 1 == 1, run & 3 == 3);
        let (first, second) = (self.get(start, width), self.get(start + 1, width));
        let mut place = start + u32::from(one & (first < remainder));
        place += u32::from(two & (second < remainder));
        let mut found = (one & (first == remainder)) | (two & (second == remainder));
        if run & 7 == 7 {
            for number in start + 2..start + run.trailing_ones() {
                let there = self.get(number, width);
                place += u32::from(there < remainder);
                found |= there == remainder;
            }
        }
        (place, found)
    }

    /// Puts a number where `find` said. There must be a free slot.
    #[inline(always)]
    pub(super) fn insert(&mut self, place: u32, quotient: u32, remainder: u64, width: u32) {
        let (head, at) = (self.head(), place + quotient + 1);
        let before = head & ((1 << at) - 1);
        self.set_head(before | 1 << at | (head ^ before) << 1);
        let (word, shift) = ((place * width / 64) as usize, place * width % 64);
        let old = self.0;
        // What is above the new remainder moves up by its width, ...
        for i in 1..DATA_WORDS {
            let moved = old[i] << width | old[i - 1] >> (64 - width);
            self.0[i] = if i > word { moved } else { old[i] };
        }
        // ... within its word as well, ...
        let (here, above) = (&mut self.0[word % DATA_WORDS], old[word % DATA_WORDS]);
        let below = above & low(shift as i32);
        *here = below | remainder << shift | (above ^ below) << width;
        // ... and the next word takes what does not fit.
        let next = &mut self.0[(word + 1) % BIN_WORDS];
        *next = *next & !low((shift + width) as i32 - 64) | remainder >> 1 >> (63 - shift);
    }

    /// The largest number inside.
    #[inline(always)]
    pub(super) fn last(&self, width: u32) -> Option<u64> {
        let place = self.len().checked_sub(1)?;
        let at = HEAD_BITS - 1 - self.head().leading_zeros();
        Some(u64::from(at - 1 - place) << width | self.get(place, width))
    }

    /// Takes the largest number out.
    pub(super) fn pop(&mut self, width: u32) {
        let Some(place) = self.len().checked_sub(1) else { return };
        let head = self.head();
        self.set_head(head ^ 1 << (HEAD_BITS - 1 - head.leading_zeros()));
        for (i, word) in self.0[..DATA_WORDS].iter_mut().enumerate() {
            *word &= low((place * width) as i32 - i as i32 * 64);
        }
    }

    /// The numbers inside, from the smallest.
    #[inline(always)]
    pub(super) fn numbers<'a>(&self, width: u32, out: &'a mut [u64; MOST]) -> &'a [u64] {
        let mut place = 0;
        for (mut head, first) in [(self.0[6], 0), (self.0[7], 64)] {
            while head != 0 && place < MOST as u32 {
                let quotient = first + head.trailing_zeros() - place - 1;
                out[place as usize] = u64::from(quotient) << width | self.get(place, width);
                head &= head - 1;
                place += 1;
            }
        }
        &out[..place as usize]
    }

    /// Whether the heads begin with a zero, and nothing is set behind the last remainder.
    pub(super) fn is_clean(&self, width: u32) -> bool {
        let used = self.len() * width;
        let beyond = |i: usize| self.0[i] & !low(used as i32 - i as i32 * 64);
        used <= DATA_BITS && self.0[6] & 1 == 0 && (0..DATA_WORDS).all(|i| beyond(i) == 0)
    }
}

/// A bin that is filled in the order of its numbers. It has its last word in a register.
#[derive(Default)]
pub(super) struct Filling {
    bin: Bin,
    len: u32,
    /// The word that is being filled, its place, and how many bits of it are.
    word: u64,
    at: usize,
    bits: u32,
}

impl Filling {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Appends a number that is larger than all before it. There must be a free slot.
    #[inline(always)]
    pub(super) fn push(&mut self, quotient: u32, remainder: u64, width: u32) {
        let at = self.len + quotient + 1;
        self.bin.0[DATA_WORDS + at as usize / 64 % 2] |= 1 << (at % 64);
        self.len += 1;
        self.word |= remainder << self.bits;
        self.bits += width;
        if self.bits >= 64 {
            self.bin.0[self.at % DATA_WORDS] = self.word;
            self.at += 1;
            self.bits -= 64;
            self.word = remainder >> (width - self.bits);
        }
    }

    /// The bin; an empty one is begun.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Bin {
        let Filling { mut bin, word, at, bits, .. } = std::mem::take(self);
        if bits > 0 {
            bin.0[at % DATA_WORDS] = word;
        }
        bin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_bin_is_a_sorted_set() {
        let mut random = 1u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            random >> 20
        };
        for width in [1, 3, 7, 8, 13, 31, 48] {
            let slots = (DATA_BITS / width).min(80);
            for quotients in [1, HEAD_BITS - slots] {
                let (mut bin, mut set) = (Bin::default(), BTreeSet::new());
                for _ in 0..4 * slots {
                    let number = next() % (u64::from(quotients) << width);
                    let (q, r) = ((number >> width) as u32, number & low(width as i32));
                    let (place, found) = bin.find::<false>(q, r, width);
                    assert_eq!(found, set.contains(&number));
                    if !found {
                        if bin.len() == slots {
                            assert_eq!(bin.last(width), set.pop_last());
                            bin.pop(width);
                        } else {
                            bin.insert(place, q, r, width);
                            set.insert(number);
                        }
                    }
                    let numbers = &mut [0; MOST];
                    assert!(bin.numbers(width, numbers).iter().eq(&set), "{width} {quotients}");
                    assert!(bin.is_clean(width));
                    let mut again = Filling::default();
                    for number in &set {
                        again.push((number >> width) as u32, number & low(width as i32), width);
                    }
                    assert_eq!(again.take(), bin);
                }
                assert_eq!(set.len(), bin.len() as usize);
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn both_ways_to_select_agree() {
        if is_x86_feature_detected!("bmi2") {
            for words in
                [[0u64, 0], [!1, !0 >> 7], [1 << 63, 1], [!0, 6], [0x1234_5678_9ABC_DEF0, 5]]
            {
                for number in 0..words[0].count_zeros() + words[1].count_zeros() {
                    assert_eq!(select::<true>(words, number), select::<false>(words, number));
                }
            }
        }
    }
}
