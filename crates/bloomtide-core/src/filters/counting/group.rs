//! Batches of a counting filter with at most eight hashes: by groups of keys (`filters/group.rs`).

use super::CountingBloomFilter;
use crate::batch::{GROUP, KeySource, on_the_best_processor};
use crate::cells::Counters;
use crate::filters::group::{FEW, Group, IN_CACHE, each_group, serves};
use std::ops::Range;

impl Group {
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

on_the_best_processor!(prefetch(&Group, counters: &Counters, hashes: usize));
on_the_best_processor!(increment(&Group, counters: &Counters, hashes: usize, out: &mut [bool]));
on_the_best_processor!(smallest(&Group, counters: &Counters, hashes: usize, out: &mut [u64; GROUP]));

impl CountingBloomFilter {
    /// Whether batches of this filter go by groups.
    pub(super) fn goes_by_groups(&self) -> bool {
        serves(&self.plan.placement)
    }

    /// Adds rows to a plain filter, in order.
    pub(super) fn add_groups(&self, keys: &dyn KeySource, out: &mut [bool]) {
        let hashes = self.plan.hashes() as usize;
        self.by_groups(keys, 0..keys.len(), |rows, group| {
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
    pub(super) fn ask_groups<T>(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        out: &mut [T],
        ask: impl Fn(u64) -> T,
    ) {
        let hashes = self.plan.hashes() as usize;
        let first = rows.start;
        let mut least = [0; GROUP];
        self.by_groups(keys, rows, |rows, group| {
            smallest(group, &self.counters, hashes, &mut least);
            for (answer, least) in out[rows.start - first..rows.end - first].iter_mut().zip(least) {
                *answer = ask(least);
            }
        });
    }

    fn by_groups(
        &self,
        keys: &dyn KeySource,
        rows: Range<usize>,
        probe: impl FnMut(Range<usize>, &Group),
    ) {
        let large = self.counters.words().bytes() > IN_CACHE;
        let ahead = |group: &Group| {
            if large {
                prefetch(group, &self.counters, self.plan.hashes() as usize);
            }
        };
        each_group(keys, &self.hasher, &self.plan.placement, rows, ahead, probe);
    }
}
