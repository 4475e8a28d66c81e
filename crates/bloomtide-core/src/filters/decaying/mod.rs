//! The time-decaying Bloom filter: counts that fade, so that a count says how hot a key is now.
//!
//! Paper    Cheng et al., "Time-Decaying Bloom Filters", section 3; specification 6, 10.1 and 10.6.
//! Idea     A counting filter whose cells are multiplied by lambda whenever an epoch of time ends, so
//!          that a cell holds the decayed sum Y_t = x_t + lambda * Y_(t-1) of its keys' occurrences
//!          (equation 3). Cells are fixed point numbers.
//! Decay    The paper's pass over all cells would stop everything at each epoch. Here a block of 128
//!          cells has a stamp, and fades by lambda^age when it is touched; a question fades what it
//!          read, and writes nothing. A few adds take another block along, so that all blocks follow.
//! Layouts  What holds the cells is behind `store.rs`. `basic` and `optimized` (`cells/decaying`) answer
//!          alike.
//! Late     An event of an earlier epoch counts by its own age. The time never goes back.
//! Prefer   `CountingBloomFilter` for counts that stay, and for removing.
//!
//! # Invariants
//! I1  Cells beyond the last one do not exist, or are zero.
//! I2  The positions of a key are different cells.
//! I3  No stamp is later than the filter's time, unless its block is empty.
//!
//! # Errors in answers
//! Rounding `strict`: never below the exact decayed sum, as long as no cell of the key was ever full;
//! a block that has such a cell says so for ever. `expiring`: at most 2^-b / (1 - lambda) below it.

use crate::batch::on_the_best_processor;
use crate::cells::{Decay, Entered, Gate};
use crate::error::Result;
use crate::filters::Estimate;
use crate::filters::group::{FEW, IN_CACHE};
use crate::hash::{Hasher, KeyHash};
use crate::positions::{Cells, MAX_HASHES};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

mod level;
mod many;
mod plan;
mod store;
#[cfg(test)]
mod tests;
mod time;
mod whole;

pub(crate) use level::Frozen;
use level::Time;
pub use many::Epochs;
pub use plan::{DecayStorage, DecayingPlan};
use store::{Store, on};
pub use time::{Fade, SHORTEST_EPOCH};

const MOST: usize = MAX_HASHES as usize;
/// The time of a filter that has none yet.
const NEVER: i64 = i64::MIN;

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The epoch.
    pub epoch: i64,
    /// Whether a clock said so: an earlier one then means that the clock jumped back, not that the event
    /// is late.
    pub by_clock: bool,
}

/// What happened to the time, since the filter was made or read.
#[derive(Debug, Default)]
struct History {
    late: AtomicU64,
    jumps: AtomicU64,
}

/// A time-decaying Bloom filter.
#[derive(Debug)]
pub struct TimeDecayingBloomFilter {
    plan: DecayingPlan,
    hasher: Hasher,
    time: Time,
    store: Store,
    gate: Gate,
    /// Whether a block is in several lines, and these are seldom near.
    asks_ahead: bool,
    history: History,
}

impl TimeDecayingBloomFilter {
    /// An empty filter of these sizes.
    pub fn new(plan: DecayingPlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        let decay = Decay::new(plan.fade.decay, plan.rounding);
        Ok(TimeDecayingBloomFilter {
            plan,
            hasher,
            time: Time { now: AtomicI64::new(NEVER), decay },
            asks_ahead: plan.storage == DecayStorage::Optimized && plan.bytes() > IN_CACHE,
            store: Store::new(&plan)?,
            gate: Gate::default(),
            history: History::default(),
        })
    }

