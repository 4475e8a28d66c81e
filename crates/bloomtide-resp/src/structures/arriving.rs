//! A structure that comes in chunks, by BF.LOADCHUNK and its siblings: kept as it comes, until all of it is there.
//!
//! The first chunk says how long the rest is and has its checksum; the rest is what `Structure::write` wrote.

use crate::failure::Failure;
use crate::structure::{Held, Structure, Summary};
use bloomtide_core::{Error, Result};
use std::io::{self, Write};

const MAGIC: &[u8; 8] = b"BLMCHNK1";
/// Bytes of the first chunk.
pub const HEAD: usize = 8 + 1 + 8 + 4;
/// Bytes of each other chunk at most.
pub const CHUNK: u64 = 16 << 20;

/// What has come so far.
#[derive(Debug)]
pub struct Arriving {
    head: [u8; HEAD],
    bytes: Vec<u8>,
}

/// The first chunk of a structure.
pub fn head(structure: &Structure) -> io::Result<[u8; HEAD]> {
    let mut sum = Sum::default();
    structure.write(&mut sum)?;
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8] = structure.tag();
    head[9..17].copy_from_slice(&sum.len.to_le_bytes());
    head[17..].copy_from_slice(&sum.crc.to_le_bytes());
    Ok(head)
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
        head.starts_with(MAGIC).then_some(Arriving { head, bytes: Vec::new() })
    }

    /// The kind that it says it is.
    pub fn tag(&self) -> u8 {
        self.head[8]
    }

    /// Bytes that will come.
    pub fn total(&self) -> u64 {
        self.head[9..17].try_into().map_or(0, u64::from_le_bytes)
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
        let sum = self.head[17..].try_into().map_or(0, u32::from_le_bytes);
        if crc32c::crc32c(&self.bytes) != sum {
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
