//! Fading a sparse block sixteen cells at a time (AVX-512): digits and entries become values, fade, and are put
//! down again, in one pass. Entries are gathered aside and copied at the end: a load so soon after a
//! store beside it would wait for that. Faded values are not larger, so there is room for them.

use super::block::{Block, MAP, SPARSE};
use super::table::Pool;
use super::{BLOCK, Fading};
use std::arch::x86_64::*;

/// Whether this processor has what the functions below need.
#[inline(always)]
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// `Block::fade`.
///
/// # Safety
/// The processor is `available`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
pub(super) unsafe fn fade<const ROOM: usize>(
    block: &mut Block<ROOM>,
    fading: &Fading,
    pool: &Pool,
) {
    if block.link.form() != SPARSE {
        return block.fade(fading, pool);
    }
    let mut aside = [0u16; BLOCK + 16];
    let (mut read, mut written) = (0, 0);
    let mut map = [0; MAP];
    for sixteen in 0..BLOCK / 16 {
        let (half, shift) = (sixteen / 4, sixteen % 4 * 16);
        let more = (block.map[half] >> shift) as u16;
        let count = more.count_ones() as usize;
        // SAFETY: there is an entry for each bit of the map, in this order; other lanes are not read.
        let high = unsafe {
            let lanes = ((1u32 << count) - 1) as u16;
            _mm256_maskz_loadu_epi16(lanes, block.entries().as_ptr().add(read).cast())
        };
        read += count;
        let high = _mm512_maskz_expand_epi32(more, _mm512_cvtepu16_epi32(high));
        let value = _mm512_or_si512(digits(block.digits[sixteen]), _mm512_slli_epi32::<4>(high));
        let faded = fading.fade_sixteen(value);
        let more = _mm512_cmpgt_epu32_mask(faded, _mm512_set1_epi32(15));
        let high = _mm512_maskz_compress_epi32(more, _mm512_srli_epi32::<4>(faded));
        // SAFETY: at most as many entries as cells before, and sixteen more.
        unsafe {
            let entries = aside.as_mut_ptr().add(written);
            _mm256_storeu_si256(entries.cast(), _mm512_cvtepi32_epi16(high));
        }
        written += more.count_ones() as usize;
        block.digits[sixteen] = joined(faded);
        map[half] |= u64::from(more) << shift;
    }
    block.map = map;
    block.entries_mut().copy_from_slice(&aside[..Block::<ROOM>::ENTRIES]);
}

/// The sixteen digits of a word.
#[inline]
#[target_feature(enable = "avx512f")]
fn digits(word: u64) -> __m512i {
    const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let even = _mm_cvtsi64_si128((word & EVEN) as i64);
    let odd = _mm_cvtsi64_si128((word >> 4 & EVEN) as i64);
    _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(even, odd))
}

/// The lowest digits of sixteen values as a word.
#[inline]
#[target_feature(enable = "avx512f")]
fn joined(values: __m512i) -> u64 {
    let bytes = _mm512_cvtepi32_epi8(_mm512_and_si512(values, _mm512_set1_epi32(15)));
    // The even digit once and the odd one sixteen times.
    let pairs = _mm_maddubs_epi16(bytes, _mm_set1_epi16(0x1001));
    _mm_cvtsi128_si64(_mm_packus_epi16(pairs, pairs)) as u64
}

#[cfg(test)]
mod tests {
    use super::super::super::{Decay, DecayingCells, Rounding};
    use super::super::{OptimizedCells, ROOM_128B, ROOM_192B};

    /// Fades the same values twice, in vectors where there are some and without.
    fn alike<const ROOM: usize>(bits: u32, filled: u64) {
        let cells: u64 = 128 * 20;
        let [ours, theirs] = [0; 2].map(|_| OptimizedCells::<ROOM>::zeroed(cells, 32).unwrap());
        let mut seed = u64::from(bits);
        for _ in 0..filled * 20 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (cell, value) = ((seed >> 20) % cells, (seed >> 32) as u32 >> (32 - bits));
            [&ours, &theirs].iter().for_each(|store| store.set(cell, value));
        }
        for rounding in [Rounding::Strict, Rounding::Expiring] {
            for (lambda, age) in [(0.9, 1), (0.5, 3), (0.999, 1), (0.1, 9)] {
                let fading = Decay::new(lambda, rounding).of_age(age);
                for block in 0..20 {
                    ours.fade(block, &fading);
                    theirs.block(block).fade(&fading, &theirs.pool);
                }
                assert!((0..cells).all(|cell| ours.get(cell) == theirs.get(cell)), "{bits} bits");
                assert_eq!(ours.bytes(), theirs.bytes());
                ours.validate().unwrap();
            }
        }
    }

    #[test]
    fn a_block_fades_in_vectors_as_it_does_without() {
        for bits in [4, 5, 9, 14, 16, 20, 21, 32] {
            for filled in [0, 1, 20, 50, 110, 400] {
                alike::<ROOM_128B>(bits, filled);
                alike::<ROOM_192B>(bits, filled);
            }
        }
    }
}
