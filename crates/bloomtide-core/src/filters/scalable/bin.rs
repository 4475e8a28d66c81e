//! One bin: a set of at most 64 small numbers, in slots that are columns of bits.
//!
//! A number is cut in two: the *quotient*, below 64, and below it the *remainder*, of some bits.
//!
//! ```text
//! words 0 and 1   the heads: for each quotient in order a zero, then a one for every number that has it
//! words 2, 3, ..  the planes: word 2 + j has bit j of the remainder of slot s in its bit s
//! ```
//!
//! So a number takes two bits more than its remainder. All slots are compared at once, plane by plane. A new
//! number goes behind those with its quotient; what is above moves up by one shift of each plane. And a bin is
//! split in two by its highest plane, which no half needs any more.

use super::NEWER;
use std::iter::zip;

/// Words of the heads.
pub(super) const HEADS: usize = 2;
/// Numbers in a bin at the most, and quotients.
pub(super) const SLOTS: u32 = 64;

/// The lowest `bits` bits, fewer than 64.
#[inline(always)]
pub(super) fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The bits of a word at the ones of a mask, moved down next to one another.
#[inline(always)]
fn compress<const LEVEL: u8>(word: u64, mut mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if LEVEL >= NEWER {
        // SAFETY: who says so has seen that the processor has the instruction.
        return unsafe { std::arch::x86_64::_pext_u64(word, mask) };
    }
    let (mut out, mut at) = (0, 0);
    while mask != 0 {
        out |= (word >> mask.trailing_zeros() & 1) << at;
        mask &= mask - 1;
        at += 1;
    }
    out
}

/// The other way: the lowest bits of a word moved up to the ones of a mask.
#[inline(always)]
fn expand<const LEVEL: u8>(word: u64, mut mask: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if LEVEL >= NEWER {
        // SAFETY: as above.
        return unsafe { std::arch::x86_64::_pdep_u64(word, mask) };
    }
    let (mut out, mut at) = (0, 0);
    while mask != 0 {
        out |= (word >> at & 1) << mask.trailing_zeros();
        mask &= mask - 1;
        at += 1;
    }
    out
}

/// Position of the zero with this number in the heads, where it must be.
#[inline(always)]
fn select<const LEVEL: u8>(bin: &[u64], number: u32) -> u32 {
    let below = bin[0].count_zeros();
    let high = number >= below;
    if LEVEL >= NEWER {
        // Both are looked for, since which one it is could not be predicted.
        let first = expand::<LEVEL>(1 << (number & 63), !bin[0]).trailing_zeros();
        let second = expand::<LEVEL>(1 << (number.wrapping_sub(below) & 63), !bin[1]);
        return if high { 64 + second.trailing_zeros() } else { first };
    }
    let mut zeros = !bin[usize::from(high)];
    for _ in 0..if high { number - below } else { number } {
        zeros &= zeros.wrapping_sub(1);
    }
    zeros.trailing_zeros() + if high { 64 } else { 0 }
}

#[inline(always)]
fn heads(bin: &[u64]) -> u128 {
    u128::from(bin[0]) | u128::from(bin[1]) << 64
}

#[inline(always)]
fn set_heads(bin: &mut [u64], heads: u128) {
    (bin[0], bin[1]) = (heads as u64, (heads >> 64) as u64);
}

/// How many numbers are inside.
#[inline(always)]
pub(super) fn len(bin: &[u64]) -> u32 {
    bin[0].count_ones() + bin[1].count_ones()
}

/// Looks for a number: whether it is there, and the slot behind those with its quotient.
#[inline(always)]
pub(super) fn find<const LEVEL: u8>(bin: &[u64], quotient: u32, remainder: u64) -> (bool, u32) {
    let zero = select::<LEVEL>(bin, quotient);
    let behind = (heads(bin) >> 1 >> zero) as u64;
    // The ones up to the next zero are the slots with the quotient.
    let (first, run) = (zero - quotient, behind & !behind.wrapping_add(1));
    let same = same::<LEVEL>(bin, remainder) >> (first & 63);
    (same & run != 0, first + run.count_ones())
}

/// The slots with a remainder. Free slots may be among them.
#[inline(always)]
fn same<const LEVEL: u8>(bin: &[u64], remainder: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if LEVEL == super::NEWEST && bin.len() >= 8 {
        // SAFETY: who says so has seen that the processor has the instructions, and the bin is long enough.
        return unsafe { avx512::same(bin, remainder) };
    }
    let differ = |(j, plane): (usize, &u64)| plane ^ 0u64.wrapping_sub(remainder >> j & 1);
    !bin[HEADS..].iter().enumerate().map(differ).fold(0, |any, plane| any | plane)
}

