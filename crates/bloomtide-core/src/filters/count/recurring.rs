//! Recurring minimum: a second count for keys whose smallest counter stands alone.
//!
//! Paper    Cohen & Matias 2003. A key whose minimum occurs in two cells or more is most likely counted
//!          right; one whose minimum is single has probably met others in all its cells but one, and is
//!          counted again in a smaller filter, where fewer keys are.
//! Differs  The paper's rule undercounts (specification 3.1, register 22): it must be known *exactly* which
//!          keys are in the second filter, and a key that is once marked is counted there every time.
//!          So the marks are a set of digests, not a Bloom filter.
//! Merge    The second counts of two filters cannot be added unless both marked the key, so a merged filter
//!          begins them anew; its counts stay upper bounds.

use super::plan::CountPlan;
use super::state::{Pick, State, smallest};
use super::turn::Turn;
use super::{CountFilter, MOST};
use crate::cells::{CellValues, GrowingCells, Pauses};
use crate::error::Result;
use crate::filters::Policy;
use crate::hash::KeyHash;
use crate::placement::Placement;
use crate::positions::Derivation;
use crossbeam_epoch::{self as epoch, Guard};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The second filter and the keys in it.
#[derive(Debug)]
pub(super) struct Recurring<C: GrowingCells> {
    placement: Placement,
    cells: C,
    marked: RwLock<HashSet<u128>>,
}

/// The second filter has its own digest of a key: what collided once must not collide again.
fn second(hash: KeyHash) -> KeyHash {
    hash.extend(1)
}

fn half<S: Copy>(plan: &CountPlan<S>) -> CountPlan<S> {
    let first = plan.placement;
    let cells = match first.derivation {
        // Slices need a power of two.
        Derivation::Slices => (first.cells / 2).max(1),
        _ => first.cells.div_ceil(2),
    };
    let placement = Placement::for_sizes(cells, first.hashes, Some(first.layout), first.derivation);
    let partitions = plan.partitions.min(placement.cells);
    CountPlan { placement, partitions, ..*plan }
}

/// The plan of the second filter, if there is one.
pub fn second_plan<S: Copy>(plan: &CountPlan<S>) -> Option<CountPlan<S>> {
    (plan.policy == Policy::RecurringMinimum).then(|| half(plan))
}

/// Which cells a key has in the second filter, if there is one.
pub(crate) fn second_placement<S: Copy>(plan: &CountPlan<S>) -> Option<Placement> {
    (plan.policy == Policy::RecurringMinimum).then(|| half(plan).placement)
}

impl<C: GrowingCells> Recurring<C> {
    /// Half as many cells as the first filter (the paper's m/2), as many for each key.
    pub(super) fn new(plan: &CountPlan<C::Shape>, pauses: Arc<Pauses>) -> Result<Self> {
        Self::laid_out(plan, pauses, |_| 0, &[], HashSet::new())
    }

    pub(super) fn laid_out(
        plan: &CountPlan<C::Shape>,
        pauses: Arc<Pauses>,
        values: impl CellValues,
        stuck: &[u64],
        marked: HashSet<u128>,
    ) -> Result<Self> {
        let half = half(plan);
        let cells = C::laid_out(half.cut(), plan.shape, pauses, values, stuck)?;
        Ok(Recurring { placement: half.placement, cells, marked: RwLock::new(marked) })
    }

    /// The same under another plan.
    pub(super) fn again(&self, plan: &CountPlan<C::Shape>, pauses: Arc<Pauses>) -> Result<Self> {
        let guard = &epoch::pin();
        let (values, stuck) = (self.cells.held(guard), self.cells.flagged(guard));
        Self::laid_out(plan, pauses, values, &stuck, self.marks().clone())
    }

    /// A copy. No writer is inside meanwhile.
    pub(super) fn copied(&self, pauses: Arc<Pauses>) -> Result<Self> {
        let (cells, marked) = (self.cells.copied(pauses)?, RwLock::new(self.marks().clone()));
        Ok(Recurring { placement: self.placement, cells, marked })
    }

    /// Looks at the second counters and the marks.
    pub(super) fn parts<T>(&self, look: impl FnOnce(&C, &HashSet<u128>) -> T) -> T {
        look(&self.cells, &self.marks())
    }

    fn marks(&self) -> std::sync::RwLockReadGuard<'_, HashSet<u128>> {
        self.marked.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_marked(&self, hash: KeyHash) -> bool {
        self.marks().contains(&hash.as_u128())
    }

    /// The smaller of both counts, if the key has two.
    pub(super) fn refined(&self, hash: KeyHash, least: u64, guard: &Guard) -> u64 {
        if !self.is_marked(hash) {
            return least;
        }
        let cells = self.placement.all::<MOST>(second(hash));
        least.min(smallest(&self.cells, cells.as_slice(), guard))
    }

    /// Memory in bytes; a mark is 16 bytes and its place in the table.
    pub(super) fn bytes(&self) -> u64 {
        self.cells.bytes() + self.marks().capacity() as u64 * 17
    }

    pub(super) fn validate(&self) -> Result<()> {
        self.cells.validate()
    }

    pub(super) fn same_as(&self, other: &Recurring<C>, guard: &Guard) -> bool {
        self.cells.values(guard).eq(other.cells.values(guard)) && *self.marks() == *other.marks()
    }
}

impl<C: GrowingCells> CountFilter<C> {
    fn secondary() -> Pick<C> {
        |state| state.recurring.as_ref().map_or(&state.cells, |recurring| &recurring.cells)
    }

    /// After the first count rose: counts a marked key a second time, and marks one whose minimum stands
    /// alone.
    pub(super) fn raise_recurring(
        &self,
        turn: &mut Turn<'_>,
        hash: KeyHash,
        cells: &[u64],
        count: u64,
    ) -> Result<()> {
        let guard = &epoch::pin();
        let state: &State<C> = self.state(guard);
        let Some(recurring) = &state.recurring else { return Ok(()) };
        let marked = recurring.is_marked(hash);
        let least = smallest(&state.cells, cells, guard);
        let single =
            cells.iter().filter(|cell| state.cells.get(**cell, guard) == least).count() < 2;
        if !marked && !single {
            return Ok(());
        }
        let again = recurring.placement.distinct::<MOST>(second(hash));
        // On its first time the key brings along what it is counted so far.
        let by = if marked { count } else { least };
        self.raise_plainly(turn, Self::secondary(), again.as_slice(), by)?;
        let mut marks = recurring.marked.write().unwrap_or_else(PoisonError::into_inner);
        marks.insert(hash.as_u128());
        Ok(())
    }

    /// Mirrors a removal.
    pub(super) fn lower_recurring(
        &self,
        turn: &mut Turn<'_>,
        hash: KeyHash,
        count: u64,
    ) -> Result<()> {
        let guard = &epoch::pin();
        let Some(recurring) = &self.state(guard).recurring else { return Ok(()) };
        if !recurring.is_marked(hash) {
            return Ok(());
        }
        let again = recurring.placement.distinct::<MOST>(second(hash));
        self.wait_for(turn, Self::secondary(), again.as_slice());
        self.take(turn, Self::secondary(), again.as_slice(), count)
    }
}
