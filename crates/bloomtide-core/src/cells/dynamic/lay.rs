//! Counters of given values, laid out at once: what a file or a merge needs.
//!
//! Base counters are packed chunk by chunk. Where a partition has a counter beyond them, its values are asked for
//! again when it is known how wide the overflow counters must be.

use super::overflow::Overflow;
use super::{DynamicCells, bits_of};
use crate::batch::on_the_best_processor;
use crate::cells::growing::{CHUNK, CellValues, chunks};
use crate::cells::packed;
use crate::error::Result;
use std::sync::atomic::{AtomicU64, Ordering};

on_the_best_processor!(lay_each(&DynamicCells, values: &dyn CellValues) -> Result<()>);

impl DynamicCells {
    /// Gives empty counters these values, each partition as wide as it must be.
    pub(super) fn lay_all(&self, values: &dyn CellValues) -> Result<()> {
        lay_each(self, values)
    }

    #[inline(always)]
    fn lay_each(&self, values: &dyn CellValues) -> Result<()> {
        for partition in 0..self.cut.partitions() {
            // A partition begins with a word of its own.
            let base = &self.base.atomics()[(self.bit(partition, 0) >> 6) as usize..];
            let (x, max) = (self.shape.width, self.base_max());
            let any = self.pack(partition, base, x, values, |value| value & max);
            if any > max {
                self.lay_overflow(partition, bits_of(any >> x), values)?;
            }
        }
        Ok(())
    }

    /// Packs what `of` makes of each value of a partition, `width` bits wide; all values, joined by OR.
    #[inline(always)]
    fn pack(
        &self,
        partition: u64,
        into: &[AtomicU64],
        width: u32,
        values: &dyn CellValues,
        of: impl Fn(u64) -> u64,
    ) -> u64 {
        let (mut words, mut packer, mut any) = (into.iter(), packed::Packer::default(), 0);
        let mut put =
            |word| words.next().into_iter().for_each(|to| to.store(word, Ordering::Relaxed));
        let mut held = [0; CHUNK];
        for cells in chunks(self.cut.range(partition)) {
            let held = &mut held[..(cells.end - cells.start) as usize];
            values.fill(cells.start, held);
            for value in &mut *held {
                any |= *value;
                *value = of(*value);
            }
            packer.push_all(held, width, &mut put);
        }
        let (last, used) = packer.rest();
        if used > 0 {
            put(last);
        }
        any
    }

    /// Lays the overflow counters of a partition, of which the widest needs y bits.
    #[inline(always)]
    fn lay_overflow(&self, partition: u64, y: u32, values: &dyn CellValues) -> Result<()> {
        let x = self.shape.width;
        let mut made = Overflow::zeroed(self.size(partition), y)?;
        self.pack(partition, &made.fields, y, values, |value| value >> x);
        self.recount(partition, &mut made);
        self.put(partition, made);
        Ok(())
    }
}
