//! Everything that was added to a buffer, as records that make it again after a crash.
//!
//! ```text
//! record   magic u32 | length u32 of the payload | CRC-32C u32 of all that follows | number u64 | kind u8 | payload
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
use super::open::Seen;
use crate::key::{Key, OwnedKey};
use memchr::memmem;

const MAGIC: [u8; 4] = *b"bmj1";
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
    /// Whether rows are windows of time; else a number of arrivals.
    pub by_time: bool,
    /// The window in microseconds, or the arrivals of a row.
    pub span: u64,
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
            put_leb128(&mut self.out, count);
        }
    }

    /// A name, to be written behind the events that are.
    pub(super) fn name(&mut self, segment: i64, key: OwnedKey) {
        self.names.push((segment, key));
    }

    /// What the buffer is.
    pub(super) fn state(&mut self, state: &State) {
        self.close();
        let start = self.begin(STATE);
        self.out.push(if state.by_time { 1 } else { 2 });
        self.out.extend(state.span.to_le_bytes());
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
        self.out.extend(MAGIC);
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

/// A number in groups of seven bits, the lowest first.
pub(super) fn put_leb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A key with its kind and length.
pub(super) fn put_key(out: &mut Vec<u8>, key: &OwnedKey) {
    let mut bytes = Vec::with_capacity(key.encoded_len());
    out.push(key.encode(&mut bytes));
    put_leb128(out, bytes.len() as u64);
    out.extend(bytes);
}

// ---- reading

/// Bytes that are taken from the front; nothing where there are too few.
#[derive(Clone, Debug)]
pub(super) struct Taker<'a>(pub(super) &'a [u8]);

impl<'a> Taker<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Refuses numbers beyond 64 bits, and such that could be shorter.
    #[inline(always)]
    pub(super) fn leb128(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 || (*byte == 0 && shift > 0) {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    pub(super) fn key(&mut self) -> Option<Key<'a>> {
        let kind = self.array::<1>()?[0];
        let length = usize::try_from(self.leb128()?).ok()?;
        Key::decode(kind, self.bytes(length)?)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Record<'a> {
    fn parse(kind: u8, payload: &'a [u8]) -> Option<Self> {
        let mut taker = Taker(payload);
        let record = match kind {
            STATE => Record::State(State {
                by_time: match taker.array::<1>()?[0] {
                    1 => true,
                    2 => false,
                    _ => return None,
                },
                span: taker.u64()?,
                rows: taker.u32()?,
                fingerprint: taker.u64()?,
                next_row: taker.i64()?,
                newest: Some(taker.i64()?).filter(|at| *at != i64::MIN),
            }),
            EVENTS => {
                let row = taker.i64()?;
                let mut seen = Seen { first: taker.i64()?, last: taker.i64()?, events: 0 };
                // A pair has nine bytes or more, so this is no more than the payload has.
                let mut pairs = Vec::with_capacity(taker.0.len() / 9);
                while !taker.is_empty() {
                    let (mark, count) = (taker.u64()?, taker.leb128()?);
                    seen.events = seen.events.saturating_add(count);
                    pairs.push((mark, count));
                }
                if seen.first > seen.last || pairs.iter().any(|(_, count)| *count == 0) {
                    return None;
                }
                Record::Events { row, seen, pairs }
            }
            NAMES => {
                let segment = taker.i64()?;
                let mut keys = Vec::new();
                while !taker.is_empty() {
                    keys.push(taker.key()?);
                }
                Record::Names { segment, keys }
            }
            _ => return None,
        };
        taker.is_empty().then_some(record)
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

/// Reads a journal.
pub fn scan(data: &[u8]) -> Scan<'_> {
    Scan { data, at: 0, last: None, sound: 0, damaged: None }
}

impl<'a> Scan<'a> {
    /// The record that starts here: its number, itself, and where it ends.
    fn record_at(&self, at: usize) -> Option<(u64, Record<'a>, usize)> {
        let mut taker = Taker(self.data.get(at..)?);
        if taker.array()? != MAGIC {
            return None;
        }
        let (length, sum) = (taker.u32()? as usize, taker.u32()?);
        if length > LONGEST {
            return None;
        }
        let checked = taker.clone().bytes(8 + 1 + length)?;
        if crc32c::crc32c(checked) != sum {
            return None;
        }
        let (number, kind) = (taker.u64()?, taker.array::<1>()?[0]);
        // A record that comes again, or too late, is none.
        if self.last.is_some_and(|last| number <= last) {
            return None;
        }
        let record = Record::parse(kind, taker.bytes(length)?)?;
        Some((number, record, at + HEAD + length))
    }

    /// Where the last sound record ends; the whole journal once all are read.
    pub fn sound_bytes(&self) -> usize {
        self.sound
    }

    /// Where damage begins that sound records follow.
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
            self.at += 1 + memmem::find(rest, &MAGIC).unwrap_or(rest.len());
        }
        None
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
