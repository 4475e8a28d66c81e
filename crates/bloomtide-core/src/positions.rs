//! From a digest to k cells: the three derivations of the specification, section 0.
//!
//! All of them are correct for any number of cells up to 2^63: a half digest is reduced to 0..m by the
//! high word of a 128-bit product (h * m / 2^64), never by a 32-bit remainder.
//!
//!   `enhanced`  x + C(i,1) y + C(i,2) z + C(i,3) w mod m, the default
//!   `double`    x + i*y mod m                 (Kirsch & Mitzenmacher); y odd when m is a power of two
//!   `slices`    consecutive log2(m)-bit fields of the digest, the white paper's own way; m = 2^b
//!
//! x and y are the reduced halves of the digest, z and w their reduced remainders. The specification's
//! enhanced double hashing (Dillinger & Manolios: x + i*y + (i^3 - i)/6) has two start values, so there
//! are only m^2 sets of cells and an absent key meets a present key's whole set with chance n/m^2:
//! hundreds of times the target for 1000 keys at 1e-9. Four start values (theirs too: triple
//! hashing and on) cost one more addition a step and bring that down to n/m^4. What remains is counted
//! by `sizing::same_cells`.

use crate::hash::KeyHash;
use crate::named::named;

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

named! {
    Derivation: "derivation", "\"enhanced\", \"double\" or \"slices\"",
        "leave it out for the default, \"enhanced\"";
    Enhanced = "enhanced", Double = "double", Slices = "slices"
}

/// `h` scaled from 0..2^64 to 0..m: the high word of the 128-bit product.
#[inline(always)]
pub fn reduce(h: u64, m: u64) -> u64 {
    ((u128::from(h) * u128::from(m)) >> 64) as u64
}

/// `h` reduced as above, and the remainder: as evenly spread, and independent of the first.
#[inline(always)]
pub(crate) fn split(h: u64, m: u64) -> (u64, u64) {
    let product = u128::from(h) * u128::from(m);
    ((product >> 64) as u64, product as u64)
}

/// The k positions of one digest among m cells, one by one.
#[derive(Clone, Debug)]
pub struct Positions {
    x: u64,
    y: u64,
    z: u64,
    w: u64,
    m: u64,
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
        let (x, rest_of_x) = split(hash.h1, m);
        let (mut y, rest_of_y) = split(hash.h2, m);
        let (mut z, mut w) = (0, 0);
        match derivation {
            Derivation::Enhanced => (z, w) = (reduce(rest_of_x, m), reduce(rest_of_y, m)),
            // An even step visits half of a power of two; a zero step visits one cell.
            Derivation::Double if m.is_power_of_two() => y = (y | 1) & (m - 1),
            Derivation::Double => y += u64::from(y == 0),
            Derivation::Slices => {}
        }
        Positions {
            x,
            y,
            z,
            w,
            m,
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
        self.x = self.plus(self.x, self.y);
        if self.derivation == Derivation::Enhanced {
            self.y = self.plus(self.y, self.z);
            self.z = self.plus(self.z, self.w);
        }
        position
    }

    /// a + b mod m, for a, b < m <= 2^63.
    #[inline(always)]
    fn plus(&self, a: u64, b: u64) -> u64 {
        let sum = a + b;
        sum.min(sum.wrapping_sub(self.m))
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

/// The positions of one key, at most K, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Cells<const K: usize> {
    cells: [u64; K],
    len: usize,
}

impl<const K: usize> Cells<K> {
    /// The key's positions as they are derived. At most K of them.
    #[inline(always)]
    pub fn all(positions: Positions) -> Self {
        let mut this = Cells::default();
        for (slot, position) in this.cells.iter_mut().zip(positions) {
            *slot = position;
            this.len += 1;
        }
        this
    }

    /// As many cells as `count` says, at most K.
    #[inline(always)]
    pub(crate) fn take(count: u32, mut next: impl FnMut() -> u64) -> Self {
        let mut this = Cells::default();
        for slot in this.cells.iter_mut().take(count as usize) {
            *slot = next();
            this.len += 1;
        }
        this
    }

    /// The same, each position once. Counters need this: two equal positions would raise a cell by two
    /// for one key (specification, section 0).
    #[inline(always)]
    pub fn distinct(positions: Positions) -> Self {
        let all = Self::all(positions);
        // Repeats are rare, so a short key is first asked, without a branch, whether it has any.
        if K <= 8 && !all.has_repeats() { all } else { all.without_repeats() }
    }

    #[inline(always)]
    fn has_repeats(&self) -> bool {
        let mut repeats = false;
        for i in 1..K {
            for j in 0..i {
                repeats |= self.cells[i] == self.cells[j];
            }
        }
        repeats
    }

    #[cold]
    fn without_repeats(&self) -> Self {
        let mut this = Cells::default();
        for position in self.as_slice() {
            if !this.as_slice().contains(position) {
                this.cells[this.len] = *position;
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

impl<const K: usize> Default for Cells<K> {
    #[inline(always)]
    fn default() -> Self {
        // Unused places hold numbers that are no positions, each another one: see `has_repeats`.
        Cells { cells: std::array::from_fn(|i| u64::MAX - i as u64), len: 0 }
    }
}

// That positions are those of a model is tested from Python, in `tests/test_positions.py`.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_cells_keep_the_order_and_drop_repeats() {
        for seed in 0..2000u64 {
            let h = KeyHash { h1: 1, h2: 2 }.extend(seed);
            let mut expected = Vec::new();
            for position in Positions::new(h, Derivation::Enhanced, 11, 8) {
                if !expected.contains(&position) {
                    expected.push(position);
                }
            }
            let cells = Cells::<8>::distinct(Positions::new(h, Derivation::Enhanced, 11, 8));
            assert_eq!(cells.as_slice(), expected);
        }
    }
}
