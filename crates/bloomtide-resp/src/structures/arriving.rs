//! A structure that comes in chunks, by BF.LOADCHUNK and its siblings: kept as it comes, until all of it is there.
//!
//! The first chunk says how long the rest is and has its checksum; the rest is what the structure wrote. Of a dump of
//! RedisBloom the first chunk says how long the filters are, and there is no checksum.

use super::bloom::Bloom;
use super::cuckoo::Cuckoo;
use super::redisbloom::Chain;
use super::redisbloom_cuckoo::{self, Tables};
use crate::fields::{Sum, put, take};
use crate::structure::{self, Kind, Structure};
use bloomtide_core::format::{self, Header};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::{Error, Result};
use std::any::TypeId;
use std::io::{self, Write};

/// What the first chunk adds to the common header: the structure's tag and three zeros, the checksum of the rest.
const ADDED: usize = 8;
/// Bytes of the first chunk.
const HEAD: usize = format::header_len(ADDED);

/// What has come so far.
#[derive(Debug)]
pub struct Arriving {
    head: Box<[u8]>,
    /// The kind that it says it is.
    pub tag: u8,
    /// Bytes that will come.
    pub total: u64,
    /// The checksum of the rest; None for a dump of RedisBloom.
    sum: Option<u32>,
    bytes: Vec<u8>,
}

impl Arriving {
    /// The first chunk of a structure.
    pub fn head(structure: &dyn Structure) -> io::Result<Vec<u8>> {
        let sum = structure::write(structure, Sum::of(io::sink()))?;
        let mut added = [0; ADDED];
        added[0] = Kind::of(structure).tag;
        added[4..].copy_from_slice(&sum.crc.to_le_bytes());
        Ok(format::header(format::Kind::Chunk, &added, HEAD as u64 + sum.len))
    }

    /// Begins with the first chunk.
    pub fn new(head: &[u8]) -> Option<Self> {
        let bytes = Vec::new();
        if !head.starts_with(&format::MAGIC) {
            let (id, total) = match head.len() {
                redisbloom_cuckoo::HEAD => (TypeId::of::<Cuckoo>(), Tables::announced(head)?),
                _ => (TypeId::of::<Bloom>(), Chain::announced(head)?),
            };
            let tag = Kind::of_type(id).tag;
            return Some(Arriving { head: head.into(), tag, total, sum: None, bytes });
        }
        if head.len() != HEAD {
            return None;
        }
        let header = Header::read(head, Some(format::Kind::Chunk)).ok()?;
        let [tag, 0, 0, 0, sum @ ..] = *header.fields::<ADDED>().ok()? else { return None };
        let total = header.length.checked_sub(HEAD as u64)?;
        let sum = Some(u32::from_le_bytes(sum));
        Some(Arriving { head: head.into(), tag, total, sum, bytes })
    }

    /// The structure whose chunks these are, one after the other, if all are there and sound.
    pub fn whole(chunks: &[u8]) -> Option<Box<dyn Structure>> {
        let (head, rest) = chunks.split_at_checked(HEAD)?;
        Header::read(head, Some(format::Kind::Chunk)).ok()?;
        let mut this = Arriving::new(head)?;
        this.take(rest)?
    }

    /// Takes the next chunk; the structure, when it was the last. None if these are not the structure's bytes.
    pub fn take(&mut self, chunk: &[u8]) -> Option<Option<Box<dyn Structure>>> {
        self.bytes.extend_from_slice(chunk);
        if self.bytes() < self.total {
            return Some(None);
        }
        if self.bytes() > self.total {
            return None;
        }
        let Some(sum) = self.sum else {
            let dump = [&self.head, &self.bytes[..]].concat();
            return Some(Some(if self.head.len() == redisbloom_cuckoo::HEAD {
                Box::new(Cuckoo::dumped(&dump).ok()?)
            } else {
                Box::new(Bloom::dumped(&dump).ok()?)
            }));
        };
        if crc32c::crc32c(&self.bytes) != sum {
            return None;
        }
        structure::read(self.tag, &self.bytes).ok().map(Some)
    }
}

impl Structure for Arriving {
    fn kind(&self) -> &'static str {
        "arriving"
    }

    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// All chunks, and what they become: both are there at the end.
    fn admitted(&self) -> u64 {
        self.total.saturating_mul(2)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        put(out, &[self.head.len() as u64])?;
        out.write_all(&self.head)?;
        out.write_all(&self.bytes)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::Field { name: "arriving", got: format!("{} bytes", bytes.len()) };
        let mut from = Reader::new(bytes, "arriving");
        let [len] = take(&mut from)?;
        let (head, rest) = (from.bytes(len)?, from.rest());
        let mut this = Arriving::new(head).ok_or_else(wrong)?;
        this.bytes.extend_from_slice(rest);
        if this.bytes() < this.total { Ok(this) } else { Err(wrong()) }
    }
}
