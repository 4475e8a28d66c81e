//! Any bytes as a segment of a history: refused, or every question is answered or refused, and what is sound can be
//! compressed into something sound.
//!
//! Checksums stop a fuzzer at the door, so an input that does not start like a segment has them mended.

#![no_main]

use bloomtide_core::history::{Segment, join, merge_rows};
use libfuzzer_sys::fuzz_target;

/// Where the rows begin, and the words of the header that say how long they and the body are.
const FIXED: usize = 200;
const ROW_BYTES: usize = 64;
const BODY_BYTES: usize = 136;
const BLOCK: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    if !bytes.starts_with(b"BLOOM") {
        mend(&mut bytes);
    }
    let Ok(segment) = Segment::from_vec(bytes) else { return };
    let rows = segment.rows().len();
    for mark in (0..64u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
        let (Ok(counts), Ok(total)) = (segment.counts(mark), segment.count(mark, 0..rows)) else {
            continue;
        };
        assert_eq!(counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count)), total);
    }
    if segment.validate().is_err() || segment.sizes().columns * rows as u64 > 1 << 20 {
        return;
    }
    for made in [merge_rows(&segment, 2, 1.0), join(&segment, &segment, 1.0)].into_iter().flatten()
    {
        Segment::from_vec(made).expect("what was made opens").validate().expect("and is sound");
    }
});

/// Makes the magic, version, lengths and checksums right, as far as the bytes allow it.
fn mend(bytes: &mut [u8]) {
    let len = bytes.len();
    if len < FIXED + 128 {
        return;
    }
    bytes[..8].copy_from_slice(b"BLOOMHST");
    let version = 1 + u16::from(bytes[8] & 1);
    bytes[8..10].copy_from_slice(&version.to_le_bytes());
    bytes[176..FIXED].fill(0);
    let rows = usize::from(bytes[ROW_BYTES]) % (len - FIXED - 127);
    // The body is what is left; its length says how many checksums stand before it.
    let fitting = (0..=len / BLOCK + 1).find_map(|blocks| {
        let start = (FIXED + rows + 4 * blocks + 4).next_multiple_of(64);
        let body = len.checked_sub(start)?;
        (body.div_ceil(BLOCK) == blocks).then_some((start, body, blocks))
    });
    let Some((start, body, blocks)) = fitting else { return };
    bytes[ROW_BYTES..ROW_BYTES + 8].copy_from_slice(&(rows as u64).to_le_bytes());
    bytes[BODY_BYTES..BODY_BYTES + 8].copy_from_slice(&(body as u64).to_le_bytes());
    let table = FIXED + rows;
    let end = table + 4 * blocks;
    bytes[end..start].fill(0);
    for block in 0..blocks {
        let from = start + block * BLOCK;
        let sum = crc32c(&bytes[from..len.min(from + BLOCK)]);
        bytes[table + 4 * block..table + 4 * block + 4].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = crc32c(&bytes[..end]);
    bytes[end..end + 4].copy_from_slice(&sum.to_le_bytes());
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}
