//! A window of bits, seen as one long number, shifted inside itself by pieces of 64 bits.
//!
//! Bits outside the window keep their values; bits that leave it are lost, and zeros come in at the
//! other end. Only for the single writer, who holds the version (`version.rs`) if readers may look.

use crate::cells::packed::{read, write};
use std::sync::atomic::AtomicU64;

/// Moves the bits of `from..end` up by `by` (1 to 63).
pub(super) fn up(words: &[AtomicU64], from: u64, end: u64, by: u32) {
    let by = u64::from(by);
    // From the top, so that each piece is read before it is overwritten.
    let mut at = end;
    while at > from + by {
        let piece = (at - by - from).min(64);
        at -= piece;
        write(words, at, piece as u32, read(words, at - by, piece as u32));
    }
    write(words, from, (at - from) as u32, 0);
}

/// Moves the bits of `from..end` down by `by` (1 to 63).
pub(super) fn down(words: &[AtomicU64], from: u64, end: u64, by: u32) {
    let by = u64::from(by);
    let mut at = from;
    while at + by < end {
        let piece = (end - by - at).min(64);
        write(words, at, piece as u32, read(words, at + by, piece as u32));
        at += piece;
    }
    write(words, at, (end - at) as u32, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    fn bits(words: &[AtomicU64]) -> Vec<bool> {
        let bit = |i: usize| words[i / 64].load(Ordering::Relaxed) >> (i % 64) & 1 == 1;
        (0..words.len() * 64).map(bit).collect()
    }

    #[test]
    fn a_window_shifts_as_its_bits_would_one_by_one_and_nothing_else_changes() {
        let seed = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (from, end) in
            [(0, 1), (0, 64), (0, 320), (5, 9), (60, 70), (63, 65), (64, 128), (1, 319)]
        {
            for by in [1, 2, 31, 63] {
                let words: Vec<AtomicU64> = (0..5).map(|i| AtomicU64::new(seed(i))).collect();
                let old = bits(&words);
                let inside = |at: usize| (from..end).contains(&at);
                up(&words, from as u64, end as u64, by);
                let by = by as usize;
                for (at, new) in bits(&words).into_iter().enumerate() {
                    let source = at.checked_sub(by).filter(|&s| inside(s));
                    let expected =
                        if inside(at) { source.is_some_and(|s| old[s]) } else { old[at] };
                    assert_eq!(new, expected, "bit {at} of {from}..{end} up by {by}");
                }
                let old = bits(&words);
                down(&words, from as u64, end as u64, by as u32);
                for (at, new) in bits(&words).into_iter().enumerate() {
                    let source = Some(at + by).filter(|&s| inside(s));
                    let expected =
                        if inside(at) { source.is_some_and(|s| old[s]) } else { old[at] };
                    assert_eq!(new, expected, "bit {at} of {from}..{end} down by {by}");
                }
            }
        }
    }
}
