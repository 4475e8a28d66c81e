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
//! I2  Counters are those of an unbounded counting Bloom filter, except stuck ones.
//! I3  Whoever changes cells is inside the gate, or holds the lock of the partition, or is alone.
//!
//! # Errors in answers
//! As `CountingBloomFilter`. A stuck counter may be too small; `estimate` says so.

mod many;
mod plan;
mod recurring;
#[cfg(test)]
mod tests;
mod turn;

pub use plan::{
    CountGoal, CountPlan, base_bits, check_base_bits, check_shrink, design_bits, dynamic_bytes,
};

use crate::cells::{Gate, GrowingCells, Pauses, Rebuilds, Refused, STUCK};
use crate::error::{Error, Result};
use crate::filters::{Estimate, Measure, Policy};
use crate::hash::{Hasher, KeyHash};
use crate::placement::Layout;
use crate::positions::MAX_HASHES;
use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned};
use recurring::Recurring;
pub(crate) use recurring::second_placement;
pub use recurring::second_plan;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use turn::Turn;

const MOST: usize = MAX_HASHES as usize;
/// Most filters have at most eight hashes, so that a key's cells fit one line of the stack.
const FEW: usize = 8;

/// Everything that is replaced at once by `merge`, `clear` and `repartition`.
#[derive(Debug)]
struct State<C: GrowingCells> {
    plan: CountPlan<C::Shape>,
    cells: C,
    recurring: Option<Recurring<C>>,
}

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
        Self::with_values(plan, hasher, |_| 0, |_| false)
    }

    /// A filter of given counters.
    pub fn with_values(
        plan: CountPlan<C::Shape>,
        hasher: Hasher,
        value: impl Fn(u64) -> u64,
        stuck: impl Fn(u64) -> bool,
    ) -> Result<Self> {
        let state = State::laid_out(plan.checked()?, Arc::default(), value, stuck)?;
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
    #[inline(always)]
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
        self.add_in(&mut unsafe { Turn::alone() }, hash, count)
    }

    #[inline(always)]
    fn add_in(&self, turn: &mut Turn<'_>, hash: KeyHash, count: u64) -> Result<bool> {
        let placement = self.state(turn.guard()).plan.placement;
        if placement.hashes as usize <= FEW {
            self.raise(turn, hash, placement.distinct::<FEW>(hash).as_slice(), count)
        } else {
            self.raise(turn, hash, placement.distinct::<MOST>(hash).as_slice(), count)
        }
    }

    /// Raises a key's cells by the policy; true iff one of them was zero.
    #[inline(always)]
    fn raise(&self, turn: &mut Turn<'_>, hash: KeyHash, cells: &[u64], count: u64) -> Result<bool> {
        match self.state(turn.guard()).plan.policy {
            Policy::Plain => self.raise_block(turn, cells, count),
            Policy::Conservative => self.raise_conservatively(turn, cells, count),
            Policy::RecurringMinimum => {
                let new = self.raise_plainly(turn, State::primary, cells, count)?;
                let noted = self.raise_recurring(turn, hash, cells, count);
                noted.inspect_err(|_| self.lower(turn, State::primary, cells, count))?;
                Ok(new)
            }
        }
    }

    /// Every cell rises; all at once where they are one block.
    #[inline(always)]
    fn raise_block(&self, turn: &mut Turn<'_>, cells: &[u64], count: u64) -> Result<bool> {
        let state = self.state(turn.guard());
        if state.plan.placement.layout != Layout::Blocked {
            return self.raise_plainly(turn, State::primary, cells, count);
        }
        match state.cells.raise_block(cells, count) {
            Ok(new) => Ok(new),
            Err((done, _)) => self.raise_rest(turn, cells, done, count),
        }
    }

    /// Goes on where a block was refused. Whether the key was new is known from the cells before, which
    /// are above `count` now if they were above zero.
    #[cold]
    fn raise_rest(
        &self,
        turn: &mut Turn<'_>,
        cells: &[u64],
        done: usize,
        count: u64,
    ) -> Result<bool> {
        let before = smallest(&self.state(turn.guard()).cells, &cells[..done], turn.guard());
        let rest = self
            .raise_plainly(turn, State::primary, &cells[done..], count)
            .inspect_err(|_| self.lower(turn, State::primary, &cells[..done], count))?;
        Ok(rest || (done > 0 && before <= count))
    }

    /// Every cell rises.
    #[inline(always)]
    fn raise_plainly(
        &self,
        turn: &mut Turn<'_>,
        pick: Pick<C>,
        cells: &[u64],
        count: u64,
    ) -> Result<bool> {
        let mut new = false;
        for (done, cell) in cells.iter().enumerate() {
            let raised = |value: u64| value.saturating_add(count);
            let old = match pick(self.state(turn.guard())).try_change(*cell, raised) {
                Ok(old) => old,
                Err(_) => self
                    .change(turn, pick, *cell, raised)
                    .inspect_err(|_| self.lower(turn, pick, &cells[..done], count))?,
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
                self.change(turn, State::primary, *cell, raised).inspect_err(|_| {
                    let lowered = |value: u64| if value == target { before } else { value };
                    for cell in &cells[..done] {
                        let _ = self.change(turn, State::primary, *cell, lowered);
                    }
                })?;
            }
        }
        Ok(before == 0)
    }

    /// Changes one cell, after a rebuild if it must be.
    #[cold]
    fn change(
        &self,
        turn: &mut Turn<'_>,
        pick: Pick<C>,
        cell: u64,
        change: impl Fn(u64) -> u64,
    ) -> Result<u64> {
        loop {
            let cells = pick(self.state(turn.guard()));
            match cells.try_change(cell, &change) {
                Ok(old) => return Ok(old),
                Err(refused) => {
                    let value = change(cells.get(cell, turn.guard()));
                    self.settle(turn, pick, cell, refused, value)?;
                }
            }
        }
    }

    /// Removes what stands in the way of `value`: makes room, or waits for who rebuilds.
    #[cold]
    fn settle(
        &self,
        turn: &mut Turn<'_>,
        pick: Pick<C>,
        cell: u64,
        refused: Refused,
        value: u64,
    ) -> Result<()> {
        // Kept alive by a guard of its own: the turn is borrowed while it is outside.
        let guard = &epoch::pin();
        let cells = pick(self.state(guard));
        let partition = cells.cut().locate(cell).0;
        match refused {
            Refused::NoRoom => rebuild(turn, cells, partition, || cells.make_room(cell, value)),
            Refused::Busy => {
                turn.outside(|| wait_while(|| cells.is_locked(partition)));
                Ok(())
            }
        }
    }

    /// Takes back what `raise_plainly` did to these cells, when it could not go on.
    #[cold]
    fn lower(&self, turn: &mut Turn<'_>, pick: Pick<C>, cells: &[u64], count: u64) {
        for cell in cells {
            let lowered = |value: u64| if value == STUCK { STUCK } else { value - count };
            // Lowering needs no room, so it cannot fail.
            let _ = self.change(turn, pick, *cell, lowered);
        }
    }

    /// Takes `count` occurrences away again: from all of the key's counters or from none.
    pub fn remove(&self, hash: KeyHash, count: u64) -> Result<()> {
        self.remove_in(&mut Turn::at(&self.gate), hash, count)
    }

    fn remove_in(&self, turn: &mut Turn<'_>, hash: KeyHash, count: u64) -> Result<()> {
        let plan = self.state(turn.guard()).plan;
        if plan.policy == Policy::Conservative {
            return Err(Error::Unsupported { verb: "remove", policy: "conservative" });
        }
        let cells = plan.placement.distinct::<MOST>(hash);
        let cells = cells.as_slice();
        self.wait_for(turn, State::primary, cells);
        let state = self.state(turn.guard());
        let estimate = state.count(hash, turn.guard());
        if estimate < count && !cells.iter().any(|cell| state.cells.is_stuck(*cell, turn.guard())) {
            return Err(Error::AbsentKey { estimate, requested: count });
        }
        let short = |cell: &u64| {
            state.cells.get(*cell, turn.guard()) < count
                && !state.cells.is_stuck(*cell, turn.guard())
        };
        if cells.iter().any(short) {
            return Err(Error::AbsentKey { estimate, requested: count });
        }
        self.take(turn, State::primary, cells, count)?;
        self.lower_recurring(turn, hash, count)
    }

    /// Lowers cells that are high enough, and gives memory back where it can be.
    fn take(&self, turn: &mut Turn<'_>, pick: Pick<C>, cells: &[u64], count: u64) -> Result<()> {
        for cell in cells {
            // Lowering needs no room.
            let _ = pick(self.state(turn.guard()))
                .try_change(*cell, |value| value.saturating_sub(count));
        }
        for cell in cells {
            let guard = &epoch::pin();
            let store = pick(self.state(guard));
            let partition = store.cut().locate(*cell).0;
            if !store.is_locked(partition) && store.is_untidy(partition) {
                // Memory that cannot be had to give memory back is no reason to fail: the removal is done.
                let _ = rebuild(turn, store, partition, || store.tidy(partition));
            }
        }
        Ok(())
    }

    /// Waits until nobody rebuilds a partition of these cells.
    fn wait_for(&self, turn: &mut Turn<'_>, pick: Pick<C>, cells: &[u64]) {
        loop {
            let guard = &epoch::pin();
            let store = pick(self.state(guard));
            let locked = |cell: &&u64| store.is_locked(store.cut().locate(**cell).0);
            let Some(cell) = cells.iter().find(locked) else { return };
            turn.outside(|| wait_while(|| store.is_locked(store.cut().locate(*cell).0)));
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
        let stuck = cells.iter().any(|cell| state.cells.is_stuck(*cell, guard));
        let get = |cell| state.cells.get(cell, guard);
        let probes = cells.len() as u32;
        Estimate::new(value, stuck, probes, &state.plan.placement, get, confidence)
    }

    // ---- whole filters

    /// Refuses to go on when `other` was made with other parameters.
    pub fn require_compatible(&self, other: &CountFilter<C>) -> Result<()> {
        let (ours, theirs) = (self.plan(), other.plan());
        ours.require_same(&theirs)?;
        C::require_same_shape(&ours.shape, &theirs.shape)?;
        self.hasher.require_same(&other.hasher)
    }

    /// Adds the other's counters to ours. Exactly the filter of both streams under `plain`; an upper
    /// bound under the other policies.
    pub fn merge(&self, other: &CountFilter<C>) -> Result<()> {
        self.require_compatible(other)?;
        let guard = &epoch::pin();
        let theirs = &other.state(guard).cells;
        self.replace(|ours| {
            let (a, b) = (&ours.cells, theirs);
            let value = |cell| a.get(cell, guard).saturating_add(b.get(cell, guard));
            let stuck = |cell| a.is_stuck(cell, guard) || b.is_stuck(cell, guard);
            State::laid_out(ours.plan, Arc::clone(a.pauses()), value, stuck)
        })
    }

    /// Forgets everything.
    pub fn clear(&self) -> Result<()> {
        let empty = |ours: &State<C>| {
            State::laid_out(ours.plan, Arc::clone(ours.cells.pauses()), |_| 0, |_| false)
        };
        self.replace(empty)
    }

    /// Cuts the cells into other partitions, of another shape if they shall have one; the counters stay the
    /// same.
    pub fn repartition(
        &self,
        partitions: u64,
        shape: impl FnOnce(C::Shape) -> C::Shape,
    ) -> Result<()> {
        let plan = self.plan();
        let plan = CountPlan { partitions, shape: shape(plan.shape), ..plan }.checked()?;
        self.replace(|ours| ours.with_plan(plan))
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let guard = &epoch::pin();
        let state = self.state(guard);
        let copied = state.again(state.plan, Arc::default())?;
        Ok(Self::over(self.hasher, copied))
    }

    /// Looks at one moment of the filter: its plan, its counters and, under recurring minimum, the second
    /// counters with their marks. No writer is inside meanwhile.
    pub(crate) fn still<T>(
        &self,
        look: impl FnOnce(&CountPlan<C::Shape>, &C, Option<(&C, &HashSet<u128>)>) -> Result<T>,
    ) -> Result<T> {
        let guard = &epoch::pin();
        let _turn = self.quiet_turn(guard);
        let state = self.state(guard);
        match &state.recurring {
            None => look(&state.plan, &state.cells, None),
            Some(second) => {
                second.parts(|cells, marks| look(&state.plan, &state.cells, Some((cells, marks))))
            }
        }
    }

    /// Gives a fresh filter the second counters of a saved one.
    pub(crate) fn resume(
        &self,
        value: impl Fn(u64) -> u64,
        stuck: impl Fn(u64) -> bool,
        marked: HashSet<u128>,
    ) -> Result<()> {
        self.replace(|ours| {
            let mut state = ours.with_plan(ours.plan)?;
            let pauses = Arc::clone(ours.cells.pauses());
            let second = Recurring::laid_out(&ours.plan, pauses, value, stuck, marked)?;
            state.recurring = Some(second);
            Ok(state)
        })
    }

    /// A turn in which nobody rebuilds.
    fn quiet_turn(&self, guard: &Guard) -> Turn<'_> {
        let mut turn = Turn::at(&self.gate);
        loop {
            let state = self.state(guard);
            if !state.is_locked() {
                return turn;
            }
            turn.outside(|| wait_while(|| state.is_locked()));
        }
    }

    /// Puts another state into the place of ours, with no writer inside.
    fn replace(&self, make: impl FnOnce(&State<C>) -> Result<State<C>>) -> Result<()> {
        let _cutting = self.cutting.write().unwrap_or_else(PoisonError::into_inner);
        let guard = &epoch::pin();
        let _turn = self.quiet_turn(guard);
        let made = Owned::new(make(self.state(guard))?);
        let old = self.state.swap(made, Ordering::AcqRel, guard);
        // SAFETY: it was unlinked above, inside the gate.
        unsafe { guard.defer_destroy(old) };
        Ok(())
    }

    /// Whether both have the same parameters and the same counters.
    pub fn same_as(&self, other: &CountFilter<C>) -> bool {
        if self.require_compatible(other).is_err() {
            return false;
        }
        let guard = &epoch::pin();
        let (a, b) = (self.state(guard), other.state(guard));
        a.plan.shape == b.plan.shape && a.same_counters(b, guard)
    }

    /// Measures the cells: one pass over all of them.
    pub fn measure(&self) -> Measure {
        let guard = &epoch::pin();
        let state = self.state(guard);
        let mut saturated = 0;
        let used = (0..state.plan.cells()).map(|cell| {
            saturated += u64::from(state.cells.is_stuck(cell, guard));
            state.cells.get(cell, guard) != 0
        });
        let (items, fill, error) = state.plan.placement.measure(used);
        Measure { items, fill, error, saturated }
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        let guard = &epoch::pin();
        let state = self.state(guard);
        state.cells.bytes() + state.recurring.as_ref().map_or(0, Recurring::bytes)
    }

    /// What the rebuilds so far were like.
    pub fn rebuilds(&self) -> Rebuilds {
        self.look(|cells, _| cells.pauses().so_far())
    }

    /// Checks every invariant.
    pub fn validate(&self) -> Result<()> {
        let guard = &epoch::pin();
        let state = self.state(guard);
        state.plan.checked()?;
        state.cells.validate()?;
        state.recurring.as_ref().map_or(Ok(()), Recurring::validate)
    }
}

