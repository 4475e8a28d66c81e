//! Everything that was added to a buffer, as records that make it again after a crash.
//!
//! ```text
//! file     common header (`format.rs`), then records
//! record   mark u32 | length u32 of the payload | CRC-32C u32 of all that follows | number u64 | kind u8 | payload
//! state    rows by time (1) or by arrivals (2) u8 | their span u64 | rows of a segment u32
//!          | the hash's fingerprint u64 | next row by arrivals i64 | newest event i64
//! events   row i64 | first i64 | last i64 | as often as there are: mark u64, count (LEB128)
//! names    segment i64 | as often as there are: kind u8, length (LEB128), key
//! ```
//!
//! All numbers are little-endian. Rows are counted from 1970 or from the first arrival, not within their
//! segment. Records are numbered upwards. A journal that ends amid a record was torn by a crash and is cut
//! there; what does not read but has sound records behind it is damage, and is reported. This file does no
//! IO: it makes bytes and reads bytes.

use super::Mark;
use super::buffer::RowsBy;
use super::open::Seen;
use super::varint::{self, Reader};
use crate::error::{Error, Result};
use crate::format::{self, Kind, u32_at};
use crate::key::{Key, OwnedKey};
use memchr::memmem;

/// What each record begins with.
const MARK: [u8; 4] = *b"hrec";
/// Bytes before the payload.
const HEAD: usize = 4 + 4 + 4 + 8 + 1;
/// A payload is no longer; so a length that is damaged costs no more than this to find out.
const LONGEST: usize = 1 << 18;
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
    out: Vec<u8>,
    /// The number of the next record.
    next: u64,
    /// The last record, if it takes more events: where it starts, its row, and their times.
    open: Option<(usize, i64, Seen)>,
    /// Names wait for the events that brought them.
    names: Vec<(i64, OwnedKey)>,
}

impl Journal {
    /// Makes room for so many events of one row, and begins with them. `push` adds each.
    pub(super) fn events(&mut self, row: i64, seen: Seen, expected: usize) {
        match &mut self.open {
            Some((start, open, before)) if *open == row && self.out.len() - *start < FULL => {
                *before = before.with(seen);
            }
            _ => {
                self.close();
                let start = self.begin(EVENTS);
                // The times are known when the record is closed.
                self.out.extend(row.to_le_bytes());
                self.out.extend([0; 16]);
                self.open = Some((start, row, seen));
            }
        }
        self.out.reserve(expected * 10);
    }

    /// One event of the row that was begun.
    #[inline(always)]
    pub(super) fn push(&mut self, mark: Mark, count: u64) {
        self.out.extend_from_slice(&mark.to_le_bytes());
        if count < 0x80 {
            self.out.push(count as u8);
        } else {
            varint::put(count, &mut self.out);
        }
    }

    /// A name, to be written behind the events that are.
    pub(super) fn name(&mut self, segment: i64, key: OwnedKey) {
        self.names.push((segment, key));
    }

    /// The header of a new file, and what the buffer is.
    pub(super) fn start(&mut self, state: &State) {
        self.out.extend(format::header(Kind::HistoryJournal, &[], 0));
        self.state(state);
    }

    fn state(&mut self, state: &State) {
        self.close();
        let start = self.begin(STATE);
        let (by, span) = match state.rows_by {
            RowsBy::Time(window) => (1, window as u64),
            RowsBy::Arrivals(events) => (2, events),
        };
        self.out.push(by);
        self.out.extend(span.to_le_bytes());
        self.out.extend(state.rows.to_le_bytes());
        self.out.extend(state.fingerprint.to_le_bytes());
        self.out.extend(state.next_row.to_le_bytes());
        self.out.extend(state.newest.unwrap_or(i64::MIN).to_le_bytes());
        self.end(start);
    }