/// Puts a number into the slot that `find` said. The bin must not be full.
#[inline(always)]
pub(super) fn insert<const LEVEL: u8>(bin: &mut [u64], slot: u32, quotient: u32, remainder: u64) {
    let (all, at) = (heads(bin), slot + quotient + 1);
    // To add what is above moves it up by one.
    let moved = all + (all & u128::MAX << at);
    let all = moved | 1 << at;
    let above = u64::MAX << slot;
    #[cfg(target_arch = "x86_64")]
    if LEVEL == super::NEWEST && bin.len() >= 8 {
        // SAFETY: as above.
        unsafe { avx512::insert(bin, above, 1 << slot, remainder) };
        return set_heads(bin, all);
    }
    set_heads(bin, all);
    for (j, plane) in bin[HEADS..].iter_mut().enumerate() {
        *plane += (*plane & above) + ((remainder >> j & 1) << slot);
    }
}

/// Vectors of eight words. The last one overlaps the one before it, and none goes beyond the bin: to reach into
/// a line that nobody asked for takes longer than all else.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::HEADS;
    use std::arch::x86_64::*;

    /// Which of the eight words from `at` on are planes, and which of those have a one for the remainder.
    #[inline(always)]
    fn lanes(at: usize, remainder: u64) -> (u8, u8) {
        ((u64::MAX << HEADS >> at) as u8, (remainder << HEADS >> at) as u8)
    }

    /// # Safety
    /// The processor has AVX-512F, and the bin eight words.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn same(bin: &[u64], remainder: u64) -> u64 {
        let (mut differ, ones) = (_mm512_setzero_si512(), _mm512_set1_epi64(-1));
        let (mut at, last) = (0, bin.len() - 8);
        loop {
            let (planes, bits) = lanes(at, remainder);
            // SAFETY: eight words from `at` on are in the bin.
            let words = unsafe { _mm512_loadu_epi64(bin.as_ptr().add(at).cast()) };
            let other = _mm512_mask_xor_epi64(words, bits, words, ones);
            differ = _mm512_mask_or_epi64(differ, planes, differ, other);
            if at == last {
                return !_mm512_reduce_or_epi64(differ) as u64;
            }
            at = last.min(at + 8);
        }
    }

    /// Moves the slots `above` up by one, in the planes, and puts a remainder into the one that is free then.
    ///
    /// # Safety
    /// The processor has AVX-512F, and the bin eight words.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn insert(bin: &mut [u64], above: u64, slot: u64, remainder: u64) {
        let (above, slot) = (_mm512_set1_epi64(above as i64), _mm512_set1_epi64(slot as i64));
        let moved = |words: __m512i, at: usize| {
            let (planes, bits) = lanes(at, remainder);
            let moved = _mm512_and_si512(words, above);
            let moved = _mm512_mask_add_epi64(words, planes, words, moved);
            _mm512_mask_add_epi64(moved, bits, moved, slot)
        };
        let (bin, last) = (bin.as_mut_ptr(), bin.len() - 8);
        // SAFETY: eight words from `at` on are in the bin, as `at` is `last` at most.
        unsafe {
            // The last ones are read before the first ones are written.
            let behind = moved(_mm512_loadu_epi64(bin.add(last).cast()), last);
            for at in (0..last).step_by(8) {
                let words = _mm512_loadu_epi64(bin.add(at).cast());
                _mm512_storeu_epi64(bin.add(at).cast(), moved(words, at));
            }
            _mm512_storeu_epi64(bin.add(last).cast(), behind);
        }
    }
}

/// The number in the last slot of a full bin: no quotient there is larger.
pub(super) fn last(bin: &[u64]) -> (u32, u64) {
    let bit = |(j, plane): (usize, &u64)| plane >> (SLOTS - 1) << j;
    let at = u128::BITS - 1 - heads(bin).leading_zeros();
    (at - SLOTS, bin[HEADS..].iter().enumerate().map(bit).sum())
}

/// Takes it out.
pub(super) fn pop(bin: &mut [u64]) {
    let all = heads(bin);
    set_heads(bin, all ^ 1 << (u128::BITS - 1 - all.leading_zeros()));
    bin[HEADS..].iter_mut().for_each(|plane| *plane &= u64::MAX >> 1);
}

/// Puts every number of a bin into one of two, by the highest bit of its remainder.
#[inline(always)]
pub(super) fn split<const LEVEL: u8>(bin: &[u64], halves: &mut [u64]) {
    let (bin, highest) = bin.split_at(bin.len() - 1);
    let (none, one) = halves.split_at_mut(bin.len());
    for (half, chosen) in [(none, !highest[0]), (one, highest[0])] {
        // All zeros of the heads, and the ones of the numbers that are chosen.
        let first = !bin[0] | expand::<LEVEL>(chosen, bin[0]);
        let second = !bin[1] | expand::<LEVEL>(chosen >> bin[0].count_ones(), bin[1]);
        let behind = u128::from(compress::<LEVEL>(bin[1], second)) << first.count_ones();
        set_heads(half, u128::from(compress::<LEVEL>(bin[0], first)) | behind);
        for (to, plane) in zip(&mut half[HEADS..], &bin[HEADS..]) {
            *to = compress::<LEVEL>(*plane, chosen);
        }
    }
}

