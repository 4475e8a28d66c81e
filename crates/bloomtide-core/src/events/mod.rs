//! Events as one run of bytes: what came in one chunk, ready for a ledger and for every structure.
//!
//! A block is written before its events count anywhere, and what counts them reads the block. So events that
//! were read again after a crash go exactly the way they went before it.
//!
//! ```text
//! version  1 byte
//! arrived  when the chunk came, in microseconds since 1970
//! note     length and bytes: whatever the caller ties to this chunk, such as how far a file was read
//! events   how many there are, then each:
//!            head    length of the key << 4 | count follows << 3 | time changes << 2 | kind of key
//!            time    if it changes: microseconds since the event before, the first since `arrived`
//!            count   if it is not one
//!            key     its bytes, or the number it is
//! ```
//! All numbers are varints. The checksum is the ledger's.
//!
//! # What stays true
//! 1. Times lie between the years 1970 and 9999 and counts are above zero: every structure takes every event.
//! 2. A block that is not what `take` made is refused as a whole, before anything changes.

mod intake;

pub use intake::{Passed, Piece, Target, pass};

use crate::error::{Error, Result};
use crate::history::microseconds;
use crate::history::varint::{Reader, put, put_signed};
use crate::key::Key;
use crate::logs::Sink;
use crate::url::{Canon, canonical};

const VERSION: u8 = 1;
/// The end of the year 9999 in microseconds.
const LAST_TIME: i64 = 253_402_300_800_000_000;
const HEAD_TIME: u64 = 1 << 2;
const HEAD_COUNT: u64 = 1 << 3;

/// Events that have come and are not in a block yet.
#[derive(Debug, Default)]
pub struct Events {
    body: Vec<u8>,
    rows: u64,
    /// The first time, and that of the event before.
    times: Option<(i64, i64)>,
    /// Keys must be URLs, since a structure behind this takes nothing else.
    urls: bool,
    canonical: Vec<u8>,
    refused: u64,
}

impl Events {
    /// None yet. With `urls` a key that is no URL is refused.
    pub fn new(urls: bool) -> Self {
        Events { urls, ..Events::default() }
    }

    /// None yet, under the same rules.
    pub fn another(&self) -> Self {
        Events::new(self.urls)
    }

    /// How many.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Keys of logs that are no URLs, ever since.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// One more event, at microseconds since 1970.
    pub fn push(&mut self, key: Key<'_>, count: u64, at: i64) -> Result<()> {
        if !(0..=LAST_TIME).contains(&at) {
            let hint = "give seconds since the Unix epoch, not milliseconds";
            let seconds = at as f64 / 1e6;
            return Err(Error::parameter("at", seconds, "in the years 1970 to 9999", hint));
        }
        if count == 0 || count >= 1 << 62 {
            let hint = "leave events that did not happen out";
            return Err(Error::parameter("count", count, "from 1 to 2**62 - 1", hint));
        }
        if self.urls {
            self.require_url(key)?;
        }
        self.write(key, count, at);
        Ok(())
    }

    fn require_url(&mut self, key: Key<'_>) -> Result<()> {
        let (Key::Text(url) | Key::Bytes(url)) = key else {
            let hint = "make the monitor without a filter of URLs";
            return Err(Error::parameter("key", "a number", "a URL", hint));
        };
        canonical(url, &Canon::default(), &mut self.canonical).map(|_| ())
    }

    #[inline]
    fn write(&mut self, key: Key<'_>, count: u64, at: i64) {
        let (kind, len): (u64, u64) = match key {
            Key::Text(bytes) => (0, bytes.len() as u64),
            Key::Bytes(bytes) => (1, bytes.len() as u64),
            Key::Unsigned(_) => (2, 0),
            Key::Negative(_) => (3, 0),
        };
        let (first, before) = self.times.unwrap_or((at, at));
        let mut head = len << 4 | kind;
        head |= if at == before { 0 } else { HEAD_TIME };
        head |= if count == 1 { 0 } else { HEAD_COUNT };
        put(head, &mut self.body);
        if at != before {
            put_signed(at - before, &mut self.body);
        }
        if count != 1 {
            put(count, &mut self.body);
        }
        match key {
            Key::Text(bytes) | Key::Bytes(bytes) => self.body.extend_from_slice(bytes),
            Key::Unsigned(value) => put(value, &mut self.body),
            Key::Negative(value) => put_signed(value, &mut self.body),
        }
        self.times = Some((first, at));
        self.rows += 1;
    }

