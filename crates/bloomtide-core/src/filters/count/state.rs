//! What a filter holds: its plan and its counters.

use super::plan::CountPlan;
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
    /// Whether one key may be added the short way.
    short: bool,
}

impl<C: GrowingCells> State<C> {
    pub(super) fn laid_out(
        plan: CountPlan<C::Shape>,
        pauses: Arc<Pauses>,
        values: impl CellValues,
    ) -> Result<Self> {
        let cells = C::laid_out(plan.cut(), plan.shape, pauses, values)?;
        Ok(Self::of(plan, cells))
    }

    fn of(plan: CountPlan<C::Shape>, cells: C) -> Self {
        let short = plan.policy == Policy::Plain && plan.placement.layout == Layout::Blocked;
        State { plan, cells, short }
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
        (0..self.cells.cut().partitions()).any(|p| self.cells.version(p).is_locked())
    }

    /// The same counters under another plan: other partitions.
    pub(super) fn with_plan(&self, plan: CountPlan<C::Shape>) -> Result<Self> {
        let guard = &epoch::pin();
        Self::laid_out(plan, Arc::clone(self.cells.pauses()), self.cells.held(guard))
    }

    /// A copy that counts its own rebuilds. No writer is inside meanwhile.
    pub(super) fn copied(&self) -> Result<Self> {
        Ok(Self::of(self.plan, self.cells.copied(Arc::default())?))
    }

    #[inline(always)]
    pub(super) fn count(&self, hash: KeyHash, guard: &Guard) -> u64 {
        let placement = &self.plan.placement;
        if placement.hashes as usize <= FEW {
            self.smallest(placement.all::<FEW>(hash).as_slice(), guard)
        } else {
            self.smallest(placement.all::<MOST>(hash).as_slice(), guard)
        }
    }

    #[inline(always)]
    pub(super) fn smallest(&self, cells: &[u64], guard: &Guard) -> u64 {
        match self.plan.placement.layout {
            Layout::Blocked => {
                // A group of one key.
                let mut least = [0];
                self.cells.smallest_of_group(cells.as_chunks::<1>().0, &mut least, guard);
                least[0]
            }
            Layout::Classic => smallest(&self.cells, cells, guard),
        }
    }

    pub(super) fn same_counters(&self, other: &State<C>, guard: &Guard) -> bool {
        self.cells.values(guard).eq(other.cells.values(guard))
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
