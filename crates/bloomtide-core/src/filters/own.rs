//! A thread's own keys among those of a batch: the blocked layouts with more than one thread.
//!
//! A thread owns a range of blocks. Blocks ascend with `h1`, so that is a range of `h1`, and whether a key
//! is the thread's own is one comparison. Its outcome is as good as random, so there is no branch: every key
//! is copied and only the own ones are counted. The AVX-512 version takes four keys a step;
//! `tests::versions_agree` holds the two together.

use crate::hash::KeyHash;
use crate::positions::least;
use std::ops::Range;

/// Keys gone through at once.
pub(super) const WINDOW: usize = 1 << 10;
/// The vector version writes this many keys at a time.
const STEP: usize = 4;

/// The `h1` of a thread's blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    first: u64,
    /// How many follow the first one.
    more: u64,
}

impl Share {
    /// The share that is `own`, at least one block, of all `blocks`.
    pub(super) fn of(own: &Range<u64>, blocks: u64) -> Self {
        debug_assert!(own.start < own.end && own.end <= blocks);
        let (first, end) = (least(own.start, blocks), least(own.end, blocks));
        Share { first: first as u64, more: (end - 1 - first) as u64 }
    }

    #[inline(always)]
    fn has(self, digest: KeyHash) -> bool {
        digest.h1.wrapping_sub(self.first) <= self.more
    }
}

/// What one of `threads` has of `all` things; nobody goes empty if there are as many things as threads.
pub(super) fn part(thread: usize, threads: usize, all: u64) -> Range<u64> {
    let border = |thread: usize| (u128::from(all) * thread as u128 / threads as u128) as u64;
    border(thread)..border(thread + 1)
}

/// The own keys of a window, in order, each with its row in the window.
pub(super) struct Own {
    digests: [KeyHash; WINDOW + STEP],
    rows: [u32; WINDOW + STEP],
    count: usize,
}

impl Own {
    pub(super) const fn none() -> Self {
        const NONE: KeyHash = KeyHash { h1: 0, h2: 0 };
        Own { digests: [NONE; WINDOW + STEP], rows: [0; WINDOW + STEP], count: 0 }
    }

    pub(super) fn digests(&self) -> &[KeyHash] {
        &self.digests[..self.count]
    }

    pub(super) fn rows(&self) -> &[u32] {
        &self.rows[..self.count]
    }

    /// Picks from at most `WINDOW` keys those of the share.
    pub(super) fn pick(&mut self, window: &[KeyHash], share: Share) {
        self.count = 0;
        let window = &window[..window.len().min(WINDOW)];
        #[cfg(target_arch = "x86_64")]
        if available() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.pick_by_four(window, share) };
        }
        self.pick_plainly(window, 0, share);
    }

    /// Picks from the rows at `from` and after it.
    #[inline(always)]
    fn pick_plainly(&mut self, window: &[KeyHash], from: usize, share: Share) {
        for (row, digest) in window.iter().enumerate().skip(from) {
            // Overwritten by the next one unless it is our own.
            self.digests[self.count] = *digest;
            self.rows[self.count] = row as u32;
            self.count += usize::from(share.has(*digest));
        }
    }

    /// # Safety
    /// The processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,bmi2,popcnt")]
    unsafe fn pick_by_four(&mut self, window: &[KeyHash], share: Share) {
        use std::arch::x86_64::*;
        /// The lanes of `h1` in four digests.
        const H1: u8 = 0b0101_0101;
        let first = _mm512_set1_epi64(share.first as i64);
        let more = _mm512_set1_epi64(share.more as i64);
        let mut rows = _mm_set_epi32(3, 2, 1, 0);
        let (steps, _) = window.as_chunks::<STEP>();
        for step in steps {
            // SAFETY: a step has 64 bytes.
            let keys = unsafe { _mm512_loadu_si512(step.as_ptr().cast()) };
            let own = _mm512_mask_cmple_epu64_mask(H1, _mm512_sub_epi64(keys, first), more);
            let (keys, numbers) = (
                _mm512_maskz_compress_epi64(own | own << 1, keys),
                _mm_maskz_compress_epi32(_pext_u32(own.into(), H1.into()) as u8, rows),
            );
            // SAFETY: `count` is at most the number of rows before, so four more fit.
            unsafe {
                _mm512_storeu_si512(self.digests.as_mut_ptr().add(self.count).cast(), keys);
                _mm_storeu_si128(self.rows.as_mut_ptr().add(self.count).cast(), numbers);
            }
            self.count += own.count_ones() as usize;
            rows = _mm_add_epi32(rows, _mm_set1_epi32(STEP as i32));
        }
        self.pick_plainly(window, steps.len() * STEP, share);
    }
}

#[cfg(target_arch = "x86_64")]
fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hasher;
    use crate::positions::reduce;

    /// Digests all over, and those beside the borders of blocks.
    fn digests(blocks: u64) -> Vec<KeyHash> {
        let hasher = Hasher::Xxh3 { seed: 5 };
        let borders = (1..blocks.min(100)).flat_map(|block| {
            let border = least(block, blocks) as u64;
            [border - 1, border].map(|h1| KeyHash { h1, h2: h1 ^ block })
        });
        let ends = [0, u64::MAX].map(|h1| KeyHash { h1, h2: 1 });
        (0..700).map(|key| hasher.unsigned(key)).chain(borders).chain(ends).collect()
    }

    #[test]
    fn every_key_has_one_owner_and_every_block_too() {
        for (blocks, threads) in [(2, 2), (3, 2), (7, 3), (1000, 16), (19_800, 2), (1 << 40, 1024)]
        {
            let shares: Vec<_> =
                (0..threads).map(|i| Share::of(&part(i, threads, blocks), blocks)).collect();
            for digest in digests(blocks) {
                let owners: Vec<_> = (0..threads).filter(|i| shares[*i].has(digest)).collect();
                assert_eq!(owners.len(), 1);
                assert!(part(owners[0], threads, blocks).contains(&reduce(digest.h1, blocks)));
            }
        }
    }

    #[test]
    fn versions_agree() {
        let keys = digests(97);
        let share = Share::of(&part(1, 3, 97), 97);
        for len in [0, 1, 3, 4, 5, 127, keys.len()] {
            let window = &keys[..len];
            let expected: Vec<_> =
                (0u32..).zip(window).filter(|(_, key)| share.has(**key)).collect();
            let (mut plain, mut best) = (Own::none(), Own::none());
            plain.pick_plainly(window, 0, share);
            best.pick(window, share);
            for own in [plain, best] {
                assert_eq!(
                    own.rows().iter().copied().zip(own.digests()).collect::<Vec<_>>(),
                    expected
                );
            }
        }
    }
}
