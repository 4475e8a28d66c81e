//! Any bytes as a journal: nothing breaks, what is read is a sound journal when it is written again, and a
//! journal with bytes in front of it, inside it or behind it loses no more than the record they hit.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::history::{Buffer, BufferPlan, RowsBy, scan};
use bloomtide_core::{Hasher, Key};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    by_time: bool,
    events: Vec<(u8, u16, u16)>,
    at: u16,
    noise: Vec<u8>,
    /// A record whose checksum is right, whatever it says.
    record: (u8, Vec<u8>),
}

fn buffer(by_time: bool) -> Buffer {
    let rows_by = if by_time { RowsBy::Time(100) } else { RowsBy::Arrivals(7) };
    let hasher = Hasher::Xxh3 { seed: 0 };
    Buffer::new(BufferPlan { rows_by, rows: 4, level: 0, names: 2, hasher }).expect("a good plan")
}

/// Everything that can be asked, to be compared.
fn held(buffer: &Buffer) -> String {
    let each = |(index, open): (i64, &bloomtide_core::history::OpenRows)| {
        format!("{index} {:?} {:?}", open.items().expect("small"), open.rows())
    };
    buffer.segments().map(each).collect::<Vec<_>>().join("\n")
}

fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    let checked = [&u64::MAX.to_le_bytes()[..], &[kind], payload].concat();
    let sum = crc32c::crc32c(&checked).to_le_bytes();
    [b"hrec", &(payload.len() as u32).to_le_bytes()[..], &sum, &checked].concat()
}

fuzz_target!(|input: Input| {
    let Input { by_time, events, at, noise, record } = input;
    let mut original = buffer(by_time);
    let mut journal = original.take_journal();
    for (key, count, time) in events {
        let key = [key];
        let count = u64::from(count) + 1;
        original.add(Key::Bytes(&key), count, i64::from(time)).expect("small");
        journal.extend(original.take_journal());
    }
    let mut back = buffer(by_time);
    let report = back.replay(&journal).expect("our own");
    assert!(report.damaged.is_none() && !report.torn);
    assert_eq!(held(&back), held(&original));
    let mut again = buffer(by_time);
    again.replay(&back.dump(&[]).expect("all was taken")).expect("our own");
    assert_eq!(held(&again), held(&original));

    // Noise anywhere: all sound records are found but the one that it is in, unless it is one itself.
    let whole = scan(&journal).expect("our own").count();
    let at = usize::from(at) % (journal.len() + 1);
    let noisy = [&journal[..at], &noise, &journal[at..]].concat();
    // Noise may be the sound header of another kind.
    if let Ok(found) = scan(&noisy) {
        let all = found.count() + 1 >= whole;
        assert!(all || noise.windows(4).any(|four| four == b"hrec"));
    }
    let _ = buffer(by_time).replay(&noisy);
    let _ = buffer(by_time).replay(&noise);

    // A record of any contents is applied or refused.
    let forged = [journal, framed(record.0, &record.1)].concat();
    let mut taken = buffer(by_time);
    if taken.replay(&forged).is_ok() {
        for (index, _) in taken.segments() {
            taken.contents(index).expect("open").check().expect("sound");
        }
        taken.dump(&[]).expect("all was taken");
    }
});
