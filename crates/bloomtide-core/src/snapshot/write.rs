//! Writing a snapshot, block by block: no second copy of the cells in memory.

use super::file::{Disk, replace};
use super::header::{BLOCK, Header, Kind};
use super::record::Record;
use crate::cells::Words;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, CountingBloomFilter, CountingPlan};
use std::io::Write;
use std::ops::Deref;
use std::path::Path;

/// A filter that can become a snapshot.
pub trait Snapshot {
    /// What is written of it.
    fn freeze(&self) -> Result<Frozen<'_>>;
}

/// What is written of a filter: one moment of it, or its own cells.
#[derive(Debug)]
pub struct Frozen<'a> {
    pub(super) kind: Kind,
    pub(super) parameters: Vec<u8>,
    pub(super) sections: Vec<Section<'a>>,
}

impl Snapshot for Frozen<'_> {
    fn freeze(&self) -> Result<Frozen<'_>> {
        let sections = self.sections.iter().map(|words| Section::Cells(words)).collect();
        Ok(Frozen { kind: self.kind, parameters: self.parameters.clone(), sections })
    }
}

/// The words of one section: the filter's own, or made for the snapshot.
#[derive(Debug)]
pub(super) enum Section<'a> {
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
    fn freeze(&self) -> Result<Frozen<'_>> {
        let parameters = Record::of_bloom(self.plan(), self.hasher()).encode().to_vec();
        Ok(Frozen { kind: Kind::Bloom, parameters, sections: vec![Section::Cells(self.words())] })
    }
}

impl Snapshot for CountingBloomFilter {
    fn freeze(&self) -> Result<Frozen<'_>> {
        let CountingPlan { placement, counter_bits, policy, capacity, error_rate } = *self.plan();
        let goal = (capacity, error_rate);
        let record = Record::of_counters(self.hasher(), &placement, policy, counter_bits, goal);
        let sections = vec![Section::Cells(self.counters().words())];
        Ok(Frozen { kind: Kind::Counting, parameters: record.encode().to_vec(), sections })
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

impl Frozen<'_> {
    fn header(&self) -> Header {
        Header {
            kind: self.kind,
            sealed: true,
            parameters: self.parameters.clone(),
            sections: self.sections.iter().map(|words| words.bytes()).collect(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let header = self.header();
        out.write_all(&header.encode())?;
        let mut checksums = Vec::new();
        for words in &self.sections {
            checksums.extend(write_cells(words, header.checksum(), out)?);
        }
        for checksum in checksums {
            out.write_all(&checksum.to_le_bytes())?;
        }
        Ok(())
    }
}

/// The filter as a byte string.
pub fn to_bytes(filter: &dyn Snapshot) -> Result<Vec<u8>> {
    let frozen = filter.freeze()?;
    let len = frozen.header().file_len();
    let refuse = || Error::Capacity { needed: len, limit: isize::MAX as u64 };
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(len).map_err(|_| refuse())?).map_err(|_| refuse())?;
    frozen.write(&mut out).map_err(|_| refuse())?;
    Ok(out)
}

/// Writes the filter's snapshot to wherever it goes.
pub fn write_to(filter: &dyn Snapshot, out: &mut dyn Write) -> std::io::Result<()> {
    filter.freeze().map_err(std::io::Error::other)?.write(out)
}

/// Bytes that the filter's snapshot has.
pub fn encoded_len(filter: &dyn Snapshot) -> Result<u64> {
    Ok(filter.freeze()?.header().file_len())
}

/// Replaces `path` by the filter's snapshot, atomically and durably.
pub fn save(filter: &dyn Snapshot, path: &Path, disk: &dyn Disk) -> Result<()> {
    let frozen = filter.freeze()?;
    replace(disk, path, &mut |out| frozen.write(out))
}
