//! Batches of a Bloom filter: the same answers as one by one, with the waiting taken out.
//! `batch.rs` says how groups are prefetched and why threads own cells, not rows.

use super::{BloomFilter, Layout};
use crate::batch::{self, KeySource};
use crate::hash::KeyHash;
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
        // Each cell, and in the blocked layout each key, belongs to one thread; a classic key's
        // answer is true if any of its owners found a new bit.
        out.fill(false);
        let answers = batch::atomic_bools(out);
        // Whole lines, so that no word has two writers.
        let share = (self.words.bytes() / 64).div_ceil(threads as u64) * 512;
        let apply = |thread: usize, first: usize, digests: &[KeyHash]| {
            let mine = thread as u64 * share..(thread as u64 + 1) * share;
            let lines = self.lines();
            let note = |row: usize, new: bool| {
                if new {
                    answers[first + row].store(true, Ordering::Relaxed);
                }
            };
            if self.plan.layout == Layout::Classic {
                let prefetch = |hash| {
                    for position in self.classic(hash).filter(|p| mine.contains(p)) {
                        self.words.prefetch((position >> 6) as usize);
                    }
                };
                return batch::pipeline(
                    digests,
                    &self.hasher,
                    0..digests.len(),
                    prefetch,
                    |row, group| {
                        for (i, hash) in group.iter().enumerate() {
                            note(row + i, self.add_owned(*hash, mine.clone()));
                        }
                    },
                );
            }
            let mut rows = [0usize; batch::GROUP];
            let mut group = [KeyHash::default(); batch::GROUP];
            let mut new = [false; batch::GROUP];
            let mut waiting = 0;
            for (row, hash) in digests.iter().enumerate() {
                // Written always, kept only when the line is ours: no branch to mispredict.
                group[waiting] = *hash;
                rows[waiting] = row;
                let line = lines.first_word(*hash);
                let ours = mine.contains(&(line as u64 * 64));
                if ours {
                    self.words.prefetch(line);
                }
                waiting += usize::from(ours);
                if waiting == batch::GROUP {
                    lines.add_group_alone(&group, &mut new);
                    for (row, new) in rows.iter().zip(new) {
                        note(*row, new);
                    }
                    waiting = 0;
                }
            }
            lines.add_group_alone(&group[..waiting], &mut new[..waiting]);
            for (row, new) in rows.iter().zip(new).take(waiting) {
                note(*row, new);
            }
        };
        batch::in_chunks(keys, &self.hasher, threads, || self.gate.enter(), apply);
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
