//! The optimized layout (paper, section 4): digits of four bits, and more of them only where needed.
//!
//! Paper    Every cell has one digit of four bits; a cell that overflows borrows further digits from a pool
//!          and is linked to them through a lookup table, behind a Bloom filter of the cells in use.
//!          Each link costs more than the digits it leads to (specification 6.3), so here there is
//!          one link for a block of 128 cells instead of one for each cell.
//! Here     A block is a record with its digits and the entries of the cells that have more. Where these do not
//!          fit, the block is kept as plain values of 2 or 4 bytes (`block.rs`). A record has 128 bytes, half of
//!          what the basic layout takes for 16 bits; where one occurrence is more than a digit it has 192
//!          (of 512), and the entries of a filter that is as full as it was planned fit in. A full block
//!          takes 280 bytes where the basic layout takes 264, 536 against 520. Links, maps and what the
//!          allocator keeps are among them.
//!
//! # Invariants
//! O1  A bit of a sparse block's map is set if and only if the cell's value is 16 or more.
//! O2  A block has a table if and only if it is wide, and nothing but its link leads to it.
//!
//! Readers cannot look while entries move: who reads holds the gate, as writers do (`TEARS`).

mod block;
mod table;
#[cfg(target_arch = "x86_64")]
mod vectors;
mod whole;

use super::{BlockValues, DECAY_BLOCK, DecayingCells, Fading};
use crate::batch::{at_best, prefetch};
use crate::cells::{Words, bytes_for};
use crate::error::{Error, Result};
use block::Block;
use table::Pool;

const BLOCK: usize = DECAY_BLOCK as usize;

/// Words that records of 128 bytes have for entries.
pub const ROOM_128B: usize = 5;
/// The same for records of 192 bytes.
pub const ROOM_192B: usize = 13;

/// Cells that have as many digits as they need, in records with so many words for entries.
#[derive(Debug)]
pub struct OptimizedCells<const ROOM: usize> {
    /// Records; all zeroes are an empty one.
    records: Words,
    cells: u64,
    pool: Pool,
}

impl<const ROOM: usize> OptimizedCells<ROOM> {
    const RECORD: u64 = size_of::<Block<ROOM>>() as u64;

    /// Cells of a block that may have more than a digit before it has a table.
    pub const ENTRIES: u64 = Block::<ROOM>::ENTRIES as u64;

    /// Memory of the table of a block whose widest cell has so many bits, in bytes.
    pub fn table_bytes(bits: u32) -> u64 {
        let form = if bits <= u16::BITS { block::WIDE16 } else { block::WIDE32 };
        table::bytes_of(Block::<ROOM>::table_bytes(form))
    }

    /// Memory that empty cells take, in bytes.
    pub fn bytes_of(cells: u64) -> u64 {
        bytes_for(cells.div_ceil(DECAY_BLOCK).saturating_mul(8 * Self::RECORD))
    }

    fn blocks(&self) -> u64 {
        self.cells.div_ceil(DECAY_BLOCK)
    }

    #[allow(clippy::mut_from_ref, reason = "guarded by the gate")]
    #[inline(always)]
    fn block(&self, block: u64) -> &mut Block<ROOM> {
        debug_assert!(block < self.blocks());
        // SAFETY: there is a record for each block, and callers divide a cell that exists. The words are
        // aligned to a line. The caller holds the gate (`TEARS`), so no other reference is alive.
        unsafe { &mut *self.records.base().cast::<Block<ROOM>>().add(block as usize) }
    }
}

impl<const ROOM: usize> DecayingCells for OptimizedCells<ROOM> {
    const TEARS: bool = true;

    fn zeroed(cells: u64, _: u32) -> Result<Self> {
        let blocks = cells.div_ceil(DECAY_BLOCK);
        let records = Words::zeroed(blocks.saturating_mul(8 * Self::RECORD))?;
        Ok(OptimizedCells { records, cells, pool: Pool::default() })
    }

    #[inline(always)]
    fn prefetch(&self, cell: u64) {
        let word = (cell / DECAY_BLOCK * Self::RECORD / 8) as usize;
        (0..Self::RECORD as usize / 64).for_each(|line| self.records.prefetch(word + 8 * line));
    }

    #[inline(always)]
    fn prefetch_table(&self, cell: u64) {
        prefetch(self.block(cell / DECAY_BLOCK).link.table());
    }

    #[inline(always)]
    fn get(&self, cell: u64) -> u32 {
        self.block(cell / DECAY_BLOCK).get((cell % DECAY_BLOCK) as usize)
    }

    fn values(&self, block: u64) -> BlockValues {
        self.block(block).values()
    }

    fn hold(&self, block: u64, values: &BlockValues) {
        self.block(block).lay_out(values, &self.pool);
    }

    #[inline(always)]
    fn set(&self, cell: u64, value: u32) {
        self.block(cell / DECAY_BLOCK).set((cell % DECAY_BLOCK) as usize, value, &self.pool);
    }

    #[inline(always)]
    fn raise(&self, cells: &[u64], weight: u64, max: u32, together: bool) -> (bool, u64) {
        if together {
            return self.block(cells[0] / DECAY_BLOCK).raise_all(cells, weight, max, &self.pool);
        }
        let (mut new, mut full) = (false, 0);
        for (i, cell) in cells.iter().enumerate() {
            let block = self.block(*cell / DECAY_BLOCK);
            let (zero, stopped) =
                block.raise((*cell % DECAY_BLOCK) as usize, weight, max, &self.pool);
            new |= zero;
            full |= u64::from(stopped) << i;
        }
        (new, full)
    }

    fn fade(&self, block: u64, fading: &Fading) {
        let block = self.block(block);
        if block.is_zero() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if vectors::available() {
            // SAFETY: the processor has the instructions.
            return unsafe { vectors::fade(block, fading, &self.pool) };
        }
        at_best(|| block.fade(fading, &self.pool));
    }

    /// Record by record: whoever keeps writers out for a copy does so for milliseconds.
    fn take_over(&self, others: &Self, _: u64) {
        for block in 0..self.blocks() {
            self.block(block).take_over(others.block(block), &self.pool);
        }
    }

    fn clear(&self, block: u64) {
        self.block(block).clear(&self.pool);
    }

    fn bytes(&self) -> u64 {
        self.records.bytes() + self.pool.bytes()
    }

    fn validate(&self) -> Result<()> {
        let broken = |what: &str| Err(Error::Invariant { invariant: what.to_owned() });
        let mut held = 0;
        for block in 0..self.blocks() {
            let block = self.block(block);
            if !block.is_sound() {
                return broken("the map of a block does not fit its values");
            }
            held += table::bytes_of(Block::<ROOM>::table_bytes(block.link.form()));
        }
        if held != self.pool.bytes() {
            return broken("the tables are of another size than was counted");
        }
        let mut beyond = self.cells..self.blocks() * DECAY_BLOCK;
        if beyond.any(|cell| self.get(cell) != 0) {
            return broken("a cell beyond the last one is set");
        }
        Ok(())
    }
}

impl<const ROOM: usize> Drop for OptimizedCells<ROOM> {
    fn drop(&mut self) {
        (0..self.blocks()).for_each(|block| self.clear(block));
    }
}
