//! The matrix of counters: one column for each position, one cell of it for each row.
//!
//! The cells of a column lie together (specification 10.9a), so that a key costs k cache misses however many
//! rows are asked. Most cells are empty and most others hold one, so a column is
//!
//! ```text
//! map     1 bit: whether the column has codes; then for each row with events whether its cell is not zero
//! codes   only if it has: the count of each of its cells that is not zero (`codes.rs`)
//! ```
//!
//! All maps come first, so a column's map needs no index; a row whose bit is off in one of the key's columns
//! needs no more. Codes are found by a *group* of columns of about 512 cells: the index says where the codes
//! of its first column begin, and the maps how many are to be passed.

use super::bits::{BitWriter, low, set, window_of};
use super::codes::{self, Costs};
use super::filled::Filled;
use super::mark::{Part, Spread};
use super::{CellPolicy, Item, MAX_EVENTS};
use crate::error::{Error, Result};

/// Cells between two entries of the index, about.
const GROUP_CELLS: u64 = 512;
/// Bytes of an index entry: codes of up to 128 GiB.
pub(super) const ENTRY: u64 = 5;

/// How large a matrix is. It says where everything lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Those that have cells.
    pub(super) rows: u32,
    pub(super) columns: u64,
}

impl Shape {
    /// Bits of a column's map.
    pub(super) fn stride(&self) -> u64 {
        u64::from(self.rows) + 1
    }

    /// Bits of all maps; None for a number no memory has.
    pub(super) fn map_bits(&self) -> Option<u64> {
        self.columns.checked_mul(self.stride()).filter(|bits| *bits <= 1 << 46)
    }

    /// Columns in a group, a power of two.
    pub(super) fn group(&self) -> u64 {
        (GROUP_CELLS / u64::from(self.rows.max(1))).max(1).next_power_of_two()
    }

    pub(super) fn groups(&self) -> u64 {
        self.columns.div_ceil(self.group())
    }

    /// Bits of a matrix without its codes, for each column.
    pub(super) fn column_bits(rows: u32) -> f64 {
        let shape = Shape { rows, columns: 1 };
        shape.stride() as f64 + (8 * ENTRY) as f64 / shape.group() as f64
    }
}

/// A matrix while it is made.
#[derive(Debug)]
pub(super) struct Cells {
    shape: Shape,
    filled: Filled,
    maps: Vec<u64>,
    /// The counts of the columns with codes, in the order of their cells.
    values: Vec<u64>,
}

