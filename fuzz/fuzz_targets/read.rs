//! Any bytes: `read` refuses them or returns a filter that is sound and writes the same bytes again.
//!
//! Checksums stop a fuzzer at the door, so an input that does not start like a snapshot has them mended:
//! magic, lengths and checksums are computed anew, and what is behind them is reached. Golden files
//! are inputs as they are.

#![no_main]

use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    if !bytes.starts_with(b"BLOOMTID") {
        mend(&mut bytes);
    }
    let Ok(loaded) = read(&bytes, None) else { return };
    let (sound, again) = match &loaded {
        Loaded::Bloom(filter) => (filter.validate(), to_bytes(filter)),
        Loaded::Scalable(filter) => (filter.validate(), to_bytes(filter)),
        Loaded::Counting(filter) => (filter.validate(), to_bytes(filter)),
        Loaded::Dynamic(filter) => (filter.validate(), filter.freeze().and_then(|f| to_bytes(&f))),
        Loaded::Spectral(filter) => (filter.validate(), filter.freeze().and_then(|f| to_bytes(&f))),
        Loaded::Url(filter) => (filter.validate(), to_bytes(&**filter)),
        Loaded::Hot(list) => (list.validate(), to_bytes(&**list)),
        Loaded::Decaying(filter) => (filter.validate(), filter.freeze().and_then(|f| to_bytes(&f))),
    };
    sound.expect("what was read is sound");
    assert_eq!(again.expect("it fitted before"), bytes);
});

/// Makes the magic, version, lengths and checksums right, as far as the bytes allow it.
fn mend(bytes: &mut [u8]) {
    if bytes.len() < 128 {
        return;
    }
    bytes[..8].copy_from_slice(b"BLOOMTID");
    let kind = 1 + u16::from(bytes[8]) % 10;
    bytes[8..10].copy_from_slice(&kind.to_le_bytes());
    bytes[10..12].copy_from_slice(&1u16.to_le_bytes());
    let len = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&len.to_le_bytes());
    bytes[24..32].copy_from_slice(b"SEALED\0\0");
    bytes[32..36].copy_from_slice(&65536u32.to_le_bytes());
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let parameters = word(bytes, 36) as usize % 1024;
    let sections = word(bytes, 40) as usize % 4;
    bytes[36..40].copy_from_slice(&(parameters as u32).to_le_bytes());
    bytes[40..44].copy_from_slice(&(sections as u32).to_le_bytes());
    bytes[44..64].fill(0);
    let end = 64 + parameters + 8 * sections;
    let header = (end + 4).next_multiple_of(64);
    if header > bytes.len() {
        return;
    }
    bytes[12..16].copy_from_slice(&(header as u32).to_le_bytes());
    bytes[end..header].fill(0);
    let mut state_free = bytes[..header - 4].to_vec();
    state_free[24..32].fill(0);
    let seed = crc32c::crc32c(&state_free);
    bytes[header - 4..header].copy_from_slice(&seed.to_le_bytes());
    // One checksum per section of at most one block is all a fuzzer's input holds.
    let cells = bytes.len().saturating_sub(header + 4 * sections);
    if sections == 1 && cells <= 65536 {
        let checksum = crc32c::crc32c_append(seed, &bytes[header..header + cells]);
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&checksum.to_le_bytes());
    }
}
