//! Lines seen for the first time: chunks of bytes in, the lines to be kept out, in their order.
//!
//! ```text
//! chunk -> lines -> key of each -> digests    -> filter, in order -> runs of kept lines
//!          `Reader`, by all its threads          `Dedup`
//! ```
//!
//! A line never leaves the chunk it came in except as part of a run that is copied whole, so the work
//! on it is finding its end, hashing its key and one probe of the filter. [`Keys`] says what of a line
//! is its key; a line that has none is neither new nor a repeat, and is never dropped. The two halves share
//! nothing, so that one thread may read ahead while another one filters and writes.
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
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The longest line. It must be held until its end says whether it was seen.
pub const MAX_LINE: usize = 1 << 26;

/// Bytes of a line for which a thread is called up: about what a URL has.
const USUAL_LINE: usize = 32;

/// What remembers keys.
pub trait Seen {
    /// Adds every key in order, and says of each whether it was certainly absent before.
    fn add(&mut self, keys: &[KeyHash], new: &mut [bool]) -> Result<()>;
}

impl Seen for &BloomFilter {
    fn add(&mut self, keys: &[KeyHash], new: &mut [bool]) -> Result<()> {
        // Sharing the cells out between threads costs as much as it gains at the size of a chunk.
        self.add_many(&keys, new, &mut Crew::new(1));
        Ok(())
    }
}

impl Seen for ScalableBloomFilter {
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

/// Cuts bytes into lines and hashes their keys.
#[derive(Debug)]
pub struct Reader {
    keys: Keys,
    crew: Crew,
    cut: Cut,
    /// The line at the end of the bytes so far.
    begun: Vec<u8>,
    header_due: bool,
}

/// The lines that end in a chunk.
#[derive(Debug, Default)]
struct Lines {
    header: Vec<u8>,
    /// A line that began in a chunk before. Moving this chunk behind it would cost more.
    first: Vec<u8>,
    /// Where in the chunk the others are.
    others: Range<usize>,
}

/// The lines that end in a chunk, and the digests of their keys.
#[derive(Debug, Default)]
pub struct Hashed {
    lines: Lines,
    first: Rows,
    /// The others, by the threads that read them.
    others: Vec<Rows>,
}

impl Reader {
    /// Looks for these keys.
    pub fn new(keys: Keys, crew: Crew) -> Self {
        let (cut, header_due) = (keys.cut(), keys.wants_header());
        Reader { keys, crew, cut, begun: Vec::new(), header_due }
    }

    /// Takes the next bytes; none at the end of a file, whose last line may lack a line end. Another file
    /// may follow.
    pub fn hash(&mut self, chunk: Option<&[u8]>, hasher: &Hasher) -> Result<Hashed> {
        let lines = self.lines(chunk)?;
        let mut first = Rows::default();
        first.hash(&lines.first, &self.keys, hasher);
        let block = &chunk.unwrap_or_default()[lines.others.clone()];
        let usual = if self.keys.divisible() { block.len() / USUAL_LINE } else { 0 };
        let hands = self.crew.muster(usual);
        let parts = divide(block, hands.count());
        let others: Vec<Mutex<Rows>> = parts.iter().map(|_| Mutex::default()).collect();
        hands.run(|thread| {
            if let (Some(part), Some(rows)) = (parts.get(thread), others.get(thread)) {
                // Nobody else wants the lock: it only tells the compiler so.
                let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                rows.hash(part, &self.keys, hasher);
            }
        });
        let others = others.into_iter().map(|rows| rows.into_inner());
        let others = others.map(|rows| rows.unwrap_or_else(PoisonError::into_inner)).collect();
        Ok(Hashed { lines, first, others })
    }

    fn lines(&mut self, chunk: Option<&[u8]>) -> Result<Lines> {
        let mut lines = Lines::default();
        let Some(chunk) = chunk else {
            if !self.begun.is_empty() {
                self.begun.push(b'\n');
                self.end_line(&mut lines)?;
            }
            self.cut = self.keys.cut();
            self.header_due = self.keys.wants_header();
            return Ok(lines);
        };
        let mut start = 0;
        if self.header_due || !self.begun.is_empty() {
            let end = self.cut.end(chunk);
            start = end.unwrap_or(chunk.len());
            self.begin(&chunk[..start])?;
            if end.is_some() {
                self.end_line(&mut lines)?;
            }
        }
        let end = start + self.cut.last_end(&chunk[start..]);
        lines.others = start..end;
        self.begin(&chunk[end..])?;
        Ok(lines)
    }

