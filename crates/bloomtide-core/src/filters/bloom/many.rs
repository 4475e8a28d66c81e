//! Batches of a Bloom filter: the same answers as one by one, with the waiting taken out.
//! `batch.rs` says how groups are prefetched, `owners.rs` how threads share additions.

use super::{BloomFilter, Layout};
use crate::batch::{self, KeySource};
use crate::cells::Entered;
use crate::crew::{Crew, Hands};
use crate::hash::KeyHash;
use crate::owners::{Dealing, Owners, Part};
use crate::positions::reduce;

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
            *answer = if self.file.is_some() {
                self.add_shared(*hash)
            } else {
                // SAFETY: as the caller says, nobody else changes these lines.
                unsafe { self.add_unsynchronised(*hash) }
            };
        }
    }

    /// Threads for the blocked layout: a key has one line and a line one owner.
    fn add_by_line(&self, keys: &dyn KeySource, out: &mut [bool], hands: Hands<'_>) {
        let lines = self.plan.blocks();
        let owners = Owners::new(hands.count(), lines);
        let items = |_, hash: KeyHash| std::iter::once((reduce(hash.h1, lines), hash));
        let apply = |part: Part<'_, KeyHash>| {
            part.add(|h| self.prefetch(h), |group, new| self.add_group(group, new));
        };
        let dealing = Dealing { keys, hasher: &self.hasher, owners, per_key: 1, items, apply };
        dealing.run(out, &hands, || self.enter());
    }

    /// Threads for the classic layout: a key has cells of many owners, and is new if any of them
    /// finds a new bit. Owners have whole lines, so that no word has two writers.
    fn add_by_cell(&self, keys: &dyn KeySource, out: &mut [bool], hands: Hands<'_>) {
        let owners = Owners::new(hands.count(), self.words.bytes() / 64);
        let items = |_, hash| self.classic(hash).map(|cell| (cell >> 9, cell));
        let apply = |part: Part<'_, u64>| {
            let ahead = |cell: u64| self.words.prefetch((cell >> 6) as usize);
            part.add(ahead, |cells, new| {
                let shared = self.file.is_some();
                for (cell, new) in cells.iter().zip(new) {
                    let cell = std::iter::once(*cell);
                    *new = if shared { self.set::<true>(cell) } else { self.set::<false>(cell) };
                }
            });
        };
        let per_key = self.plan.hashes as usize;
        let dealing = Dealing { keys, hasher: &self.hasher, owners, per_key, items, apply };
        dealing.run(out, &hands, || self.enter());
    }

    /// `contains` for every key.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        batch::split(out, crew, |rows, out| {
            let first = rows.start;
            match self.plan.layout {
                Layout::Blocked => {
                    let lines = self.lines();
                    let probe = |row: usize, group: &[KeyHash]| {
                        lines.contains_group(group, &mut out[row - first..][..group.len()]);
                    };
                    batch::pipeline(keys, &self.hasher, rows, |h| lines.prefetch(h), probe);
                }
                Layout::Classic => {
                    let probe = |row: usize, group: &[KeyHash]| {
                        self.contains_group(group, &mut out[row - first..][..group.len()]);
                    };
                    batch::pipeline(keys, &self.hasher, rows, |h| self.prefetch(h), probe);
                }
            }
        });
    }

    /// `contains` for a group.
    #[inline(always)]
    pub(crate) fn contains_group(&self, group: &[KeyHash], out: &mut [bool]) {
        match self.plan.layout {
            Layout::Blocked => self.lines().contains_group(group, out),
            Layout::Classic => {
                for (hash, answer) in group.iter().zip(out) {
                    *answer = self.contains(*hash);
                }
            }
        }
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
