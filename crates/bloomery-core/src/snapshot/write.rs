//! Writing a snapshot, block by block: no second copy of the cells in memory.

use super::file::{Disk, replace};
use super::header::{BLOCK, Header, Kind};
use super::record::Record;
use crate::cells::Words;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, CountingBloomFilter, ScalableBloomFilter};
use std::io::Write;
use std::path::Path;

/// A filter that can become a snapshot.
pub trait Snapshot {
    /// What the snapshot will say it holds.
    fn kind(&self) -> Kind;
    /// The kind's parameters as bytes.
    fn parameters(&self) -> Vec<u8>;
    /// The cells, one entry per section.
    fn sections(&self) -> Vec<&Words>;
}

impl Snapshot for BloomFilter {
    fn kind(&self) -> Kind {
        Kind::Bloom
    }

    fn parameters(&self) -> Vec<u8> {
        Record::of_bloom(self.plan(), self.hasher()).encode().to_vec()
    }

    fn sections(&self) -> Vec<&Words> {
        vec![self.words()]
    }
}

impl Snapshot for CountingBloomFilter {
    fn kind(&self) -> Kind {
        Kind::Counting
    }

    fn parameters(&self) -> Vec<u8> {
        Record::of_counting(self.plan(), self.hasher()).encode().to_vec()
    }

    fn sections(&self) -> Vec<&Words> {
        vec![self.counters().words()]
    }
}

impl Snapshot for ScalableBloomFilter {
    fn kind(&self) -> Kind {
        Kind::Scalable
    }

    /// The goals (40 bytes), then for each layer its items and its record.
    fn parameters(&self) -> Vec<u8> {
        let plan = self.plan();
        let mut out = Vec::new();
        out.extend(plan.capacity.to_le_bytes());
        out.extend(plan.error_rate.to_le_bytes());
        out.extend(plan.growth.to_le_bytes());
        out.extend(plan.tightening.to_le_bytes());
        out.extend((self.layers().len() as u64).to_le_bytes());
        for (filter, items) in self.layers().zip(self.layer_items()) {
            out.extend(items.to_le_bytes());
            out.extend(Record::of_bloom(filter.plan(), filter.hasher()).encode());
        }
        out
    }

    fn sections(&self) -> Vec<&Words> {
        self.layers().map(BloomFilter::words).collect()
    }
}

pub(super) fn header_of(filter: &dyn Snapshot, sealed: bool) -> Header {
    Header {
        kind: filter.kind(),
        sealed,
        parameters: filter.parameters(),
        sections: filter.sections().iter().map(|words| words.bytes()).collect(),
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

pub(super) fn write(filter: &dyn Snapshot, out: &mut dyn Write) -> std::io::Result<()> {
    let header = header_of(filter, true);
    out.write_all(&header.encode())?;
    let mut checksums = Vec::new();
    for words in filter.sections() {
        checksums.extend(write_cells(words, header.checksum(), out)?);
    }
    for checksum in checksums {
        out.write_all(&checksum.to_le_bytes())?;
    }
    Ok(())
}

/// The filter as a byte string.
pub fn to_bytes(filter: &dyn Snapshot) -> Result<Vec<u8>> {
    let len = header_of(filter, true).file_len();
    let refuse = || Error::Capacity { needed: len, limit: isize::MAX as u64 };
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(len).map_err(|_| refuse())?).map_err(|_| refuse())?;
    write(filter, &mut out).map_err(|_| refuse())?;
    Ok(out)
}

/// Replaces `path` by the filter's snapshot, atomically and durably.
pub fn save(filter: &dyn Snapshot, path: &Path, disk: &dyn Disk) -> Result<()> {
    replace(disk, path, &mut |out| write(filter, out))
}
