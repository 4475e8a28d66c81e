//! From a digest to k cells: the three derivations of the specification, section 0.
//!
//! All of them are correct for any number of cells up to 2^63: a half digest is reduced to 0..m by the
//! high word of a 128-bit product (h * m / 2^64), never by a 32-bit remainder.
//!
//!   `enhanced`  x + i*y + (i^3 - i)/6 mod m   (Dillinger & Manolios), the default
//!   `double`    x + i*y mod m                 (Kirsch & Mitzenmacher); y odd when m is a power of two
//!   `slices`    consecutive log2(m)-bit fields of the digest, the white paper's own way; m = 2^b
//!
//! x and y are the reduced halves of the digest. The cubic term only has an effect modulo m, so both
//! recurrences run on reduced values.

use crate::error::{Error, Result};
use crate::hash::KeyHash;

/// More positions than this per key are refused: 2^-64 is below any digest's own floor.
pub const MAX_HASHES: u32 = 64;

/// How positions come from a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Derivation {
    /// Enhanced double hashing.
    #[default]
    Enhanced,
    /// Double hashing.
    Double,
    /// Consecutive slices of the digest.
    Slices,
}

impl Derivation {
    /// The name users and files know it by.
    pub fn name(self) -> &'static str {
        match self {
            Derivation::Enhanced => "enhanced",
            Derivation::Double => "double",
            Derivation::Slices => "slices",
        }
    }

    /// The derivation of that name.
    pub fn parse(name: &str) -> Result<Self> {
        [Derivation::Enhanced, Derivation::Double, Derivation::Slices]
            .into_iter()
            .find(|derivation| derivation.name() == name)
            .ok_or_else(|| {
                Error::parameter(
                    "derivation",
                    name,
                    "\"enhanced\", \"double\" or \"slices\"",
                    "leave it out for the default, \"enhanced\"",
                )
            })
    }
}

/// `h` scaled from 0..2^64 to 0..m: the high word of the 128-bit product.
#[inline(always)]
pub fn reduce(h: u64, m: u64) -> u64 {
    ((u128::from(h) * u128::from(m)) >> 64) as u64
}

/// The k positions of one digest among m cells, one by one.
#[derive(Clone, Debug)]
pub struct Positions {
    x: u64,
    y: u64,
    m: u64,
    i: u64,
    left: u32,
    derivation: Derivation,
    /// `slices` only: the digest the next slice comes from, and how often it was extended.
    source: KeyHash,
    digest: u128,
    bits_left: u32,
    extensions: u64,
}

impl Positions {
    /// Positions 0..m for `hashes` cells. `m` is at least 1.
    #[inline(always)]
    pub fn new(hash: KeyHash, derivation: Derivation, m: u64, hashes: u32) -> Self {
        let x = reduce(hash.h1, m);
        let mut y = reduce(hash.h2, m);
        if derivation == Derivation::Double {
            // An even step visits half of a power of two; a zero step visits one cell.
            if m.is_power_of_two() {
                y = (y | 1) & (m - 1);
            } else if y == 0 {
                y = 1;
            }
        }
        Positions {
            x,
            y,
            m,
            i: 0,
            left: hashes,
            derivation,
            source: hash,
            digest: hash.as_u128(),
            bits_left: 128,
            extensions: 0,
        }
    }

    #[inline(always)]
    fn step(&mut self) -> u64 {
        let position = self.x;
        self.x += self.y;
        if self.x >= self.m {
            self.x -= self.m;
        }
        self.i += 1;
        if self.derivation == Derivation::Enhanced {
            // y grows by 0, 1, 2, ...: the sum of the sums is (i^3 - i)/6.
            self.y += self.i;
            while self.y >= self.m {
                self.y -= self.m;
            }
        }
        position
    }

    fn slice(&mut self) -> u64 {
        let width = self.m.trailing_zeros();
        if self.bits_left < width {
            self.extensions += 1;
            self.digest = self.source.extend(self.extensions).as_u128();
            self.bits_left = 128;
        }
        let position = (self.digest as u64) & (self.m - 1);
        self.digest >>= width;
        self.bits_left -= width;
        position
    }
}

impl Iterator for Positions {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(if self.derivation == Derivation::Slices { self.slice() } else { self.step() })
    }
}

/// At most `MAX_HASHES` different positions of one key, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct DistinctPositions {
    cells: [u64; MAX_HASHES as usize],
    len: usize,
}

impl DistinctPositions {
    /// The key's positions, each once, in derivation order. Counters need this: two equal positions
    /// would raise a cell by two for one key (specification, section 0).
    #[inline(always)]
    pub fn new(positions: Positions) -> Self {
        let mut this = DistinctPositions { cells: [0; MAX_HASHES as usize], len: 0 };
        for position in positions {
            if !this.as_slice().contains(&position) {
                this.cells[this.len] = position;
                this.len += 1;
            }
        }
        this
    }

    /// The positions.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        &self.cells[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(derivation: Derivation, m: u64, k: u32, h: KeyHash) -> Vec<u64> {
        Positions::new(h, derivation, m, k).collect()
    }

    #[test]
    fn enhanced_follows_its_closed_form() {
        let h = KeyHash { h1: 0x0123_4567_89ab_cdef, h2: 0xfedc_ba98_7654_3210 };
        for m in [1u64, 2, 3, 7, 1000, 1 << 20, (1 << 40) + 12345] {
            let (x, y) = (u128::from(reduce(h.h1, m)), u128::from(reduce(h.h2, m)));
            let expected: Vec<u64> = (0u128..30)
                .map(|i| ((x + i * y + (i * i * i - i) / 6) % u128::from(m)) as u64)
                .collect();
            assert_eq!(all(Derivation::Enhanced, m, 30, h), expected, "m = {m}");
        }
    }

    #[test]
    fn double_on_a_power_of_two_visits_every_cell() {
        let h = KeyHash { h1: u64::MAX / 3, h2: 1 << 63 };
        let mut seen = all(Derivation::Double, 16, 16, h);
        seen.sort_unstable();
        assert_eq!(seen, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn slices_cross_into_an_extended_digest() {
        let h = KeyHash { h1: 0x1111_2222_3333_4444, h2: 0x5555_6666_7777_8888 };
        let positions = all(Derivation::Slices, 1 << 16, 9, h);
        assert_eq!(&positions[..4], &[0x4444, 0x3333, 0x2222, 0x1111]);
        assert_eq!(&positions[4..8], &[0x8888, 0x7777, 0x6666, 0x5555]);
        assert_eq!(positions[8], h.extend(1).h1 & 0xffff);
    }

    #[test]
    fn positions_reach_beyond_32_bits() {
        let m = 1u64 << 36;
        let h = KeyHash { h1: u64::MAX, h2: 1 };
        assert_eq!(all(Derivation::Enhanced, m, 1, h), vec![m - 1]);
    }
}
