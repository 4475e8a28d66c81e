//! Counters that each take the bits they need: the storage of the spectral Bloom filter, in partitions
//! (Cohen and Matias 2003; partitioned spectral filter, sections 3.3 and 4). Use `cells/dynamic` instead
//! where memory counts: the index here takes about 19 bits per counter.
//!
//! Each partition has its own base array of N' bits and its own index. A counter that outgrows its field
//! takes spare bits from the nearest fields that have some. When a partition has none left, it gets a larger
//! array, unlike in the paper, where the counter sticks.
//!
//! | file | is |
//! |---|---|
//! | `index.rs` | where each field starts |
//! | `fields.rs` | fields of different widths in one array |
//! | `room.rs`, `shift.rs` | how a field gets wider |
//! | `partition.rs` | one partition beside its readers |
//!
//! # Invariants
//! I1  Values are those of plain 64-bit counters.
//! I2  Partition i holds the cells from i·m' to below (i+1)·m', m' = ceil(m/c).

mod fields;
mod index;
mod partition;
mod room;
mod shift;
#[cfg(test)]
mod tests;

use crate::cells::growing::{CellValues, Cut, GrowingCells, Pauses, Refused, STUCK};
use crate::cells::version::Version;
use crate::cells::words::physical_memory;
use crate::error::{Error, Result};
use crossbeam_epoch::{self as epoch, Guard};
use fields::{Fields, WIDEST, needed};
use partition::{LEAST_GROWTH, Partition};
use std::sync::Arc;

/// Bits of a base array up to which the offsets of its index are narrow.
const NARROW: u64 = 1 << 16;

/// How large the base arrays are: N' = m'·(design_bits + slack) bits, the spare ones in all fields alike, so that
/// a counter that grows finds some nearby.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralShape {
    /// Bits that a counter will need on average, B_design / m; at least 1.
    pub design_bits: f64,
    /// Spare bits per counter beyond that, the paper's epsilon.
    pub slack: f64,
}

impl SpectralShape {
    /// Refuses sizes that no base array can have.
    pub fn check(&self) -> Result<()> {
        if !(1.0..=WIDEST as f64).contains(&self.design_bits) {
            let hint = "it is the mean bit length of the counters at the expected load";
            return Err(Error::parameter("design_bits", self.design_bits, "1 to 64", hint));
        }
        if !(0.0..=WIDEST as f64).contains(&self.slack) {
            return Err(Error::parameter("slack", self.slack, "0 to 64", "0.1 is a good start"));
        }
        Ok(())
    }

    /// N' for `len` counters whose values need `content` bits now.
    fn bits(&self, len: u64, content: u64) -> u64 {
        let bits = |each: f64| (len as f64 * each).round() as u64;
        let bits = bits(self.design_bits + self.slack).max(content + bits(self.slack));
        bits.clamp(len, len * WIDEST)
    }
}

/// m counters of any value in c partitions.
#[derive(Debug)]
pub struct SpectralCells {
    cut: Cut,
    parts: Box<[Partition]>,
    shape: SpectralShape,
    pauses: Arc<Pauses>,
}

impl SpectralCells {
    /// Memory in bytes of such cells while they are empty.
    pub fn bytes_of(cut: &Cut, shape: &SpectralShape) -> u64 {
        let each = cut.per_partition().min(cut.cells());
        // A counter takes a bit at the very least; beyond the machine's memory products might overflow.
        if each / 8 > physical_memory() {
            return u64::MAX;
        }
        let one = |len| Fields::bytes_of(len, shape.bits(len, len)) + size_of::<Partition>() as u64;
        let last = cut.range(cut.partitions() - 1);
        one(each).saturating_mul(cut.partitions() - 1).saturating_add(one(last.end - last.start))
    }

    /// Memory in bytes that such cells do not exceed while a counter needs at most so many bits on average.
    pub fn bytes_at_most(cut: &Cut, shape: &SpectralShape, needed: f64) -> u64 {
        let each = cut.per_partition().min(cut.cells());
        let empty = Self::bytes_of(cut, shape);
        let slack = shape.slack.max(LEAST_GROWTH);
        let bits = (each as f64 * (needed + slack).min(WIDEST as f64)).ceil() as u64 + WIDEST;
        // Counters of one partition may be longer than those of others, and so need wider offsets.
        let indexed = bits.max(NARROW + 1).min(each.saturating_mul(WIDEST));
        let one = Fields::bytes_for(each, bits, indexed) + size_of::<Partition>() as u64;
        empty.max(one.saturating_mul(cut.partitions()))
    }

    /// N, the bits of all base arrays, and how many of them no value needs.
    pub fn base_bits(&self) -> (u64, u64) {
        let guard = epoch::pin();
        let fields = self.parts.iter().map(|part| part.fields(&guard));
        fields.fold((0, 0), |(bits, spare), f| (bits + f.bits, spare + f.spare()))
    }

