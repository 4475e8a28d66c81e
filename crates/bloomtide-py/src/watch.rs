//! A filter that holds far more keys than it was made for says so, once.
//!
//! A look at some of its cells takes a microsecond or so. Batches count their rows, and look when enough have come
//! since the last time. Single additions look after one of many new keys, chosen by its digest, so that nothing has
//! to be counted: a comparison is all that other additions pay.

use crate::errors;
use crate::python::*;
use bloomtide_core::KeyHash;
use bloomtide_core::filters::{Overfull, holds};
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys between two looks: an eighth of those that the filter is made for; at least so many, but a quarter of a small
/// one, which is soon so full that no key is new.
const LEAST: u64 = 256;

/// When a filter looks at itself next.
pub(crate) struct Watch {
    /// A key whose digest has none of these bits makes us look.
    mask: AtomicU64,
    /// The same, or nothing where every addition has more to do than the shortest.
    long: AtomicU64,
    /// Rows of batches since the last look.
    rows: AtomicU64,
    every: u64,
}

impl Watch {
    /// Of a filter that was made for so many keys; for any number, it never looks.
    pub(crate) fn new(capacity: Option<u64>) -> Self {
        let every = capacity.map_or(u64::MAX, |keys| (keys / 8).max(LEAST.min(keys / 4)).max(1));
        let [mask, long, rows] = [0, u64::MAX, 0].map(AtomicU64::new);
        let watch = Watch { mask, long, rows, every };
        watch.reset();
        watch
    }

    /// Has every single addition go the long way.
    pub(crate) fn long_if(self, always: bool) -> Self {
        if always {
            self.long.store(0, Ordering::Relaxed);
        }
        self
    }

    fn set(&self, mask: u64) {
        self.mask.store(mask, Ordering::Relaxed);
        if self.long.load(Ordering::Relaxed) != 0 {
            self.long.store(mask.max(1), Ordering::Relaxed);
        }
    }

    /// From now on it may say so again.
    pub(crate) fn reset(&self) {
        let mask = self.every.checked_next_power_of_two().map_or(u64::MAX, |keys| keys - 1);
        self.set(mask);
        self.rows.store(0, Ordering::Relaxed);
    }

    /// Whether a single addition of this key is more than the shortest.
    #[inline(always)]
    pub(crate) fn is_long(&self, hash: KeyHash) -> bool {
        hash.h1 & self.long.load(Ordering::Relaxed) == 0
    }

    /// Whether to look after this key, if it is new.
    #[inline(always)]
    pub(crate) fn is_due(&self, hash: KeyHash) -> bool {
        hash.h1 & self.mask.load(Ordering::Relaxed) == 0
    }

    /// Whether to look after so many rows more.
    pub(crate) fn is_due_after(&self, rows: usize) -> bool {
        let rows = self.rows.load(Ordering::Relaxed).saturating_add(rows as u64);
        let due = rows >= self.every && !self.is_done();
        self.rows.store(if due { 0 } else { rows }, Ordering::Relaxed);
        due
    }

    /// The same after one new key that has no digest here.
    #[inline(always)]
    pub(crate) fn is_due_after_one(&self) -> bool {
        let rows = self.rows.load(Ordering::Relaxed) + 1;
        self.rows.store(rows, Ordering::Relaxed);
        rows & self.mask.load(Ordering::Relaxed) == 0
    }

    fn is_done(&self) -> bool {
        self.mask.load(Ordering::Relaxed) == u64::MAX
    }

    /// Warns of what a look has found, unless that was done. The warning may be raised as an error; what was
    /// added stays.
    #[cold]
    pub(crate) fn look(
        &self,
        py: Python<'_>,
        find: impl FnOnce() -> Option<Overfull> + Send,
    ) -> PyResult<()> {
        if self.is_done() {
            return Ok(());
        }
        let Some(found) = py.detach(find) else { return Ok(()) };
        self.set(u64::MAX);
        let text = holds("the filter", "keys", &found);
        errors::warn_overfull(py, text, found.items, found.capacity, found.error)
    }
}
