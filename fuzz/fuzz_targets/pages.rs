//! Any bytes as a chunk of a Parquet column: they are refused, or all promised keys are there.

#![no_main]

use bloomtide_core::Hasher;
use bloomtide_core::pages::{Codec, Form, Page, Pages, Physical};
use libfuzzer_sys::fuzz_target;

const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

fn read(page: &Page) -> u64 {
    let keys = page.rows();
    (0..keys.len()).fold(0, |all, row| all ^ keys.hash(&HASHER, row).h1)
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (choice, values, chunk) = input;
    let physical = match choice % 3 {
        0 => Physical::Int32,
        1 => Physical::Int64,
        _ => Physical::Bytes { text: choice & 16 != 0 },
    };
    let codec = if choice & 32 == 0 { Codec::Plain } else { Codec::Snappy };
    let mut pages = Pages::new(Form { physical, codec, optional: choice & 64 != 0 }, values.into());
    let mut found = 0;
    while let Ok(Some(page)) = pages.next(chunk) {
        let _ = read(&page);
        found += page.len();
        assert!(found <= values.into());
        // A page without values takes none of those that are left.
        if page.is_empty() {
            break;
        }
    }
});
