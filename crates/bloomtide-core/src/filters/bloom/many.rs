//! Batches of a Bloom filter: the same answers as one by one, with the waiting taken out.
//! `batch.rs` says how groups are prefetched and why threads own cells, not rows.

use super::{BloomFilter, Layout};
use crate::batch::{self, KeySource};
use crate::cells::Entered;
use crate::crew::{Crew, Hands};
use crate::filters::own::{Own, Share, WINDOW, part};
use crate::hash::KeyHash;
use crate::positions::{Cells, MAX_HASHES};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most classic filters have at most this many hashes (1e-9), so that a key's cells stay small.
const FEW: u32 = 30;

impl BloomFilter {
    /// Adds every key in order; `out[i]` as `add` would have answered, whatever the crew is.
    pub fn add_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        let hands = crew.muster(keys.len());
        // A filter with fewer lines than threads has nothing to share out.
        if hands.count() > 1 && self.words.bytes() / 64 > hands.count() as u64 {
            return match self.plan.layout {
                Layout::Blocked => self.add_by_line(keys, out, hands),
                Layout::Classic => self.add_by_cell(keys, out, hands),
            };
        }
        if self.file.is_none() && self.plan.layout == Layout::Blocked {
            let lines = self.lines();
            let probe = |row: usize, group: &[KeyHash]| {
                let _entered = self.gate.enter();
                lines.add_group_alone(group, &mut out[row..row + group.len()]);
            };
            return batch::pipeline(
                keys,
                &self.hasher,
                0..keys.len(),
                |h| lines.prefetch(h),
                probe,
            );
        }
        let probe = |row: usize, group: &[KeyHash]| {
            let _entered = self.enter();
            self.add_group(group, &mut out[row..row + group.len()]);
        };
        batch::pipeline(keys, &self.hasher, 0..keys.len(), |h| self.prefetch(h), probe);
    }

    /// The gate, for filters in memory; a shared file is changed by atomic ORs instead.
    #[inline(always)]
    fn enter(&self) -> Option<Entered<'_>> {
        if self.file.is_some() { None } else { Some(self.gate.enter()) }
    }

    /// Adds a group in order. The caller has entered the gate, or owns all lines of these keys.
    #[inline(always)]
    fn add_group(&self, group: &[KeyHash], out: &mut [bool]) {
        if self.file.is_none() && self.plan.layout == Layout::Blocked {
            return self.lines().add_group_alone(group, out);
        }
        for (hash, answer) in group.iter().zip(out) {
            *answer =
                if self.file.is_some() { self.add_shared(*hash) } else { self.add_alone(*hash) };
        }
    }

    /// Threads for the blocked layout: a key has one line and a line one owner.
    fn add_by_line(&self, keys: &dyn KeySource, out: &mut [bool], hands: Hands<'_>) {
        let answers = batch::atomic_bools(out);
        let (blocks, threads) = (self.plan.blocks(), hands.count());
        let apply = |thread: usize, first: usize, all: &[KeyHash]| {
            let share = Share::of(&part(thread, threads, blocks), blocks);
            let mut own = Own::none();
            for (window, digests) in all.chunks(WINDOW).enumerate() {
                own.pick(digests, share);
                let answers = &answers[first + window * WINDOW..];
                let mut new = [false; batch::GROUP];
                let probe = |row: usize, group: &[KeyHash]| {
                    self.add_group(group, &mut new[..group.len()]);
                    for (new, row) in new.iter().zip(&own.rows()[row..row + group.len()]) {
                        answers[*row as usize].store(*new, Ordering::Relaxed);
                    }
                };
                let keys = own.digests();
                batch::pipeline(&keys, &self.hasher, 0..keys.len(), |h| self.prefetch(h), probe);
            }
        };
        batch::in_chunks(keys, &self.hasher, hands, || self.enter(), apply);
    }

    /// Threads for the classic layout: a key has cells of many owners, and is new if any of them
    /// finds a new bit. Shares are whole lines, so that no word has two writers.
    fn add_by_cell(&self, keys: &dyn KeySource, out: &mut [bool], hands: Hands<'_>) {
        let threads = hands.count();
        out.fill(false);
        let answers = batch::atomic_bools(out);
        let share = (self.words.bytes() / 64).div_ceil(threads as u64) * 512;
        let apply = |thread: usize, first: usize, digests: &[KeyHash]| {
            let mine = thread as u64 * share..(thread as u64 + 1) * share;
            let answers = &answers[first..];
            match self.plan.hashes {
                ..=FEW => self.add_share::<{ FEW as usize }>(&mine, digests, answers),
                _ => self.add_share::<{ MAX_HASHES as usize }>(&mine, digests, answers),
            }
        };
        batch::in_chunks(keys, &self.hasher, hands, || self.enter(), apply);
    }

    /// Sets those bits of the keys that lie in `mine`.
    fn add_share<const K: usize>(
        &self,
        mine: &Range<u64>,
        digests: &[KeyHash],
        answers: &[AtomicBool],
    ) {
        let prepare = |hash| {
            let cells = Cells::<K>::all(self.classic(hash)).within(mine);
            for cell in cells.as_slice() {
                self.words.prefetch((cell >> 6) as usize);
            }
            cells
        };
        let probe = |row: usize, group: &[Cells<K>]| {
            for (cells, answer) in group.iter().zip(&answers[row..]) {
                if self.set(cells.as_slice().iter().copied()) {
                    answer.store(true, Ordering::Relaxed);
                }
            }
        };
        batch::pipeline_prepared(&digests, &self.hasher, 0..digests.len(), prepare, probe);
    }

    /// `contains` for every key.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        batch::split(out, crew, |rows, out| {
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
        self.prefetch_first(hash, usize::MAX);
    }

    /// Asks for the cells of the key's first so many positions.
    #[inline(always)]
    pub(crate) fn prefetch_first(&self, hash: KeyHash, positions: usize) {
        match self.plan.layout {
            Layout::Blocked => self.lines().prefetch(hash),
            Layout::Classic => {
                for position in self.classic(hash).take(positions) {
                    self.words.prefetch((position >> 6) as usize);
                }
            }
        }
    }
}
