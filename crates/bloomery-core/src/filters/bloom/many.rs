//! Batches of a Bloom filter: the same answers as one by one, with the waiting taken out.
//! `batch.rs` says how groups are prefetched and why threads own cells, not rows.

use super::{BloomFilter, Layout};
use crate::batch::{self, KeySource, Owner};
use crate::hash::KeyHash;
use crate::positions::reduce;
use std::sync::atomic::Ordering;

impl BloomFilter {
    /// Adds every key in order; `out[i]` as `add` would have answered, whatever `threads` is.
    pub fn add_many<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], threads: usize) {
        let threads = batch::useful_threads(keys.len(), threads);
        // A shared file has other writers, so its answers follow the order of arrival anyway.
        if self.file.is_some() {
            return batch::split(out, threads, |rows, out| {
                let first = rows.start;
                batch::pipeline(
                    keys,
                    &self.hasher,
                    rows,
                    |h| self.prefetch(h),
                    |row, group| {
                        for (hash, answer) in group.iter().zip(&mut out[row - first..]) {
                            *answer = self.add_shared(*hash);
                        }
                    },
                );
            });
        }
        if threads > 1 {
            return self.add_in_chunks(keys, out, threads);
        }
        batch::pipeline(
            keys,
            &self.hasher,
            0..keys.len(),
            |h| self.prefetch(h),
            |row, group| {
                let out = &mut out[row..row + group.len()];
                let _entered = self.gate.enter();
                match self.plan.layout {
                    Layout::Blocked => self.lines().add_group_alone(group, out),
                    Layout::Classic => {
                        for (hash, answer) in group.iter().zip(out) {
                            *answer = self.add_alone(*hash);
                        }
                    }
                }
            },
        );
    }

    fn add_in_chunks<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], threads: usize) {
        if self.plan.blocks() <= threads as u64 {
            return self.add_many(keys, out, 1);
        }
        out.fill(false);
        let answers = batch::atomic_bools(out);
        let alone = || self.gate.enter();
        if self.plan.layout == Layout::Blocked {
            // A key has one line and a line one owner: block * threads / blocks, as a product with
            // threads / blocks in units of 2^-64. (It must come from the block, not from the digest,
            // or a block on the border between two shares would have two writers.)
            let lines = self.lines();
            let blocks = self.plan.blocks();
            let scale = (((threads as u128) << 64) / u128::from(blocks)) as u64;
            let owner = Owner::One(|hash: KeyHash| reduce(reduce(hash.h1, blocks), scale) as usize);
            let apply = |_: usize, digests: &[KeyHash], rows: &[usize]| {
                let mut new = [false; batch::GROUP];
                let probe = |row: usize, group: &[KeyHash]| {
                    lines.add_group_alone(group, &mut new[..group.len()]);
                    for (new, row) in new.iter().zip(&rows[row..row + group.len()]) {
                        answers[*row].store(*new, Ordering::Relaxed);
                    }
                };
                let prefetch = |hash| lines.prefetch(hash);
                batch::pipeline(digests, &self.hasher, 0..digests.len(), prefetch, probe);
            };
            return batch::in_chunks(keys, &self.hasher, threads, alone, owner, apply);
        }
        // A classic key has cells of many owners, and is new if any of them finds a new bit. Shares
        // are whole lines, so that no word has two writers.
        let share = (self.words.bytes() / 64).div_ceil(threads as u64) * 512;
        let apply = |thread: usize, digests: &[KeyHash], rows: &[usize]| {
            let mine = thread as u64 * share..(thread as u64 + 1) * share;
            let prefetch = |hash| {
                for position in self.classic(hash).filter(|position| mine.contains(position)) {
                    self.words.prefetch((position >> 6) as usize);
                }
            };
            let probe = |row: usize, group: &[KeyHash]| {
                for (hash, row) in group.iter().zip(&rows[row..]) {
                    if self.add_owned(*hash, mine.clone()) {
                        answers[*row].store(true, Ordering::Relaxed);
                    }
                }
            };
            batch::pipeline(digests, &self.hasher, 0..digests.len(), prefetch, probe);
        };
        let owner = Owner::<fn(KeyHash) -> usize>::All;
        batch::in_chunks(keys, &self.hasher, threads, alone, owner, apply);
    }

    /// `contains` for every key.
    pub fn contains_many<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], threads: usize) {
        batch::split(out, threads, |rows, out| {
            let first = rows.start;
            batch::pipeline(
                keys,
                &self.hasher,
                rows,
                |h| self.prefetch(h),
                |row, group| {
                    let out = &mut out[row - first..][..group.len()];
                    match self.plan.layout {
                        Layout::Blocked => self.lines().contains_group(group, out),
                        Layout::Classic => {
                            for (hash, answer) in group.iter().zip(out) {
                                *answer = self.contains(*hash);
                            }
                        }
                    }
                },
            );
        });
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        match self.plan.layout {
            Layout::Blocked => self.lines().prefetch(hash),
            Layout::Classic => {
                for position in self.classic(hash) {
                    self.words.prefetch((position >> 6) as usize);
                }
            }
        }
    }
}
