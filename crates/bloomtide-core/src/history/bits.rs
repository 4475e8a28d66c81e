//! Bits in bytes, from the lowest on: how a segment's file holds everything but its header.

use crate::cells::packed::Packer;
use crate::error::{Error, Result};

/// So many bits, all off.
pub(super) fn zeroed(bits: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    let refused = |_| Error::Capacity { needed: bits / 8, limit: isize::MAX as u64 };
    out.try_reserve_exact(len).map_err(refused)?;
    out.resize(len, 0);
    Ok(out)
}

/// The bits `[bit, bit + 64)`; zeros beyond the end.
#[inline(always)]
pub(super) fn window(bytes: &[u8], bit: u64) -> u64 {
    let (at, shift) = ((bit >> 3) as usize, (bit & 7) as u32);
    match bytes.get(at..).and_then(|rest| rest.first_chunk::<9>()) {
        Some([low @ .., high]) => {
            let low = u64::from_le_bytes(*low) >> shift;
            low | ((u64::from(*high) << 1) << (63 - shift))
        }
        None => tail(bytes, at, shift),
    }
}

#[cold]
fn tail(bytes: &[u8], at: usize, shift: u32) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let value = rest.iter().take(9).rev().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
    (value >> shift) as u64
}

/// The lowest `len` bits, all of them from 64 on.
#[inline(always)]
pub(super) fn low(len: u64) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// Turns one bit on.
#[inline(always)]
pub(super) fn set(bytes: &mut [u8], bit: u64) {
    bytes[(bit >> 3) as usize] |= 1 << (bit & 7);
}

/// Bits that are appended.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    words: Vec<u64>,
    open: Packer,
    len: u64,
}

impl BitWriter {
    /// Appends the lowest `len` bits, at most 64; the others must be zero.
    #[inline]
    pub(super) fn push(&mut self, value: u64, len: u32) {
        debug_assert!(value & !low(u64::from(len)) == 0);
        if len > 0 {
            self.words.extend(self.open.push(value, len));
            self.len += u64::from(len);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// As the bytes of a file, no longer than the bits need.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let words = self.words.iter().copied().chain([self.open.rest().0]);
        let mut out: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        out.truncate(self.len.div_ceil(8) as usize);
        out
    }
}
