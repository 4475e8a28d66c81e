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
//! Late     An event of an earlier epoch counts by its own age. `event_time` says which times are believed.
//! Prefer   `CountingBloomFilter` for counts that stay, and for removing.
//!
//! # Invariants
//! I1  Cells beyond the last one do not exist, or are zero.
//! I2  The positions of a key are different cells.
//! I3  No stamp is later than the filter's time, unless its block is empty.
//!
//! # Errors in answers
//! Rounding `strict`: never below the exact decayed sum, as long as no cell of the key was ever full;
//! a block that has such a cell says so for ever. `expiring`: at most 2^-b / (1 - lambda) below it, for each of
//! the filters that were merged.

use crate::batch::on_the_best_processor;
use crate::cells::{Decay, Entered, Gate, Rounding};
use crate::error::Result;
use crate::filters::Estimate;
use crate::filters::group::{FEW, IN_CACHE};
use crate::hash::{Hasher, KeyHash};
use crate::positions::{Cells, MAX_HASHES};
use std::sync::atomic::{AtomicI64, Ordering};

mod arrivals;
mod level;
mod many;
mod memory;
mod plan;
mod store;
#[cfg(test)]
mod tests;
mod time;
mod whole;

use arrivals::Arrivals;
pub use arrivals::When;
pub(crate) use arrivals::{Drift, KeptArrivals, Occurrence};
pub(crate) use level::Frozen;
use level::Time;
pub use many::Epochs;
pub use plan::{DecayStorage, DecayingPlan};
use store::{Store, on};
pub(crate) use time::check_max_jump;
pub use time::{Fade, SHORTEST_EPOCH};

const MOST: usize = MAX_HASHES as usize;
/// The time of a filter that has none yet.
const NEVER: i64 = i64::MIN;

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
    arrivals: Arrivals,
}

impl TimeDecayingBloomFilter {
    /// An empty filter of these sizes.
    pub fn new(plan: DecayingPlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        let decay = Decay::new(plan.fade.decay, plan.rounding);
        Ok(TimeDecayingBloomFilter {
            plan,
            hasher,
            time: Time { now: AtomicI64::new(NEVER), calm: AtomicI64::new(NEVER), decay },
            asks_ahead: plan.storage == DecayStorage::Optimized && plan.bytes() > IN_CACHE,
            store: Store::new(&plan)?,
            gate: Gate::default(),
            arrivals: Arrivals::new(&plan.fade),
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

    /// The epoch of the stream.
    #[inline(always)]
    pub fn now(&self) -> Option<i64> {
        Some(self.time.now()).filter(|now| *now != NEVER)
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
            ..=FEW => self.raise_one(hash, self.cells::<FEW>(hash).as_slice(), count, when),
            _ => self.add_to_many(hash, count, when),
        }
    }

    /// The same for keys with more cells than most, compiled once.
    #[inline(never)]
    fn add_to_many(&self, hash: KeyHash, count: u64, when: When) -> bool {
        self.raise_one(hash, self.cells::<MOST>(hash).as_slice(), count, when)
    }

    /// `raise` for a key that comes alone: the lines of all its cells are asked for before one that must fade
    /// first makes the others wait.
    #[inline(always)]
    fn raise_one(&self, hash: KeyHash, cells: &[u64], count: u64, when: When) -> bool {
        if self.asks_ahead {
            on!(&self.store, level => level.prefetch(cells));
        }
        self.raise(hash, cells, count, when)
    }

    /// Raises a key's cells; true iff it was certainly absent before. The only writer.
    #[inline(always)]
    fn raise(&self, hash: KeyHash, cells: &[u64], count: u64, when: When) -> bool {
        if when.epoch != self.time.calm.load(Ordering::Relaxed) {
            return self.raise_judged(hash, count, when);
        }
        self.raise_aged(cells, count, 0)
    }

    /// Raises cells by what is left of an event after `age` epochs.
    #[inline(always)]
    fn raise_aged(&self, cells: &[u64], count: u64, age: u64) -> bool {
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
        // Events that wait come first: one that goes in meanwhile is counted twice, and not left out.
        let waiting = self.units_aside(hash, epoch);
        let _entered = self.enter_to_read();
        waiting + self.units_inside(hash, epoch)
    }

    /// The same without the events that are set aside. The caller may read.
    #[inline(always)]
    fn units_inside(&self, hash: KeyHash, epoch: i64) -> u64 {
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

    /// The count, in units, with a lower bound that holds with `confidence`: noise and rounding are taken off. It is
    /// flagged when a block of the key has a cell that once was full.
    pub fn estimate(&self, hash: KeyHash, epoch: i64, confidence: f64) -> Estimate {
        if self.now().is_none() {
            return Estimate { value: 0, lower: 0, upper: 0, saturated: false };
        }
        let cells = self.cells::<MOST>(hash);
        let waiting = self.units_aside(hash, epoch);
        let value = {
            let _entered = self.enter_to_read();
            self.units_inside(hash, epoch)
        };
        let stuck = on!(&self.store, level => level.was_full(cells.as_slice()));
        let probes = cells.as_slice().len() as u32;
        let get = |cell| self.unit_of_cell(cell, epoch);
        let found = Estimate::new(value, stuck, probes, &self.plan.placement, get, confidence);
        let (drift, aside) = (self.drift(epoch), self.drift_aside(hash));
        let value = found.value + waiting;
        let lower = found.lower.saturating_sub(drift.high) + waiting.saturating_sub(aside);
        let expired = if self.plan.rounding == Rounding::Expiring { aside } else { 0 };
        let upper = value.saturating_add(drift.low).saturating_add(expired);
        Estimate { value, lower, upper, ..found }
    }

    fn unit_of_cell(&self, cell: u64, epoch: i64) -> u64 {
        let _entered = self.enter_to_read();
        self.smallest(&[cell], epoch)
    }
}

on_the_best_processor!(
    add_to_cells(&TimeDecayingBloomFilter, hash: KeyHash, count: u64, when: When) -> bool
);