    /// The block of all events so far, and of none any more.
    pub fn take(&mut self, arrived: i64, note: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + note.len() + 32);
        out.push(VERSION);
        put_signed(arrived, &mut out);
        put(note.len() as u64, &mut out);
        out.extend_from_slice(note);
        put(self.rows, &mut out);
        let first = self.times.map_or(arrived, |(first, _)| first);
        put_signed(first.wrapping_sub(arrived), &mut out);
        out.append(&mut self.body);
        self.clear();
        out
    }

    /// Forgets the events so far, as if they had not come.
    pub fn clear(&mut self) {
        self.body.clear();
        self.rows = 0;
        self.times = None;
    }
}

impl Sink for Events {
    /// A line of a log: one whose key or time no structure takes is counted and left out.
    #[inline]
    fn add(&mut self, key: &[u8], at: f64) -> Result<()> {
        if self.push(Key::Text(key), 1, microseconds(at)).is_err() {
            self.refused += 1;
        }
        Ok(())
    }
}

/// An event of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its key.
    pub key: Key<'a>,
    /// How often it happened.
    pub count: u64,
    /// When, in microseconds since 1970.
    pub at: i64,
}

/// A block that is read.
#[derive(Debug)]
pub struct Block<'a> {
    /// When its chunk came.
    pub arrived: i64,
    /// What the caller tied to it.
    pub note: &'a [u8],
    rows: u64,
    first: i64,
    body: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads the head of what `Events::take` made.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(data, "block of events");
        let [version] = reader.fixed()?;
        if version != VERSION {
            return Err(Error::Version { expected: VERSION.into(), got: version.into() });
        }
        let arrived = reader.signed()?;
        let len = reader.number()?;
        let note = reader.bytes(len)?;
        let rows = reader.number()?;
        let first = arrived.wrapping_add(reader.signed()?);
        Ok(Block { arrived, note, rows, first, body: reader.rest() })
    }

    /// Reads every event, before the first one counts.
    pub fn check(&self) -> Result<()> {
        let mut cursor = self.cursor();
        while cursor.next()?.is_some() {}
        Ok(())
    }

    /// From its first event on.
    pub fn cursor(&self) -> Cursor<'a> {
        let reader = Reader::new(self.body, "block of events");
        Cursor { reader, left: self.rows, time: self.first }
    }
}

/// A place in a block.
#[derive(Debug)]
pub struct Cursor<'a> {
    reader: Reader<'a>,
    left: u64,
    time: i64,
}

impl<'a> Cursor<'a> {
    /// The next event; None behind the last.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it may fail, which an iterator hides")]
    pub fn next(&mut self) -> Result<Option<Event<'a>>> {
        if self.left == 0 {
            return self.reader.end().map(|()| None);
        }
        self.left -= 1;
        let head = self.reader.number()?;
        if head & HEAD_TIME != 0 {
            self.time = self.time.wrapping_add(self.reader.signed()?);
        }
        let count = if head & HEAD_COUNT != 0 { self.reader.number()? } else { 1 };
        let key = match head & 3 {
            0 => Key::Text(self.reader.bytes(head >> 4)?),
            1 => Key::Bytes(self.reader.bytes(head >> 4)?),
            2 => Key::Unsigned(self.reader.number()?),
            _ => Key::Negative(self.reader.signed()?),
        };
        let sound = count != 0
            && (0..=LAST_TIME).contains(&self.time)
            && !matches!(key, Key::Negative(0..));
        if !sound {
            return Err(self.reader.wrong());
        }
        Ok(Some(Event { key, count, at: self.time }))
    }
}
