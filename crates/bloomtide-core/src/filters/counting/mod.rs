//! The counting Bloom filter: counts and removes, in a few bits per counter.
//!
//! Papers   Fan et al. (summary cache), as used by the partitioned-filter, time-decay and history
//!          papers; policies from Cohen & Matias 2003. Specification sections 2 and 3.1.
//! Idea     A key raises k counters; its count is the smallest of them.
//!              positions(key) = 1, 3, 6        cells  0 2 0 1 0 5 1 0   count(key) = 1
//! Policies `plain`: every counter rises, so keys can be removed and filters merge exactly.
//!          `conservative`: only counters below the new minimum rise (minimal increase), so the error
//!          is several times smaller, but nothing can be removed.
//! Layouts  `blocked` and `classic`, see `placement.rs`.
//! Prefer   `BloomFilter` for sets without removal: a quarter of the memory or less.
//!
//! # Invariants
//! I1  Counters beyond `cells` do not exist; the padding of the last line is zero.
//! I2  The positions of a key are different cells (specification, section 0).
//! I3  A counter at its largest value never changes again.
//!
//! # Errors in answers
//! Never below the true count while the count is under the largest value and only keys that were
//! added are removed. Removing a key that was never added can make other keys wrong; it is refused
//! when one of its counters shows it.

use crate::batch::{self, KeySource, at_best};
use crate::cells::{Counters, Gate};
use crate::crew::{Crew, Hands};
use crate::error::{Error, Result};
use crate::filters::overfull::sampled_items;
use crate::filters::{Estimate, Measure, Overfull};
use crate::hash::{Hasher, KeyHash};
use crate::owners::{Dealing, Owners, Part};
use crate::placement::{BLOCK_CELLS, Layout};
use crate::positions::{Cells, MAX_HASHES};
use std::sync::atomic::Ordering;

mod group;
mod plan;

pub use plan::{CountingPlan, Policy};

/// Most filters have at most eight hashes, so that a key's cells fit one line of the stack.
const FEW: u32 = 8;
const MOST: usize = MAX_HASHES as usize;

/// A counting Bloom filter.
#[derive(Debug)]
pub struct CountingBloomFilter {
    plan: CountingPlan,
    hasher: Hasher,
    counters: Counters,
    gate: Gate,
}

impl CountingBloomFilter {
    /// An empty filter of these sizes.
    pub fn new(plan: CountingPlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        Ok(Self::over(plan, hasher, Counters::zeroed(plan.cells(), plan.counter_bits)?))
    }

    pub(crate) fn over(plan: CountingPlan, hasher: Hasher, counters: Counters) -> Self {
        CountingBloomFilter { plan, hasher, counters, gate: Gate::default() }
    }