    /// The sizes.
    pub fn plan(&self) -> &DecayingPlan {
        &self.plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The different cells of a key, in the order they are derived.
    pub fn positions(&self, hash: KeyHash) -> Vec<u64> {
        self.cells::<MOST>(hash).as_slice().to_vec()
    }

    #[inline(always)]
    fn cells<const K: usize>(&self, hash: KeyHash) -> Cells<K> {
        self.plan.placement.distinct(hash)
    }

    // ---- time

    /// The latest epoch that the filter was told of.
    #[inline(always)]
    pub fn now(&self) -> Option<i64> {
        Some(self.time.now()).filter(|now| *now != NEVER)
    }

    /// (late events, times that the clock was behind) since the filter was made or read.
    pub fn history(&self) -> (u64, u64) {
        let History { late, jumps } = &self.history;
        (late.load(Ordering::Relaxed), jumps.load(Ordering::Relaxed))
    }

    /// Moves the time on, if the epoch is later, and brings some blocks up to it.
    pub fn advance(&self, when: When) {
        let _entered = self.gate.enter();
        // An earlier moment moves nothing, and is no event that could be late.
        if when.by_clock || when.epoch > self.time.now() {
            self.enter(when);
        }
        on!(&self.store, level => level.sweep_many(&self.time));
    }

    /// Lets the time be at least `when`; how many epochs late an event of then is. The only writer.
    #[inline(always)]
    fn enter(&self, when: When) -> u64 {
        let now = self.time.now();
        if when.epoch == now { 0 } else { self.enter_another(when, now) }
    }

    #[cold]
    fn enter_another(&self, when: When, now: i64) -> u64 {
        if when.epoch > now {
            self.time.now.store(when.epoch, Ordering::Release);
            return 0;
        }
        let History { late, jumps } = &self.history;
        let (count, age) =
            if when.by_clock { (jumps, 0) } else { (late, (now - when.epoch) as u64) };
        count.fetch_add(1, Ordering::Relaxed);
        age
    }

    // ---- adding

    /// Adds `count` occurrences; true iff the key was certainly absent before.
    #[inline(always)]
    pub fn add(&self, hash: KeyHash, count: u64, when: When) -> bool {
        let _entered = self.gate.enter();
        self.add_alone(hash, count, when)
    }

    /// `add` without passing the gate.
    ///
    /// # Safety
    /// No other thread changes this filter during the call.
    #[inline(always)]
    pub unsafe fn add_unsynchronised(&self, hash: KeyHash, count: u64, when: When) -> bool {
        // Readers of cells that tear hold the gate, so a writer must too.
        let _entered = self.enter_to_read();
        self.add_alone(hash, count, when)
    }

    #[inline(always)]
    fn add_alone(&self, hash: KeyHash, count: u64, when: When) -> bool {
        if self.store.tears() {
            // Entries are found by counting bits, which an older processor's code does slowly.
            return add_to_cells(self, hash, count, when);
        }
        self.add_to_cells(hash, count, when)
    }

    #[inline(always)]
    fn add_to_cells(&self, hash: KeyHash, count: u64, when: When) -> bool {
        match self.plan.hashes() as usize {
            ..=FEW => self.raise_one(self.cells::<FEW>(hash).as_slice(), count, when),
            _ => self.add_to_many(hash, count, when),
        }
    }

    /// The same for keys with more cells than most, compiled once.
    #[inline(never)]
    fn add_to_many(&self, hash: KeyHash, count: u64, when: When) -> bool {
        self.raise_one(self.cells::<MOST>(hash).as_slice(), count, when)
    }

    /// `raise` for a key that comes alone: the lines of all its cells are asked for before one that must fade
    /// first makes the others wait.
    #[inline(always)]
    fn raise_one(&self, cells: &[u64], count: u64, when: When) -> bool {
        if self.asks_ahead {
            on!(&self.store, level => level.prefetch(cells));
        }
        self.raise(cells, count, when)
    }

    /// Raises a key's cells; true iff it was certainly absent before. The only writer.
    #[inline(always)]
    fn raise(&self, cells: &[u64], count: u64, when: When) -> bool {
        let age = self.enter(when);
        let weight = self.time.decay.fade_up(count.saturating_mul(self.plan.one()), age);
        on!(&self.store, level => {
            let new = level.raise(cells, weight, self.plan.policy, &self.time);
            level.sweep(cells[0], &self.time);
            new
        })
    }

    // ---- asking

    /// The gate, if readers need it.
    #[inline(always)]
    fn enter_to_read(&self) -> Option<Entered<'_>> {
        self.store.tears().then(|| self.gate.enter())
    }

    /// The key's decayed count in units of 2^-`fraction_bits`, as of an epoch or, if that is later, of
    /// the filter's time.
    #[inline(always)]
    pub fn units(&self, hash: KeyHash, epoch: i64) -> u64 {
        if self.now().is_none() {
            return 0;
        }
        let _entered = self.enter_to_read();
        match self.plan.hashes() as usize {
            ..=FEW => self.smallest(self.plan.placement.all::<FEW>(hash).as_slice(), epoch),
            _ => self.smallest(self.plan.placement.all::<MOST>(hash).as_slice(), epoch),
        }
    }

    /// The smallest of some cells. The caller may read.
    #[inline(always)]
    fn smallest(&self, cells: &[u64], epoch: i64) -> u64 {
        on!(&self.store, level => u64::from(level.smallest(cells, epoch, &self.time)))
    }

    /// Units as a count of occurrences.
    #[inline(always)]
    pub fn count_of(&self, units: u64) -> f64 {
        units as f64 / self.plan.one() as f64
    }

    /// The key's decayed count.
    #[inline(always)]
    pub fn count(&self, hash: KeyHash, epoch: i64) -> f64 {
        self.count_of(self.units(hash, epoch))
    }

    /// The count, in units, with a lower bound that holds with `confidence`. It is flagged when a block of
    /// the key has a cell that once was full.
    pub fn estimate(&self, hash: KeyHash, epoch: i64, confidence: f64) -> Estimate {
        let cells = self.cells::<MOST>(hash);
        let value = self.units(hash, epoch);
        let stuck = on!(&self.store, level => level.was_full(cells.as_slice()));
        let probes = cells.as_slice().len() as u32;
        let get = |cell| self.unit_of_cell(cell, epoch);
        Estimate::new(value, stuck, probes, &self.plan.placement, get, confidence)
    }

    fn unit_of_cell(&self, cell: u64, epoch: i64) -> u64 {
        let _entered = self.enter_to_read();
        self.smallest(&[cell], epoch)
    }
}

on_the_best_processor!(
    add_to_cells(&TimeDecayingBloomFilter, hash: KeyHash, count: u64, when: When) -> bool
);
