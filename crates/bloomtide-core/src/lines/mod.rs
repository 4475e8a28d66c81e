//! Lines seen for the first time: chunks of bytes in, the lines to be kept out, in their order.
//!
//! ```text
//! chunk -> lines -> key of each -> digests (all threads) -> filter (in order) -> runs of kept lines
//! ```
//!
//! A line never leaves the chunk it came in except as part of a run that is copied whole, so the work
//! on it is finding its end, hashing its key and one probe of the filter. [`Keys`] says what of a line
//! is its key; a line that has none is neither new nor a repeat, and is never dropped.
//!
//! Invariants, tested with arbitrary bytes:
//!
//! 1. How the bytes are cut into chunks, and how many threads there are, changes nothing.
//! 2. Lines come out byte for byte as they came in. Only a last line without a line end gets one, so
//!    that the next file's first line does not stick to it.
//! 3. What is kept and what is kept when inverted are all lines together, each once.
//! 4. Memory is that of a chunk and of the longest line, which may have [`MAX_LINE`] bytes.

mod csv;
mod keys;
mod rows;

pub use keys::{Form, Keys};

use crate::crew::Crew;
use crate::filters::{BloomFilter, ScalableBloomFilter};
use crate::hash::{Hasher, KeyHash};
use crate::{Error, Result};
use keys::Cut;
use rows::Rows;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The longest line. It must be held until its end says whether it was seen.
pub const MAX_LINE: usize = 1 << 26;

/// Bytes of a line for which a thread is called up: about what a URL has.
const USUAL_LINE: usize = 32;

/// What remembers keys.
pub trait Seen {
    /// How it hashes.
    fn hasher(&self) -> Hasher;

    /// Adds every key in order, and says of each whether it was certainly absent before.
    fn add(&mut self, keys: &[KeyHash], new: &mut [bool]) -> Result<()>;
}

impl Seen for &BloomFilter {
    fn hasher(&self) -> Hasher {
        *BloomFilter::hasher(self)
    }

    fn add(&mut self, keys: &[KeyHash], new: &mut [bool]) -> Result<()> {
        // Sharing the cells out between threads costs as much as it gains at the size of a chunk.
        self.add_many(&keys, new, &mut Crew::new(1));
        Ok(())
    }
}

impl Seen for ScalableBloomFilter {
    fn hasher(&self) -> Hasher {
        *ScalableBloomFilter::hasher(self)
    }

    fn add(&mut self, keys: &[KeyHash], new: &mut [bool]) -> Result<()> {
        self.add_many(&keys, new).map_err(|(_, error)| error)
    }
}

/// What became of the lines so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them but headers.
    pub lines: u64,
    /// Those whose key was new.
    pub new: u64,
    /// Those whose key was there, or seemed to be.
    pub repeats: u64,
    /// Those without a key.
    pub keyless: u64,
}

/// Reads lines and keeps those that are new, or those that are not.
#[derive(Debug)]
pub struct Dedup {
    keys: Keys,
    invert: bool,
    crew: Crew,
    cut: Cut,
    /// The line at the end of the bytes so far.
    begun: Vec<u8>,
    /// Lines whose verdict is awaited, and where they end.
    held: Vec<u8>,
    pieces: Vec<Mutex<Rows>>,
    new: Vec<bool>,
    header_due: bool,
    header_written: bool,
    tally: Tally,
}

impl Dedup {
    /// Keeps lines with a new key and lines without one; or, if inverted, the others.
    pub fn new(keys: Keys, invert: bool, crew: Crew) -> Self {
        Dedup {
            cut: keys.cut(),
            header_due: keys.wants_header(),
            keys,
            invert,
            crew,
            begun: Vec::new(),
            held: Vec::new(),
            pieces: vec![Mutex::default()],
            new: Vec::new(),
            header_written: false,
            tally: Tally::default(),
        }
    }

    /// What became of the lines so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Takes the next bytes, and appends the lines to be kept to `out`.
    pub fn feed(&mut self, chunk: &[u8], seen: &mut dyn Seen, out: &mut Vec<u8>) -> Result<()> {
        self.each_block(chunk, out, |this, block, out| this.judge(block, seen, out))
    }

    /// The bytes of a file have ended: its last line may lack a line end. Another file may follow.
    pub fn finish(&mut self, seen: &mut dyn Seen, out: &mut Vec<u8>) -> Result<()> {
        self.end_file(out, |this, block, out| this.judge(block, seen, out))
    }

    /// As [`feed`](Self::feed) for a verdict that is given elsewhere: `each` gets every key with its time,
    /// and [`keep`](Self::keep) must follow. A header goes to `out` at once.
    pub fn take(
        &mut self,
        chunk: &[u8],
        out: &mut Vec<u8>,
        mut each: impl FnMut(&[u8], Option<f64>),
    ) -> Result<()> {
        self.held.clear();
        self.only().clear();
        self.each_block(chunk, out, |this, block, _| {
            this.hold(block, &mut each);
            Ok(())
        })
    }

    /// [`take`](Self::take) at the end of a file.
    pub fn take_last(
        &mut self,
        out: &mut Vec<u8>,
        mut each: impl FnMut(&[u8], Option<f64>),
    ) -> Result<()> {
        self.held.clear();
        self.only().clear();
        self.end_file(out, |this, block, _| {
            this.hold(block, &mut each);
            Ok(())
        })
    }