impl Cells {
    /// A matrix whose columns are pushed one after the other.
    pub(super) fn new(filled: Filled, columns: u64) -> Result<Self> {
        let shape = Shape { rows: filled.len() as u32, columns };
        let bits = shape.map_bits().unwrap_or(u64::MAX);
        let words = usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX);
        let mut maps = Vec::new();
        let refused = |_| Error::Capacity { needed: bits / 8, limit: isize::MAX as u64 };
        maps.try_reserve_exact(words).map_err(refused)?;
        maps.resize(words, 0);
        Ok(Cells { shape, filled, maps, values: Vec::new() })
    }

    /// The matrix of sorted items, `hashes` columns for each mark.
    pub(super) fn of(
        filled: Filled,
        columns: u64,
        items: &[Item],
        hashes: u32,
        policy: CellPolicy,
    ) -> Result<Self> {
        let places = filled.places();
        let mut this = Cells::new(filled, columns)?;
        let stride = this.shape.stride();
        let mut at = Vec::with_capacity(hashes as usize);
        for one in items.chunk_by(|a, b| a.mark == b.mark) {
            columns_of(one[0].mark, hashes, columns, &mut at);
            for base in at.iter().map(|column| column * stride) {
                for item in one {
                    let bit = base + 1 + u64::from(places[item.row as usize]);
                    // A cell that holds two counts has codes, where counts are summed.
                    let twice = policy == CellPolicy::Plain && this.bit(bit);
                    if item.count > 1 || twice {
                        set(&mut this.maps, base);
                    }
                    set(&mut this.maps, bit);
                }
            }
        }
        this.fill_values(items, &places, hashes, policy)?;
        Ok(this)
    }

    #[inline(always)]
    fn bit(&self, bit: u64) -> bool {
        self.maps[(bit >> 6) as usize] >> (bit & 63) & 1 == 1
    }

    /// How many of the first `rows` cells of a column are not zero.
    #[inline(always)]
    fn used(&self, column: u64, rows: u64) -> u64 {
        let first = column * self.shape.stride() + 1;
        let mut total = 0;
        for start in (0..rows).step_by(64) {
            total += (window_of(&self.maps, first + start) & low(rows - start)).count_ones();
        }
        u64::from(total)
    }

    /// Second pass: the maps are known, so each cell has its place among the values.
    fn fill_values(
        &mut self,
        items: &[Item],
        places: &[u32],
        hashes: u32,
        policy: CellPolicy,
    ) -> Result<()> {
        let (stride, rows) = (self.shape.stride(), u64::from(self.shape.rows));
        let needed = self.shape.columns.saturating_mul(8);
        let refused = |_| Error::Capacity { needed, limit: isize::MAX as u64 };
        // Where the values of each column begin.
        let mut starts: Vec<u64> = Vec::new();
        starts.try_reserve_exact(self.shape.columns as usize).map_err(refused)?;
        let mut total = 0;
        for column in 0..self.shape.columns {
            starts.push(total);
            if self.bit(column * stride) {
                total += self.used(column, rows);
            }
        }
        self.values.try_reserve_exact(total as usize).map_err(refused)?;
        // A cell of the largest count has one at least; sums begin at nothing.
        self.values.resize(total as usize, u64::from(policy == CellPolicy::Largest));
        let mut at = Vec::with_capacity(hashes as usize);
        for one in items.chunk_by(|a, b| a.mark == b.mark) {
            if policy == CellPolicy::Largest && one.iter().all(|item| item.count == 1) {
                continue;
            }
            columns_of(one[0].mark, hashes, self.shape.columns, &mut at);
            for column in at.iter().copied() {
                let coded = self.bit(column * stride);
                for item in one.iter().filter(|_| coded) {
                    let before = self.used(column, places[item.row as usize].into());
                    let value = &mut self.values[(starts[column as usize] + before) as usize];
                    *value = match policy {
                        CellPolicy::Largest => item.count.max(*value),
                        CellPolicy::Plain => *value + item.count,
                    };
                }
            }
        }
        Ok(())
    }

    /// Writes the next column, whose place is `column`: the cells of all rows, of which empty ones are zero.
    pub(super) fn push(&mut self, column: u64, cells: &[u64]) -> Result<()> {
        let first = column * self.shape.stride();
        if let Some(cell) = cells.iter().find(|cell| **cell > MAX_EVENTS) {
            return Err(Error::Field { name: "cells", got: cell.to_string() });
        }
        let coded = cells.iter().any(|cell| *cell > 1);
        if coded {
            set(&mut self.maps, first);
            let refused = |_| Error::Capacity { needed: u64::MAX, limit: isize::MAX as u64 };
            self.values.try_reserve(cells.len()).map_err(refused)?;
        }
        for place in 0..self.filled.len() {
            let cell = cells.get(self.filled.number(place)).copied().unwrap_or(0);
            if cell > 0 {
                set(&mut self.maps, first + 1 + place as u64);
                if coded {
                    self.values.push(cell);
                }
            }
        }
        Ok(())
    }

    /// Cells that are not zero in each row that has any.
    pub(super) fn used_by_row(&self) -> Vec<u64> {
        let mut used = vec![0; self.shape.rows as usize];
        for column in 0..self.shape.columns {
            let first = column * self.shape.stride() + 1;
            for start in (0..u64::from(self.shape.rows)).step_by(64) {
                let mask = low(u64::from(self.shape.rows) - start);
                let mut word = window_of(&self.maps, first + start) & mask;
                while word != 0 {
                    used[start as usize + word.trailing_zeros() as usize] += 1;
                    word &= word - 1;
                }
            }
        }
        used
    }

    /// The matrix as it is written.
    pub(super) fn encode(&self) -> Result<Encoded<'_>> {
        let mut costs = Costs::default();
        self.values.iter().for_each(|value| costs.add(*value));
        let (order, bits) = costs.best();
        if bits >= 1 << (8 * ENTRY) {
            return Err(Error::Capacity { needed: bits / 8, limit: 1 << (8 * ENTRY - 3) });
        }
        let mut codes = BitWriter::default();
        let mut index = Vec::with_capacity((self.shape.groups() * ENTRY) as usize);
        let mut values = self.values.iter();
        for column in 0..self.shape.columns {
            if column.is_multiple_of(self.shape.group()) {
                index.extend_from_slice(&codes.len().to_le_bytes()[..ENTRY as usize]);
            }
            if self.bit(column * self.shape.stride()) {
                let used = self.used(column, self.shape.rows.into());
                let own = values.by_ref().take(used as usize);
                own.for_each(|value| codes::put(*value, order, &mut codes));
            }
        }
        Ok(Encoded { order, maps: &self.maps, index, codes })
    }
}

/// The parts of a matrix in a file.
#[derive(Debug)]
pub(super) struct Encoded<'a> {
    pub(super) order: u32,
    pub(super) maps: &'a [u64],
    pub(super) index: Vec<u8>,
    pub(super) codes: BitWriter,
}

/// The different columns of a mark.
#[inline]
pub(super) fn columns_of(mark: u64, hashes: u32, columns: u64, out: &mut Vec<u64>) {
    let spread = Spread::of(mark, Part::Matrix);
    out.clear();
    for i in 0..hashes {
        let column = spread.position(i, columns);
        // Twice in one column would raise its cells twice.
        if !out.contains(&column) {
            out.push(column);
        }
    }
}
