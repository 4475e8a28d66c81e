//! A segment that still takes events: its counts are exact, and it becomes `Contents` when it is sealed.

use super::names::Names;
use super::table::{Table, too_large};
use super::{Item, MAX_ROWS, Mark, Named};
use crate::error::Result;
use crate::key::Key;

/// What a row has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The earliest event.
    pub first: i64,
    /// The latest.
    pub last: i64,
    /// All counts together; zero means that the times mean nothing.
    pub events: u64,
}

impl Seen {
    /// Nothing.
    pub const NOTHING: Seen = Seen { first: i64::MAX, last: i64::MIN, events: 0 };

    /// Both together.
    pub fn with(self, other: Seen) -> Seen {
        Seen {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            events: self.events.saturating_add(other.events),
        }
    }
}

/// Exact counts by key and row.
#[derive(Clone, Debug)]
pub struct OpenRows {
    pub(super) table: Table,
    pub(super) names: Names,
    /// Up to the last row that saw something.
    rows: Vec<Seen>,
    /// All of them together.
    all: Seen,
}

impl OpenRows {
    /// Nothing yet; `names` keys will be listed by name.
    pub fn new(names: usize) -> Self {
        let (table, names) = (Table::default(), Names::new(names));
        OpenRows { table, names, rows: Vec::new(), all: Seen::NOTHING }
    }

    /// Adds to a key's count in a row. True if its key should be named.
    #[inline(always)]
    pub(super) fn add(&mut self, mark: Mark, row: u32, count: u64) -> Result<bool> {
        let total = self.table.add(mark, row, count)?;
        if !self.names.wants(total) {
            return Ok(false);
        }
        self.names.list(mark, &mut self.table);
        Ok(true)
    }

    /// Notes what a row has seen; together with `add` of the same events, or that of the table.
    pub(super) fn see(&mut self, row: u32, seen: Seen) -> Result<()> {
        let at = row as usize;
        // Of a batch that found no memory nothing may be inside.
        if seen.events == 0 {
            return Ok(());
        }
        if at >= self.rows.len() {
            if at >= MAX_ROWS || self.rows.try_reserve(at + 1 - self.rows.len()).is_err() {
                return Err(too_large(at));
            }
            self.rows.resize(at + 1, Seen::NOTHING);
        }
        self.rows[at] = self.rows[at].with(seen);
        self.all = self.all.with(seen);
        Ok(())
    }

    /// The key of a mark. True if that is news.
    pub(super) fn name(&mut self, mark: Mark, key: Key<'_>) -> Result<bool> {
        self.names.name(mark, key, &mut self.table)
    }

    /// The same of the past, whose marks were not listed. Nothing happens if the mark is not inside.
    pub(super) fn restore_name(&mut self, mark: Mark, key: Key<'_>) -> Result<()> {
        if self.table.total(mark) == 0 || self.table.is_settled(mark) {
            return Ok(());
        }
        self.names.list(mark, &mut self.table);
        self.names.name(mark, key, &mut self.table).map(drop)
    }

    /// Forgets marks whose keys did not come.
    pub(super) fn drop_nameless(&mut self) {
        self.names.drop_nameless(&mut self.table);
    }

    // ---- asking

    /// What the rows have seen, up to the last that saw something.
    pub fn rows(&self) -> &[Seen] {
        &self.rows
    }

    /// What all rows have seen together.
    pub fn seen(&self) -> Seen {
        self.all
    }

    /// How many pairs of key and row there are.
    pub fn entries(&self) -> usize {
        self.table.entries()
    }

    /// The count of a key in the rows from `first` up to `end`, exact.
    pub fn count(&self, mark: Mark, first: u32, end: u32) -> u64 {
        let inside = self.table.rows_of(mark).filter(|(row, _)| (first..end).contains(row));
        inside.fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// The rows that a key has, the newest first, and its count in each.
    pub fn rows_of(&self, mark: Mark) -> impl Iterator<Item = (u32, u64)> {
        self.table.rows_of(mark)
    }

    /// Every count, by mark, then by row.
    pub fn items(&self) -> Result<Vec<Item>> {
        self.table.items()
    }

    /// The most frequent keys with their counts, and the largest count of all others.
    pub fn top(&self) -> (Vec<Named>, u64) {
        self.names.top(&self.table)
    }

    /// Bytes on the heap, about.
    pub fn bytes(&self) -> u64 {
        let rows = size_of::<Seen>() * self.rows.capacity();
        self.table.bytes() + self.names.bytes() + rows as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hasher;

    const HASHER: Hasher = Hasher::Xxh3 { seed: 2 };

    #[test]
    fn names_are_bounded_in_bytes_and_too_long_keys_have_none() {
        let mut open = OpenRows::new(2);
        for i in 1..50u64 {
            let length = if i % 7 == 0 { 5000 } else { 4000 };
            let key = vec![b'A' + i as u8; length];
            let mark = HASHER.bytes(&key).mark();
            if open.add(mark, 0, 1 << i).unwrap() {
                open.name(mark, Key::Bytes(&key)).unwrap();
            }
            assert!(open.names.bytes() <= 8 * 2048);
        }
        // The most frequent one, 49, is too long.
        assert_eq!(
            open.top().0.iter().map(|named| named.count).collect::<Vec<_>>(),
            [1 << 48, 1 << 47]
        );
        assert_eq!(open.top().1, 1 << 49);
    }

    #[test]
    fn a_mark_whose_key_did_not_come_is_asked_for_again() {
        let mut open = OpenRows::new(2);
        assert!(open.add(77, 0, 1).unwrap());
        assert!(!open.add(77, 0, 1).unwrap());
        open.drop_nameless();
        assert!(open.add(77, 1, 1).unwrap());
        assert_eq!(open.top(), (vec![], 3));
    }
}
