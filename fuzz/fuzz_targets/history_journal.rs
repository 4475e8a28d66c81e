//! Any bytes as a journal: nothing breaks, what is read is a sound journal when it is written again, and a
//! journal with bytes in front of it, inside it or behind it loses no more than the record they hit.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::durable::{self, Scan};
use bloomtide_core::format::{self, Kind};
use bloomtide_core::history::{Buffer, BufferPlan, RowsBy};
use bloomtide_core::{Hasher, Key};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    by_time: bool,
    events: Vec<(u8, u16, u16)>,
    at: u16,
    noise: Vec<u8>,
    /// A record whose checksum is right, whatever it says.
    record: Vec<u8>,
}

const MARK: durable::Mark = *b"mark";

fn buffer(by_time: bool) -> Buffer {
    let rows_by = if by_time { RowsBy::Time(100) } else { RowsBy::Arrivals(7) };
    let hasher = Hasher::Xxh3 { seed: 0 };
    Buffer::new(BufferPlan { rows_by, rows: 4, names: 2, hasher }).expect("a good plan")
}

/// Everything that can be asked, to be compared.
fn held(buffer: &Buffer) -> String {
    let each = |(index, open): (i64, &bloomtide_core::history::OpenRows)| {
        format!("{index} {:?} {:?}", open.items().expect("small"), open.rows())
    };
    buffer.segments().map(each).collect::<Vec<_>>().join("\n")
}

/// A file of these records.
fn framed(payloads: &[Vec<u8>]) -> Vec<u8> {
    let added = [&MARK[..], &1u64.to_le_bytes()].concat();
    let mut out = format::header(Kind::HistoryJournal, &added, 0);
    for (number, payload) in (1..).zip(payloads) {
        durable::put(MARK, number, payload, &mut out).expect("small");
    }
    out
}

/// How many records are sound; all of them go to the buffer until it refuses one.
fn replay(buffer: &mut Buffer, data: &[u8]) -> Option<(Scan, usize, bool)> {
    let mut scan = Scan::new(data, Kind::HistoryJournal).ok()?;
    let (mut sound, mut taken) = (0, true);
    while let Some((_, payload)) = scan.step(data) {
        sound += 1;
        taken = taken && buffer.replay(payload).is_ok();
    }
    Some((scan, sound, taken))
}

fuzz_target!(|input: Input| {
    let Input { by_time, events, at, noise, record } = input;
    let mut original = buffer(by_time);
    let mut records = original.take_journal();
    for (key, count, time) in events {
        let key = [key];
        let count = u64::from(count) + 1;
        original.add(Key::Bytes(&key), count, i64::from(time)).expect("small");
        records.extend(original.take_journal());
    }
    let journal = framed(&records);
    let mut back = buffer(by_time);
    let (scan, sound, taken) = replay(&mut back, &journal).expect("our own");
    assert!(taken && sound == records.len() && scan.damaged.is_none());
    assert_eq!(scan.end, journal.len());
    assert_eq!(held(&back), held(&original));
    let mut again = buffer(by_time);
    replay(&mut again, &framed(&back.dump(&[]).expect("all was taken"))).expect("our own");
    assert_eq!(held(&again), held(&original));

    // Noise anywhere: all sound records are found but the one that it is in, unless it is one itself.
    let at = usize::from(at) % (journal.len() + 1);
    let noisy = [&journal[..at], &noise, &journal[at..]].concat();
    // Noise may be the sound header of another kind, and in the header it may hide the mark.
    if let Some((_, found, _)) = replay(&mut buffer(by_time), &noisy) {
        let marked = noise.windows(4).any(|four| four == MARK);
        assert!(at < durable::START || marked || found + 1 >= sound);
    }
    replay(&mut buffer(by_time), &noise);

    // A record of any contents is applied or refused.
    let mut taken = buffer(by_time);
    records.push(record);
    if let Some((_, _, true)) = replay(&mut taken, &framed(&records)) {
        for (index, _) in taken.segments() {
            taken.contents(&[index], 0).expect("open").check().expect("sound");
        }
        taken.dump(&[]).expect("all was taken");
    }
});
