//! A line as two 256-bit vectors. Same bits as `line.rs`, which says why the moves are `asm!`.

use super::line::{Lines, lanes};
use crate::hash::KeyHash;
use std::arch::asm;
use std::arch::x86_64::*;

/// Whether this processor has what the functions below need.
#[inline(always)]
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// The key's bits in the low and the high half of its line.
#[inline]
#[target_feature(enable = "avx2")]
fn masks(h2: u64, hashes: u32) -> [__m256i; 2] {
    let digest = _mm256_set1_epi64x(h2 as i64);
    let lanes = i64::from(lanes(h2, hashes));
    let half = |shifts: __m256i, selectors: __m256i| {
        let fields = _mm256_srlv_epi64(digest, shifts);
        let bits = _mm256_and_si256(fields, _mm256_set1_epi64x(63));
        let used = _mm256_and_si256(_mm256_set1_epi64x(lanes), selectors);
        _mm256_sllv_epi64(
            _mm256_and_si256(_mm256_cmpeq_epi64(used, selectors), _mm256_set1_epi64x(1)),
            bits,
        )
    };
    [
        half(_mm256_set_epi64x(18, 12, 6, 0), _mm256_set_epi64x(8, 4, 2, 1)),
        half(_mm256_set_epi64x(42, 36, 30, 24), _mm256_set_epi64x(128, 64, 32, 16)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(half: *const u64) -> __m256i {
    let value;
    // SAFETY: the caller gives an aligned half line.
    unsafe {
        asm!("vmovdqa {v}, ymmword ptr [{p}]", v = lateout(ymm_reg) value, p = in(reg) half,
             options(nostack, preserves_flags, readonly));
    }
    value
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(half: *mut u64, value: __m256i) {
    // SAFETY: the caller gives an aligned half line and is its only writer.
    unsafe {
        asm!("vmovdqa ymmword ptr [{p}], {v}", v = in(ymm_reg) value, p = in(reg) half,
             options(nostack, preserves_flags));
    }
}

/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn contains_group(lines: Lines<'_>, group: &[KeyHash], out: &mut [bool]) {
    for (hash, answer) in group.iter().zip(out) {
        let [low, high] = masks(hash.h2, lines.hashes);
        // SAFETY: first_word names a whole line inside the words.
        *answer = unsafe {
            let place = lines.words.base().add(lines.first_word(*hash));
            // testc: all bits of the mask are set in the line.
            (_mm256_testc_si256(load(place), low) & _mm256_testc_si256(load(place.add(4)), high))
                == 1
        };
    }
}

/// # Safety
/// The processor has AVX2, and the caller is the only writer of these lines.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_group(lines: Lines<'_>, group: &[KeyHash], out: &mut [bool]) {
    for (hash, answer) in group.iter().zip(out) {
        // SAFETY: first_word names a whole line inside the words; the caller is its only writer.
        *answer =
            unsafe { add(lines.words.base().add(lines.first_word(*hash)), hash.h2, lines.hashes) };
    }
}

/// Sets the bits of one key in its line and says whether one was new.
///
/// # Safety
/// The processor has AVX2, and the caller gives a whole, aligned line and is its only writer.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn add(place: *mut u64, h2: u64, hashes: u32) -> bool {
    let [low, high] = masks(h2, hashes);
    // SAFETY: the caller's promise.
    unsafe {
        let (old_low, old_high) = (load(place), load(place.add(4)));
        let there = _mm256_testc_si256(old_low, low) & _mm256_testc_si256(old_high, high);
        store(place, _mm256_or_si256(old_low, low));
        store(place.add(4), _mm256_or_si256(old_high, high));
        there == 0
    }
}
