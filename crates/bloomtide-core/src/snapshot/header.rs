//! The header: prelude, parameters, section table, checksum.

use crate::error::{Error, Result};

/// The newest format version this code reads and the one it writes. A version is never changed in
/// meaning: a new layout gets a new number, and old numbers stay readable.
pub const VERSION: u16 = 1;

pub(super) const MAGIC: [u8; 8] = *b"BLOOMTID";
pub(super) const SEALED: [u8; 8] = *b"SEALED\0\0";
pub(super) const LIVE: [u8; 8] = *b"LIVE\0\0\0\0";
/// Where the state word stands; eight-byte aligned, so one store changes it.
pub(super) const STATE_AT: usize = 16;
pub(super) const PRELUDE: usize = 64;
/// Bytes covered by one checksum.
pub(super) const BLOCK: usize = 64 << 10;
/// No header is longer: a scalable filter of a thousand layers fits.
const MAX_HEADER: usize = 1 << 20;

/// What a snapshot holds. The numbers are for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A `BloomFilter`.
    Bloom,
    /// A `ScalableBloomFilter`.
    Scalable,
    /// A `CountingBloomFilter`.
    Counting,
    /// A `SpectralBloomFilter`.
    Spectral,
    /// A `DynamicCountFilter`.
    Dynamic,
    /// A `PartitionedSpectralBloomFilter`.
    PartitionedSpectral,
    /// A `PartitionedDynamicCountFilter`.
    PartitionedDynamic,
    /// A `TimeDecayingBloomFilter`.
    Decaying,
    /// A `HotList`.
    Hot,
    /// A `UrlFilter`.
    Url,
}

impl Kind {
    const ALL: [(Kind, u16, &'static str); 10] = [
        (Kind::Bloom, 1, "bloom"),
        (Kind::Scalable, 2, "scalable"),
        (Kind::Counting, 3, "counting"),
        (Kind::Spectral, 4, "sbf"),
        (Kind::Dynamic, 5, "dcf"),
        (Kind::PartitionedSpectral, 6, "psbf"),
        (Kind::PartitionedDynamic, 7, "pdcf"),
        (Kind::Decaying, 8, "tbf"),
        (Kind::Hot, 9, "hot"),
        (Kind::Url, 10, "url"),
    ];

    fn row(self) -> (Kind, u16, &'static str) {
        // Every variant has a row; the first is only named to avoid a panic path.
        Kind::ALL.into_iter().find(|row| row.0 == self).unwrap_or(Kind::ALL[0])
    }

    /// The name users know it by.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    pub(super) fn code(self) -> u16 {
        self.row().1
    }

    fn from_code(code: u16) -> Result<Self> {
        Kind::ALL
            .into_iter()
            .find(|row| row.1 == code)
            .map(|row| row.0)
            .ok_or_else(|| Error::Field { name: "kind", got: code.to_string() })
    }
}

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

    pub(super) fn checksums(&self) -> u64 {
        self.sections.iter().map(|bytes| bytes.div_ceil(BLOCK as u64)).sum()
    }

    pub(super) fn file_len(&self) -> u64 {
        self.len() as u64 + self.sections.iter().sum::<u64>() + self.checksums() * 4
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.unsigned();
        let checksum = checksum(&out);
        out.extend(checksum.to_le_bytes());
        out.resize(self.len(), 0);
        out
    }

    /// The header's checksum, from which those of the cells go on: cells belong to one header, so
    /// that half of one file and half of another never pass for a whole.
    pub(super) fn checksum(&self) -> u32 {
        checksum(&self.unsigned())
    }

    /// The header up to its checksum.
    fn unsigned(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.kind.code().to_le_bytes());
        out.extend((self.len() as u32).to_le_bytes());
        out.extend(if self.sealed { SEALED } else { LIVE });
        out.extend(self.file_len().to_le_bytes());
        out.extend((BLOCK as u32).to_le_bytes());
        out.extend((self.parameters.len() as u32).to_le_bytes());
        out.extend((self.sections.len() as u32).to_le_bytes());
        out.resize(PRELUDE, 0);
        out.extend(&self.parameters);
        for section in &self.sections {
            out.extend(section.to_le_bytes());
        }
        out
    }

    /// How long the header is, from its first `PRELUDE` bytes; `available` is the input's real length.
    pub(super) fn measure(prelude: &[u8], available: u64) -> Result<usize> {
        let known = prelude.len().min(MAGIC.len());
        if prelude[..known] != MAGIC[..known] || prelude.is_empty() {
            return Err(Error::NotASnapshot);
        }
        if prelude.len() < PRELUDE {
            return Err(Error::Truncated { expected: PRELUDE as u64, got: available });
        }
        let version = u16_at(prelude, 8);
        if version > VERSION {
            return Err(Error::Version { expected: VERSION, got: version });
        }
        if version == 0 {
            return Err(Error::Field { name: "version", got: "0".to_owned() });
        }
        let len = u32_at(prelude, 12) as usize;
        if !(PRELUDE + 4..=MAX_HEADER).contains(&len) || !len.is_multiple_of(64) {
            return Err(Error::Field { name: "header length", got: len.to_string() });
        }
        if len as u64 > available {
            return Err(Error::Truncated { expected: len as u64, got: available });
        }
        Ok(len)
    }

    /// Decodes a whole header; `available` is the input's real length.
    pub(super) fn decode(bytes: &[u8], available: u64) -> Result<Self> {
        let parameters = u32_at(bytes, 36) as usize;
        let sections = u32_at(bytes, 40) as usize;
        let end = PRELUDE.saturating_add(parameters).saturating_add(sections.saturating_mul(8));
        if end.saturating_add(4) > bytes.len() {
            return Err(Error::Field { name: "header length", got: bytes.len().to_string() });
        }
        let (stored, computed) = (u32_at(bytes, end), checksum(&bytes[..end]));
        if stored != computed {
            return Err(Error::Checksum { expected: stored, got: computed, offset: 0 });
        }
        let state = &bytes[STATE_AT..STATE_AT + 8];
        let sealed = state == SEALED;
        if !sealed && state != LIVE {
            return Err(Error::Field { name: "state", got: format!("{state:02x?}") });
        }
        let header = Header {
            kind: Kind::from_code(u16_at(bytes, 10))?,
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
        if header.file_len() != available {
            return Err(Error::Truncated { expected: header.file_len(), got: available });
        }
        Ok(header)
    }
}

/// CRC-32C of the header, the state word counted as zero.
fn checksum(header: &[u8]) -> u32 {
    let before = crc32c::crc32c(&header[..STATE_AT]);
    let state = crc32c::crc32c_append(before, &[0; 8]);
    crc32c::crc32c_append(state, &header[STATE_AT + 8..])
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: Kind::Scalable,
            sealed: true,
            parameters: (0..100).collect(),
            sections: vec![64, 128, 1 << 17],
        }
    }

    #[test]
    fn a_header_survives_a_round_trip() {
        let header = header();
        let bytes = header.encode();
        let available = header.file_len();
        assert_eq!(Header::measure(&bytes[..PRELUDE], available).ok(), Some(bytes.len()));
        assert_eq!(Header::decode(&bytes, available).ok(), Some(header));
    }

    #[test]
    fn no_flipped_bit_is_accepted() {
        let header = header();
        let bytes = header.encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let available = header.file_len();
            let result = Header::measure(&damaged[..PRELUDE], available)
                .and_then(|len| Header::decode(&damaged[..len.min(damaged.len())], available));
            assert!(result.is_err(), "bit {bit}");
        }
    }
}
