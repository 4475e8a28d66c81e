//! The checksums of the cells: a running CRC-32C, noted after every block.
//!
//! It begins with the header's checksum and goes on over all cells, so an entry of the table covers everything up to
//! the end of its block. A block therefore belongs to its place and to its file: blocks that change places, or come
//! from a file with the same header, are refused even if their entries come with them.
//!
//! Entries are masked, as LevelDB does it. A CRC over bytes that end with their own CRC has one value, whatever the
//! bytes are, and snapshots lie inside other files that have checksums of their own.

use super::header::{BLOCK, Header, u32_at};
use crate::error::{Error, Result};
use crate::format::{self, END};

/// The checksum of a header and of the cells so far.
pub(super) struct Running(u32);

impl Running {
    /// Before the first block.
    pub(super) fn new(header: &Header) -> Self {
        Running(header.checksum())
    }

    /// The entry of the next block.
    pub(super) fn entry(&mut self, block: &[u8]) -> u32 {
        self.0 = crc32c::crc32c_append(self.0, block);
        self.0.rotate_right(15).wrapping_add(0xa282_ead8)
    }
}

/// The table of these entries, and the end of the file.
pub(super) fn tail(entries: &[u32]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_le_bytes()).chain(END).collect()
}

/// Compares computed entries with what stands behind the cells, and names the first bad block.
pub(super) fn compare(header: &Header, computed: &[u32], stored: &[u8]) -> Result<()> {
    let mut entries = computed.iter().zip(stored.chunks_exact(4));
    for (offset, bytes) in header.offsets().iter().zip(&header.sections) {
        for block in (0..*bytes).step_by(BLOCK) {
            let Some((got, expected)) = entries.next() else { return Ok(()) };
            let expected = u32_at(expected, 0);
            if *got != expected {
                return Err(Error::Checksum { expected, got: *got, offset: offset + block });
            }
        }
    }
    format::require_end(stored).map(drop)
}
