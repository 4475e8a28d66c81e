//! Records in a file that grows: the framing of every journal. `docs/formats/journal.md` is the specification.
//!
//! ```text
//! file     common header (`format.rs`), which adds: mark, number of the first record u64; then records
//! record   mark | length u32 of the payload | number u64 | CRC-32C u32 of length, number and payload | payload
//! ```
//!
//! The mark is four random bytes of the file's own, so nobody who chooses payloads can write one that looks like a
//! record. Numbers go up by one. What a crash cut in the middle is a torn tail: no record, and none behind it.
//! Everything else that is not the next record is damage; the sound records behind it are found by the mark.
//! This file does no IO: it makes bytes and reads bytes.

use crate::error::{Error, Result};
use crate::format::{self, Header, Kind, u32_at, u64_at};
use memchr::memmem;

/// What each record of a file begins with.
pub type Mark = [u8; 4];
/// Bytes before the first record.
pub const START: usize = format::header_len(4 + 8);
/// Bytes of a record besides its payload.
pub const OVERHEAD: usize = 4 + 4 + 8 + 4;

/// Writes one record.
pub fn put(mark: Mark, number: u64, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = u32::try_from(payload.len())
        .map_err(|_| Error::Field { name: "payload", got: format!("{} bytes", payload.len()) })?;
    let start = out.len() + mark.len();
    out.extend(mark);
    out.extend(length.to_le_bytes());
    out.extend(number.to_le_bytes());
    let sum = format::append(crc32c::crc32c(&out[start..]), payload);
    out.extend(sum.to_le_bytes());
    out.extend(payload);
    Ok(())
}

/// The sound records of a file in order, and where the rest is damaged.
#[derive(Clone, Debug)]
pub struct Scan {
    /// What its records begin with.
    pub mark: Mark,
    /// The number of the next record; None if nothing says so.
    pub next: Option<u64>,
    /// Where the last sound record ends.
    pub end: usize,
    /// Where damage begins: a bad header, or something that sound records follow.
    pub damaged: Option<usize>,
}

impl Scan {
    /// Reads the header. A file of another kind or of a newer version is refused. Any other header is damage, since
    /// a file is there with its header or not at all; the records behind it are looked for all the same.
    pub fn new(data: &[u8], kind: Kind) -> Result<Self> {
        let read = Header::read(data, Some(kind)).and_then(|header| {
            let added: &[u8; START - format::header_len(0)] = header.fields()?;
            Ok((u32_at(added, 0).to_le_bytes(), u64_at(added, 4)))
        });
        match read {
            Ok((mark, first)) => Ok(Scan { mark, next: Some(first), end: START, damaged: None }),
            Err(error @ (Error::Kind { .. } | Error::Version { .. })) => Err(error),
            Err(_) => {
                let mark = u32_at(data, START).to_le_bytes();
                Ok(Scan { mark, next: None, end: START.min(data.len()), damaged: Some(0) })
            }
        }
    }

    /// The next sound record: its number and its payload.
    pub fn step<'a>(&mut self, data: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let mut at = self.end;
        while at < data.len() {
            let Some((number, payload)) = record_at(data, at, self.mark) else {
                let rest = &data[at + 1..];
                at += 1 + memmem::find(rest, &self.mark).unwrap_or(rest.len());
                continue;
            };
            if at != self.end || self.next.is_some_and(|next| next != number) {
                self.damaged.get_or_insert(self.end);
            }
            at += OVERHEAD + payload.len();
            self.end = at;
            // One that comes again, or too late, was applied already.
            if self.next.is_none_or(|next| next <= number) {
                self.next = Some(number.saturating_add(1));
                return Some((number, payload));
            }
        }
        None
    }
}

/// The record that starts here.
fn record_at(data: &[u8], at: usize, mark: Mark) -> Option<(u64, &[u8])> {
    let (head, rest) = data.get(at..)?.split_first_chunk::<OVERHEAD>()?;
    let payload = rest.get(..u32_at(head, 4) as usize)?;
    let sum = format::append(crc32c::crc32c(&head[4..16]), payload);
    (head[..4] == mark && sum == u32_at(head, 16)).then(|| (u64_at(head, 8), payload))
}

#[cfg(test)]
#[path = "durable_tests.rs"]
mod tests;
