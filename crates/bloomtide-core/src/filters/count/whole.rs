//! Whole filters: merging, copying, cutting anew, measuring.
//!
//! What replaces all counters is made aside and put into place in one step, inside the gate: readers go on
//! with the old ones.

use super::state::State;
use super::turn::Turn;
use super::{CountFilter, CountPlan, wait_while};
use crate::batch::at_best;
use crate::cells::runs::{self, Values};
use crate::cells::{CHUNK, CellValues, GrowingCells, Held, Rebuilds, STUCK};
use crate::error::Result;
use crate::filters::overfull::sampled_items;
use crate::filters::{Measure, Overfull};
use crate::placement::Placement;
use crossbeam_epoch::{self as epoch, Guard, Owned};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The sums of two filters' counters.
struct Sum<'a, C>(Held<'a, C>, Held<'a, C>);

impl<C: GrowingCells> CellValues for Sum<'_, C> {
    #[inline(always)]
    fn fill(&self, first: u64, values: &mut [u64]) {
        let (mut first, mut theirs) = (first, [0; CHUNK]);
        for some in values.chunks_mut(CHUNK) {
            let theirs = &mut theirs[..some.len()];
            self.0.fill(first, some);
            self.1.fill(first, theirs);
            at_best(|| {
                for (own, more) in some.iter_mut().zip(&*theirs) {
                    *own = own.saturating_add(*more);
                }
            });
            first += some.len() as u64;
        }
    }
}

impl<C: GrowingCells> CountFilter<C> {
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
            // Each counter is read once: the other's may change meanwhile, and reading costs more than packing.
            let sums = runs::encode(a.len(), &Sum(a.held(guard), b.held(guard)))?;
            let values = Values::encoded(a.len(), sums);
            State::laid_out(ours.plan, Arc::clone(a.pauses()), values)
        })
    }

    /// Forgets everything.
    pub fn clear(&self) -> Result<()> {
        self.replace(|ours| State::laid_out(ours.plan, Arc::clone(ours.cells.pauses()), |_| 0))
    }

    /// Cuts the cells into other partitions; the counters stay the same.
    pub fn repartition(&self, partitions: u64) -> Result<()> {
        let plan = CountPlan { partitions, ..self.plan() }.checked()?;
        self.replace(|ours| ours.with_plan(plan))
    }

    /// A copy of one moment: no writer is inside meanwhile.
    pub fn copy(&self) -> Result<Self> {
        let guard = &epoch::pin();
        let copied = {
            let _turn = self.quiet_turn(guard);
            self.state(guard).copied()?
        };
        Ok(Self::over(self.hasher, copied))
    }

    /// Looks at one moment of the filter. No writer is inside meanwhile.
    pub(crate) fn still<T>(&self, look: impl FnOnce(&CountPlan<C::Shape>, &C, &Guard) -> T) -> T {
        let guard = &epoch::pin();
        let _turn = self.quiet_turn(guard);
        let state = self.state(guard);
        look(&state.plan, &state.cells, guard)
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
        let used = state.cells.values(guard).map(|value| {
            saturated += u64::from(value == STUCK);
            value != 0
        });
        let (items, fill, error) = state.plan.placement.measure(used);
        Measure { items, fill, error, saturated }
    }

    /// Whether it holds more than twice the keys it was made for, by looking at some of its counters.
    pub fn overfull(&self) -> Option<Overfull> {
        let guard = &epoch::pin();
        let state = self.state(guard);
        let Placement { cells, hashes, .. } = state.plan.placement;
        let is_used = |cell| state.cells.get(cell, guard) != 0;
        let items = |sample| sampled_items(cells, hashes, sample, is_used);
        Overfull::of(state.plan.capacity, items, |items| state.plan.error_at(items))
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.look(|cells, _| cells.bytes())
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
        state.cells.validate()
    }
}