/// The numbers inside, in the order of their quotients: quotients with their remainders.
pub(super) fn numbers(bin: &[u64]) -> impl Iterator<Item = (u32, u64)> + '_ {
    let mut left = heads(bin);
    (0..len(bin).min(SLOTS)).map(move |slot| {
        let at = left.trailing_zeros();
        left &= left - 1;
        let bit = |(j, plane): (usize, &u64)| (plane >> slot & 1) << j;
        (at.saturating_sub(slot + 1), bin[HEADS..].iter().enumerate().map(bit).sum())
    })
}

/// Whether it is a set of at most 64 numbers, with nothing in the free slots.
pub(super) fn is_sound(bin: &[u64]) -> bool {
    let free = u64::MAX.checked_shl(len(bin)).unwrap_or(0);
    let mut all: Vec<_> = numbers(bin).collect();
    let in_order = all.is_sorted_by_key(|(quotient, _)| *quotient);
    all.sort_unstable();
    len(bin) <= SLOTS
        && bin[0] & 1 == 0
        && bin[HEADS..].iter().all(|plane| plane & free == 0)
        && in_order
        && all.is_sorted_by(|a, b| a < b)
        && all.iter().all(|(quotient, _)| *quotient < SLOTS)
}

#[cfg(test)]
mod tests {
    use super::super::PLAIN;
    use super::*;
    use std::collections::BTreeSet;

    fn random() -> impl FnMut() -> u64 {
        let mut random = 1u64;
        move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            random >> 20
        }
    }

    fn sorted(bin: &[u64]) -> Vec<(u32, u64)> {
        let mut numbers: Vec<_> = numbers(bin).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_bin_is_a_set_and_is_split_by_the_highest_bit() {
        let mut next = random();
        for width in [0, 1, 3, 5, 6, 8, 9, 14, 15, 31, 40] {
            for quotients in [1, 3, 64] {
                let mut bin = vec![0; HEADS + width];
                let (mut set, mut quotient_of_last) = (BTreeSet::new(), 0);
                for _ in 0..200 {
                    let (q, r) = (next() as u32 % quotients, next() & low(width as u32));
                    let (found, slot) = find::<PLAIN>(&bin, q, r);
                    assert_eq!(found, set.contains(&(q, r)));
                    assert_eq!(slot as usize, set.range(..(q + 1, 0)).count());
                    if !found && len(&bin) == SLOTS {
                        assert!(set.remove(&last(&bin)));
                        quotient_of_last = last(&bin).0;
                        assert!(set.iter().all(|(quotient, _)| *quotient <= quotient_of_last));
                        pop(&mut bin);
                    } else if !found {
                        insert::<PLAIN>(&mut bin, slot, q, r);
                        set.insert((q, r));
                    }
                    assert!(is_sound(&bin) && sorted(&bin).iter().eq(&set), "{width} {quotients}");
                }
                if width > 0 {
                    let mut halves = vec![0; 2 * (bin.len() - 1)];
                    split::<PLAIN>(&bin, &mut halves);
                    let low = low(width as u32 - 1);
                    for (half, bit) in halves.chunks(bin.len() - 1).zip([0, low + 1]) {
                        let there = set.iter().filter(|(_, r)| r & !low == bit);
                        let there: Vec<_> = there.map(|(q, r)| (*q, r & low)).collect();
                        assert!(is_sound(half) && sorted(half) == there, "{width} {quotients}");
                    }
                }
                assert!(quotient_of_last < quotients);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn agrees<const LEVEL: u8>() {
        let mut next = random();
        for width in 1..40 {
            let (mut plain, mut fast) = (vec![0; HEADS + width], vec![0; HEADS + width]);
            while len(&plain) < SLOTS {
                let (q, r) = (next() as u32 % 64, next() & low(width as u32));
                let (found, slot) = find::<PLAIN>(&plain, q, r);
                assert_eq!(find::<LEVEL>(&fast, q, r), (found, slot));
                if !found {
                    insert::<PLAIN>(&mut plain, slot, q, r);
                    insert::<LEVEL>(&mut fast, slot, q, r);
                }
                assert_eq!(plain, fast);
            }
            let [mut halves, mut fast_halves] = [(); 2].map(|()| vec![0; 2 * (plain.len() - 1)]);
            split::<PLAIN>(&plain, &mut halves);
            split::<LEVEL>(&fast, &mut fast_halves);
            assert_eq!(halves, fast_halves);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn all_processors_agree() {
        if is_x86_feature_detected!("bmi2") {
            agrees::<NEWER>();
        }
        if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("avx512f") {
            agrees::<{ super::super::NEWEST }>();
        }
    }
}
