//! The Bloom filter: a set that may wrongly say "present", never wrongly "absent".
//!
//! Papers   B. H. Bloom, CACM 13(7), 1970; the web-caching white paper (saturation = `fill`,
//!          phase = `hashes`). Specification section 1; the blocked layout is 10.4.
//! Idea     A key sets k bits; it is present iff all of its k bits are set.
//!              positions(key) = 1, 3, 6        cells  . # . # . . # .
//! Layouts  `classic`: k positions anywhere. `blocked`: all in one 64-byte line, see `line.rs`.
//! Prefer   `ScalableBloomFilter` when the number of keys is unknown, `CountingBloomFilter` to remove.
//!
//! # Invariants
//! I1  The words hold exactly the plan's bits, rounded up to whole lines.
//! I2  A set bit is cleared only by `clear` and `intersect`.
//! I3  No bit is set beyond `bits`, so the number of set bits is the fill.
//!
//! # Errors in answers
//! No false negatives. False positives: fill^k (classic; plus `sizing::same_cells` in tiny filters), the
//! mean over blocks of the product of the used words' fills (blocked); both exact given the cells.
//!
//! # Threads
//! Every method takes `&self`. In memory, writers pass the gate and readers never wait. In a shared
//! file every change is an atomic OR, so any number of processes may add at once.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod line;
mod many;
mod plan;

pub use crate::placement::Layout;
pub use plan::BloomPlan;

use crate::cells::{Gate, Words};
use crate::error::{Error, Result};
use crate::filters::overfull::sampled_items;
use crate::filters::{Measure, Overfull};
use crate::hash::{Hasher, KeyHash};
use crate::positions::Positions;
use crate::sizing;
use crate::snapshot::SharedFile;
use line::Lines;
use std::sync::atomic::{AtomicU64, Ordering};

/// A Bloom filter.
#[derive(Debug)]
pub struct BloomFilter {
    plan: BloomPlan,
    hasher: Hasher,
    words: Words,
    gate: Gate,
    /// The file the words are mapped from; then every change must be an atomic OR.
    file: Option<Box<SharedFile>>,
}

impl BloomFilter {
    /// An empty filter of these sizes.
    pub fn new(plan: BloomPlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        Ok(Self::over(plan, hasher, Words::zeroed(plan.bits)?, None))
    }

    /// A filter over words that came from a snapshot or a mapped file.
    pub(crate) fn over(
        plan: BloomPlan,
        hasher: Hasher,
        words: Words,
        file: Option<Box<SharedFile>>,
    ) -> Self {
        BloomFilter { plan, hasher, words, gate: Gate::default(), file }
    }

    /// The sizes.
    pub fn plan(&self) -> &BloomPlan {
        &self.plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The bits.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The file behind a mapped filter.
    pub fn file(&self) -> Option<&SharedFile> {
        self.file.as_deref()
    }

    #[inline(always)]
    fn lines(&self) -> Lines<'_> {
        Lines { words: &self.words, blocks: self.plan.blocks(), hashes: self.plan.hashes }
    }

    #[inline(always)]
    fn classic(&self, hash: KeyHash) -> Positions {
        Positions::new(hash, self.plan.derivation, self.plan.bits, self.plan.hashes)
    }

    #[inline(always)]
    fn word(&self, position: u64) -> (&AtomicU64, u64) {
        debug_assert!(position < self.plan.bits);
        // SAFETY: positions are below `bits`, and the words hold that many (I1).
        let word = unsafe { self.words.atomics().get_unchecked((position >> 6) as usize) };
        (word, 1 << (position & 63))
    }

    /// The bits of a key, in the order they are derived.
    pub fn positions(&self, hash: KeyHash) -> Vec<u64> {
        self.plan.positions(hash)
    }

    // ---- adding

    /// Sets the key's bits; true iff the key was certainly absent before.
    #[inline(always)]
    pub fn add(&self, hash: KeyHash) -> bool {
        if self.file.is_some() {
            return self.add_shared(hash);
        }
        let _entered = self.gate.enter();
        // SAFETY: the gate is passed.
        unsafe { self.add_unsynchronised(hash) }
    }

    /// `add` without passing the gate.
    ///
    /// # Safety
    /// The filter is in memory, and no other thread changes it during the call.
    #[inline(always)]
    pub unsafe fn add_unsynchronised(&self, hash: KeyHash) -> bool {
        debug_assert!(self.file.is_none());
        match self.plan.layout {
            Layout::Blocked => self.lines().add_one(hash),
            Layout::Classic => self.set::<false>(self.classic(hash)),
        }
    }

    fn add_shared(&self, hash: KeyHash) -> bool {
        match self.plan.layout {
            Layout::Blocked => self.lines().add_shared(hash),
            Layout::Classic => self.set::<true>(self.classic(hash)),
        }
    }

    /// Sets these bits, all below `bits`, of a filter in memory; true iff one of them was new.
    pub(crate) fn add_cells(&self, positions: impl Iterator<Item = u64>) -> bool {
        let _entered = self.gate.enter();
        self.set::<false>(positions)
    }

    /// Sets these bits of a classic key; true iff one of them was new. In a shared file another process may set
    /// the same one at the same time.
    #[inline(always)]
    fn set<const SHARED: bool>(&self, positions: impl Iterator<Item = u64>) -> bool {
        let mut new = false;
        for position in positions {
            let (word, mask) = self.word(position);
            let old = word.load(Ordering::Relaxed);
            if old & mask == 0 {
                if SHARED {
                    new |= word.fetch_or(mask, Ordering::Relaxed) & mask == 0;
                } else {
                    word.store(old | mask, Ordering::Relaxed);
                    new = true;
                }
            }
        }
        new
    }

