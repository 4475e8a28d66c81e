//! A window of bits, seen as one long number, shifted inside itself a word at a time.
//!
//! Bits outside the window keep their values; bits that leave it are lost, and zeros come in at the
//! other end. Only for the single writer, who holds the version (`version.rs`) if readers may look.

use std::sync::atomic::{AtomicU64, Ordering};

/// The words of a window, with the masks of its bits in the first and in the last of them.
struct Window {
    first: usize,
    last: usize,
    above: u64,
    below: u64,
}

impl Window {
    fn new(from: u64, end: u64) -> Self {
        debug_assert!(from < end);
        Window {
            first: (from >> 6) as usize,
            last: ((end - 1) >> 6) as usize,
            above: u64::MAX << (from & 63),
            below: u64::MAX >> (63 - ((end - 1) & 63)),
        }
    }

    fn mask(&self, at: usize) -> u64 {
        let above = if at == self.first { self.above } else { u64::MAX };
        if at == self.last { above & self.below } else { above }
    }

    /// The window's bits in the word; zero outside.
    fn get(&self, words: &[AtomicU64], at: usize) -> u64 {
        words[at].load(Ordering::Relaxed) & self.mask(at)
    }

    fn set(&self, words: &[AtomicU64], at: usize, bits: u64) {
        let mask = self.mask(at);
        let old = words[at].load(Ordering::Relaxed);
        words[at].store((old & !mask) | (bits & mask), Ordering::Relaxed);
    }
}

/// Moves the bits of `from..end` up by `by` (1 to 63).
pub(super) fn up(words: &[AtomicU64], from: u64, end: u64, by: u32) {
    let window = Window::new(from, end);
    // From the top, so that each word is read before it is overwritten.
    let mut here = window.get(words, window.last);
    for at in (window.first + 1..=window.last).rev() {
        let under = window.get(words, at - 1);
        window.set(words, at, (here << by) | (under >> (64 - by)));
        here = under;
    }
    window.set(words, window.first, here << by);
}

/// Moves the bits of `from..end` down by `by` (1 to 63).
pub(super) fn down(words: &[AtomicU64], from: u64, end: u64, by: u32) {
    let window = Window::new(from, end);
    let mut here = window.get(words, window.first);
    for at in window.first..window.last {
        let over = window.get(words, at + 1);
        window.set(words, at, (here >> by) | (over << (64 - by)));
        here = over;
    }
    window.set(words, window.last, here >> by);
}

#[cfg(test)]
mod tests {
    use super::*;

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
