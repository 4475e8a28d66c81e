//! One key of a blocked filter, the shortest way: from the choices of its digest to its base counters, with
//! nothing in between.
//!
//! Three of four adds of a skewed stream find room in all base counters of the key, and none of them zero, and
//! are done. Others need overflow counters: those that a carry goes to, and one that is zero like
//! its base counter, which says that the key is new. Only these are looked at, because overflow counters
//! are mostly far away. What else there is (no room, a shrink coming up, a rebuild) is left to the
//! longer ways, and nothing is changed here.

use super::group::Base;
use super::overflow::{Even, Overflow};
use super::{DynamicCells, Partition};
use crate::placement::BLOCK_CELLS;
use crossbeam_epoch as epoch;

impl DynamicCells {
    /// Adds to the cells of a key in the block that begins at a cell: one in each of K groups, by `choice`.
    /// Whether one of them was zero; None if this is not for the short way. Where `raises_groups`.
    #[inline(always)]
    pub(super) fn raise_chosen<const K: usize>(
        &self,
        block: u64,
        choice: u64,
        by: u64,
    ) -> Option<bool> {
        let bits = BLOCK_CELLS.trailing_zeros() - K.trailing_zeros();
        let max = self.base_max();
        let place = |i: usize| {
            let group = (i as u64) << bits;
            group + (choice >> (i as u32 * bits) & ((1 << bits) - 1))
        };
        let places: [u64; K] = std::array::from_fn(place);
        let bases: [Base<'_>; K] = places.map(|place| self.base_of(block + place));
        let seen = bases.iter().fold(0, |seen, base| seen | 1u64 << base.get(max));
        let (partition, slot) = self.cut.locate(block);
        let entry = self.partition(partition);
        // SAFETY: only a writer exchanges the overflow counters, and the caller is the only one.
        let (overflow, edged) = entry.edged(unsafe { epoch::unprotected() });
        let not_here = u64::from(edged | entry.version.is_locked()).wrapping_neg();
        let full = u64::MAX << (max + 1).saturating_sub(by) | not_here;
        if seen & (full | u64::from(overflow.is_some())) == 0 {
            bases.iter().for_each(|base| base.add(by));
            return Some(seen & 1 != 0);
        }
        match overflow.and_then(Overflow::even) {
            Some(even) if not_here == 0 => {
                let slots = places.map(|place| slot + place);
                self.raise_carrying(entry, even, &bases, &slots, by)
            }
            _ => None,
        }
    }

    /// Adds to the cells of a key at these places of a partition whose threshold no base counter passes without
    /// a carry. Whether one of them was zero; None if one has no room, and then nothing was changed.
    #[inline(always)]
    pub(super) fn raise_carrying<const K: usize>(
        &self,
        entry: &Partition,
        even: Even<'_>,
        bases: &[Base<'_>; K],
        slots: &[u64; K],
        by: u64,
    ) -> Option<bool> {
        let (x, max) = (self.shape.width, self.base_max());
        // No sum below overflows.
        let (mut new, mut refused) = (false, by > u64::from(u32::MAX));
        for (base, slot) in bases.iter().zip(slots) {
            let low = base.get(max);
            let sum = low.wrapping_add(by);
            if sum > max || low == 0 && !new {
                // SAFETY: a cut locates cells within their partition.
                let high = unsafe { even.get(*slot) };
                new |= high | low == 0;
                refused |= high + (sum >> x) > even.max();
            }
        }
        if refused {
            return None;
        }
        for (base, slot) in bases.iter().zip(slots) {
            let low = base.get(max);
            let sum = low + by;
            if sum <= max {
                base.add(by);
                continue;
            }
            // SAFETY: as above.
            let high = unsafe { even.get(*slot) };
            let _changing = entry.version.write();
            base.set(sum & max, max);
            even.set(*slot, high + (sum >> x));
            even.of.moved(high << x | low, (high << x) + sum);
        }
        Some(new)
    }
}