    /// The verdict on the keys taken: whether each was new. Appends the lines to be kept to `out`,
    /// each with the count of its key and a tab before it if there are counts.
    pub fn keep(&mut self, new: &[bool], counts: Option<&[u64]>, out: &mut Vec<u8>) -> Result<()> {
        let rows = std::mem::take(self.only());
        if new.len() != rows.keyed() || counts.is_some_and(|counts| counts.len() != new.len()) {
            let allowed = "one verdict for each key taken";
            *self.only() = rows;
            return Err(Error::parameter("new", new.len(), allowed, "answer all keys in order"));
        }
        self.count(&rows, new);
        match counts {
            Some(counts) => rows.copy_counted(&self.held, new, counts, out),
            None => rows.copy(&self.held, new, self.invert, out),
        }
        self.held.clear();
        Ok(())
    }

    /// Runs `work` on whole lines. A line put together from two chunks is a block of its own, since
    /// moving the chunk behind it would cost more.
    fn each_block(
        &mut self,
        chunk: &[u8],
        out: &mut Vec<u8>,
        mut work: impl FnMut(&mut Self, &[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut rest = chunk;
        while self.header_due || !self.begun.is_empty() {
            let Some(end) = self.cut.end(rest) else { return self.begin(rest) };
            self.begin(&rest[..end])?;
            rest = &rest[end..];
            let mut line = std::mem::take(&mut self.begun);
            if self.header_due {
                self.header(&line, out)?;
            } else {
                work(self, &line, out)?;
            }
            line.clear();
            self.begun = line;
        }
        let whole = self.cut.last_end(rest);
        if whole > 0 {
            work(self, &rest[..whole], out)?;
        }
        self.begin(&rest[whole..])
    }

    fn end_file(
        &mut self,
        out: &mut Vec<u8>,
        mut work: impl FnMut(&mut Self, &[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if !self.begun.is_empty() {
            let mut line = std::mem::take(&mut self.begun);
            line.push(b'\n');
            if self.header_due {
                self.header(&line, out)?;
            } else {
                work(self, &line, out)?;
            }
            line.clear();
            self.begun = line;
        }
        self.cut = self.keys.cut();
        self.header_due = self.keys.wants_header();
        Ok(())
    }

    fn begin(&mut self, part: &[u8]) -> Result<()> {
        if self.begun.len() + part.len() > MAX_LINE {
            let hint = "in CSV a quote that is never closed makes the rest of a file one line";
            return Err(Error::parameter("line", "a longer one", "at most 64 MiB", hint));
        }
        self.begun.extend_from_slice(part);
        Ok(())
    }

    /// The names of the columns: of the first file they are kept, of the others only read.
    fn header(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.keys.read_header(line)?;
        self.header_due = false;
        if !self.header_written {
            out.extend_from_slice(line);
            self.header_written = true;
        }
        Ok(())
    }

    /// Whole lines: all threads find and hash their keys, then the filter sees them in order.
    fn judge(&mut self, block: &[u8], seen: &mut dyn Seen, out: &mut Vec<u8>) -> Result<()> {
        let hasher = seen.hasher();
        let hands =
            self.crew.muster(if self.keys.divisible() { block.len() / USUAL_LINE } else { 0 });
        let parts = divide(block, hands.count());
        self.pieces.resize_with(parts.len().max(self.pieces.len()), Mutex::default);
        let (pieces, keys) = (&self.pieces, &self.keys);
        hands.run(|thread| {
            if let Some(part) = parts.get(thread) {
                locked(&pieces[thread]).hash(part, keys, &hasher);
            }
        });
        for (number, part) in parts.iter().enumerate() {
            let rows = std::mem::take(&mut *locked(&self.pieces[number]));
            self.new.resize(rows.keyed(), false);
            let mut new = std::mem::take(&mut self.new);
            let added = seen.add(rows.digests(), &mut new);
            if added.is_ok() {
                self.count(&rows, &new);
                rows.copy(part, &new, self.invert, out);
            }
            self.new = new;
            *locked(&self.pieces[number]) = rows;
            added?;
        }
        Ok(())
    }

    fn hold(&mut self, block: &[u8], each: &mut dyn FnMut(&[u8], Option<f64>)) {
        let mut rows = std::mem::take(self.only());
        rows.read(self.held.len(), block, &self.keys, each);
        *self.only() = rows;
        self.held.extend_from_slice(block);
    }

    fn only(&mut self) -> &mut Rows {
        self.pieces[0].get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&mut self, rows: &Rows, new: &[bool]) {
        let kept = new.iter().filter(|new| **new).count() as u64;
        self.tally.lines += rows.len() as u64;
        self.tally.new += kept;
        self.tally.repeats += new.len() as u64 - kept;
        self.tally.keyless += (rows.len() - new.len()) as u64;
    }
}

/// So many parts of about one size, cut at line ends; fewer if the lines are long.
fn divide(block: &[u8], parts: usize) -> Vec<&[u8]> {
    let mut divided = Vec::with_capacity(parts);
    let mut rest = block;
    for left in (2..=parts).rev() {
        let Some(end) = memchr::memchr(b'\n', &rest[rest.len() / left..]) else { break };
        let (part, behind) = rest.split_at(rest.len() / left + end + 1);
        divided.push(part);
        rest = behind;
    }
    divided.push(rest);
    divided
}

/// The lock, which nobody else wants: it only tells the compiler so.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
