//! Writing a snapshot, block by block: no second copy of the cells in memory.

use super::checksums::{Running, tail};
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

/// Writes the cells block by block, and notes each.
fn write_cells(
    words: &Words,
    out: &mut dyn Write,
    mut note: impl FnMut(&[u8]),
) -> std::io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    let bytes = words.bytes() as usize;
    for start in (0..bytes).step_by(BLOCK) {
        let block = &mut buffer[..BLOCK.min(bytes - start)];
        words.copy_to(start / 8, block);
        note(block);
        out.write_all(block)?;
    }
    Ok(())
}

/// The checksums of the cells of one section, which stay where they are.
pub(super) fn entries_of(words: &Words, mut running: Running) -> Vec<u32> {
    let mut entries = Vec::new();
    // A sink never fails.
    let _ = write_cells(words, &mut std::io::sink(), |block| entries.push(running.entry(block)));
    entries
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
        let (mut running, mut entries) = (Running::new(&header), Vec::new());
        for words in &self.sections {
            write_cells(words, out, |block| entries.push(running.entry(block)))?;
        }
        // Zeros in the place of lost cells must not get right checksums.
        self.require_whole().map_err(std::io::Error::other)?;
        out.write_all(&tail(&entries))
    }

    /// Refuses the cells of a mapped file that was cut.
    fn require_whole(&self) -> Result<()> {
        self.sections.iter().try_for_each(|words| words.require_whole())
    }
}

/// The filter as a byte string.
pub fn to_bytes(filter: &dyn Snapshot) -> Result<Vec<u8>> {
    let frozen = filter.freeze()?;
    let len = frozen.header().file_len();
    let refuse = || Error::Capacity { needed: len, limit: isize::MAX as u64 };
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(len).map_err(|_| refuse())?).map_err(|_| refuse())?;
    frozen.write(&mut out).map_err(|_| frozen.require_whole().err().unwrap_or_else(refuse))?;
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
    let saved = replace(disk, path, &mut |out| frozen.write(out));
    saved.map_err(|error| frozen.require_whole().err().unwrap_or(error))
}
