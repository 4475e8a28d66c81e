//! Any bytes as a segment of a history: refused, or every question is answered or refused.
//!
//! Checksums stop a fuzzer at the door, so an input that does not start like a segment has them mended.

#![no_main]

use bloomtide_core::history::Segment;
use libfuzzer_sys::fuzz_target;

/// Where the rows begin, and the word of the header that says how long they are.
const FIXED: usize = 184;
const ROW_BYTES: usize = 80;
const BLOCK: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    if !bytes.starts_with(b"BLOOMTID") {
        mend(&mut bytes);
    }
    let Ok(segment) = Segment::from_vec(bytes) else { return };
    let rows = segment.rows().len();
    for mark in (0..64u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
        let (Ok(counts), Ok((total, _))) =
            (segment.counts(mark, 0..rows), segment.ask(mark, 0..rows))
        else {
            continue;
        };
        assert_eq!(counts.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count)), total);
    }
    let _ = segment.validate();
});

/// Makes the magic, version, lengths and checksums right, as far as the bytes allow it.
fn mend(bytes: &mut [u8]) {
    let len = bytes.len();
    if len < FIXED + 128 {
        return;
    }
    bytes[..8].copy_from_slice(b"BLOOMTID");
    bytes[8..10].copy_from_slice(&20u16.to_le_bytes());
    bytes[10..12].copy_from_slice(&1u16.to_le_bytes());
    bytes[16..24].copy_from_slice(&(len as u64).to_le_bytes());
    bytes[29..32].fill(0);
    let rows = usize::from(bytes[ROW_BYTES]) % (len - FIXED - 127);
    // The body is what is left; its length says how many checksums stand before it.
    let fitting = (0..=len / BLOCK + 1).find_map(|blocks| {
        let start = (FIXED + rows + 4 * blocks + 4).next_multiple_of(64);
        let body = len.checked_sub(start)?;
        (body.div_ceil(BLOCK) == blocks).then_some((start, blocks))
    });
    let Some((start, blocks)) = fitting else { return };
    bytes[ROW_BYTES..ROW_BYTES + 8].copy_from_slice(&(rows as u64).to_le_bytes());
    bytes[12..16].copy_from_slice(&(start as u32).to_le_bytes());
    let table = FIXED + rows;
    let end = table + 4 * blocks;
    bytes[end..start].fill(0);
    for block in 0..blocks {
        let from = start + block * BLOCK;
        let sum = crc32c::crc32c(&bytes[from..len.min(from + BLOCK)]);
        bytes[table + 4 * block..table + 4 * block + 4].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = crc32c::crc32c(&bytes[..start - 4]);
    bytes[start - 4..start].copy_from_slice(&sum.to_le_bytes());
}
