//! Filters whose counters grow: the spectral Bloom filter and the dynamic count filter, whole or
//! partitioned.
//!
//! Paper    J. Aguilar-Saborit et al., "A partitioned ... SBF and DCF", Data & Knowledge Engineering 2008;
//!          policies from Cohen & Matias 2003. Specification sections 3.1, 4 and 5.
//! Idea     As `CountingBloomFilter`: a key raises k counters, its count is the smallest. But a counter has
//!          as many bits as it needs, so a key may be a million times hotter than the rest. Where the
//!          bits come from is the cells' affair (`cells/dynamic`, `cells/spectral`).
//! Partition  Each of a key's cells lies in some partition; counters are the same with one partition and
//!          with many, so all four structures give the same answers.
//! Prefer   `CountingBloomFilter` when the largest count is known and small.
//!
//! # Invariants
//! I1  The positions of a key are different cells.
//! I2  Counters are those of an unbounded counting Bloom filter, up to `STUCK`.
//! I3  Whoever changes cells is inside the gate, or holds the lock of the partition, or is alone.
//!
//! # Errors in answers
//! As `CountingBloomFilter`, whose counters are full sooner.

mod many;
mod memory;
mod plan;
mod state;
#[cfg(test)]
mod tests;
mod turn;
mod whole;

pub use memory::Stream;
pub use plan::{CountGoal, CountPlan, base_bits, check_base_bits, check_shrink, design_bits};

use crate::cells::{CellValues, Gate, GrowingCells, Refused, STUCK, Stopped};
use crate::error::{Error, Result};
use crate::filters::{Estimate, Policy};
use crate::hash::{Hasher, KeyHash};
use crate::placement::Layout;
use crate::positions::MAX_HASHES;
use crossbeam_epoch::{self as epoch, Atomic, Guard};
use state::{State, smallest};
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use turn::Turn;

const MOST: usize = MAX_HASHES as usize;
/// Most filters have at most eight hashes, so that a key's cells fit one line of the stack.
const FEW: usize = 8;

/// A filter whose counters grow.
#[derive(Debug)]
pub struct CountFilter<C: GrowingCells> {
    hasher: Hasher,
    gate: Gate,
    /// Read by batches whose threads share out the partitions, written by who cuts them anew. Always
    /// before the gate.
    cutting: RwLock<()>,
    state: Atomic<State<C>>,
}

impl<C: GrowingCells> Drop for CountFilter<C> {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, Atomic::null());
        // SAFETY: nobody else has the filter any more.
        drop(unsafe { state.try_into_owned() });
    }
}

impl<C: GrowingCells> CountFilter<C> {
    /// An empty filter of these sizes.
    pub fn new(plan: CountPlan<C::Shape>, hasher: Hasher) -> Result<Self> {
        Self::with_values(plan, hasher, |_| 0)
    }

    /// A filter of given counters.
    pub fn with_values(
        plan: CountPlan<C::Shape>,
        hasher: Hasher,
        values: impl CellValues,
    ) -> Result<Self> {
        let state = State::laid_out(plan.checked()?, Arc::default(), values)?;
        Ok(Self::over(hasher, state))
    }

    fn over(hasher: Hasher, state: State<C>) -> Self {
        let state = Atomic::new(state);
        CountFilter { hasher, gate: Gate::default(), cutting: RwLock::default(), state }
    }

