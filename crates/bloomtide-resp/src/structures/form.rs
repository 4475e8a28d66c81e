//! A structure of this crate as bytes.
//!
//! ```text
//! common header (`bloomtide_core::format`) | numbers and cells | CRC-32C, going on from the header's (u32)
//! ```
//!
//! All numbers are little-endian. Nothing is believed before length and checksum were seen, nothing is allocated
//! that the real length does not justify, and what passed the checksum goes through the checks of a constructor.

use bloomtide_core::format::{self, Kind};
use bloomtide_core::snapshot::{Snapshot, write_to};
use bloomtide_core::{Error, Result};
use std::io::{self, Write};

const BEGIN: usize = format::header_len(0);

/// Bytes on their way out, with the checksum of those that went.
pub(super) struct Form<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    sum: u32,
}

/// Bytes that are summed up and written together.
const PIECE: usize = 1 << 16;

impl<'a> Form<'a> {
    /// Begins with the header of its kind; `body` is how many bytes will follow.
    pub(super) fn new(out: &'a mut dyn Write, kind: Kind, body: u64) -> io::Result<Self> {
        let length = BEGIN as u64 + body + format::SUM as u64;
        let header = format::header(kind, &[], length);
        out.write_all(&header)?;
        let sum = format::checksum_of(&header);
        Ok(Form { out, buffer: Vec::with_capacity(PIECE + 8), sum })
    }

    pub(super) fn u32(&mut self, number: u32) -> io::Result<()> {
        self.buffer.extend(number.to_le_bytes());
        self.spill()
    }

    pub(super) fn u64(&mut self, number: u64) -> io::Result<()> {
        self.buffer.extend(number.to_le_bytes());
        self.spill()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() < PIECE {
            self.buffer.extend(bytes);
            return self.spill();
        }
        self.empty()?;
        self.put(bytes)
    }

    /// A snapshot of the core's, as long as `encoded_len` says.
    pub(super) fn snapshot(&mut self, filter: &dyn Snapshot) -> io::Result<()> {
        write_to(filter, self)
    }

    #[inline(always)]
    fn spill(&mut self) -> io::Result<()> {
        if self.buffer.len() < PIECE { Ok(()) } else { self.empty() }
    }

    fn empty(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = self.put(&buffer);
        buffer.clear();
        self.buffer = buffer;
        done
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = crc32c::crc32c_append(self.sum, bytes);
        self.out.write_all(bytes)
    }

    /// Ends with the checksum.
    pub(super) fn seal(mut self) -> io::Result<()> {
        self.empty()?;
        self.out.write_all(&self.sum.to_le_bytes())
    }
}

impl Write for Form<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.empty()
    }
}

/// What is left to read of bytes whose checksum was right.
#[derive(Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Checks header, length and checksum.
    pub(super) fn open(bytes: &'a [u8], kind: Kind) -> Result<Self> {
        let (header, body) = format::unseal(bytes, kind)?;
        header.fields::<0>()?;
        Ok(Fields(body))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((first, rest)) = self.0.split_first_chunk::<N>() else {
            return Err(Error::Truncated { expected: N as u64, got: self.0.len() as u64 });
        };
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// As many cells of `N` bytes as a plan says there are, before anything is allocated for them.
    pub(super) fn cells<const N: usize>(&mut self, count: u64) -> Result<&'a [[u8; N]]> {
        let needed = count.saturating_mul(N as u64);
        let got = self.0.len() as u64;
        let (cells, rest) =
            match usize::try_from(needed).ok().and_then(|n| self.0.split_at_checked(n)) {
                Some(parts) => parts,
                None => return Err(Error::Truncated { expected: needed, got }),
            };
        self.0 = rest;
        Ok(cells.as_chunks().0)
    }

    /// Refuses to go on when there are fewer bytes left.
    pub(super) fn has(&self, needed: u64) -> Result<()> {
        let got = self.0.len() as u64;
        if got < needed { Err(Error::Truncated { expected: needed, got }) } else { Ok(()) }
    }

    pub(super) fn bytes(&mut self, count: u64) -> Result<&'a [u8]> {
        self.cells::<1>(count).map(<[[u8; 1]]>::as_flattened)
    }

    /// All that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Refuses what follows the last field.
    pub(super) fn end(self) -> Result<()> {
        match self.0.len() as u64 {
            0 => Ok(()),
            more => Err(Error::Truncated { expected: 0, got: more }),
        }
    }
}

/// Laws that hold for every form: each changed byte, each missing end and each addition is refused.
#[cfg(test)]
pub(super) fn is_refused_when_damaged<T>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T>) {
    assert!(read(bytes).is_ok());
    for at in 0..bytes.len() {
        assert!(read(&bytes[..at]).is_err(), "cut at {at}");
        let mut changed = bytes.to_vec();
        changed[at] ^= 0x10;
        assert!(read(&changed).is_err(), "changed at {at}");
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert!(read(&longer).is_err());
}

/// Bytes with another body, and the length and the checksum of that.
#[cfg(test)]
pub(super) fn forged(bytes: &[u8], forge: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut forged = bytes[..bytes.len() - format::SUM].to_vec();
    forge(&mut forged);
    let kind = u16::from_le_bytes([forged[8], forged[9]]);
    let length = (forged.len() + format::SUM) as u64;
    let header = format::header(Kind::from_code(kind).expect("ours"), &[], length);
    forged[..BEGIN].copy_from_slice(&header);
    format::seal(&mut forged, BEGIN);
    forged
}

/// A structure as bytes.
#[cfg(test)]
pub(super) fn written(held: &impl crate::structure::Held) -> Vec<u8> {
    let mut bytes = Vec::new();
    held.write(&mut bytes).expect("a vector takes all");
    bytes
}
