//! One block of the blocked layout: eight words, one cache line.
//!
//! A key uses k of the eight words and one bit in each: word w takes six bits of `h2`
//! (bits 6w..6w+6). With k < 8 the words are k neighbours, starting at the word that bits 48..51
//! name, around the corner; with k = 8 they are all.
//!
//! The same bits come out of three versions: plain words, AVX2 (four words a step) and AVX-512 (one
//! step). Which one runs is decided at run time; `tests::versions_agree` holds them together. The
//! vector versions move lines with one instruction each through `asm!`, because to the compiler a
//! vector load of memory that another thread writes would be a data race; to the processor it is
//! a set of ordinary 8-byte accesses, which is what the relaxed atomics of the plain version are.

use crate::cells::{LINE_WORDS, Words};
use crate::hash::KeyHash;
use crate::positions::reduce;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the lines are and how a key uses them.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) words: &'a Words,
    pub(super) blocks: u64,
    pub(super) hashes: u32,
}

/// The words of a line a key uses, as one bit per word.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn lanes(h2: u64, hashes: u32) -> u8 {
    if hashes == 8 { 0xff } else { ((1u8 << hashes) - 1).rotate_left((h2 >> 48) as u32 & 7) }
}

/// The bit a key sets in word `w`.
#[inline(always)]
pub(super) fn bit(h2: u64, w: u32) -> u32 {
    (h2 >> (6 * w)) as u32 & 63
}

/// The words a key uses, in order.
#[inline(always)]
pub(super) fn used(h2: u64, hashes: u32) -> impl Iterator<Item = u32> {
    let start = if hashes == 8 { 0 } else { (h2 >> 48) as u32 & 7 };
    (0..hashes).map(move |i| (start + i) & 7)
}

impl<'a> Lines<'a> {
    /// Index of the first word of the key's line.
    #[inline(always)]
    pub(super) fn first_word(&self, hash: KeyHash) -> usize {
        reduce(hash.h1, self.blocks) as usize * LINE_WORDS
    }

    #[inline(always)]
    fn line(&self, hash: KeyHash) -> &'a [AtomicU64; LINE_WORDS] {
        let first = self.first_word(hash);
        // SAFETY: reduce gives a block below `blocks`, and the words hold `blocks` lines.
        unsafe { &*self.words.base().add(first).cast() }
    }

    /// Asks the processor for the key's line.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: KeyHash) {
        self.words.prefetch(self.first_word(hash));
    }

    /// Whether all the key's bits are set.
    #[inline(always)]
    pub(super) fn contains(&self, hash: KeyHash) -> bool {
        let line = self.line(hash);
        if self.hashes == 8 {
            // Two halves: most absent keys are known after four words, without a branch per word.
            return (0..8u32).step_by(4).all(|half| {
                (half..half + 4)
                    .all_bits(|w| line[w as usize].load(Ordering::Relaxed) >> bit(hash.h2, w))
            });
        }
        self.used(hash.h2)
            .all(|w| line[w as usize].load(Ordering::Relaxed) >> bit(hash.h2, w) & 1 == 1)
    }

    #[inline(always)]
    fn used(&self, h2: u64) -> impl Iterator<Item = u32> + use<> {
        used(h2, self.hashes)
    }

    /// Sets the key's bits and says whether one was new. The caller is the only writer of the line.
    #[inline(always)]
    pub(super) fn add_alone(&self, hash: KeyHash) -> bool {
        let line = self.line(hash);
        let mut new = 0;
        for w in self.used(hash.h2) {
            let mask = 1u64 << bit(hash.h2, w);
            let old = line[w as usize].load(Ordering::Relaxed);
            line[w as usize].store(old | mask, Ordering::Relaxed);
            new |= !old & mask;
        }
        new != 0
    }

    /// The same for a call of one key. With AVX2 and not with AVX-512: a lone wide instruction slows the clock of
    /// older processors.
    #[inline(always)]
    pub(super) fn add_one(&self, hash: KeyHash) -> bool {
        #[cfg(target_arch = "x86_64")]
        if super::avx2::available() {
            // SAFETY: the processor has the instructions, the line is whole, and the caller is its only writer.
            return unsafe {
                let place = self.words.base().add(self.first_word(hash));
                super::avx2::add(place, hash.h2, self.hashes)
            };
        }
        self.add_alone(hash)
    }

    /// The same by atomic ORs, for lines that other processes change too.
    #[inline(always)]
    pub(super) fn add_shared(&self, hash: KeyHash) -> bool {
        let line = self.line(hash);
        let mut new = false;
        for w in self.used(hash.h2) {
            let mask = 1u64 << bit(hash.h2, w);
            // A look first: a locked OR of a bit that is already set would be wasted.
            if line[w as usize].load(Ordering::Relaxed) & mask == 0 {
                new |= line[w as usize].fetch_or(mask, Ordering::Relaxed) & mask == 0;
            }
        }
        new
    }

    /// `contains` for a group.
    #[inline(always)]
    pub(super) fn contains_group(&self, group: &[KeyHash], out: &mut [bool]) {
        #[cfg(target_arch = "x86_64")]
        {
            if super::avx512::available() {
                // SAFETY: the processor has the instructions.
                return unsafe { super::avx512::contains_group(*self, group, out) };
            }
            if super::avx2::available() {
                // SAFETY: the processor has the instructions.
                return unsafe { super::avx2::contains_group(*self, group, out) };
            }
        }
        for (hash, answer) in group.iter().zip(out) {
            *answer = self.contains(*hash);
        }
    }

    /// `add_alone` for a group, in order.
    #[inline(always)]
    pub(super) fn add_group_alone(&self, group: &[KeyHash], out: &mut [bool]) {
        #[cfg(target_arch = "x86_64")]
        {
            if super::avx512::available() {
                // SAFETY: the processor has the instructions.
                return unsafe { super::avx512::add_group(*self, group, out) };
            }
            if super::avx2::available() {
                // SAFETY: the processor has the instructions.
                return unsafe { super::avx2::add_group(*self, group, out) };
            }
        }
        for (hash, answer) in group.iter().zip(out) {
            *answer = self.add_alone(*hash);
        }
    }
}