    #[inline(always)]
    fn state<'g>(&self, guard: &'g Guard) -> &'g State<C> {
        // SAFETY: never null until `drop`; what is replaced is destroyed after every guard of its time.
        unsafe { self.state.load(Ordering::Acquire, guard).deref() }
    }

    /// Times rebuilds with this clock, which gives nanoseconds.
    pub fn set_clock(&self, clock: fn() -> u64) {
        self.look(|cells, _| cells.pauses().set_clock(clock));
    }

    /// The sizes.
    pub fn plan(&self) -> CountPlan<C::Shape> {
        self.state(&epoch::pin()).plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Looks at the cells.
    pub fn look<T>(&self, look: impl FnOnce(&C, &Guard) -> T) -> T {
        let guard = &epoch::pin();
        look(&self.state(guard).cells, guard)
    }

    /// The different cells of a key, in the order they are derived.
    pub fn positions(&self, hash: KeyHash) -> Vec<u64> {
        self.plan().placement.distinct::<MOST>(hash).as_slice().to_vec()
    }

    // ---- adding and removing

    /// Adds `count` occurrences; true iff the key was certainly absent before.
    #[inline(never)]
    pub fn add(&self, hash: KeyHash, count: u64) -> Result<bool> {
        self.add_in(&mut Turn::at(&self.gate), hash, count)
    }

    /// `add` without passing the gate.
    ///
    /// # Safety
    /// No other thread changes this filter during the call.
    #[inline(always)]
    pub unsafe fn add_unsynchronised(&self, hash: KeyHash, count: u64) -> Result<bool> {
        // SAFETY: the caller's promise.
        match unsafe { self.add_shortly(hash, count) } {
            Some(new) => Ok(new),
            // SAFETY: likewise.
            None => self.add_longer(unsafe { Turn::alone() }, hash, count),
        }
    }

    /// What is not short, compiled once.
    #[inline(never)]
    fn add_longer(&self, mut turn: Turn<'_>, hash: KeyHash, count: u64) -> Result<bool> {
        self.add_in(&mut turn, hash, count)
    }

    /// The same if it is short: None if it is not, and then nothing was changed.
    ///
    /// # Safety
    /// As of `add_unsynchronised`.
    #[inline(always)]
    pub unsafe fn add_shortly(&self, hash: KeyHash, count: u64) -> Option<bool> {
        // SAFETY: nobody replaces the state meanwhile.
        self.state(unsafe { epoch::unprotected() }).raise_shortly(hash, count)
    }

    #[inline(always)]
    fn add_in(&self, turn: &mut Turn<'_>, hash: KeyHash, count: u64) -> Result<bool> {
        let placement = self.state(turn.guard()).plan.placement;
        if placement.hashes as usize <= FEW {
            self.raise(turn, placement.distinct::<FEW>(hash).as_slice(), count)
        } else {
            self.add_to_many(turn, hash, count)
        }
    }

    /// The same for keys with more cells than most, compiled once.
    #[inline(never)]
    fn add_to_many(&self, turn: &mut Turn<'_>, hash: KeyHash, count: u64) -> Result<bool> {
        let cells = self.state(turn.guard()).plan.placement.distinct::<MOST>(hash);
        self.raise(turn, cells.as_slice(), count)
    }

    /// Raises a key's cells by the policy; true iff one of them was zero.
    #[inline(always)]
    fn raise(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) -> Result<bool> {
        match self.state(turn.guard()).plan.policy {
            Policy::Plain => self.raise_block(turn, cells, count),
            Policy::Conservative => self.raise_conservatively(turn, cells, count),
        }
    }

    /// Every cell rises; all at once where they are one block.
    #[inline(always)]
    fn raise_block(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) -> Result<bool> {
        let state = self.state(turn.guard());
        if state.plan.placement.layout != Layout::Blocked {
            return self.raise_plainly(turn, cells, count);
        }
        // A group of one key.
        let mut new = [false];
        match state.cells.raise_group(cells.as_chunks::<1>().0, &[count], 0..1, &mut new) {
            Ok(()) => Ok(new[0]),
            Err(stopped) => self.raise_rest(turn, cells, stopped, count),
        }
    }

    /// Goes on where a block was refused.
    #[cold]
    fn raise_rest(
        &self,
        turn: &mut Turn<'_>,
        cells: &[u64],
        Stopped { done, new, .. }: Stopped,
        count: u64,
    ) -> Result<bool> {
        let rest = self
            .raise_plainly(turn, &cells[done..], count)
            .inspect_err(|_| self.lower(turn, &cells[..done], count))?;
        Ok(rest || new)
    }

    /// Every cell rises.
    #[inline(always)]
    fn raise_plainly(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) -> Result<bool> {
        let mut new = false;
        for (done, cell) in cells.iter().enumerate() {
            let raised = |value: u64| value.saturating_add(count);
            let old = match self.state(turn.guard()).cells.try_change(*cell, raised) {
                Ok(old) => old,
                Err(_) => self
                    .change(turn, *cell, raised)
                    .inspect_err(|_| self.lower(turn, &cells[..done], count))?,
            };
            new |= old == 0;
        }
        Ok(new)
    }

    /// Minimal increase: only cells below the new count rise. It is one turn with its rebuilds: who saw half
    /// of it would raise too little.
    #[inline(always)]
    fn raise_conservatively(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) -> Result<bool> {
        turn.stay();
        let before = smallest(&self.state(turn.guard()).cells, cells, turn.guard());
        let target = before.saturating_add(count);
        let raised = |value: u64| value.max(target);
        for (done, cell) in cells.iter().enumerate() {
            if self.state(turn.guard()).cells.try_change(*cell, raised).is_err() {
                // Cells that were higher before are as high now; the others go back.
                self.change(turn, *cell, raised).inspect_err(|_| {
                    let lowered = |value: u64| if value == target { before } else { value };
                    for cell in &cells[..done] {
                        let _ = self.change(turn, *cell, lowered);
                    }
                })?;
            }
        }
        Ok(before == 0)
    }

    /// Changes one cell, after a rebuild if it must be.
    #[cold]
    fn change(&self, turn: &mut Turn<'_>, cell: u64, change: impl Fn(u64) -> u64) -> Result<u64> {
        loop {
            let cells = &self.state(turn.guard()).cells;
            match cells.try_change(cell, &change) {
                Ok(old) => return Ok(old),
                Err(refused) => {
                    let value = change(cells.get(cell, turn.guard()));
                    self.settle(turn, cell, refused, value)?;
                }
            }
        }
    }

    /// Removes what stands in the way of `value`: makes room, or waits for who rebuilds.
    #[cold]
    fn settle(&self, turn: &mut Turn<'_>, cell: u64, refused: Refused, value: u64) -> Result<()> {
        // Kept alive by a guard of its own: the turn is borrowed while it is outside.
        let guard = &epoch::pin();
        let cells = &self.state(guard).cells;
        let partition = cells.cut().locate(cell).0;
        match refused {
            Refused::NoRoom => rebuild(turn, cells, partition, || cells.make_room(cell, value)),
            Refused::Busy => {
                turn.outside(|| wait_while(|| cells.version(partition).is_locked()));
                Ok(())
            }
        }
    }

    /// Takes back what `raise_plainly` did to these cells, when it could not go on.
    #[cold]
    fn lower(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) {
        for cell in cells {
            let lowered = |value: u64| if value == STUCK { STUCK } else { value - count };
            // Lowering needs no room, so it cannot fail.
            let _ = self.change(turn, *cell, lowered);
        }
    }

    /// Takes `count` occurrences away again: from all of the key's counters or from none.
    pub fn remove(&self, hash: KeyHash, count: u64) -> Result<()> {
        self.remove_in(&mut Turn::at(&self.gate), hash, count)
    }

    #[inline(always)]
    fn remove_in(&self, turn: &mut Turn<'_>, hash: KeyHash, count: u64) -> Result<()> {
        let placement = self.state(turn.guard()).plan.placement;
        if placement.hashes as usize <= FEW {
            let cells = placement.distinct::<FEW>(hash);
            self.remove_from(turn, cells.as_slice(), count)
        } else {
            let cells = placement.distinct::<MOST>(hash);
            self.remove_from(turn, cells.as_slice(), count)
        }
    }

    #[inline(always)]
    fn remove_from(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) -> Result<()> {
        if self.state(turn.guard()).plan.policy == Policy::Conservative {
            return Err(Error::Unsupported { verb: "remove", policy: "conservative" });
        }
        self.wait_for(turn, cells);
        let state = self.state(turn.guard());
        let estimate = state.smallest(cells, turn.guard());
        if estimate < count {
            return Err(Error::AbsentKey { estimate, requested: count });
        }
        self.take(turn, cells, count);
        Ok(())
    }

    /// Lowers cells that are high enough, and gives memory back where it can be.
    fn take(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) {
        for cell in cells {
            // Lowering needs no room.
            let lowered = |value: u64| value.saturating_sub(count);
            let _ = self.state(turn.guard()).cells.try_change(*cell, lowered);
        }
        for cell in cells {
            let store = &self.state(turn.guard()).cells;
            let partition = store.cut().locate(*cell).0;
            if !store.version(partition).is_locked() && store.is_untidy(partition) {
                self.tidy(turn, *cell);
            }
        }
    }

    /// Gives memory of a cell's partition back.
    #[cold]
    fn tidy(&self, turn: &mut Turn<'_>, cell: u64) {
        // Kept alive by a guard of its own: the turn is borrowed while it is outside.
        let guard = &epoch::pin();
        let store = &self.state(guard).cells;
        let partition = store.cut().locate(cell).0;
        // Memory that cannot be had to give memory back is no reason to fail: the removal is done.
        let _ = rebuild(turn, store, partition, || store.tidy(partition));
    }

    /// Waits until nobody rebuilds a partition of these cells.
    fn wait_for(&self, turn: &mut Turn<'_>, cells: &[u64]) {
        let locked = |store: &C, cell: &u64| store.version(store.cut().locate(*cell).0).is_locked();
        loop {
            let store = &self.state(turn.guard()).cells;
            let Some(cell) = cells.iter().find(|cell| locked(store, cell)) else { return };
            let guard = &epoch::pin();
            let store = &self.state(guard).cells;
            turn.outside(|| wait_while(|| locked(store, cell)));
        }
    }

    // ---- asking

    /// The key's count. The guard is `pin()`, or unprotected while nobody else can write.
    #[inline(always)]
    pub fn count(&self, hash: KeyHash, guard: &Guard) -> u64 {
        self.state(guard).count(hash, guard)
    }

    /// The count with a lower bound that holds with `confidence`.
    pub fn estimate(&self, hash: KeyHash, confidence: f64) -> Estimate {
        let guard = &epoch::pin();
        let state = self.state(guard);
        let cells = state.plan.placement.distinct::<MOST>(hash);
        let cells = cells.as_slice();
        let value = state.count(hash, guard);
        let get = |cell| state.cells.get(cell, guard);
        let probes = cells.len() as u32;
        Estimate::new(value, value == STUCK, probes, &state.plan.placement, get, confidence)
    }
}

/// Rebuilds a partition outside of the gate, while it is locked.
fn rebuild<C: GrowingCells>(
    turn: &mut Turn<'_>,
    cells: &C,
    partition: u64,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    cells.version(partition).lock();
    turn.outside(|| {
        let result = work();
        // Before the gate: who is inside may be waiting for this partition.
        cells.version(partition).unlock();
        result
    })
}

fn wait_while(busy: impl Fn() -> bool) {
    let mut spins = 0u32;
    while busy() {
        spins += 1;
        if spins.is_multiple_of(128) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
