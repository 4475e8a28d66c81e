//! A history: how often was this key seen between two moments?
//!
//! Paper    The multi-Bloom filter; specification section 8, 10.9 and 10.11.
//! Idea     Time is cut into windows. A *row* is what one window saw. A *segment* (the paper's MBF) is a run
//!          of rows: a Bloom filter of all its keys, the *gate*, in front of a matrix of counters that has one
//!          column for each position and one cell of it for each row.
//!
//! ```text
//!            row 0  row 1  row 2 ...          a key is known by its mark, 64 bits; the gate and the
//! column 0     0      3      0                matrix see two mixes of it that know nothing of each other
//! column 1     1      0      1
//! column 2     0      3      0                answer for rows 1..3 of a key with columns 0 and 2: 3 + 0
//! ```
//!
//! Everything is known when a segment is made: it is built once from its `Contents`, sized for what is there,
//! and never changes again (`build.rs`). Reading it needs no more than its bytes (`segment.rs`).
//!
//! Times are microseconds since 1970 (UTC). Ranges of time are half open.
//!
//! # Errors in answers
//! Never less than the true count. More than it, in any range of a segment's rows, with at most the chance
//! that the segment was sized for.

mod bits;
mod body;
mod buffer;
mod build;
mod codes;
mod columns;
mod filled;
mod forest;
mod header;
mod items;
mod journal;
mod mark;
mod names;
mod open;
mod plan;
mod range;
mod recover;
mod rollup;
mod segment;
mod table;
#[cfg(test)]
mod tests;
pub mod varint;
mod walk;

pub use buffer::{Buffer, BufferPlan, Moments, RowsBy, Wanted, microseconds};
pub use build::{build, in_threads};
pub use forest::{Files, Forest, Known};
pub use header::Header;
pub use items::{Items, encode_items};
pub use journal::Record;
pub use mark::{Mark, mark_rows};
pub use open::{OpenRows, Seen};
pub use range::{RangeCounts, RangePlan};
pub use rollup::{RowOf, roll_up};
pub use segment::Segment;
pub use walk::{DecayedSum, OpenCount};

use crate::error::{Error, Result};
use crate::hash::Hasher;
use crate::key::OwnedKey;

/// How often one key was seen in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which key.
    pub mark: Mark,
    /// Its place among the segment's rows.
    pub row: u32,
    /// More than zero.
    pub count: u64,
}

/// What is known of a row besides its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRecord {
    /// Where the row's window begins.
    pub begin: i64,
    /// Where it ends; not part of it.
    pub end: i64,
    /// Its events.
    pub seen: Seen,
    /// How many windows it is made of; the paper's r.
    pub windows: u32,
}

impl RowRecord {
    /// A window that saw nothing.
    pub fn empty(begin: i64, end: i64) -> Self {
        RowRecord { begin, end, seen: Seen::NOTHING, windows: 1 }
    }

    /// Whether the times are in order.
    fn is_sound(&self) -> bool {
        let Seen { first, last, events } = self.seen;
        let within = self.begin <= first && first <= last && last < self.end;
        self.windows > 0
            && self.begin <= self.end
            && events <= MAX_EVENTS
            && (self.seen == Seen::NOTHING || within && events > 0)
    }
}

/// A key by its name, with its count in the whole segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The key as it was first spelled.
    pub key: OwnedKey,
    /// Exact.
    pub count: u64,
}

/// Everything a segment is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Its level in the ladder of windows; 0 is the finest.
    pub level: u8,
    /// Where its time begins.
    pub begin: i64,
    /// Where it ends; not part of it.
    pub end: i64,
    /// Its rows, in the order of time.
    pub rows: Vec<RowRecord>,
    /// Its counts, by mark, then by row; one for each pair.
    pub items: Vec<Item>,
    /// Its most frequent keys, the most frequent first.
    pub names: Vec<Named>,
    /// The most that a key has that is not among the names.
    pub unlisted: u64,
}

/// More rows than this are refused.
pub const MAX_ROWS: usize = 1 << 16;
/// More events than this in a row are refused, so that no cell of it can hold more.
pub const MAX_EVENTS: u64 = 1 << 62;

impl Contents {
    /// Refuses what is out of order; what a segment answers depends on it.
    pub fn check(&self) -> Result<()> {
        let broken = |what: &str| Err(Error::Invariant { invariant: what.to_owned() });
        if self.rows.is_empty() || self.rows.len() > MAX_ROWS {
            return broken("a segment has between 1 and 65536 rows");
        }
        if self.begin > self.end || !self.rows.iter().all(RowRecord::is_sound) {
            return broken("the events of a row lie between its begin and its end");
        }
        if !self.items.is_sorted_by(|a, b| (a.mark, a.row) < (b.mark, b.row)) {
            return broken("items are sorted by mark and row, and no pair comes twice");
        }
        if !self.items.iter().all(|item| item.count > 0 && (item.row as usize) < self.rows.len()) {
            return broken("an item has a count and one of the segment's rows");
        }
        let mut left: Vec<u64> = self.rows.iter().map(|row| row.seen.events).collect();
        for item in &self.items {
            let left = &mut left[item.row as usize];
            match left.checked_sub(item.count) {
                Some(rest) => *left = rest,
                None => return broken("the counts of a row are at most its events"),
            }
        }
        if !self.names.is_sorted_by(|a, b| a.count >= b.count) {
            return broken("names are sorted by count, the most frequent first");
        }
        Ok(())
    }
}

/// Sizes of a segment's two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bits of a key in the gate; the paper's k1.
    pub gate_hashes: u32,
    /// Bits of the gate; the paper's m1.
    pub gate_bits: u64,
    /// Columns of a key; the paper's k2.
    pub hashes: u32,
    /// Columns of the matrix; the paper's m2.
    pub columns: u64,
}

/// What a segment is to achieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Chance that a key's count in some range of the segment's rows is not exact.
    pub error_rate: f64,
    /// Chance that the gate lets a key pass that the segment has not.
    pub gate_error: f64,
    /// What made the marks.
    pub hasher: Hasher,
}
