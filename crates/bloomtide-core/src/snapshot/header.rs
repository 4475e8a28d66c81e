//! What a snapshot adds to the common header: state, lengths, parameters, section table.

use crate::error::{Error, Result};
use crate::format;

pub use crate::format::{Kind, VERSION};

pub(super) const SEALED: [u8; 8] = *b"SEALED\0\0";
pub(super) const LIVE: [u8; 8] = *b"LIVE\0\0\0\0";
pub(super) use crate::format::{STATE_AT, u32_at, u64_at};
/// Bytes before the parameters.
pub(super) const PRELUDE: usize = 64;
/// Bytes covered by one checksum.
pub(super) const BLOCK: usize = 64 << 10;
/// No header is longer: a scalable filter of a thousand layers fits.
const MAX_HEADER: usize = 1 << 20;

/// A decoded header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) sealed: bool,
    pub(super) parameters: Vec<u8>,
    /// Bytes of each section's cells.
    pub(super) sections: Vec<u64>,
}

impl Header {
    /// Length with padding: where the first section starts.
    pub(super) fn len(&self) -> usize {
        (PRELUDE + self.parameters.len() + self.sections.len() * 8 + 4).next_multiple_of(64)
    }

    /// Where each section starts, and after the last where the checksum table does.
    pub(super) fn offsets(&self) -> Vec<u64> {
        let mut offset = self.len() as u64;
        let mut offsets = vec![offset];
        for section in &self.sections {
            offset += section;
            offsets.push(offset);
        }
        offsets
    }

    /// Bytes behind the cells: the checksum table and the end.
    pub(super) fn tail_len(&self) -> u64 {
        let blocks: u64 = self.sections.iter().map(|bytes| bytes.div_ceil(BLOCK as u64)).sum();
        blocks * 4 + format::END.len() as u64
    }

    pub(super) fn file_len(&self) -> u64 {
        self.len() as u64 + self.sections.iter().sum::<u64>() + self.tail_len()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut added = Vec::with_capacity(self.len());
        added.extend(if self.sealed { SEALED } else { LIVE });
        added.extend((BLOCK as u32).to_le_bytes());
        added.extend((self.parameters.len() as u32).to_le_bytes());
        added.extend((self.sections.len() as u32).to_le_bytes());
        added.resize(PRELUDE - format::HEAD, 0);
        added.extend(&self.parameters);
        for section in &self.sections {
            added.extend(section.to_le_bytes());
        }
        added.resize(self.len() - format::HEAD - format::SUM, 0);
        format::header(self.kind, &added, self.file_len())
    }

    /// The header's checksum, from which those of the cells go on.
    pub(super) fn checksum(&self) -> u32 {
        format::checksum_of(&self.encode())
    }

    /// How long the header is, from its first bytes; `available` is the input's real length.
    pub(super) fn measure(head: &[u8], available: u64) -> Result<usize> {
        let len = format::measure(head, available)?;
        if len > MAX_HEADER {
            return Err(Error::Field { name: "header length", got: len.to_string() });
        }
        Ok(len)
    }

    /// Decodes a whole header, of the `wanted` kind or of any filter; `available` is the input's real
    /// length.
    pub(super) fn decode(bytes: &[u8], available: u64, wanted: Option<Kind>) -> Result<Self> {
        let common = format::Header::read(bytes, wanted)?;
        common.require_length(available)?;
        let wrong = || Error::Field { name: "header length", got: bytes.len().to_string() };
        if common.len < PRELUDE {
            return Err(wrong());
        }
        let state = &bytes[STATE_AT..STATE_AT + 8];
        let sealed = state == SEALED;
        if !sealed && state != LIVE {
            return Err(Error::Field { name: "state", got: format!("{state:02x?}") });
        }
        let parameters = u32_at(bytes, 36) as usize;
        let sections = u32_at(bytes, 40) as usize;
        let end = PRELUDE.saturating_add(parameters).saturating_add(sections.saturating_mul(8));
        if end > common.len - format::SUM {
            return Err(wrong());
        }
        let header = Header {
            kind: common.kind,
            sealed,
            parameters: bytes[PRELUDE..PRELUDE + parameters].to_vec(),
            sections: (0..sections).map(|i| u64_at(bytes, PRELUDE + parameters + 8 * i)).collect(),
        };
        let total = header.sections.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes));
        if total.is_none_or(|total| total > available) {
            return Err(Error::Truncated { expected: total.unwrap_or(u64::MAX), got: available });
        }
        // The same encoder wrote it, so every byte must come out again: reserved fields, padding,
        // block size and lengths are all checked by this one comparison.
        if header.encode() != bytes {
            return Err(Error::Field { name: "header", got: "unknown fields".to_owned() });
        }
        Ok(header)
    }
}
