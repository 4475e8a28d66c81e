//! One partition: its fields, and what lets readers look at them at any time.
//!
//! Fields that are too small for their values are replaced as a whole. The new ones are built aside;
//! then the pointer is swapped, and readers that still hold the old ones finish with those
//! (crossbeam-epoch frees them when the last such reader has gone).

use super::SpectralShape;
use super::fields::{Fields, needed};
use crate::cells::{CellValues, Version};
use crate::error::Result;
use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned};
use std::sync::atomic::Ordering;

/// Full fields laid out anew get at least this many spare bits per cell: with less, the next time is
/// too near.
pub(super) const LEAST_GROWTH: f64 = 0.1;

/// The fields of some cells, for one writer and any number of readers.
#[derive(Debug)]
pub(super) struct Partition {
    fields: Atomic<Fields>,
    pub(super) version: Version,
}

impl Partition {
    pub(super) fn new(fields: Fields) -> Self {
        Partition { fields: Atomic::new(fields), version: Version::default() }
    }

    #[inline(always)]
    pub(super) fn fields<'g>(&self, guard: &'g Guard) -> &'g Fields {
        let fields = self.fields.load(Ordering::Acquire, guard);
        // SAFETY: the pointer is never null, and fields that were replaced live on until every guard
        // that may have seen them is gone.
        unsafe { fields.deref() }
    }

    #[inline(always)]
    pub(super) fn get(&self, field: u64, guard: &Guard) -> u64 {
        let fields = self.fields(guard);
        self.version.read(|| fields.get(field))
    }

    /// The values of the fields from `first` on.
    #[inline(always)]
    pub(super) fn fill(&self, first: u64, values: &mut [u64], guard: &Guard) {
        let fields = self.fields(guard);
        loop {
            let before = self.version.begin();
            fields.fill(first, values);
            if self.version.held(before) {
                return;
            }
        }
    }

    /// A copy; no writer is inside meanwhile.
    pub(super) fn copied(&self, guard: &Guard) -> Result<Self> {
        Ok(Partition::new(self.fields(guard).copied()?))
    }

    /// Makes `value` fit, and returns how many fields moved.
    pub(super) fn make_room(&self, field: u64, value: u64, shape: &SpectralShape) -> Result<u64> {
        let guard = epoch::pin();
        let fields = self.fields(&guard);
        let (_, width) = fields.span(field);
        let need = needed(value);
        if need <= width {
            return Ok(0);
        }
        if let Some(moved) = fields.widen(field, need - width, &self.version) {
            return Ok(moved);
        }
        let more = (fields.len as f64 * shape.slack.max(LEAST_GROWTH)).ceil() as u64;
        let content = fields.bits - fields.spare();
        let wanted = content + u64::from(need - needed(fields.get(field))) + more;
        self.replace(fields.laid_anew(wanted, field, need)?, guard);
        Ok(self.fields(&epoch::pin()).len)
    }

    fn replace(&self, fields: Fields, guard: Guard) {
        let old = self.fields.swap(Owned::new(fields), Ordering::AcqRel, &guard);
        // SAFETY: the swap made the old fields unreachable for new readers, and only we have got them
        // from it.
        unsafe { guard.defer_destroy(old) };
        guard.flush();
        drop(guard);
        // The arrays may be large and the next pin far away: without readers they are free after this.
        for _ in 0..3 {
            epoch::pin().flush();
        }
    }

    /// Memory in bytes, this record included.
    pub(super) fn bytes(&self, guard: &Guard) -> u64 {
        size_of::<Partition>() as u64 + self.fields(guard).bytes()
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let fields = std::mem::take(&mut self.fields);
        // SAFETY: no reader borrows a partition that is being dropped, and nothing was taken from it.
        drop(unsafe { fields.try_into_owned() });
    }
}
