//! A writer's turn: inside the gate, except while it rebuilds a partition.
//!
//! The gate lets one writer change cells at a time. A rebuild takes longer than that is meant for, so the
//! writer locks the one partition, leaves the gate, rebuilds, and enters again: other writers go on
//! in all other partitions. Only who needs the very partition waits for it.

use crate::cells::{Entered, Gate};
use crossbeam_epoch::{self as epoch, Guard};

/// The turn of one writer.
pub(super) struct Turn<'a> {
    gate: Option<&'a Gate>,
    entered: Option<Entered<'a>>,
    /// Whether rebuilds are made inside the gate.
    stays: bool,
    /// Keeps what others replace alive while this writer is outside.
    guard: Option<Guard>,
}

impl<'a> Turn<'a> {
    /// Waits for the gate.
    #[inline(always)]
    pub(super) fn at(gate: &'a Gate) -> Self {
        Turn {
            gate: Some(gate),
            entered: Some(gate.enter()),
            stays: false,
            guard: Some(epoch::pin()),
        }
    }

    /// A turn of a writer who is alone anyway.
    ///
    /// # Safety
    /// Nobody else writes to the cells that are changed in this turn, or replaces them.
    #[inline(always)]
    pub(super) unsafe fn alone() -> Self {
        Turn { gate: None, entered: None, stays: false, guard: None }
    }

    /// What keeps the cells alive that are read in this turn.
    #[inline(always)]
    pub(super) fn guard(&self) -> &Guard {
        // SAFETY: without a guard of its own the writer is alone, so nothing is replaced meanwhile.
        self.guard.as_ref().unwrap_or_else(|| unsafe { epoch::unprotected() })
    }

    /// Does not leave the gate any more: for changes of several cells that nobody may see half of.
    #[inline(always)]
    pub(super) fn stay(&mut self) {
        self.stays = true;
    }

    /// Does something outside of the gate. Others may have changed anything when it returns.
    pub(super) fn outside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        if self.stays {
            return work();
        }
        self.entered = None;
        let result = work();
        self.entered = self.gate.map(Gate::enter);
        result
    }
}