    /// The sizes.
    pub fn plan(&self) -> &CountingPlan {
        &self.plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Every counter's value. Counters have at most 32 bits.
    pub fn values(&self) -> Vec<u32> {
        self.counters.values().map(|value| value as u32).collect()
    }

    /// The cells.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The different cells of a key, in the order they are derived.
    pub fn positions(&self, hash: KeyHash) -> Vec<u64> {
        self.cells::<MOST>(hash).as_slice().to_vec()
    }

    #[inline(always)]
    fn cells<const K: usize>(&self, hash: KeyHash) -> Cells<K> {
        self.plan.placement.distinct(hash)
    }

    /// The same for questions: a cell may come twice, which does not change a minimum.
    #[inline(always)]
    fn asked<const K: usize>(&self, hash: KeyHash) -> Cells<K> {
        self.plan.placement.all(hash)
    }

    #[inline(always)]
    fn prefetched<const K: usize>(&self, cells: Cells<K>) -> Cells<K> {
        cells.as_slice().iter().for_each(|cell| self.counters.prefetch(*cell));
        cells
    }

    // ---- adding and removing

    /// Adds `count` occurrences; true iff the key was certainly absent before.
    #[inline(always)]
    pub fn add(&self, hash: KeyHash, count: u64) -> bool {
        let _entered = self.gate.enter();
        // SAFETY: the gate lets one writer in.
        unsafe { self.add_unsynchronised(hash, count) }
    }

    /// `add` without passing the gate.
    ///
    /// # Safety
    /// No other thread changes this filter during the call.
    #[inline(always)]
    pub unsafe fn add_unsynchronised(&self, hash: KeyHash, count: u64) -> bool {
        match self.plan.hashes() {
            ..=FEW => self.raise(self.cells::<{ FEW as usize }>(hash).as_slice(), count),
            _ => self.raise(self.cells::<MOST>(hash).as_slice(), count),
        }
    }

    /// Raises a key's cells by the policy; true iff one of them was zero.
    #[inline(always)]
    fn raise(&self, cells: &[u64], count: u64) -> bool {
        let max = self.counters.max();
        match self.plan.policy {
            Policy::Plain => cells.iter().fold(false, |new, cell| {
                let old = self.counters.update(*cell, |value| value.saturating_add(count).min(max));
                new | (old == 0)
            }),
            Policy::Conservative => {
                let before = self.smallest(cells);
                // Minimal increase: a cell that is higher already covers this key.
                let target = before.saturating_add(count).min(max);
                for cell in cells {
                    self.counters.update(*cell, |value| value.max(target));
                }
                before == 0
            }
        }
    }

    /// Adds every key, in order, `counts[row]` times or once; `out[row]` as `add` would have answered,
    /// whatever the crew is.
    pub fn add_many(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        out: &mut [bool],
        crew: &mut Crew,
    ) {
        match self.plan.hashes() {
            ..=FEW => self.add_many_of::<{ FEW as usize }>(keys, counts, out, crew),
            _ => self.add_many_of::<MOST>(keys, counts, out, crew),
        }
    }

    fn add_many_of<const K: usize>(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
        out: &mut [bool],
        crew: &mut Crew,
    ) {
        let times = |row: usize| counts.map_or(1, |counts| counts[row]);
        let hands = crew.muster(keys.len());
        let plain = self.plan.policy == Policy::Plain;
        match self.plan.placement.layout {
            Layout::Blocked if hands.count() > 1 => {
                return self.add_by_block::<K>(keys, times, out, &hands);
            }
            // A conservative add depends on all cells of its key, which have many owners.
            Layout::Classic if hands.count() > 1 && plain => {
                return self.add_by_cell(keys, times, out, &hands);
            }
            _ if plain && counts.is_none() && self.goes_by_groups() => {
                return self.add_groups(keys, out);
            }
            _ => (),
        }
        let prepare = |hash| self.prefetched(self.cells::<K>(hash));
        let probe = |row: usize, group: &[Cells<K>]| {
            let _entered = self.gate.enter();
            for ((row, cells), answer) in (row..).zip(group).zip(&mut out[row..]) {
                *answer = self.raise(cells.as_slice(), times(row));
            }
        };
        batch::pipeline_prepared(keys, &self.hasher, 0..keys.len(), prepare, probe);
    }

    /// Threads for the blocked layout: a key has one block and a block one owner, so any policy will do.
    fn add_by_block<const K: usize>(
        &self,
        keys: &dyn KeySource,
        times: impl Fn(usize) -> u64 + Sync,
        out: &mut [bool],
        hands: &Hands<'_>,
    ) {
        let owners = Owners::new(hands.count(), self.plan.cells() / BLOCK_CELLS);
        let block = |hash| self.plan.placement.block(hash);
        let items = |row, hash| std::iter::once((block(hash) / BLOCK_CELLS, (hash, row)));
        let apply = |part: Part<'_, (KeyHash, usize)>| {
            let ahead = |(hash, _)| self.counters.prefetch(block(hash));
            part.add(ahead, |items, new| {
                for ((hash, row), new) in items.iter().zip(new) {
                    *new = self.raise(self.cells::<K>(*hash).as_slice(), times(*row));
                }
            });
        };
        let dealing = Dealing { keys, hasher: &self.hasher, owners, per_key: 1, items, apply };
        dealing.run(out, hands, || self.gate.enter());
    }

