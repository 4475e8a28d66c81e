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

use super::bits::{self, BitWriter, low, set, window};
use super::codes::{self, Costs};
use super::filled::Filled;
use super::mark::{Part, Spread};
use super::{Item, Mark, Sizes};
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
    pub(super) maps: Vec<u8>,
    /// The counts of the columns with codes, in the order of their cells.
    values: Vec<u64>,
}

impl Cells {
    /// The matrix of sorted items: a cell holds the largest count of the keys that share it.
    pub(super) fn of(filled: &Filled, sizes: &Sizes, items: &[Item]) -> Result<Self> {
        let shape = Shape { rows: filled.len() as u32, columns: sizes.columns };
        let maps = bits::zeroed(shape.map_bits().unwrap_or(u64::MAX))?;
        let mut this = Cells { shape, maps, values: Vec::new() };
        let stride = shape.stride();
        for one in items.chunk_by(|a, b| a.mark == b.mark) {
            for base in columns_of(one[0].mark, sizes).map(|column| column * stride) {
                for item in one {
                    if item.count > 1 {
                        set(&mut this.maps, base);
                    }
                    set(&mut this.maps, base + 1 + filled.before(item.row as usize) as u64);
                }
            }
        }
        this.fill_values(items, filled, sizes)?;
        Ok(this)
    }

    #[inline(always)]
    fn bit(&self, bit: u64) -> bool {
        self.maps[(bit >> 3) as usize] >> (bit & 7) & 1 == 1
    }

    /// How many of the first `rows` cells of a column are not zero.
    #[inline(always)]
    fn used(&self, column: u64, rows: u64) -> u64 {
        let first = column * self.shape.stride() + 1;
        let mut total = 0;
        for start in (0..rows).step_by(64) {
            total += (window(&self.maps, first + start) & low(rows - start)).count_ones();
        }
        u64::from(total)
    }

    /// Second pass: the maps are known, so each cell has its place among the values.
    fn fill_values(&mut self, items: &[Item], filled: &Filled, sizes: &Sizes) -> Result<()> {
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
        // A cell that is not zero has one at least.
        self.values.resize(total as usize, 1);
        for one in items.chunk_by(|a, b| a.mark == b.mark) {
            if one.iter().all(|item| item.count == 1) {
                continue;
            }
            for column in columns_of(one[0].mark, sizes) {
                let coded = self.bit(column * stride);
                for item in one.iter().filter(|_| coded) {
                    let before = self.used(column, filled.before(item.row as usize) as u64);
                    let value = &mut self.values[(starts[column as usize] + before) as usize];
                    *value = item.count.max(*value);
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
                let mut word = window(&self.maps, first + start) & mask;
                while word != 0 {
                    used[start as usize + word.trailing_zeros() as usize] += 1;
                    word &= word - 1;
                }
            }
        }
        used
    }

    /// The matrix as it is written.
    pub(super) fn encode(&self) -> Result<Encoded> {
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
        Ok(Encoded { order, index, codes })
    }
}

/// The parts of a matrix in a file, besides its maps.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) order: u32,
    pub(super) index: Vec<u8>,
    pub(super) codes: BitWriter,
}

/// The columns of a mark.
fn columns_of(mark: Mark, sizes: &Sizes) -> impl Iterator<Item = u64> {
    Spread::of(mark, Part::Matrix).positions(sizes.hashes, sizes.columns)
}
