//! Counters of given values, laid out at once: what a file or a merge needs.
//!
//! Base counters are packed chunk by chunk. Chunks that have a counter beyond them are remembered, and looked
//! at again when it is known how wide the overflow counters of the partition must be.

use super::overflow::{GRAIN, Overflow};
use super::{DynamicCells, DynamicShape, bits_of};
use crate::batch::at_best;
use crate::cells::growing::{CellValues, Cut, Pauses, each_chunk};
use crate::cells::packed;
use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl DynamicCells {
    /// Counters of given values, each partition as wide as it must be.
    pub fn from_values(
        cut: Cut,
        shape: DynamicShape,
        pauses: Arc<Pauses>,
        values: impl CellValues,
    ) -> Result<Self> {
        let this = Self::new(cut, shape, pauses)?;
        let mut beyond = Vec::new();
        for partition in 0..cut.partitions() {
            beyond.clear();
            at_best(|| this.lay_base(partition, &values, &mut beyond));
            if !beyond.is_empty() {
                this.lay_overflow(partition, &values, &beyond)?;
            }
        }
        Ok(this)
    }

    /// Lays the base counters of a partition; `beyond` gets the chunks that have more than they hold.
    #[inline(always)]
    fn lay_base(&self, partition: u64, values: &impl CellValues, beyond: &mut Vec<Range<u64>>) {
        let (x, max) = (self.shape.width, self.base_max());
        // A partition begins with a word of its own.
        let base = &self.base.atomics()[(self.bit(partition, 0) >> 6) as usize..];
        let (mut words, mut packer) = (base.iter(), packed::Packer::default());
        let mut put =
            |word| words.next().into_iter().for_each(|to| to.store(word, Ordering::Relaxed));
        each_chunk(self.cut.range(partition), values, |first, held| {
            if held.iter().fold(0, |any, value| any | value) > max {
                beyond.push(first..first + held.len() as u64);
                held.iter_mut().for_each(|value| *value &= max);
            }
            packer.push_all(held, x, &mut put);
        });
        let (last, used) = packer.rest();
        if used > 0 {
            put(last);
        }
    }

    /// Lays the overflow counters of a partition, which the cells `beyond` need.
    fn lay_overflow(
        &self,
        partition: u64,
        values: &impl CellValues,
        beyond: &[Range<u64>],
    ) -> Result<()> {
        let range = self.cut.range(partition);
        let each_high = |take: &mut dyn FnMut(u64, u64)| {
            for cells in beyond {
                each_chunk(cells.clone(), values, |first, held| {
                    for (cell, value) in (first..).zip(held) {
                        let high = *value >> self.shape.width;
                        if high != 0 {
                            take(cell - range.start, high);
                        }
                    }
                });
            }
        };
        let cells = (range.end - range.start) as usize;
        let mut made = if self.shape.adaptive {
            let mut widths = vec![0; cells.div_ceil(GRAIN)];
            each_high(&mut |slot, high| {
                let own = &mut widths[slot as usize / GRAIN];
                *own = bits_of(high).max(*own);
            });
            Overflow::in_parts(cells, &widths)?
        } else {
            let mut any = 0;
            each_high(&mut |_, high| any |= high);
            Overflow::flat(cells, bits_of(any))?
        };
        each_high(&mut |slot, high| made.set(slot, high));
        self.recount(partition, &mut made);
        self.put(partition, made);
        Ok(())
    }
}