/// Which of a state's cells are meant: the primary or, under recurring minimum, the secondary ones.
type Pick<C> = fn(&State<C>) -> &C;

impl<C: GrowingCells> State<C> {
    fn laid_out(
        plan: CountPlan<C::Shape>,
        pauses: Arc<Pauses>,
        value: impl Fn(u64) -> u64,
        stuck: impl Fn(u64) -> bool,
    ) -> Result<Self> {
        let cells = C::laid_out(plan.cut(), plan.shape, Arc::clone(&pauses), value, stuck)?;
        let recurring = match plan.policy {
            Policy::RecurringMinimum => Some(Recurring::new(&plan, pauses)?),
            _ => None,
        };
        Ok(State { plan, cells, recurring })
    }

    /// Whether somebody rebuilds a partition.
    fn is_locked(&self) -> bool {
        let any = |cells: &C| (0..cells.cut().partitions()).any(|p| cells.is_locked(p));
        any(&self.cells)
            || self.recurring.as_ref().is_some_and(|second| second.parts(|c, _| any(c)))
    }

    fn primary(&self) -> &C {
        &self.cells
    }

    /// The same counters under another plan: other partitions.
    fn with_plan(&self, plan: CountPlan<C::Shape>) -> Result<Self> {
        self.again(plan, Arc::clone(self.cells.pauses()))
    }

