//! One partition: its fields, what lets readers look at them at any time, and its stuck cells.
//!
//! Fields that are too small for their values are replaced as a whole. The new ones are built aside;
//! then the pointer is swapped, and readers that still hold the old ones finish with those
//! (crossbeam-epoch frees them when the last such reader has gone).

use super::fields::{Fields, needed};
use super::{OnFull, SpectralShape};
use crate::cells::growing::{CellValues, STUCK};
use crate::cells::packed::largest;
use crate::cells::{Version, Words};
use crate::error::Result;
use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// Full fields laid out anew get at least this many spare bits per cell: with less, the next time is
/// too near.
pub(super) const LEAST_GROWTH: f64 = 0.1;

/// The fields of some cells, for one writer and any number of readers.
#[derive(Debug)]
pub(super) struct Partition {
    fields: Atomic<Fields>,
    pub(super) version: Version,
    /// A bit for each cell; not there while none is stuck.
    stuck: OnceLock<Words>,
}

impl Partition {
    pub(super) fn new(fields: Fields) -> Self {
        Partition {
            fields: Atomic::new(fields),
            version: Version::default(),
            stuck: OnceLock::new(),
        }
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
        let copy = Partition::new(self.fields(guard).copied()?);
        if let Some(flags) = self.stuck.get() {
            // Nobody else has the copy yet.
            let _ = copy.stuck.set(flags.to_owned()?);
        }
        Ok(copy)
    }

    /// The fields that are stuck below the largest value.
    pub(super) fn flagged(&self, guard: &Guard) -> Vec<u64> {
        let fields = if self.stuck.get().is_some() { self.fields(guard).len } else { 0 };
        let below = |field: &u64| self.is_stuck(*field) && self.get(*field, guard) != STUCK;
        (0..fields).filter(below).collect()
    }

    #[inline(always)]
    pub(super) fn is_stuck(&self, field: u64) -> bool {
        self.stuck.get().is_some_and(|flags| {
            flags.atomics()[(field >> 6) as usize].load(Ordering::Relaxed) >> (field & 63) & 1 == 1
        })
    }

    /// Makes `value` fit or the field stuck, and returns how many fields moved.
    pub(super) fn make_room(&self, field: u64, value: u64, shape: &SpectralShape) -> Result<u64> {
        let guard = epoch::pin();
        let fields = self.fields(&guard);
        let (_, width) = fields.span(field);
        let need = needed(value);
        if need <= width || self.is_stuck(field) {
            return Ok(0);
        }
        if let Some(moved) = fields.widen(field, need - width, &self.version) {
            return Ok(moved);
        }
        match shape.on_full {
            OnFull::Grow => {
                let more = (fields.len as f64 * shape.slack.max(LEAST_GROWTH)).ceil() as u64;
                let content = fields.bits - fields.spare();
                let wanted = content + u64::from(need - needed(fields.get(field))) + more;
                self.replace(fields.laid_anew(wanted, field, need)?, guard);
                Ok(self.fields(&epoch::pin()).len)
            }
            OnFull::Saturate => {
                // The flag first: who sees the value can know what it is worth.
                self.stick(field)?;
                fields.try_set(field, largest(width), &self.version);
                Ok(0)
            }
        }
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

    /// Marks a field as stuck.
    pub(super) fn stick(&self, field: u64) -> Result<()> {
        if self.stuck.get().is_none() {
            let len = self.fields(&epoch::pin()).len;
            // There is one writer only, so nobody else can have set it since.
            let _ = self.stuck.set(Words::zeroed(len)?);
        }
        if let Some(flags) = self.stuck.get() {
            flags.atomics()[(field >> 6) as usize].fetch_or(1 << (field & 63), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Memory in bytes, this record included.
    pub(super) fn bytes(&self, guard: &Guard) -> u64 {
        let flags = self.stuck.get().map_or(0, Words::bytes);
        size_of::<Partition>() as u64 + self.fields(guard).bytes() + flags
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let fields = std::mem::take(&mut self.fields);
        // SAFETY: no reader borrows a partition that is being dropped, and nothing was taken from it.
        drop(unsafe { fields.try_into_owned() });
    }
}
