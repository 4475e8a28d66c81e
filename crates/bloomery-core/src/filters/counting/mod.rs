//! The counting Bloom filter: counts and removes, in a few bits per counter.
//!
//! Papers   Fan et al. (summary cache), as used by the partitioned-filter, time-decay and history
//!          papers; policies from Cohen & Matias 2003. Specification sections 2 and 3.1.
//! Idea     A key raises k counters; its count is the smallest of them.
//!              positions(key) = 1, 3, 6        cells  0 2 0 1 0 5 1 0   count(key) = 1
//! Policies `plain`: every counter rises, so keys can be removed and filters merge exactly.
//!          `conservative`: only counters below the new minimum rise (minimal increase), so the error
//!          is several times smaller, but nothing can be removed.
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

use crate::batch::{self, KeySource, Owner};
use crate::cells::{Counters, Gate};
use crate::error::{Error, Result};
use crate::filters::{Measure, check_capacity, check_error_rate, check_hashes};
use crate::hash::{Hasher, KeyHash};
use crate::positions::{Derivation, DistinctPositions, MAX_HASHES, Positions};
use crate::sizing;
use std::ops::Range;
use std::sync::atomic::Ordering;

mod plan;
pub use plan::{CountingPlan, Policy};

/// A count with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The smallest counter.
    pub value: u64,
    /// The true count is at least this with the confidence asked for.
    pub lower: u64,
    /// The smallest counter is stuck, so the true count may be larger.
    pub saturated: bool,
}

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
        Ok(Self::over(plan, hasher, Counters::zeroed(plan.cells, plan.counter_bits)?))
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

    /// The cells.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The different cells of a key, in the order they are derived.
    #[inline(always)]
    pub fn positions(&self, hash: KeyHash) -> DistinctPositions {
        DistinctPositions::new(self.derived(hash))
    }

    #[inline(always)]
    fn derived(&self, hash: KeyHash) -> Positions {
        Positions::new(hash, self.plan.derivation, self.plan.cells, self.plan.hashes)
    }

    #[inline(always)]
    fn prefetch(&self, hash: KeyHash) {
        for cell in self.derived(hash) {
            self.counters.prefetch(cell);
        }
    }

    // ---- adding and removing

    /// Adds `count` occurrences; true iff the key was certainly absent before.
    #[inline(always)]
    pub fn add(&self, hash: KeyHash, count: u64) -> bool {
        let _entered = self.gate.enter();
        self.add_alone(hash, count)
    }

    /// `add` without passing the gate.
    ///
    /// # Safety
    /// No other thread changes this filter during the call.
    #[inline(always)]
    pub unsafe fn add_unsynchronised(&self, hash: KeyHash, count: u64) -> bool {
        self.add_alone(hash, count)
    }

    #[inline(always)]
    fn add_alone(&self, hash: KeyHash, count: u64) -> bool {
        match self.plan.policy {
            Policy::Plain => self.add_owned(hash, count, 0..self.plan.cells),
            Policy::Conservative => {
                let cells = self.positions(hash);
                let before = self.smallest(cells.as_slice());
                // Minimal increase: a cell that is higher already covers this key.
                let target = before.saturating_add(count).min(self.counters.max());
                for cell in cells.as_slice() {
                    self.counters.update(*cell, |value| value.max(target));
                }
                before == 0
            }
        }
    }

    /// Raises those cells of the key that lie in `mine`; true iff one of them was zero.
    #[inline(always)]
    fn add_owned(&self, hash: KeyHash, count: u64, mine: Range<u64>) -> bool {
        let max = self.counters.max();
        let mut new = false;
        for cell in self.positions(hash).as_slice() {
            if mine.contains(cell) {
                let old = self.counters.update(*cell, |value| value.saturating_add(count).min(max));
                new |= old == 0;
            }
        }
        new
    }

    /// Adds every key once, in order; `out[i]` as `add` would have answered, whatever `threads` is.
    pub fn add_many<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], threads: usize) {
        let threads = batch::useful_threads(keys.len(), threads);
        // A conservative add depends on all cells of its key, so cells cannot be shared out.
        if threads > 1 && self.plan.policy == Policy::Plain {
            return self.add_in_chunks(keys, out, threads);
        }
        batch::pipeline(
            keys,
            &self.hasher,
            0..keys.len(),
            |h| self.prefetch(h),
            |row, group| {
                let _entered = self.gate.enter();
                for (hash, answer) in group.iter().zip(&mut out[row..]) {
                    *answer = self.add_alone(*hash, 1);
                }
            },
        );
    }

    fn add_in_chunks<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], threads: usize) {
        out.fill(false);
        let answers = batch::atomic_bools(out);
        // Whole lines, so that no word has two writers.
        let per_line = 512 / u64::from(self.plan.counter_bits);
        let share = self.plan.cells.div_ceil(per_line).div_ceil(threads as u64) * per_line;
        let apply = |thread: usize, digests: &[KeyHash], rows: &[usize]| {
            let mine = thread as u64 * share..(thread as u64 + 1) * share;
            let prefetch = |hash| {
                for cell in self.derived(hash).filter(|cell| mine.contains(cell)) {
                    self.counters.prefetch(cell);
                }
            };
            batch::pipeline(digests, &self.hasher, 0..digests.len(), prefetch, |row, group| {
                for (hash, row) in group.iter().zip(&rows[row..]) {
                    if self.add_owned(*hash, 1, mine.clone()) {
                        answers[*row].store(true, Ordering::Relaxed);
                    }
                }
            });
        };
        let owner = Owner::<fn(KeyHash) -> usize>::All;
        batch::in_chunks(keys, &self.hasher, threads, || self.gate.enter(), owner, apply);
    }

    /// Takes `count` occurrences away again: all of its counters or none.
    pub fn remove(&self, hash: KeyHash, count: u64) -> Result<()> {
        if self.plan.policy == Policy::Conservative {
            return Err(Error::Unsupported { verb: "remove", policy: "conservative" });
        }
        let _entered = self.gate.enter();
        let cells = self.positions(hash);
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
        // Repeated positions do not change a minimum.
        self.derived(hash).map(|cell| self.counters.get(cell)).min().unwrap_or(0)
    }

    /// Whether the key may be inside; false is certain.
    #[inline(always)]
    pub fn contains(&self, hash: KeyHash) -> bool {
        self.derived(hash).all(|cell| self.counters.get(cell) != 0)
    }

    /// `count` for every key.
    pub fn count_many<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [u32], threads: usize) {
        // Counters have at most 32 bits, so the cast loses nothing.
        self.ask_many(keys, out, threads, |hash| self.count(hash) as u32);
    }

    /// `contains` for every key.
    pub fn contains_many<S: KeySource + ?Sized>(&self, keys: &S, out: &mut [bool], threads: usize) {
        self.ask_many(keys, out, threads, |hash| self.contains(hash));
    }

    fn ask_many<S: KeySource + ?Sized, T: Send>(
        &self,
        keys: &S,
        out: &mut [T],
        threads: usize,
        ask: impl Fn(KeyHash) -> T + Sync,
    ) {
        batch::split(out, threads, |rows, out| {
            let first = rows.start;
            batch::pipeline(
                keys,
                &self.hasher,
                rows,
                |h| self.prefetch(h),
                |row, group| {
                    for (hash, answer) in group.iter().zip(&mut out[row - first..]) {
                        *answer = ask(*hash);
                    }
                },
            );
        });
    }

    /// The count with a lower bound that holds with `confidence` (specification 10.7): noise above t
    /// must be in all k cells at once, Pr = (1 - G(t))^k with G the distribution of other cells.
    pub fn estimate(&self, hash: KeyHash, confidence: f64) -> Estimate {
        let cells = self.positions(hash);
        let value = self.smallest(cells.as_slice());
        let mut noise = self.sample(cells.as_slice());
        noise.sort_unstable();
        let k = cells.as_slice().len() as f64;
        // The share of cells that may lie above t: (1 - G(t))^k <= 1 - confidence.
        let share_above = (1.0 - confidence).powf(1.0 / k);
        let above = (share_above * noise.len() as f64).floor() as usize;
        let t = noise.len().checked_sub(above + 1).map_or(value, |i| noise[i]);
        Estimate { value, lower: value.saturating_sub(t), saturated: value == self.counters.max() }
    }

    /// Values of cells that are not the key's: all, or an even sample of a large filter.
    fn sample(&self, except: &[u64]) -> Vec<u64> {
        const MOST: u64 = 1 << 12;
        let step = self.plan.cells.div_ceil(MOST).max(1);
        (0..self.plan.cells)
            .step_by(step as usize)
            .filter(|cell| !except.contains(cell))
            .map(|cell| self.counters.get(cell))
            .collect()
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
        let max = self.counters.max();
        for cell in 0..self.plan.cells {
            let theirs = other.counters.get(cell);
            if theirs != 0 {
                self.counters.update(cell, |mine| (mine + theirs).min(max));
            }
        }
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
        let counters = Counters::over(words, self.plan.cells, self.plan.counter_bits);
        Ok(Self::over(self.plan, self.hasher, counters))
    }

    /// Whether both have the same parameters and the same counters.
    pub fn same_as(&self, other: &CountingBloomFilter) -> bool {
        self.require_compatible(other).is_ok()
            && self.counters.words().same_as(other.counters.words())
    }

    /// Measures the cells: one pass over all of them.
    pub fn measure(&self) -> Measure {
        let (used, saturated) = self.counters.tally();
        let (m, k) = (self.plan.cells as f64, self.plan.hashes);
        let fill = used as f64 / m;
        let items = sizing::keys_from_fill(fill, m, f64::from(k));
        let same = sizing::same_cells(items, m, k, self.plan.derivation);
        let error = (fill.powi(k as i32) + same).min(1.0);
        Measure { items, fill, error, saturated }
    }

    /// Checks I1.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        self.plan.checked()?;
        let words = self.counters.words();
        if words.bytes() != self.plan.bytes() {
            return broken(format!("{} bytes of words for {:?}", words.bytes(), self.plan));
        }
        let inside = self.plan.cells * u64::from(self.plan.counter_bits);
        for (i, word) in words.atomics().iter().enumerate().skip((inside / 64) as usize) {
            let first = i as u64 * 64;
            let beyond = if first >= inside { u64::MAX } else { u64::MAX << (inside - first) };
            if word.load(Ordering::Relaxed) & beyond != 0 {
                return broken(format!("a counter beyond {} is set in word {i}", self.plan.cells));
            }
        }
        Ok(())
    }
}