    // ---- asking

    /// Whether the key may be inside; false is certain.
    #[inline(always)]
    pub fn contains(&self, hash: KeyHash) -> bool {
        match self.plan.layout {
            Layout::Blocked => self.lines().contains(hash),
            Layout::Classic => self.has_cells(self.classic(hash)),
        }
    }

    /// Whether these bits, all below `bits`, are set.
    #[inline(always)]
    pub(crate) fn has_cells(&self, mut positions: impl Iterator<Item = u64>) -> bool {
        positions.all(|position| {
            let (word, mask) = self.word(position);
            word.load(Ordering::Relaxed) & mask != 0
        })
    }

    // ---- whole filters

    /// Refuses to go on when `other` was made with other parameters.
    pub fn require_compatible(&self, other: &BloomFilter) -> Result<()> {
        self.plan.require_same(&other.plan)?;
        self.hasher.require_same(&other.hasher)
    }

    /// Becomes the filter of the union, bit for bit.
    pub fn merge(&self, other: &BloomFilter) -> Result<()> {
        self.take_in(other, |mine, theirs| {
            mine.fetch_or(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        })
    }

    /// Keeps the bits both have: holds every common key, with a higher error rate than a filter made
    /// of the intersection.
    pub fn intersect(&self, other: &BloomFilter) -> Result<()> {
        self.take_in(other, |mine, theirs| {
            mine.fetch_and(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        })
    }

    fn take_in(&self, other: &BloomFilter, word: impl Fn(&AtomicU64, &AtomicU64)) -> Result<()> {
        self.require_compatible(other)?;
        if other.file.is_some() && !std::ptr::eq(self, other) {
            // A file may be cut while it is read, and nothing of that must get in.
            self.change(&other.copy()?, word);
        } else {
            self.change(other, word);
        }
        self.require_whole()
    }

    fn change(&self, other: &BloomFilter, word: impl Fn(&AtomicU64, &AtomicU64)) {
        let _entered = self.gate.enter();
        for (mine, theirs) in self.words.atomics().iter().zip(other.words.atomics()) {
            word(mine, theirs);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.change(self, |mine, _| mine.store(0, Ordering::Relaxed));
    }

    /// A copy in memory.
    pub fn copy(&self) -> Result<Self> {
        let words = self.words.to_owned()?;
        self.require_whole()?;
        Ok(Self::over(self.plan, self.hasher, words, None))
    }

    /// Whether both have the same parameters and the same bits.
    pub fn same_as(&self, other: &BloomFilter) -> bool {
        self.require_compatible(other).is_ok() && self.words.same_as(&other.words)
    }

    /// Whether it holds more than twice the keys it was made for, by looking at some of its bits.
    pub fn overfull(&self) -> Option<Overfull> {
        let BloomPlan { bits, hashes, capacity, .. } = self.plan;
        let is_set = |bit: u64| {
            let (word, mask) = self.word(bit);
            word.load(Ordering::Relaxed) & mask != 0
        };
        let items = |sample| sampled_items(bits, hashes, sample, is_set);
        Overfull::of(capacity, items, |items| self.plan.error_at(items))
    }

    /// Measures the cells: one pass over all of them.
    pub fn measure(&self) -> Measure {
        let m = self.plan.bits as f64;
        let k = self.plan.hashes;
        let fill = self.words.count_ones() as f64 / m;
        // Also right for blocks: with Poisson loads the expected fill is 1 - e^(-kn/m) again.
        let items = sizing::keys_from_fill(fill, m, f64::from(k));
        let error = match self.plan.layout {
            Layout::Classic => sizing::measured_error(items, m, k, fill, self.plan.derivation),
            Layout::Blocked => self.blocked_error(),
        };
        Measure { items, fill, error, saturated: 0 }
    }

    /// The chance that a random key finds all its bits set, block by block: blocks differ in load, so
    /// the mean of the products is not the product of the means.
    fn blocked_error(&self) -> f64 {
        let k = self.plan.hashes as usize;
        let starts = if k == 8 { 1 } else { 8 };
        let mut error = 0.0;
        for line in self.words.atomics().chunks_exact(8) {
            let mut fills = [0.0; 8];
            for (fill, word) in fills.iter_mut().zip(line) {
                *fill = f64::from(word.load(Ordering::Relaxed).count_ones()) / 64.0;
            }
            let products =
                (0..starts).map(|start| (0..k).map(|i| fills[(start + i) & 7]).product::<f64>());
            error += products.sum::<f64>() / starts as f64;
        }
        error / self.plan.blocks() as f64
    }

    /// Checks I1 and I3.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        self.plan.checked()?;
        if self.words.bytes() != self.plan.bytes() {
            return broken(format!("{} bytes of words for {:?}", self.words.bytes(), self.plan));
        }
        let inside = self.plan.bits;
        for (i, word) in self.words.atomics().iter().enumerate().skip((inside / 64) as usize) {
            let first = i as u64 * 64;
            let beyond = if first >= inside { u64::MAX } else { u64::MAX << (inside - first) };
            if word.load(Ordering::Relaxed) & beyond != 0 {
                return broken(format!("a bit beyond {inside} is set in word {i}"));
            }
        }
        self.require_whole()
    }
}
