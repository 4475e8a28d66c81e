//! Snappy blocks, unpacked: the codec that Spark writes Parquet with.
//!
//! Short pieces are copied in whole steps, which may write beyond the piece, never beyond the room
//! that the caller leaves after the last byte; the next piece overwrites what was too much.

/// Bytes that must follow the unpacked ones in the buffer.
pub(super) const ROOM: usize = 64;
const STEP: usize = 16;
const LITERAL: usize = 32;
/// Literals up to here are copied in steps; beyond it the system's copy is quicker than any loop.
const SHORT: usize = 64;

/// The length of the unpacked bytes, and where the first piece starts.
pub(super) fn unpacked_len(data: &[u8]) -> Option<(usize, usize)> {
    let mut len = 0;
    for (i, byte) in data.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(len).ok()?, i + 1));
        }
    }
    None
}

/// Unpacks a block into the start of `out`; how many bytes it has, or None if it is no such block.
pub(super) fn unpack(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let (size, mut at) = unpacked_len(data)?;
    if out.len() < size.checked_add(ROOM)? {
        return None;
    }
    let mut done: usize = 0;
    while let Some(&tag) = data.get(at) {
        at += 1;
        let high = usize::from(tag >> 2);
        if tag & 3 == 0 {
            let mut len = high + 1;
            if len > 60 {
                len = number(data, at, high - 59)?.checked_add(1)?;
                at += high - 59;
            }
            let end = done.checked_add(len).filter(|end| *end <= size)?;
            if len <= SHORT && at + len + LITERAL <= data.len() {
                for step in (0..len).step_by(LITERAL) {
                    put::<LITERAL>(out, done + step, take(data, at + step)?)?;
                }
            } else {
                out[done..end].copy_from_slice(data.get(at..at.checked_add(len)?)?);
            }
            at += len;
            done += len;
            continue;
        }
        let next = data.get(at..)?;
        let (len, back, width) = match tag & 3 {
            1 => (4 + (high & 7), usize::from(tag >> 5) << 8 | usize::from(*next.first()?), 1),
            2 => (1 + high, usize::from(u16::from_le_bytes(*next.first_chunk()?)), 2),
            _ => (1 + high, u32::from_le_bytes(*next.first_chunk()?) as usize, 4),
        };
        at += width;
        if back == 0 || back > done || done + len > size {
            return None;
        }
        repeat(out, done, back, len)?;
        done += len;
    }
    (done == size).then_some(size)
}

/// The `width` bytes from `at` on as a number.
fn number(data: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = data.get(at..at + width)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

/// Copies a piece of a fixed size, which the compiler makes one or two moves of.
#[inline(always)]
fn put<const N: usize>(out: &mut [u8], to: usize, piece: [u8; N]) -> Option<()> {
    *out.get_mut(to..)?.first_chunk_mut()? = piece;
    Some(())
}

/// The piece of a fixed size that begins at `from`.
#[inline(always)]
fn take<const N: usize>(data: &[u8], from: usize) -> Option<[u8; N]> {
    data.get(from..)?.first_chunk().copied()
}

/// Writes at `to` the `len` bytes, 64 at most, that begin `back` before it; they may overlap.
#[inline(always)]
fn repeat(out: &mut [u8], to: usize, back: usize, len: usize) -> Option<()> {
    let from = to - back;
    if back >= STEP {
        for step in (0..len).step_by(STEP) {
            put::<STEP>(out, to + step, take(out, from + step)?)?;
        }
    } else {
        for i in 0..len {
            out[to + i] = out[from + i];
        }
    }
    Some(())
}
