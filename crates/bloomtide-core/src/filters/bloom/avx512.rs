//! A line as one 512-bit vector. Same bits as `line.rs`, which says why the moves are `asm!`.

use super::line::{Lines, lanes};
use crate::hash::KeyHash;
use std::arch::asm;
use std::arch::x86_64::*;

/// Whether this processor has what the functions below need.
#[inline(always)]
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// The key's bits as a line.
#[inline]
#[target_feature(enable = "avx512f")]
fn mask(h2: u64, hashes: u32) -> __m512i {
    let shifts = _mm512_set_epi64(42, 36, 30, 24, 18, 12, 6, 0);
    let fields = _mm512_srlv_epi64(_mm512_set1_epi64(h2 as i64), shifts);
    let bits = _mm512_and_si512(fields, _mm512_set1_epi64(63));
    _mm512_maskz_sllv_epi64(lanes(h2, hashes), _mm512_set1_epi64(1), bits)
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(line: *const u64) -> __m512i {
    let value;
    // SAFETY: the caller gives a whole, 64-byte aligned line.
    unsafe {
        asm!("vmovdqa64 {v}, zmmword ptr [{p}]", v = lateout(zmm_reg) value, p = in(reg) line,
             options(nostack, preserves_flags, readonly));
    }
    value
}

#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(line: *mut u64, value: __m512i) {
    // SAFETY: the caller gives a whole, 64-byte aligned line and is its only writer.
    unsafe {
        asm!("vmovdqa64 zmmword ptr [{p}], {v}", v = in(zmm_reg) value, p = in(reg) line,
             options(nostack, preserves_flags));
    }
}

/// # Safety
/// The processor has AVX-512F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn contains_group(lines: Lines<'_>, group: &[KeyHash], out: &mut [bool]) {
    for (hash, answer) in group.iter().zip(out) {
        let wanted = mask(hash.h2, lines.hashes);
        // SAFETY: first_word names a whole line inside the words.
        let line = unsafe { load(lines.words.base().add(lines.first_word(*hash))) };
        *answer = _mm512_test_epi64_mask(_mm512_andnot_si512(line, wanted), wanted) == 0;
    }
}

/// # Safety
/// The processor has AVX-512F, and the caller is the only writer of these lines.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn add_group(lines: Lines<'_>, group: &[KeyHash], out: &mut [bool]) {
    for (hash, answer) in group.iter().zip(out) {
        let wanted = mask(hash.h2, lines.hashes);
        // SAFETY: first_word names a whole line inside the words; the caller is its only writer.
        unsafe {
            let place = lines.words.base().add(lines.first_word(*hash));
            let line = load(place);
            *answer = _mm512_test_epi64_mask(_mm512_andnot_si512(line, wanted), wanted) != 0;
            store(place, _mm512_or_si512(line, wanted));
        }
    }
}