    /// Threads for the classic layout: a key has cells of many owners, and is new if any of them finds a
    /// zero. Owners have whole lines, so that no word has two writers.
    fn add_by_cell(
        &self,
        keys: &dyn KeySource,
        times: impl Fn(usize) -> u64 + Sync,
        out: &mut [bool],
        hands: &Hands<'_>,
    ) {
        let per_line = 512 / u64::from(self.plan.counter_bits);
        let owners = Owners::new(hands.count(), self.plan.cells().div_ceil(per_line));
        let items = |row, hash| {
            let cells = self.cells::<MOST>(hash);
            (0..cells.as_slice().len()).map(move |at| {
                let cell = cells.as_slice()[at];
                (cell / per_line, (cell, row))
            })
        };
        let apply = |part: Part<'_, (u64, usize)>| {
            let ahead = |(cell, _)| self.counters.prefetch(cell);
            part.add(ahead, |items, new| {
                for ((cell, row), new) in items.iter().zip(new) {
                    *new = self.raise(&[*cell], times(*row));
                }
            });
        };
        let per_key = self.plan.hashes() as usize;
        let dealing = Dealing { keys, hasher: &self.hasher, owners, per_key, items, apply };
        dealing.run(out, hands, || self.gate.enter());
    }

    /// Takes `count` occurrences away again: all of its counters or none.
    pub fn remove(&self, hash: KeyHash, count: u64) -> Result<()> {
        let _entered = self.gate.enter();
        self.lower(&self.cells::<MOST>(hash), count)
    }

    /// Removes every key, in order, `counts[row]` times or once, until one is absent: the row that
    /// failed, after all rows before it were removed.
    pub fn remove_many(
        &self,
        keys: &dyn KeySource,
        counts: Option<&[u64]>,
    ) -> std::result::Result<(), (usize, Error)> {
        let mut failed = None;
        let prepare = |hash| self.prefetched(self.cells::<MOST>(hash));
        let probe = |row: usize, group: &[Cells<MOST>]| {
            let _entered = self.gate.enter();
            for (row, cells) in (row..).zip(group) {
                if failed.is_none() {
                    let count = counts.map_or(1, |counts| counts[row]);
                    failed = self.lower(cells, count).err().map(|error| (row, error));
                }
            }
        };
        batch::pipeline_prepared(keys, &self.hasher, 0..keys.len(), prepare, probe);
        failed.map_or(Ok(()), Err)
    }

    /// Lowers a key's cells, all or none. The caller is inside the gate.
    fn lower(&self, cells: &Cells<MOST>, count: u64) -> Result<()> {
        if self.plan.policy == Policy::Conservative {
            return Err(Error::Unsupported { verb: "remove", policy: "conservative" });
        }
        let max = self.counters.max();
        let estimate = self.smallest(cells.as_slice());
        if estimate < max && estimate < count {
            return Err(Error::AbsentKey { estimate, requested: count });
        }
        for cell in cells.as_slice() {
            // A stuck counter no longer knows its value (I3).
            self.counters.update(*cell, |value| if value == max { max } else { value - count });
        }
        Ok(())
    }

    // ---- asking

    #[inline(always)]
    fn smallest(&self, cells: &[u64]) -> u64 {
        cells.iter().map(|cell| self.counters.get(*cell)).min().unwrap_or(0)
    }

    /// The key's count: the smallest of its counters.
    #[inline(always)]
    pub fn count(&self, hash: KeyHash) -> u64 {
        match self.plan.hashes() {
            ..=FEW => self.smallest(self.asked::<{ FEW as usize }>(hash).as_slice()),
            _ => self.smallest(self.asked::<MOST>(hash).as_slice()),
        }
    }

    /// Whether the key may be inside; false is certain.
    #[inline(always)]
    pub fn contains(&self, hash: KeyHash) -> bool {
        self.count(hash) != 0
    }

    /// `count` for every key.
    pub fn count_many(&self, keys: &dyn KeySource, out: &mut [u32], crew: &mut Crew) {
        // Counters have at most 32 bits, so the cast loses nothing.
        self.ask_many(keys, out, crew, |least| least as u32);
    }

    /// `contains` for every key.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        self.ask_many(keys, out, crew, |least| least != 0);
    }

    fn ask_many<T: Send>(
        &self,
        keys: &dyn KeySource,
        out: &mut [T],
        crew: &mut Crew,
        ask: impl Fn(u64) -> T + Sync,
    ) {
        batch::split(out, crew, |rows, out| {
            if self.goes_by_groups() {
                return self.ask_groups(keys, rows, out, &ask);
            }
            let first = rows.start;
            let prepare = |hash| self.prefetched(self.asked::<MOST>(hash));
            batch::pipeline_prepared(keys, &self.hasher, rows, prepare, |row, group| {
                for (cells, answer) in group.iter().zip(&mut out[row - first..]) {
                    *answer = ask(self.smallest(cells.as_slice()));
                }
            });
        });
    }

    /// The count with a lower bound that holds with `confidence`.
    pub fn estimate(&self, hash: KeyHash, confidence: f64) -> Estimate {
        let cells = self.cells::<MOST>(hash);
        let value = self.smallest(cells.as_slice());
        let get = |cell| self.counters.get(cell);
        let stuck = value == self.counters.max();
        let probes = cells.as_slice().len() as u32;
        Estimate::new(value, stuck, probes, &self.plan.placement, get, confidence)
    }

    // ---- whole filters

    /// Refuses to go on when `other` was made with other parameters.
    pub fn require_compatible(&self, other: &CountingBloomFilter) -> Result<()> {
        self.plan.require_same(&other.plan)?;
        self.hasher.require_same(&other.hasher)
    }

    /// Adds the other's counters to ours, sticking at the largest value. Exactly the filter of both
    /// streams under `plain`; under `conservative` an upper bound, looser than one filter for both.
    pub fn merge(&self, other: &CountingBloomFilter) -> Result<()> {
        self.require_compatible(other)?;
        let _entered = self.gate.enter();
        at_best(|| self.counters.add_all(&other.counters));
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let _entered = self.gate.enter();
        for word in self.counters.words().atomics() {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let words = self.counters.words().to_owned()?;
        let counters = Counters::over(words, self.plan.cells(), self.plan.counter_bits);
        Ok(Self::over(self.plan, self.hasher, counters))
    }

    /// Whether both have the same parameters and the same counters.
    pub fn same_as(&self, other: &CountingBloomFilter) -> bool {
        self.require_compatible(other).is_ok()
            && self.counters.words().same_as(other.counters.words())
    }

    /// Measures the cells: one pass over all of them.
    pub fn measure(&self) -> Measure {
        let max = self.counters.max();
        let mut saturated = 0;
        let used = self.counters.values().map(|value| {
            saturated += u64::from(value == max);
            value != 0
        });
        let (items, fill, error) = self.plan.placement.measure(used);
        Measure { items, fill, error, saturated }
    }

    /// Whether it holds more than twice the keys it was made for, by looking at some of its counters.
    pub fn overfull(&self) -> Option<Overfull> {
        let is_used = |cell| self.counters.get(cell) != 0;
        let (cells, hashes) = (self.plan.cells(), self.plan.hashes());
        let items = |sample| sampled_items(cells, hashes, sample, is_used);
        Overfull::of(self.plan.capacity, items, |items| self.plan.error_at(items))
    }

    /// Checks I1.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        self.plan.checked()?;
        let words = self.counters.words();
        if words.bytes() != self.plan.bytes() {
            return broken(format!("{} bytes of words for {:?}", words.bytes(), self.plan));
        }
        let inside = self.plan.cells() * u64::from(self.plan.counter_bits);
        if !words.is_zero_from(inside) {
            return broken(format!("a counter beyond {} is set", self.plan.cells()));
        }
        Ok(())
    }
}
