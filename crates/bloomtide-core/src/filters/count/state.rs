//! What a filter holds: its plan, its counters and, under recurring minimum, the second ones.

use super::plan::CountPlan;
use super::recurring::Recurring;
use super::{FEW, MOST};
use crate::cells::{CellValues, GrowingCells, Pauses};
use crate::error::Result;
use crate::filters::Policy;
use crate::hash::KeyHash;
use crate::placement::Layout;
use crossbeam_epoch::{self as epoch, Guard};
use std::sync::Arc;

/// Everything that is replaced at once by `merge`, `clear` and `repartition`.
#[derive(Debug)]
pub(super) struct State<C: GrowingCells> {
    pub(super) plan: CountPlan<C::Shape>,
    pub(super) cells: C,
    pub(super) recurring: Option<Recurring<C>>,
    /// Whether one key may be added the short way.
    short: bool,
}

/// Which of a state's cells are meant: the primary or, under recurring minimum, the secondary ones.
pub(super) type Pick<C> = fn(&State<C>) -> &C;

impl<C: GrowingCells> State<C> {
    pub(super) fn laid_out(
        plan: CountPlan<C::Shape>,
        pauses: Arc<Pauses>,
        values: impl CellValues,
        stuck: &[u64],
    ) -> Result<Self> {
        let cells = C::laid_out(plan.cut(), plan.shape, Arc::clone(&pauses), values, stuck)?;
        let recurring = match plan.policy {
            Policy::RecurringMinimum => Some(Recurring::new(&plan, pauses)?),
            _ => None,
        };
        Ok(Self::of(plan, cells, recurring))
    }

    fn of(plan: CountPlan<C::Shape>, cells: C, recurring: Option<Recurring<C>>) -> Self {
        let short = plan.policy == Policy::Plain
            && plan.placement.layout == Layout::Blocked
            && cells.raises_shortly(plan.hashes());
        State { plan, cells, recurring, short }
    }

    /// Adds a key the short way: whether it was new, or None if nothing was changed. The only writer.
    #[inline(always)]
    pub(super) fn raise_shortly(&self, hash: KeyHash, count: u64) -> Option<bool> {
        if !self.short {
            return None;
        }
        let placement = &self.plan.placement;
        self.cells.raise_shortly(placement.block(hash), hash.h2, placement.hashes, count)
    }

    /// Whether somebody rebuilds a partition.
    pub(super) fn is_locked(&self) -> bool {
        let any = |cells: &C| (0..cells.cut().partitions()).any(|p| cells.is_locked(p));
        any(&self.cells)
            || self.recurring.as_ref().is_some_and(|second| second.parts(|c, _| any(c)))
    }

    pub(super) fn primary(&self) -> &C {
        &self.cells
    }

    /// The same counters under another plan: other partitions.
    pub(super) fn with_plan(&self, plan: CountPlan<C::Shape>) -> Result<Self> {
        self.again(plan, Arc::clone(self.cells.pauses()))
    }

    /// A copy that counts its own rebuilds. No writer is inside meanwhile.
    pub(super) fn copied(&self) -> Result<Self> {
        let pauses = Arc::<Pauses>::default();
        let cells = self.cells.copied(Arc::clone(&pauses))?;
        let recurring = match &self.recurring {
            Some(recurring) => Some(recurring.copied(pauses)?),
            None => None,
        };
        Ok(Self::of(self.plan, cells, recurring))
    }

    fn again(&self, plan: CountPlan<C::Shape>, pauses: Arc<Pauses>) -> Result<Self> {
        let guard = &epoch::pin();
        let (values, stuck) = (self.cells.held(guard), self.cells.flagged(guard));
        let cells = C::laid_out(plan.cut(), plan.shape, Arc::clone(&pauses), values, &stuck)?;
        let recurring = match &self.recurring {
            Some(recurring) => Some(recurring.again(&plan, pauses)?),
            None => None,
        };
        Ok(Self::of(plan, cells, recurring))
    }

    #[inline(always)]
    pub(super) fn count(&self, hash: KeyHash, guard: &Guard) -> u64 {
        let placement = &self.plan.placement;
        let least = if placement.hashes as usize <= FEW {
            self.smallest(placement.all::<FEW>(hash).as_slice(), guard)
        } else {
            self.smallest(placement.all::<MOST>(hash).as_slice(), guard)
        };
        self.refined(hash, least, guard)
    }

    #[inline(always)]
    pub(super) fn smallest(&self, cells: &[u64], guard: &Guard) -> u64 {
        match self.plan.placement.layout {
            Layout::Blocked => self.cells.smallest_of_block(cells, guard),
            Layout::Classic => smallest(&self.cells, cells, guard),
        }
    }

    /// What a second count of the key knows better.
    #[inline(always)]
    pub(super) fn refined(&self, hash: KeyHash, least: u64, guard: &Guard) -> u64 {
        match &self.recurring {
            None => least,
            Some(recurring) => recurring.refined(hash, least, guard),
        }
    }

    pub(super) fn same_counters(&self, other: &State<C>, guard: &Guard) -> bool {
        self.cells.values(guard).eq(other.cells.values(guard))
            && self.cells.flagged(guard) == other.cells.flagged(guard)
            && match (&self.recurring, &other.recurring) {
                (Some(ours), Some(theirs)) => ours.same_as(theirs, guard),
                (ours, theirs) => ours.is_none() && theirs.is_none(),
            }
    }
}

#[inline(always)]
pub(super) fn smallest<C: GrowingCells>(store: &C, cells: &[u64], guard: &Guard) -> u64 {
    // A loop, because `min` of an iterator is not always inlined. There is no key without cells.
    let mut least = if cells.is_empty() { 0 } else { u64::MAX };
    for cell in cells {
        least = least.min(store.get(*cell, guard));
    }
    least
}
