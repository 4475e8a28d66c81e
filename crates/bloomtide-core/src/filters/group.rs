//! Groups of keys, all at once: the batch path of filters with at most eight hashes.
//!
//! The positions of one key follow each other (`positions.rs`), but 32 keys are independent: stepping them
//! together is plain arithmetic on rows of numbers, which the compiler turns into vectors. Likewise for
//! the question whether a key has a position twice. The same code is compiled three times, for
//! AVX-512, for AVX2 and for any processor; which one runs is decided at run time.

use crate::batch::{GROUP, KeySource, on_the_best_processor};
use crate::hash::{Hasher, KeyHash};
use crate::placement::{Layout, Placement};
use crate::positions::{Derivation, reduce, split};
use std::convert::Infallible;
use std::ops::Range;

/// Hashes at most.
pub(super) const FEW: usize = 8;
/// Filters up to this size stay in a core's own cache, where asking ahead only costs.
pub(super) const IN_CACHE: u64 = 1 << 20;

/// The positions of a group: `positions[i][key]` is the i-th of that key.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub(super) digests: [KeyHash; GROUP],
    pub(super) positions: [[u64; GROUP]; FEW],
    /// Whether some key of the group has a position twice.
    pub(super) repeats: bool,
}

impl Group {
    const EMPTY: Group = Group {
        digests: [KeyHash { h1: 0, h2: 0 }; GROUP],
        positions: [[0; GROUP]; FEW],
        repeats: false,
    };

    /// Derives all positions, as `placement` does for one key.
    #[inline(always)]
    fn derive(&mut self, placement: &Placement) {
        match placement.layout {
            Layout::Blocked => self.derive_blocked(placement),
            Layout::Classic => self.derive_classic(placement.cells, placement.hashes as usize),
        }
    }

    #[inline(always)]
    fn derive_blocked(&mut self, placement: &Placement) {
        let bits = placement.group_bits();
        let blocks = self.digests.map(|digest| placement.block(digest));
        for (i, row) in (0..).zip(&mut self.positions[..placement.hashes as usize]) {
            for (key, cell) in row.iter_mut().enumerate() {
                let choice = self.digests[key].h2 >> (i * bits);
                *cell = blocks[key] + (u64::from(i) << bits) + (choice & ((1 << bits) - 1));
            }
        }
        self.repeats = false;
    }

    #[inline(always)]
    fn derive_classic(&mut self, m: u64, hashes: usize) {
        let (mut x, mut y) = ([0; GROUP], [0; GROUP]);
        let (mut z, mut w) = ([0; GROUP], [0; GROUP]);
        for (key, digest) in self.digests.iter().enumerate() {
            let (first, rest_of_first) = split(digest.h1, m);
            let (step, rest_of_step) = split(digest.h2, m);
            (x[key], y[key]) = (first, step);
            (z[key], w[key]) = (reduce(rest_of_first, m), reduce(rest_of_step, m));
        }
        for row in &mut self.positions[..hashes] {
            *row = x;
            for key in 0..GROUP {
                x[key] = plus(x[key], y[key], m);
                y[key] = plus(y[key], z[key], m);
                z[key] = plus(z[key], w[key], m);
            }
        }
        let mut equal = 0;
        for i in 1..hashes {
            for j in 0..i {
                for key in 0..GROUP {
                    equal |= u64::from(self.positions[i][key] == self.positions[j][key]);
                }
            }
        }
        self.repeats = equal != 0;
    }
}

#[inline(always)]
fn plus(a: u64, b: u64, m: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(m))
}

on_the_best_processor!(derive(&mut Group, placement: &Placement));

/// Whether batches of this placement go by groups.
pub(super) fn serves(placement: &Placement) -> bool {
    placement.derivation == Derivation::Enhanced && placement.hashes as usize <= FEW
}

/// Hashes and derives one group and hands it to `prefetch`, then the group before to `probe`.
pub(super) fn by_groups<E>(
    keys: &dyn KeySource,
    hasher: &Hasher,
    placement: &Placement,
    rows: Range<usize>,
    prefetch: impl Fn(&Group),
    mut probe: impl FnMut(Range<usize>, &Group) -> Result<(), E>,
) -> Result<(), E> {
    let mut groups = [Group::EMPTY; 2];
    let (mut waiting, mut current) = (0..0, 0);
    for start in rows.clone().step_by(GROUP) {
        let next = start..rows.end.min(start + GROUP);
        let group = &mut groups[current];
        keys.fill(hasher, start, &mut group.digests[..next.len()]);
        // Places beyond the last row keep older digests: derived, prefetched, never applied.
        derive(group, placement);
        prefetch(group);
        current = 1 - current;
        if !waiting.is_empty() {
            probe(waiting, &groups[current])?;
        }
        waiting = next;
    }
    if waiting.is_empty() { Ok(()) } else { probe(waiting, &groups[1 - current]) }
}

/// The same where nothing can fail.
pub(super) fn each_group(
    keys: &dyn KeySource,
    hasher: &Hasher,
    placement: &Placement,
    rows: Range<usize>,
    prefetch: impl Fn(&Group),
    mut probe: impl FnMut(Range<usize>, &Group),
) {
    let Ok(()) = by_groups(keys, hasher, placement, rows, prefetch, |rows, group| {
        probe(rows, group);
        Ok::<(), Infallible>(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_derives_what_each_key_does() {
        use Layout::{Blocked, Classic};
        let sizes =
            [(1u64, 1, Classic), (7, 8, Classic), (1009, 7, Classic), (1_000_003, 8, Classic)];
        let blocks =
            [(128, 1, Blocked), (1280, 2, Blocked), (12_800, 4, Blocked), (128, 8, Blocked)];
        for (m, hashes, layout) in sizes.into_iter().chain(blocks) {
            let placement = Placement::for_sizes(m, hashes, Some(layout), Derivation::Enhanced);
            let mut group = Group::EMPTY;
            for (i, digest) in group.digests.iter_mut().enumerate() {
                *digest = KeyHash { h1: 7, h2: 9 }.extend(i as u64);
            }
            derive(&mut group, &placement);
            let mut repeats = false;
            for (key, digest) in group.digests.iter().enumerate() {
                let rows = &group.positions[..hashes as usize];
                let got: Vec<u64> = rows.iter().map(|row| row[key]).collect();
                assert_eq!(got, placement.all::<8>(*digest).as_slice(), "{placement:?}");
                repeats |= placement.distinct::<8>(*digest).as_slice().len() < hashes as usize;
            }
            assert_eq!(group.repeats, repeats, "{placement:?}");
        }
    }
}
