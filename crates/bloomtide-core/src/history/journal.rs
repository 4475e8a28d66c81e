//! Everything that was added to a buffer, as the payloads of records that make it again after a crash.
//!
//! ```text
//! payload  kind u8, then
//! state    rows by time (1) or by arrivals (2) u8 | their span u64 | rows of a segment u32
//!          | the hash's fingerprint u64 | next row by arrivals i64 | newest event i64
//! events   row i64 | first i64 | last i64 | as often as there are: mark u64, count (LEB128)
//! names    segment i64 | as often as there are: kind u8, length (LEB128), key
//! ```
//!
//! All numbers are little-endian. Rows are counted from 1970 or from the first arrival, not within their
//! segment. How records lie in their file, and what of it is believed, is in `durable.rs`.

use super::Mark;
use super::buffer::RowsBy;
use super::open::Seen;
use super::varint::{self, Reader};
use crate::error::Result;
use crate::key::{Key, OwnedKey};

/// Where the times of a record of events stand: behind its kind and its row.
const TIMES: usize = 1 + 8;
/// A record of events is closed from here on.
const FULL: usize = 1 << 16;

const STATE: u8 = 1;
const EVENTS: u8 = 2;
const NAMES: u8 = 3;

/// What a buffer is, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// What ends a row.
    pub rows_by: RowsBy,
    /// Rows of a segment.
    pub rows: u32,
    /// What the hash makes of a fixed key: tells hashes and secrets apart and gives nothing away.
    pub fingerprint: u64,
    /// The row of the next arrival.
    pub next_row: i64,
    /// The latest event so far.
    pub newest: Option<i64>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// What the buffer is.
    State(State),
    /// Events of one row.
    Events {
        /// Which.
        row: i64,
        /// Their times, and all counts together.
        seen: Seen,
        /// Marks and counts.
        pairs: Vec<(Mark, u64)>,
    },
    /// Keys of one segment by name.
    Names {
        /// Which.
        segment: i64,
        /// The keys.
        keys: Vec<Key<'a>>,
    },
}

// ---- writing

/// Records in the making.
#[derive(Debug, Default)]
pub struct Journal {
    done: Vec<Vec<u8>>,
    /// The last record, if it takes more events: itself, its row, and their times.
    open: Option<(Vec<u8>, i64, Seen)>,
    /// Names wait for the events that brought them.
    names: Vec<(i64, OwnedKey)>,
}

impl Journal {
    /// Makes room for so many events of one row, and begins with them. `push` adds each.
    pub(super) fn events(&mut self, row: i64, seen: Seen, expected: usize) {
        match &mut self.open {
            Some((out, open, before)) if *open == row && out.len() < FULL => {
                *before = before.with(seen);
                out.reserve(expected * 10);
            }
            _ => {
                self.close();
                let mut out = Vec::with_capacity(TIMES + 16 + expected * 10);
                out.push(EVENTS);
                out.extend(row.to_le_bytes());
                // The times are known when the record is closed.
                out.extend([0; 16]);
                self.open = Some((out, row, seen));
            }
        }
    }

    /// One event of the row that was begun.
    #[inline(always)]
    pub(super) fn push(&mut self, mark: Mark, count: u64) {
        let Some((out, ..)) = &mut self.open else { return };
        out.extend_from_slice(&mark.to_le_bytes());
        if count < 0x80 {
            out.push(count as u8);
        } else {
            varint::put(count, out);
        }
    }

    /// A name, to be written behind the events that are.
    pub(super) fn name(&mut self, segment: i64, key: OwnedKey) {
        self.names.push((segment, key));
    }

    /// What the buffer is: the first record of a file.
    pub(super) fn state(&mut self, state: &State) {
        self.close();
        let (by, span) = match state.rows_by {
            RowsBy::Time(window) => (1, window as u64),
            RowsBy::Arrivals(events) => (2, events),
        };
        let mut out = vec![STATE, by];
        out.extend(span.to_le_bytes());
        out.extend(state.rows.to_le_bytes());
        out.extend(state.fingerprint.to_le_bytes());
        out.extend(state.next_row.to_le_bytes());
        out.extend(state.newest.unwrap_or(i64::MIN).to_le_bytes());
        self.done.push(out);
    }

