//! What must be written down so that it can be done again: commands that changed something, in the least form
//! that has the same effect, each with the time it used.
//!
//! ```text
//! record = count of elements (varint), then for each its length (varint) and its bytes
//! time   = 0, then eight bytes: the time of all records that follow, as a little-endian float
//! ```
//!
//! A payload begins with a time. The ledger around it has sequence numbers and checksums.

use crate::wire::request::{Args, Span};
use bloomtide_core::Result;
use bloomtide_core::history::varint::{self, Reader};

/// Changes since they were last taken.
#[derive(Debug, Default)]
pub struct Changes {
    bytes: Vec<u8>,
    /// The time that the last record had, as bits: no time equals it before the first.
    time: Option<u64>,
    /// Nobody wants them, or they are just being done again.
    pub silent: bool,
    /// The journal takes no more: what expires is forgotten without a note.
    pub stopped: bool,
}

/// Memory that is kept for the next changes.
const KEPT: usize = 1 << 20;

impl Changes {
    /// Notes a command that changed something at that time.
    #[inline]
    pub fn note(&mut self, now: f64, args: &[&[u8]]) {
        self.note_all(now, args.len(), args.iter().copied());
    }

    /// Notes a command of `len` elements.
    #[inline]
    pub fn note_all<'a>(&mut self, now: f64, len: usize, args: impl Iterator<Item = &'a [u8]>) {
        if self.silent || self.stopped {
            return;
        }
        if self.time != Some(now.to_bits()) {
            self.time = Some(now.to_bits());
            self.bytes.push(0);
            self.bytes.extend_from_slice(&now.to_le_bytes());
        }
        varint::put(len as u64, &mut self.bytes);
        for arg in args {
            varint::put(arg.len() as u64, &mut self.bytes);
            self.bytes.extend_from_slice(arg);
        }
    }

    /// The changes since the last call.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was taken.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.time = None;
    }
}

/// Reads a payload: each command with its time.
#[derive(Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    from: Reader<'a>,
    time: Option<f64>,
    spans: Vec<Span>,
}

impl<'a> Records<'a> {
    /// The commands of a payload.
    pub fn new(bytes: &'a [u8]) -> Self {
        Records { bytes, from: Reader::new(bytes, "changes"), time: None, spans: Vec::new() }
    }

    /// Where the next record begins.
    pub fn offset(&self) -> usize {
        self.bytes.len() - self.from.rest().len()
    }

    /// The next command, or None at the end.
    pub fn read(&mut self) -> Result<Option<(f64, Args<'_>)>> {
        if self.from.rest().is_empty() {
            return Ok(None);
        }
        let mut len = self.from.number()?;
        while len == 0 {
            self.time = Some(f64::from_le_bytes(self.from.fixed()?));
            len = self.from.number()?;
        }
        self.spans.clear();
        for _ in 0..len {
            let size = self.from.number()?;
            let start = self.offset();
            self.from.bytes(size)?;
            self.spans.push((start, self.offset()));
        }
        let time = self.time.filter(|time| time.is_finite()).ok_or_else(|| self.from.wrong())?;
        Ok(Some((time, Args::new(self.bytes, &self.spans))))
    }
}
