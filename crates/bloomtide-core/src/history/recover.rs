//! A buffer's journal: what is to be written, and the buffer made again from what was.

use super::Item;
use super::buffer::{Buffer, RowsBy};
use super::journal::{Journal, Record, State};
use super::open::{OpenRows, Seen};
use crate::error::{Error, Result, require_same};
use crate::hash::Hasher;

/// Pairs that `dump` writes into one record.
const PIECE: usize = 1 << 12;

/// What a hash makes of a fixed key.
pub(super) fn fingerprint(hasher: &Hasher) -> u64 {
    hasher.bytes(b"bloomtide history").h2
}

impl Buffer {
    pub(super) fn state(&self) -> State {
        State {
            rows_by: self.plan.rows_by,
            rows: self.plan.rows,
            fingerprint: fingerprint(&self.plan.hasher),
            next_row: self.next_row,
            newest: self.newest(),
        }
    }

    /// The payloads of the records of everything since the last time.
    pub fn take_journal(&mut self) -> Vec<Vec<u8>> {
        self.journal.as_mut().map_or_else(Vec::new, Journal::take)
    }

    fn has_untaken(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| !journal.is_empty())
    }

    /// The same of a new journal that starts with what is here, but for some segments. What was added
    /// before must have been taken.
    pub fn dump(&self, without: &[i64]) -> Result<Vec<Vec<u8>>> {
        if self.has_untaken() {
            let invariant = "a journal begins when the one before it has everything";
            return Err(Error::Invariant { invariant: invariant.to_owned() });
        }
        let mut state = self.state();
        // As if the segments had been dropped.
        if without.contains(&self.place(self.next_row).0) {
            state.next_row = (self.place(self.next_row).0 + 1) * i64::from(self.plan.rows);
        }
        let mut journal = Journal::default();
        journal.state(&state);
        for (index, open) in self.open.iter().filter(|(index, _)| !without.contains(index)) {
            let first = index * i64::from(self.plan.rows);
            write(&mut journal, first, open)?;
            open.names.keys().for_each(|key| journal.name(*index, key.clone()));
        }
        Ok(journal.take())
    }

    /// Adds what a record has, in a buffer that has taken no events of its own since its records were taken;
    /// how many events that are. What was not taken before is forgotten.
    pub fn replay(&mut self, payload: &[u8]) -> Result<u64> {
        if !self.open.is_empty() && self.has_untaken() {
            let invariant = "a journal is read before the first event, or after the rest was taken";
            return Err(Error::Invariant { invariant: invariant.to_owned() });
        }
        self.journal = self.journal.take().map(|_| Journal::default());
        self.apply(Record::parse(payload)?)
    }

    /// The number of events in the record.
    fn apply(&mut self, record: Record<'_>) -> Result<u64> {
        match record {
            Record::State(state) => self.resume(&state).map(|()| 0),
            // What an add begins that finds no memory has no pairs.
            Record::Events { pairs, .. } if pairs.is_empty() => Ok(0),
            Record::Events { row, seen, pairs } => {
                self.require_row(row, &seen)?;
                self.require_room("events", Some(seen.events))?;
                let (segment, within) = self.place(row);
                let names = self.plan.names;
                let open = self.open.entry(segment).or_insert_with(|| OpenRows::new(names));
                let before = open.entries();
                for (mark, count) in &pairs {
                    open.table.add(*mark, within, *count)?;
                }
                self.entries += open.entries() - before;
                self.events += seen.events;
                open.see(within, seen)?;
                self.time.note(seen.last as f64);
                self.next_row = self.next_row.max(row);
                Ok(seen.events)
            }
            Record::Names { segment, keys } => {
                let Some(open) = self.open.get_mut(&segment) else { return Ok(0) };
                for key in keys {
                    open.restore_name(key.hash(&self.plan.hasher).mark(), key)?;
                }
                Ok(0)
            }
        }
    }

    fn resume(&mut self, other: &State) -> Result<()> {
        let own = self.state();
        require_same("rows by", other.rows_by, own.rows_by)?;
        require_same("rows", other.rows, own.rows)?;
        if own.fingerprint != other.fingerprint {
            return Err(Error::incompatible("hash", "one seed or secret", "another"));
        }
        if other.next_row < 0 || other.next_row > i64::MAX / 2 {
            return Err(Error::Field { name: "next row", got: other.next_row.to_string() });
        }
        self.next_row = self.next_row.max(other.next_row);
        other.newest.into_iter().for_each(|newest| self.time.advance(newest as f64, false));
        Ok(())
    }

    /// Refuses a row that its events do not belong to.
    fn require_row(&self, row: i64, seen: &Seen) -> Result<()> {
        let sound = match self.plan.rows_by {
            RowsBy::Time(window) => {
                seen.first.div_euclid(window) == row && seen.last.div_euclid(window) == row
            }
            RowsBy::Arrivals(_) => (0..i64::MAX / 2).contains(&row),
        };
        let near = |at: i64| (-super::buffer::FARTHEST..super::buffer::FARTHEST).contains(&at);
        if sound && near(seen.first) && near(seen.last) {
            return Ok(());
        }
        Err(Error::Field { name: "row", got: row.to_string() })
    }
}

/// The counts of a segment whose first row has that number, row by row.
fn write(journal: &mut Journal, first: i64, open: &OpenRows) -> Result<()> {
    let mut items = open.items()?;
    items.sort_by_key(|item: &Item| item.row);
    for row in items.chunk_by(|a, b| a.row == b.row) {
        let seen = open.rows()[row[0].row as usize];
        for piece in row.chunks(PIECE) {
            journal.events(first + i64::from(row[0].row), seen, piece.len());
            piece.iter().for_each(|item| journal.push(item.mark, item.count));
        }
    }
    Ok(())
}
