//! Numbers of fixed width, little-endian, and the sum of what is written.

use bloomtide_core::Result;
use bloomtide_core::history::varint::Reader;
use std::io::{self, Write};

/// Writes numbers one after the other.
pub(crate) fn put(out: &mut dyn Write, numbers: &[u64]) -> io::Result<()> {
    numbers.iter().try_for_each(|number| out.write_all(&number.to_le_bytes()))
}

/// Reads numbers that `put` wrote.
pub(crate) fn take<const N: usize>(from: &mut Reader<'_>) -> Result<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u64::from_le_bytes(from.fixed()?);
    }
    Ok(numbers)
}

/// Counts and sums what goes through it.
#[derive(Debug)]
pub(crate) struct Sum<W> {
    out: W,
    pub(crate) len: u64,
    pub(crate) crc: u32,
}

impl<W> Sum<W> {
    pub(crate) fn of(out: W) -> Self {
        Sum { out, len: 0, crc: 0 }
    }
}

impl<W: Write> Write for Sum<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.len += written as u64;
        self.crc = crc32c::crc32c_append(self.crc, &bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