    fn again(&self, plan: CountPlan<C::Shape>, pauses: Arc<Pauses>) -> Result<Self> {
        let guard = &epoch::pin();
        let value = |cell| self.cells.get(cell, guard);
        let stuck = |cell| self.cells.is_stuck(cell, guard);
        let cells = C::laid_out(plan.cut(), plan.shape, Arc::clone(&pauses), value, stuck)?;
        let recurring = match &self.recurring {
            Some(recurring) => Some(recurring.again(&plan, pauses)?),
            None => None,
        };
        Ok(State { plan, cells, recurring })
    }

    #[inline(always)]
    fn count(&self, hash: KeyHash, guard: &Guard) -> u64 {
        let placement = &self.plan.placement;
        let least = if placement.hashes as usize <= FEW {
            self.smallest(placement.all::<FEW>(hash).as_slice(), guard)
        } else {
            self.smallest(placement.all::<MOST>(hash).as_slice(), guard)
        };
        self.refined(hash, least, guard)
    }

    #[inline(always)]
    fn smallest(&self, cells: &[u64], guard: &Guard) -> u64 {
        match self.plan.placement.layout {
            Layout::Blocked => self.cells.smallest_of_block(cells, guard),
            Layout::Classic => smallest(&self.cells, cells, guard),
        }
    }