    fn begin(&mut self, part: &[u8]) -> Result<()> {
        if self.begun.len() + part.len() > MAX_LINE {
            let hint = "in CSV a quote that is never closed makes the rest of a file one line";
            return Err(Error::parameter("line", "a longer one", "at most 64 MiB", hint));
        }
        self.begun.extend_from_slice(part);
        Ok(())
    }

    /// The line that was begun is whole.
    fn end_line(&mut self, lines: &mut Lines) -> Result<()> {
        let line = std::mem::take(&mut self.begun);
        if self.header_due {
            self.keys.read_header(&line)?;
            self.header_due = false;
            lines.header = line;
        } else {
            lines.first = line;
        }
        Ok(())
    }
}

/// Keeps lines that are new, or those that are not.
#[derive(Debug, Default)]
pub struct Dedup {
    invert: bool,
    /// Lines whose verdict is awaited, and where they end.
    held: Vec<u8>,
    rows: Rows,
    new: Vec<bool>,
    header_written: bool,
    tally: Tally,
}

impl Dedup {
    /// Keeps lines with a new key and lines without one; or, if inverted, the others.
    pub fn new(invert: bool) -> Self {
        Dedup { invert, ..Dedup::default() }
    }

    /// What became of the lines so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Appends the lines to be kept of those that end in this chunk to `out`. The filter sees their keys
    /// in order.
    pub fn filter(
        &mut self,
        hashed: &Hashed,
        chunk: &[u8],
        seen: &mut dyn Seen,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.header(&hashed.lines, out);
        self.judge(&hashed.first, &hashed.lines.first, seen, out)?;
        let mut rest = &chunk[hashed.lines.others.clone()];
        for rows in &hashed.others {
            let (block, behind) = rest.split_at(rows.bytes());
            self.judge(rows, block, seen, out)?;
            rest = behind;
        }
        Ok(())
    }

    /// For verdicts that are given elsewhere: `each` gets every key with its time, and [`keep`](Self::keep)
    /// must follow. A header goes to `out` at once.
    pub fn take(
        &mut self,
        reader: &mut Reader,
        chunk: Option<&[u8]>,
        out: &mut Vec<u8>,
        mut each: impl FnMut(&[u8], Option<f64>),
    ) -> Result<()> {
        self.held.clear();
        self.rows.clear();
        let lines = reader.lines(chunk)?;
        self.header(&lines, out);
        for block in [&lines.first[..], &chunk.unwrap_or_default()[lines.others.clone()]] {
            self.rows.read(self.held.len(), block, &reader.keys, &mut each);
            self.held.extend_from_slice(block);
        }
        Ok(())
    }

    /// The verdict on the keys taken: whether each was new. Appends the lines to be kept to `out`,
    /// each with the count of its key and a tab before it if there are counts.
    pub fn keep(&mut self, new: &[bool], counts: Option<&[u64]>, out: &mut Vec<u8>) -> Result<()> {
        let keys = self.rows.keyed();
        if new.len() != keys || counts.is_some_and(|counts| counts.len() != keys) {
            let allowed = "one verdict for each key taken";
            return Err(Error::parameter("new", new.len(), allowed, "answer all keys in order"));
        }
        self.tally.count(&self.rows, new);
        match counts {
            Some(counts) => self.rows.copy_counted(&self.held, new, counts, out),
            None => self.rows.copy(&self.held, new, self.invert, out),
        }
        self.rows.clear();
        self.held.clear();
        Ok(())
    }

    /// The names of the columns: of the first file they are kept, of the others only read.
    fn header(&mut self, lines: &Lines, out: &mut Vec<u8>) {
        if !self.header_written && !lines.header.is_empty() {
            out.extend_from_slice(&lines.header);
            self.header_written = true;
        }
    }

    fn judge(
        &mut self,
        rows: &Rows,
        block: &[u8],
        seen: &mut dyn Seen,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.new.resize(rows.keyed(), false);
        seen.add(rows.digests(), &mut self.new)?;
        self.tally.count(rows, &self.new);
        rows.copy(block, &self.new, self.invert, out);
        Ok(())
    }
}

impl Tally {
    fn count(&mut self, rows: &Rows, new: &[bool]) {
        let kept = new.iter().filter(|new| **new).count() as u64;
        self.lines += rows.len() as u64;
        self.new += kept;
        self.repeats += new.len() as u64 - kept;
        self.keyless += (rows.len() - new.len()) as u64;
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

#[cfg(test)]
mod tests;
