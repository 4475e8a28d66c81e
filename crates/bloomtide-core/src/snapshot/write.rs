//! Writing a snapshot, block by block: no second copy of the cells in memory.

use super::file::{Disk, replace};
use super::header::{BLOCK, Header, Kind};
use super::record::Record;
use crate::cells::Words;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, CountingBloomFilter};
use std::io::Write;
use std::ops::Deref;
use std::path::Path;

/// A filter that can become a snapshot.
pub trait Snapshot {
    /// What the snapshot will say it holds.
    fn kind(&self) -> Kind;
    /// The kind's parameters as bytes.
    fn parameters(&self) -> Vec<u8>;
    /// The cells, one entry per section.
    fn sections(&self) -> Result<Vec<Section<'_>>>;
}

/// The words of one section: the filter's own, or made for the snapshot.
#[derive(Debug)]
pub enum Section<'a> {
    /// The cells as they are.
    Cells(&'a Words),
    /// Another form of them.
    Made(Words),
}

impl Deref for Section<'_> {
    type Target = Words;

    fn deref(&self) -> &Words {
        match self {
            Section::Cells(words) => words,
            Section::Made(words) => words,
        }
    }
}

impl Snapshot for BloomFilter {
    fn kind(&self) -> Kind {
        Kind::Bloom
    }

    fn parameters(&self) -> Vec<u8> {
        Record::of_bloom(self.plan(), self.hasher()).encode().to_vec()
    }

    fn sections(&self) -> Result<Vec<Section<'_>>> {
        Ok(vec![Section::Cells(self.words())])
    }
}

impl Snapshot for CountingBloomFilter {
    fn kind(&self) -> Kind {
        Kind::Counting
    }

    fn parameters(&self) -> Vec<u8> {
        Record::of_counting(self.plan(), self.hasher()).encode().to_vec()
    }

    fn sections(&self) -> Result<Vec<Section<'_>>> {
        Ok(vec![Section::Cells(self.counters().words())])
    }
}

fn header_of(filter: &dyn Snapshot, sections: &[Section<'_>]) -> Header {
    Header {
        kind: filter.kind(),
        sealed: true,
        parameters: filter.parameters(),
        sections: sections.iter().map(|words| words.bytes()).collect(),
    }
}

/// Writes the cells block by block and returns their checksums, which go on from the header's.
fn write_cells(words: &Words, seed: u32, out: &mut dyn Write) -> std::io::Result<Vec<u32>> {
    let mut checksums = Vec::new();
    let mut buffer = vec![0; BLOCK];
    let bytes = words.bytes() as usize;
    for start in (0..bytes).step_by(BLOCK) {
        let block = &mut buffer[..BLOCK.min(bytes - start)];
        words.copy_to(start / 8, block);
        checksums.push(crc32c::crc32c_append(seed, block));
        out.write_all(block)?;
    }
    Ok(checksums)
}

/// The checksums of cells that stay where they are.
pub(super) fn checksums_of(words: &Words, seed: u32) -> Vec<u32> {
    // A sink never fails.
    write_cells(words, seed, &mut std::io::sink()).unwrap_or_default()
}

fn write(header: &Header, sections: &[Section<'_>], out: &mut dyn Write) -> std::io::Result<()> {
    out.write_all(&header.encode())?;
    let mut checksums = Vec::new();
    for words in sections {
        checksums.extend(write_cells(words, header.checksum(), out)?);
    }
    for checksum in checksums {
        out.write_all(&checksum.to_le_bytes())?;
    }
    Ok(())
}

/// The filter as a byte string.
pub fn to_bytes(filter: &dyn Snapshot) -> Result<Vec<u8>> {
    let sections = filter.sections()?;
    let header = header_of(filter, &sections);
    let len = header.file_len();
    let refuse = || Error::Capacity { needed: len, limit: isize::MAX as u64 };
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(len).map_err(|_| refuse())?).map_err(|_| refuse())?;
    write(&header, &sections, &mut out).map_err(|_| refuse())?;
    Ok(out)
}

/// Writes the filter's snapshot to wherever it goes.
pub fn write_to(filter: &dyn Snapshot, out: &mut dyn Write) -> std::io::Result<()> {
    let sections = filter.sections().map_err(std::io::Error::other)?;
    write(&header_of(filter, &sections), &sections, out)
}

/// Bytes that the filter's snapshot has.
pub fn encoded_len(filter: &dyn Snapshot) -> Result<u64> {
    Ok(header_of(filter, &filter.sections()?).file_len())
}

/// Replaces `path` by the filter's snapshot, atomically and durably.
pub fn save(filter: &dyn Snapshot, path: &Path, disk: &dyn Disk) -> Result<()> {
    let sections = filter.sections()?;
    let header = header_of(filter, &sections);
    replace(disk, path, &mut |out| write(&header, &sections, out))
}
