//! What a history knows of a key, and where its cells are.
//!
//! A mark is half of the key's digest. The gate and the matrix each mix it their own way: the chance that
//! both err is the product of their chances only if they are independent (specification section 8).

use crate::batch::{GROUP, KeySource};
use crate::hash::{Hasher, KeyHash};
use crate::positions::reduce;

/// A key's 64 bits. Two keys with the same mark are one key to a history.
pub type Mark = u64;

impl KeyHash {
    /// The digest's half that a history keeps.
    #[inline(always)]
    pub fn mark(self) -> Mark {
        self.h1
    }
}

/// The marks of many keys; each row has one.
pub fn mark_rows(keys: &dyn KeySource, hasher: &Hasher, out: &mut [Option<Mark>]) {
    let mut digests = [KeyHash::default(); GROUP];
    for (i, out) in out.chunks_mut(GROUP).enumerate() {
        let digests = &mut digests[..out.len()];
        keys.fill(hasher, i * GROUP, digests);
        out.iter_mut().zip(digests).for_each(|(mark, digest)| *mark = Some(digest.mark()));
    }
}

/// The most positions that a key has in either part.
pub(super) const MAX_HASHES: u32 = 64;

/// Which part of a segment asks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Gate,
    Matrix,
}

/// The positions of a mark: each is a mix of its own, so two keys share one cell no more often than chance
/// has it, and all their cells practically never, however small the segment is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread(u64);

impl Spread {
    #[inline(always)]
    pub(super) fn of(mark: Mark, part: Part) -> Self {
        // Different constants before the same mix give values without a visible relation.
        let own = match part {
            Part::Gate => 0x8EBC_6AF0_9C88_C6E3,
            Part::Matrix => 0xA076_1D64_78BD_642F,
        };
        Spread(mix(mark ^ own))
    }

    /// So many positions among `cells`; one may come twice.
    #[inline(always)]
    pub(super) fn positions(self, hashes: u32, cells: u64) -> impl Iterator<Item = u64> + Clone {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let value = move |i| mix(self.0.wrapping_add(u64::from(i).wrapping_mul(STEP)));
        (0..hashes).map(move |i| reduce(value(i), cells))
    }
}

/// A bijection of 64 bits whose every output bit depends on every input bit.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}