    /// All records so far; the next ones go on with their numbers.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.flush();
        std::mem::take(&mut self.out)
    }

    /// Closes the record of events and writes the names that wait.
    fn flush(&mut self) {
        self.close();
        let mut record: Option<(usize, i64)> = None;
        // A batch brings the names of its segments in any order.
        self.names.sort_by_key(|(segment, _)| *segment);
        for (segment, key) in std::mem::take(&mut self.names) {
            if let Some((start, of)) = record
                && (of != segment || self.out.len() - start >= FULL)
            {
                self.end(start);
                record = None;
            }
            record.get_or_insert_with(|| {
                let start = self.begin(NAMES);
                self.out.extend(segment.to_le_bytes());
                (start, segment)
            });
            put_key(&mut self.out, &key);
        }
        if let Some((start, _)) = record {
            self.end(start);
        }
    }

    /// Whether everything was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.names.is_empty()
    }

    /// Forgets what was not taken; the next record follows the one of that number.
    pub(super) fn go_on(&mut self, last: u64) {
        *self = Journal { next: last.wrapping_add(1), ..Journal::default() };
    }

    fn begin(&mut self, kind: u8) -> usize {
        let start = self.out.len();
        self.out.extend(MARK);
        self.out.extend([0; 8]);
        self.out.extend(self.next.to_le_bytes());
        self.out.push(kind);
        self.next += 1;
        start
    }

    fn close(&mut self) {
        if let Some((start, _, seen)) = self.open.take() {
            let times = start + HEAD + 8;
            self.out[times..times + 8].copy_from_slice(&seen.first.to_le_bytes());
            self.out[times + 8..times + 16].copy_from_slice(&seen.last.to_le_bytes());
            self.end(start);
        }
    }

    fn end(&mut self, start: usize) {
        let length = (self.out.len() - start - HEAD) as u32;
        let sum = crc32c::crc32c(&self.out[start + 12..]);
        self.out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
        self.out[start + 8..start + 12].copy_from_slice(&sum.to_le_bytes());
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
    fn parse(kind: u8, payload: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(payload, "record");
        let reader = &mut reader;
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

/// The sound records of a journal, in order, and what is wrong with the rest.
#[derive(Debug)]
pub struct Scan<'a> {
    data: &'a [u8],
    at: usize,
    /// The number of the last sound record.
    last: Option<u64>,
    /// Where the last sound record ends.
    sound: usize,
    damaged: Option<usize>,
}

/// Reads a journal. A file of another kind or of a newer version is refused. Any other header is damage,
/// since a file is there with its header or not at all; the records behind it are looked for all the same.
pub fn scan(data: &[u8]) -> Result<Scan<'_>> {
    let (at, damaged) = match format::Header::read(data, Some(Kind::HistoryJournal)) {
        Ok(header) => (header.len, None),
        Err(error @ (Error::Kind { .. } | Error::Version { .. })) => return Err(error),
        Err(_) => (0, Some(0)),
    };
    Ok(Scan { data, at, last: None, sound: at, damaged })
}

impl<'a> Scan<'a> {
    /// The record that starts here: its number, itself, and where it ends.
    fn record_at(&self, at: usize) -> Option<(u64, Record<'a>, usize)> {
        let (head, rest) = self.data.get(at..)?.split_first_chunk::<12>()?;
        let (mark, length, sum) = (&head[..4], u32_at(head, 4) as usize, u32_at(head, 8));
        if mark != MARK || length > LONGEST {
            return None;
        }
        let checked = rest.get(..8 + 1 + length)?;
        if crc32c::crc32c(checked) != sum {
            return None;
        }
        let (number, rest) =
            checked.split_first_chunk().map(|(n, r)| (u64::from_le_bytes(*n), r))?;
        // A record that comes again, or too late, is none.
        if self.last.is_some_and(|last| number <= last) {
            return None;
        }
        let (kind, payload) = rest.split_first()?;
        let record = Record::parse(*kind, payload).ok()?;
        Some((number, record, at + HEAD + length))
    }

    /// Where the last sound record ends; the whole journal once all are read.
    pub fn sound_bytes(&self) -> usize {
        self.sound
    }

    /// Where damage begins: a bad header, or something that sound records follow.
    pub fn damaged(&self) -> Option<usize> {
        self.damaged
    }

    /// The number of the last sound record.
    pub fn last_number(&self) -> Option<u64> {
        self.last
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        while self.at < self.data.len() {
            if let Some((number, record, end)) = self.record_at(self.at) {
                if self.at != self.sound {
                    self.damaged.get_or_insert(self.sound);
                }
                (self.last, self.at, self.sound) = (Some(number), end, end);
                return Some(record);
            }
            let rest = &self.data[self.at + 1..];
            self.at += 1 + memmem::find(rest, &MARK).unwrap_or(rest.len());
        }
        None
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
