//! Any bytes as the items of a sealed segment, with a checksum that is right: they are refused, or what comes
//! of them is sound.

#![no_main]

use bloomtide_core::Hasher;
use bloomtide_core::format::{self, Kind};
use bloomtide_core::history::{RowOf, encode_items, roll_up};
use libfuzzer_sys::fuzz_target;

const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

fn with_checksum(body: &[u8]) -> Vec<u8> {
    let fingerprint = HASHER.bytes(b"bloomtide history").h2.to_le_bytes();
    let begin = format::header_len(fingerprint.len());
    let length = (begin + body.len() + format::SUM) as u64;
    let mut file = format::header(Kind::HistoryItems, &fingerprint, length);
    file.extend(body);
    format::seal(&mut file, begin);
    file
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>, i64, i64, i64)| {
    let (first, second, begin, end, span) = input;
    let files = [with_checksum(&first), with_checksum(&second), first];
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    for (files, row_of) in [
        (&files[..1], RowOf::Time(span)),
        (&files[..2], RowOf::Time(span)),
        (&files[..2], RowOf::Order),
        (&files[2..], RowOf::Order),
    ] {
        // More rows than memory are not what is looked for.
        if matches!(row_of, RowOf::Time(_)) && end.saturating_sub(begin) / span.max(1) > 1 << 12 {
            continue;
        }
        if let Ok(contents) = roll_up(files, 1, (begin, end), row_of, 3, &HASHER) {
            contents.check().expect("sound");
            let again = encode_items(&contents, &HASHER).expect("small");
            roll_up(&[&again], 2, (begin, end), RowOf::Order, 3, &HASHER).expect("our own");
        }
    }
});