/// ANDs the lowest bits without a branch between them.
trait AllBits: Iterator<Item = u32> + Sized {
    #[inline(always)]
    fn all_bits(self, word: impl Fn(u32) -> u64) -> bool {
        self.fold(1, |all, w| all & word(w)) & 1 == 1
    }
}
impl<I: Iterator<Item = u32>> AllBits for I {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hasher;

    type Run = (Vec<bool>, Vec<bool>, Vec<u64>);

    fn run(
        hashes: u32,
        add: impl Fn(Lines<'_>, &[KeyHash], &mut [bool]),
        contains: impl Fn(Lines<'_>, &[KeyHash], &mut [bool]),
    ) -> Run {
        let words = Words::zeroed(512 * 37).unwrap_or_else(|e| unreachable!("{e}"));
        let lines = Lines { words: &words, blocks: 37, hashes };
        let hasher = Hasher::Xxh3 { seed: 3 };
        let keys: Vec<_> = (0..1500u64).map(|i| hasher.unsigned(i % 1200)).collect();
        let probes: Vec<_> = (1000..3000u64).map(|i| hasher.unsigned(i)).collect();
        let mut new = vec![false; keys.len()];
        let mut present = vec![false; probes.len()];
        add(lines, &keys, &mut new);
        contains(lines, &probes, &mut present);
        let cells = words.atomics().iter().map(|w| w.load(Ordering::Relaxed)).collect();
        (new, present, cells)
    }

    fn plain(hashes: u32) -> Run {
        run(
            hashes,
            |lines, group, out| {
                out.iter_mut().zip(group).for_each(|(o, h)| *o = lines.add_alone(*h))
            },
            |lines, group, out| {
                out.iter_mut().zip(group).for_each(|(o, h)| *o = lines.contains(*h))
            },
        )
    }

    #[test]
    fn versions_agree() {
        for hashes in 1..=8 {
            let expected = plain(hashes);
            assert!(expected.0.iter().any(|new| *new) && expected.1.iter().any(|p| !*p));
            let one_by_one = run(
                hashes,
                |lines, group, out| {
                    out.iter_mut().zip(group).for_each(|(o, h)| *o = lines.add_one(*h));
                },
                |lines, group, out| lines.contains_group(group, out),
            );
            assert_eq!(one_by_one, expected, "one by one, k = {hashes}");
            let shared = run(
                hashes,
                |lines, group, out| {
                    out.iter_mut().zip(group).for_each(|(o, h)| *o = lines.add_shared(*h));
                },
                |lines, group, out| lines.contains_group(group, out),
            );
            assert_eq!(shared, expected, "shared, k = {hashes}");
            #[cfg(target_arch = "x86_64")]
            {
                use crate::filters::bloom::{avx2, avx512};
                if avx512::available() {
                    let vector = run(
                        hashes,
                        // SAFETY: just checked.
                        |lines, group, out| unsafe { avx512::add_group(lines, group, out) },
                        // SAFETY: just checked.
                        |lines, group, out| unsafe { avx512::contains_group(lines, group, out) },
                    );
                    assert_eq!(vector, expected, "avx512, k = {hashes}");
                }
                if avx2::available() {
                    let vector = run(
                        hashes,
                        // SAFETY: just checked.
                        |lines, group, out| unsafe { avx2::add_group(lines, group, out) },
                        // SAFETY: just checked.
                        |lines, group, out| unsafe { avx2::contains_group(lines, group, out) },
                    );
                    assert_eq!(vector, expected, "avx2, k = {hashes}");
                }
            }
        }
    }
}