    /// All records so far.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        self.close();
        // A batch brings the names of its segments in any order.
        self.names.sort_by_key(|(segment, _)| *segment);
        for names in std::mem::take(&mut self.names).chunk_by(|(a, _), (b, _)| a == b) {
            let mut out = Vec::new();
            for (segment, key) in names {
                if out.len() >= FULL {
                    self.done.push(std::mem::take(&mut out));
                }
                if out.is_empty() {
                    out.push(NAMES);
                    out.extend(segment.to_le_bytes());
                }
                put_key(&mut out, key);
            }
            self.done.push(out);
        }
        std::mem::take(&mut self.done)
    }

    /// Whether everything was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.open.is_none() && self.names.is_empty()
    }

    fn close(&mut self) {
        if let Some((mut out, _, seen)) = self.open.take() {
            out[TIMES..TIMES + 8].copy_from_slice(&seen.first.to_le_bytes());
            out[TIMES + 8..TIMES + 16].copy_from_slice(&seen.last.to_le_bytes());
            self.done.push(out);
        }
    }
}

/// A key with its kind and length.
pub(super) fn put_key(out: &mut Vec<u8>, key: &OwnedKey) {
    let mut bytes = Vec::with_capacity(key.encoded_len());
    out.push(key.encode(&mut bytes));
    varint::put(bytes.len() as u64, out);
    out.extend(bytes);
}

// ---- reading

/// A key that `put_key` wrote.
pub(super) fn key<'a>(reader: &mut Reader<'a>) -> Result<Key<'a>> {
    let [kind] = reader.fixed()?;
    let length = reader.number()?;
    Key::decode(kind, reader.bytes(length)?).ok_or_else(|| reader.wrong())
}

impl<'a> Record<'a> {
    /// The record that has this payload.
    pub fn parse(payload: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(payload, "record");
        let reader = &mut reader;
        let [kind] = reader.fixed()?;
        let record = match kind {
            STATE => Record::State(State {
                rows_by: match (reader.fixed()?, u64::from_le_bytes(reader.fixed()?)) {
                    ([1], window) => RowsBy::Time(window as i64),
                    ([2], events) => RowsBy::Arrivals(events),
                    _ => return Err(reader.wrong()),
                },
                rows: u32::from_le_bytes(reader.fixed()?),
                fingerprint: u64::from_le_bytes(reader.fixed()?),
                next_row: i64::from_le_bytes(reader.fixed()?),
                newest: Some(i64::from_le_bytes(reader.fixed()?)).filter(|at| *at != i64::MIN),
            }),
            EVENTS => {
                let mut time = || reader.fixed().map(i64::from_le_bytes);
                let (row, first, last) = (time()?, time()?, time()?);
                let mut events = 0u64;
                // A pair has nine bytes or more, so this is no more than the payload has.
                let mut pairs = Vec::with_capacity(reader.rest().len() / 9);
                while !reader.rest().is_empty() {
                    let (mark, count) = (u64::from_le_bytes(reader.fixed()?), reader.number()?);
                    events = events.saturating_add(count);
                    pairs.push((mark, count));
                }
                if first > last || pairs.iter().any(|(_, count)| *count == 0) {
                    return Err(reader.wrong());
                }
                Record::Events { row, seen: Seen { first, last, events }, pairs }
            }
            NAMES => {
                let segment = i64::from_le_bytes(reader.fixed()?);
                let mut keys = Vec::new();
                while !reader.rest().is_empty() {
                    keys.push(key(reader)?);
                }
                Record::Names { segment, keys }
            }
            _ => return Err(reader.wrong()),
        };
        reader.end()?;
        Ok(record)
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
