//! Cells of one key all over the filter, changed by the same amount.
//!
//! A stream of additions, removals and questions in turn is hard to foresee, so all three take one path:
//! the counters are read, and the change, which may be zero, is added to their base words. What is not that
//! simple (a carry, a shrink coming up, a partition that is being rebuilt, a key that is absent) is left
//! to the longer ways, and nothing is changed here.

use super::DynamicCells;
use crate::cells::growing::STUCK;
use crossbeam_epoch as epoch;
use std::sync::atomic::Ordering;

/// Keys with more cells go the longer way.
const MOST: usize = 8;

impl DynamicCells {
    /// `shift` where no base counter lies in two words.
    #[inline(always)]
    pub(super) fn shift_scattered(&self, cells: &[u64], change: i64) -> Option<u64> {
        let (x, max) = (self.shape.width, self.base_max());
        let mut bits = [0; MOST];
        let (mut least, mut longer) = (u64::MAX, cells.len() > MOST);
        for (bit, cell) in bits.iter_mut().zip(cells) {
            let (partition, slot) = self.cut.locate(*cell);
            let entry = self.partition(partition);
            *bit = self.bit(partition, slot);
            let low = self.low(*bit);
            // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
            let overflow = entry.overflow(unsafe { epoch::unprotected() });
            let (high, threshold) = match overflow {
                None => (0, u64::MAX),
                Some(overflow) => (overflow.get(slot), overflow.threshold),
            };
            let old = high << x | low;
            let new = old.wrapping_add_signed(change);
            // A counter below zero wraps around, so it is above the largest, too.
            longer |= low.wrapping_add_signed(change) > max
                || (old >= threshold) != (new >= threshold)
                || old == STUCK
                || entry.version.is_locked();
            least = least.min(new);
        }
        if longer {
            return None;
        }
        for bit in &bits[..cells.len()] {
            let word = self.word(*bit);
            let shifted = (change as u64) << (bit & 63);
            word.store(word.load(Ordering::Relaxed).wrapping_add(shifted), Ordering::Relaxed);
        }
        Some(least)
    }
}