    /// What a second count of the key knows better.
    #[inline(always)]
    fn refined(&self, hash: KeyHash, least: u64, guard: &Guard) -> u64 {
        match &self.recurring {
            None => least,
            Some(recurring) => recurring.refined(hash, least, guard),
        }
    }

    fn same_counters(&self, other: &State<C>, guard: &Guard) -> bool {
        let same = |cell| {
            self.cells.get(cell, guard) == other.cells.get(cell, guard)
                && self.cells.is_stuck(cell, guard) == other.cells.is_stuck(cell, guard)
        };
        (0..self.plan.cells()).all(same)
            && match (&self.recurring, &other.recurring) {
                (Some(ours), Some(theirs)) => ours.same_as(theirs, guard),
                (ours, theirs) => ours.is_none() && theirs.is_none(),
            }
    }
}

#[inline(always)]
fn smallest<C: GrowingCells>(store: &C, cells: &[u64], guard: &Guard) -> u64 {
    cells.iter().map(|cell| store.get(*cell, guard)).min().unwrap_or(0)
}

/// Rebuilds a partition outside of the gate, while it is locked.
fn rebuild<C: GrowingCells>(
    turn: &mut Turn<'_>,
    cells: &C,
    partition: u64,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    cells.lock(partition);
    turn.outside(|| {
        let result = work();
        // Before the gate: who is inside may be waiting for this partition.
        cells.unlock(partition);
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
