//! The count-min sketch: counts that are never too small, in a table of fixed size.
//!
//! Paper    Cormode & Muthukrishnan 2005.
//! Idea     A table of `depth` rows. A key has one cell in each row; an add raises them all, and the smallest is
//!          its count: other keys can only have raised it.
//! Prefer   A count filter of `bloomtide-core`: the same question with smaller errors in less memory, and keys can
//!          be removed. This one is here because the CMS commands promise a width and a depth.
//!
//! # Invariants
//! I1  Each row sums to `total`, as long as none of its cells is full. A full cell stays full.
//! I2  `used` is the number of cells that are not zero.
//!
//! # Errors in answers
//! Never below the true count, unless the cell is full, which the answer says. Above it by more than
//! 2 total / width with chance 2^-depth.

use super::table::{Rows, check_table, zeros};
use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::batch::prefetch;
use bloomtide_core::history::varint::Reader;
use bloomtide_core::{Error, KeyHash, Result, sizing};
use std::io::{self, Write};

/// A cell that counts no further: the true count may be larger.
pub const FULL: u32 = u32::MAX;

/// The sizes of a count-min sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountMinPlan {
    /// Cells of a row.
    pub width: u64,
    /// Rows.
    pub depth: u64,
}

impl CountMinPlan {
    /// Sizes for counts that are at most `error` times the total too large, but with chance `probability`; both are
    /// above 0 and below 1.
    pub fn for_goal(error: f64, probability: f64) -> Result<Self> {
        let mut depth = 1u32;
        while 0.5f64.powi(depth as i32) > probability {
            depth += 1;
        }
        CountMinPlan { width: (2.0 / error).ceil() as u64, depth: depth.into() }.checked()
    }

    /// The plan, if it can be built.
    pub fn checked(self) -> Result<Self> {
        check_table(self.width, self.depth).map(|()| self)
    }

    fn cells(&self) -> u64 {
        self.width.saturating_mul(self.depth)
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.cells().saturating_mul(4).saturating_add(self.depth.saturating_mul(8))
    }
}

/// A count-min sketch.
#[derive(Clone, Debug)]
pub struct CountMin {
    /// The sizes.
    pub plan: CountMinPlan,
    rows: Rows,
    cells: Box<[u32]>,
    /// The sum of all that was added.
    pub total: u64,
    /// Cells that are not zero.
    used: u64,
}

impl CountMin {
    /// An empty sketch.
    pub fn new(plan: CountMinPlan) -> Result<Self> {
        let plan = plan.checked()?;
        let cells = zeros(plan.cells())?;
        Ok(CountMin { plan, rows: Rows::new(plan.width, plan.depth), cells, total: 0, used: 0 })
    }

    /// Asks the processor for a key's cells.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        self.rows.cells(hash).for_each(|cell| prefetch(&raw const self.cells[cell]));
    }

    /// Adds `count` occurrences, and says the new count.
    #[inline(always)]
    pub fn add(&mut self, hash: KeyHash, count: u64) -> u32 {
        let more = u32::try_from(count).unwrap_or(FULL);
        let mut least = FULL;
        for cell in self.rows.cells(hash) {
            let cell = &mut self.cells[cell];
            self.used += u64::from(*cell == 0 && more > 0);
            *cell = cell.saturating_add(more);
            least = least.min(*cell);
        }
        self.total = self.total.saturating_add(count);
        least
    }

    /// The key's count: the smallest of its cells.
    #[inline(always)]
    pub fn count(&self, hash: KeyHash) -> u32 {
        self.rows.cells(hash).map(|cell| self.cells[cell]).min().unwrap_or(0)
    }

    /// The sketch of all these sketches together, each `weight` times. Refused where sizes differ from this one's,
    /// where a cell is full, or would be below zero or beyond what it can hold.
    pub fn merged(&self, sources: &[(&CountMin, i64)]) -> Result<Self> {
        for (source, _) in sources {
            if self.plan != source.plan {
                let [ours, theirs] = [self, source].map(|it| format!("{:?}", it.plan));
                return Err(Error::incompatible("width", ours, theirs));
            }
        }
        let mut merged = CountMin::new(self.plan)?;
        let sources: Vec<_> = sources.iter().filter(|(_, weight)| *weight != 0).collect();
        let totals =
            sources.iter().map(|(source, weight)| i128::from(source.total) * i128::from(*weight));
        merged.total = u64::try_from(totals.sum::<i128>()).map_err(|_| overflow())?;
        for (at, cell) in merged.cells.iter_mut().enumerate() {
            let mut sum = 0i128;
            for (source, weight) in &sources {
                // What a full cell would have counted to is not known.
                let value = Some(source.cells[at]).filter(|value| *value != FULL);
                sum += i128::from(value.ok_or_else(overflow)?) * i128::from(*weight);
            }
            *cell = u32::try_from(sum).ok().filter(|sum| *sum != FULL).ok_or_else(overflow)?;
        }
        merged.used = merged.count_used();
        Ok(merged)
    }

    fn count_used(&self) -> u64 {
        self.cells.iter().filter(|cell| **cell != 0).count() as u64
    }
}

impl Structure for CountMin {
    fn kind(&self) -> &'static str {
        "count_min"
    }

    fn bytes(&self) -> u64 {
        self.plan.bytes()
    }

    fn summary(&self) -> Summary {
        let fill = self.used as f64 / self.plan.cells() as f64;
        Summary {
            // A row alone is a filter of one hash.
            items: sizing::keys_from_fill(fill, self.plan.width as f64, 1.0),
            fill,
            error: fill.powf(self.plan.depth as f64),
        }
    }

    /// The sizes, the sum of all increments; then the cells, row after row.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        put(out, &[self.plan.width, self.plan.depth, self.total])?;
        self.cells.iter().try_for_each(|cell| out.write_all(&cell.to_le_bytes()))
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "count_min");
        let [width, depth, total] = take(&mut from)?;
        let plan = CountMinPlan { width, depth }.checked()?;
        let values = from.bytes(plan.cells() * 4)?.as_chunks().0;
        from.end()?;
        let mut this = CountMin::new(plan)?;
        this.total = total;
        for (cell, value) in this.cells.iter_mut().zip(values) {
            *cell = u32::from_le_bytes(*value);
        }
        this.used = this.count_used();
        for (number, row) in this.cells.chunks(width as usize).enumerate() {
            let sum: u64 = row.iter().map(|cell| u64::from(*cell)).sum();
            if sum > total || (sum < total && !row.contains(&FULL)) {
                let invariant = format!("row {number} sums to {sum}, total is {total}");
                return Err(Error::Invariant { invariant });
            }
        }
        Ok(this)
    }
}

#[cold]
fn overflow() -> Error {
    let hint = "use smaller weights";
    Error::parameter("weights", "a count out of range", "such that counts stay below 2**32", hint)
}
