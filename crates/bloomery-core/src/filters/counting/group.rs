//! Groups of keys, all at once: the batch path of filters with at most eight hashes.
//!
//! The positions of one key follow each other (`positions.rs`), but 32 keys are independent: stepping them
//! together is plain arithmetic on rows of numbers, which the compiler turns into vectors. Likewise for
//! the question whether a key has a position twice. The same code is compiled three times, for
//! AVX-512, for AVX2 and for any processor; which one runs is decided at run time.

use super::CountingBloomFilter;
use crate::batch::{self, GROUP, KeySource};
use crate::cells::Counters;
use crate::hash::{Hasher, KeyHash};
use crate::placement::{Layout, Placement};
use crate::positions::{Derivation, reduce, split};
use std::ops::Range;

/// Filters up to this size stay in a core's own cache, where asking ahead only costs.
const IN_CACHE: u64 = 1 << 20;
/// Hashes at most.
pub(super) const FEW: usize = 8;

/// The positions of a group: `positions[i][key]` is the i-th of that key.
#[derive(Clone, Copy)]
struct Group {
    digests: [KeyHash; GROUP],
    positions: [[u64; GROUP]; FEW],
    /// Whether some key of the group has a position twice.
    repeats: bool,
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

    /// Asks the processor for the lines of all positions.
    #[inline(always)]
    fn prefetch(&self, counters: &Counters, hashes: usize) {
        for row in &self.positions[..hashes] {
            row.iter().for_each(|cell| counters.prefetch(*cell));
        }
    }

    /// Adds one to every counter of every key, in order. Only for groups without repeats.
    #[inline(always)]
    fn increment(&self, counters: &Counters, hashes: usize, out: &mut [bool]) {
        for (key, answer) in out.iter_mut().enumerate() {
            let mut new = false;
            for row in &self.positions[..hashes] {
                new |= counters.increment(row[key]) == 0;
            }
            *answer = new;
        }
    }

    /// The smallest counter of every key.
    #[inline(always)]
    fn smallest(&self, counters: &Counters, hashes: usize, out: &mut [u64; GROUP]) {
        *out = [u64::MAX; GROUP];
        for row in &self.positions[..hashes] {
            for (least, cell) in out.iter_mut().zip(row) {
                *least = (*least).min(counters.get(*cell));
            }
        }
    }
}

#[inline(always)]
fn plus(a: u64, b: u64, m: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(m))
}

/// Compiles a method of `Group` three times and calls the best one.
macro_rules! on_the_best_processor {
    ($name:ident($group:ty $(, $argument:ident: $kind:ty)*)) => {
        fn $name(group: $group $(, $argument: $kind)*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,bmi1,bmi2")]
                unsafe fn avx512(group: $group $(, $argument: $kind)*) {
                    group.$name($($argument),*);
                }
                #[target_feature(enable = "avx2,bmi1,bmi2")]
                unsafe fn avx2(group: $group $(, $argument: $kind)*) {
                    group.$name($($argument),*);
                }
                let bmi2 = is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("avx2");
                let wide = is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw");
                if bmi2 && wide {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx512(group $(, $argument)*) };
                }
                if bmi2 {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx2(group $(, $argument)*) };
                }
            }
            group.$name($($argument),*);
        }
    };
}

on_the_best_processor!(derive(&mut Group, placement: &Placement));
on_the_best_processor!(prefetch(&Group, counters: &Counters, hashes: usize));
on_the_best_processor!(increment(&Group, counters: &Counters, hashes: usize, out: &mut [bool]));
on_the_best_processor!(smallest(&Group, counters: &Counters, hashes: usize, out: &mut [u64; GROUP]));

impl CountingBloomFilter {
    /// Whether batches of this filter go by groups.
    pub(super) fn goes_by_groups(&self) -> bool {
        let placement = &self.plan.placement;
        placement.derivation == Derivation::Enhanced && placement.hashes as usize <= FEW
    }

    /// Adds rows to a plain filter, in order.
    pub(super) fn add_groups<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool]) {
        let hashes = self.plan.hashes() as usize;
        self.by_groups(keys, &self.hasher, 0..keys.len(), |rows, group| {
            let out = &mut out[rows.clone()];
            let _entered = self.gate.enter();
            if !group.repeats {
                return increment(group, &self.counters, hashes, out);
            }
            for (digest, answer) in group.digests.iter().zip(out) {
                *answer = self.raise(self.cells::<FEW>(*digest).as_slice(), 1);
            }
        });
    }

    /// Answers rows by the smallest counter of each key. Repeats do not change a minimum.
    pub(super) fn ask_groups<S: KeySource + ?Sized, T>(
        &self,
        keys: &S,
        rows: Range<usize>,
        out: &mut [T],
        ask: impl Fn(u64) -> T,
    ) {
        let hashes = self.plan.hashes() as usize;
        let first = rows.start;
        let mut least = [0; GROUP];
        self.by_groups(keys, &self.hasher, rows, |rows, group| {
            smallest(group, &self.counters, hashes, &mut least);
            for (answer, least) in out[rows.start - first..rows.end - first].iter_mut().zip(least) {
                *answer = ask(least);
            }
        });
    }

    /// Hashes and derives one group and prefetches its cells, then hands out the group before.
    fn by_groups<S: KeySource + ?Sized>(
        &self,
        keys: &S,
        hasher: &Hasher,
        rows: Range<usize>,
        mut probe: impl FnMut(Range<usize>, &Group),
    ) {
        let hashes = self.plan.hashes() as usize;
        let mut groups = [Group::EMPTY; 2];
        let (mut waiting, mut current) = (0..0, 0);
        for start in rows.clone().step_by(GROUP) {
            let next = start..rows.end.min(start + GROUP);
            let group = &mut groups[current];
            batch::hash_rows(keys, hasher, start, &mut group.digests[..next.len()]);
            // Places beyond the last row keep older digests: derived, prefetched, never applied.
            derive(group, &self.plan.placement);
            if self.counters.words().bytes() > IN_CACHE {
                prefetch(group, &self.counters, hashes);
            }
            current = 1 - current;
            if !waiting.is_empty() {
                probe(waiting, &groups[current]);
            }
            waiting = next;
        }
        if !waiting.is_empty() {
            probe(waiting, &groups[1 - current]);
        }
    }
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
