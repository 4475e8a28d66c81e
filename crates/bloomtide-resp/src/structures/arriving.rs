//! A structure that comes in chunks, by BF.LOADCHUNK and its siblings: kept as it comes, until all of it is there.
//!
//! The first chunk says how long the rest is and has its checksum; the rest is what `Structure::write` wrote.

use crate::failure::Failure;
use crate::structure::{Held, Structure, Summary};
use bloomtide_core::format::{self, Header, Kind};
use bloomtide_core::{Error, Result};
use std::io::{self, Write};

/// What the first chunk adds to the common header: the structure's tag and three zeros, the checksum of the rest.
const ADDED: usize = 8;
/// Bytes of the first chunk.
pub const HEAD: usize = format::header_len(ADDED);
/// Bytes of each other chunk at most.
pub const CHUNK: u64 = 16 << 20;

/// What has come so far.
#[derive(Debug)]
pub struct Arriving {
    head: [u8; HEAD],
    tag: u8,
    total: u64,
    sum: u32,
    bytes: Vec<u8>,
}

/// The first chunk of a structure.
pub fn head(structure: &Structure) -> io::Result<Vec<u8>> {
    let mut sum = Sum::default();
    structure.write(&mut sum)?;
    let mut added = [0; ADDED];
    added[0] = structure.tag();
    added[4..].copy_from_slice(&sum.crc.to_le_bytes());
    Ok(format::header(Kind::Chunk, &added, HEAD as u64 + sum.len))
}

/// The chunk from `offset` on; empty behind the end.
pub fn chunk(structure: &Structure, offset: u64) -> io::Result<Vec<u8>> {
    let mut window = Window { from: offset, at: 0, bytes: Vec::new() };
    structure.write(&mut window)?;
    Ok(window.bytes)
}

impl Arriving {
    /// Begins with the first chunk.
    pub fn new(head: &[u8]) -> Option<Self> {
        let head: [u8; HEAD] = head.try_into().ok()?;
        let header = Header::read(&head, Some(Kind::Chunk)).ok()?;
        let [tag, 0, 0, 0, sum @ ..] = *header.fields::<ADDED>().ok()? else { return None };
        let total = header.length.checked_sub(HEAD as u64)?;
        Some(Arriving { head, tag, total, sum: u32::from_le_bytes(sum), bytes: Vec::new() })
    }

    /// The kind that it says it is.
    pub fn tag(&self) -> u8 {
        self.tag
    }

    /// Bytes that will come.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that came.
    pub fn come(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Takes the next chunk; the structure, when it was the last.
    pub fn take(&mut self, chunk: &[u8]) -> std::result::Result<Option<Structure>, Failure> {
        if self.come() + chunk.len() as u64 > self.total() {
            return Err(Failure::new("ERR received bad data"));
        }
        self.bytes.extend_from_slice(chunk);
        if self.come() < self.total() {
            return Ok(None);
        }
        if crc32c::crc32c(&self.bytes) != self.sum {
            return Err(Failure::new("ERR received bad data"));
        }
        let read = Structure::read(self.tag(), &self.bytes);
        read.map(Some).map_err(|_| Failure::new("ERR received bad data"))
    }
}

/// Counts and sums what is written.
#[derive(Debug, Default)]
struct Sum {
    len: u64,
    crc: u32,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.len += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps a part of what is written.
struct Window {
    from: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Write for Window {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skip = self.from.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        let room = (CHUNK as usize).saturating_sub(self.bytes.len());
        let rest = &bytes[skip..];
        self.bytes.extend_from_slice(&rest[..rest.len().min(room)]);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Held for Arriving {
    const TYPE: &'static str = "arriving";

    fn kind(&self) -> &'static str {
        "arriving"
    }

    fn bytes(&self) -> u64 {
        self.come()
    }

    fn summary(&self) -> Summary {
        Summary::default()
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        out.write_all(&self.bytes)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::Field { name: "arriving", got: format!("{} bytes", bytes.len()) };
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or_else(wrong)?;
        let mut this = Arriving::new(head).ok_or_else(wrong)?;
        this.bytes.extend_from_slice(rest);
        if this.come() < this.total() { Ok(this) } else { Err(wrong()) }
    }
}