    #[inline(always)]
    fn locate(&self, cell: u64) -> (&Partition, u64) {
        debug_assert!(cell < self.cut.cells());
        let (part, field) = self.cut.locate(cell);
        (&self.parts[part as usize], field)
    }
}

impl GrowingCells for SpectralCells {
    type Shape = SpectralShape;

    const ENTRY_BYTES: u64 = (size_of::<Partition>() + size_of::<Fields>()) as u64;

    /// As few as let the offsets of the index have twelve bits and not fifteen, also after an array has grown.
    fn usual_partitions(cells: u64, shape: &SpectralShape) -> u64 {
        let each = shape.design_bits * 1.05 + shape.slack.max(LEAST_GROWTH);
        let bits = cells as f64 * each.min(WIDEST as f64);
        ((bits / NARROW as f64).ceil() as u64).clamp(1, cells.max(1))
    }

    /// A partition gets the room of an empty one, or more if its values need more.
    fn laid_out(
        cut: Cut,
        shape: SpectralShape,
        pauses: Arc<Pauses>,
        values: impl CellValues,
    ) -> Result<Self> {
        shape.check()?;
        let needed_bytes = Self::bytes_of(&cut, &shape);
        let limit = physical_memory();
        if needed_bytes > limit {
            return Err(Error::Capacity { needed: needed_bytes, limit });
        }
        let lay = |partition: u64| {
            let range = cut.range(partition);
            let len = range.end - range.start;
            let bits = |content| shape.bits(len, content);
            let fields = Fields::lay(range, bits, |_, value| needed(value), &values)?;
            Ok(Partition::new(fields))
        };
        let parts = (0..cut.partitions()).map(lay).collect::<Result<_>>()?;
        Ok(SpectralCells { cut, parts, shape, pauses })
    }

    /// Word by word: whoever keeps writers out for a copy does so for milliseconds.
    fn copied(&self, pauses: Arc<Pauses>) -> Result<Self> {
        let guard = &epoch::pin();
        let parts = self.parts.iter().map(|part| part.copied(guard)).collect::<Result<_>>()?;
        Ok(SpectralCells { parts, pauses, ..*self })
    }

    fn len(&self) -> u64 {
        self.cut.cells()
    }

    fn cut(&self) -> &Cut {
        &self.cut
    }

    #[inline(always)]
    fn prefetch(&self, cell: u64) {
        let (part, field) = self.locate(cell);
        // SAFETY: nothing is read through it; a prefetch of memory that is gone does no harm.
        part.fields(unsafe { epoch::unprotected() }).prefetch(field);
    }

    #[inline(always)]
    fn get(&self, cell: u64, guard: &Guard) -> u64 {
        let (part, field) = self.locate(cell);
        part.get(field, guard)
    }

    #[inline(always)]
    fn fill(&self, first: u64, values: &mut [u64], guard: &Guard) {
        let (mut cell, mut left) = (first, values);
        while !left.is_empty() {
            let (part, field) = self.locate(cell);
            let inside = self.cut.range(self.cut.locate(cell).0).end - cell;
            let (now, later) = left.split_at_mut(left.len().min(inside as usize));
            part.fill(field, now, guard);
            (cell, left) = (cell + now.len() as u64, later);
        }
    }

    #[inline(always)]
    fn try_change(
        &self,
        cell: u64,
        change: impl FnOnce(u64) -> u64,
    ) -> std::result::Result<u64, Refused> {
        let (part, field) = self.locate(cell);
        if part.version.is_locked() {
            return Err(Refused::Busy);
        }
        // SAFETY: only a writer replaces the fields, and the caller is the only one.
        let fields = part.fields(unsafe { epoch::unprotected() });
        let old = fields.get(field);
        if old == STUCK {
            return Ok(old);
        }
        if fields.try_set(field, change(old), &part.version) {
            Ok(old)
        } else {
            Err(Refused::NoRoom)
        }
    }

    fn version(&self, partition: u64) -> &Version {
        &self.parts[partition as usize].version
    }

    fn make_room(&self, cell: u64, value: u64) -> Result<()> {
        let (part, field) = self.locate(cell);
        self.pauses.time(|| part.make_room(field, value, &self.shape))
    }

    /// Never: freed bits stay where they are, as the cell is likely to need them again.
    fn is_untidy(&self, _partition: u64) -> bool {
        false
    }

    fn tidy(&self, _partition: u64) -> Result<()> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let guard = epoch::pin();
        self.parts.iter().map(|part| part.bytes(&guard)).sum()
    }

    fn pauses(&self) -> &Arc<Pauses> {
        &self.pauses
    }

    fn validate(&self) -> Result<()> {
        let guard = epoch::pin();
        self.parts.iter().try_for_each(|part| part.fields(&guard).validate())
    }
}
