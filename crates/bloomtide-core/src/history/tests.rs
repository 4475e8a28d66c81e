//! Segments behind sound checksums. What they answer is tested from Python, in `tests/history_segment`.

use super::*;
use crate::key::Key;

const HASHER: Hasher = Hasher::Xxh3 { seed: 7 };
const MINUTE: i64 = 60_000_000;
const GOAL: Goal = Goal { error_rate: 0.05, gate_error: 0.05, hasher: HASHER };

/// Numbers without a pattern, the same in every run.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 0;
    move |below| {
        state += 1;
        HASHER.unsigned(state).h2 % below
    }
}

/// `keys` keys, each with some events in `rows` rows.
fn contents(keys: u64, rows: u32, events: u64) -> Contents {
    let rows_by = RowsBy::Time(MINUTE);
    let plan = BufferPlan { rows_by, rows, names: 9, hasher: HASHER };
    let (mut buffer, mut random) = (Buffer::new(plan).unwrap(), numbers());
    for key in (0..events).map(|event| Key::Unsigned(event % keys)) {
        let (count, row) = (1 << random(20), random(rows.into()) as i64);
        buffer.add(key, count, row * MINUTE + 5).unwrap();
    }
    buffer.contents(&[0], 1).unwrap()
}

#[test]
fn contents_that_are_out_of_order_are_refused() {
    let sound = contents(20, 5, 40);
    let refused = |change: &dyn Fn(&mut Contents)| {
        let mut contents = sound.clone();
        change(&mut contents);
        build(&contents, &GOAL).is_err()
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|contents| contents.items.swap(0, 1)));
    assert!(refused(&|contents| contents.items[3].row = 5));
    assert!(refused(&|contents| contents.items[3].count = 0));
    assert!(refused(&|contents| contents.items[3].count = u64::MAX));
    assert!(refused(&|contents| contents.rows.clear()));
    assert!(refused(&|contents| contents.rows[0].seen.last = MINUTE));
    assert!(refused(&|contents| contents.rows[0].windows = 0));
    assert!(refused(&|contents| contents.names.reverse()));
    assert!(refused(&|contents| contents.begin = contents.end + 1));
}

/// Makes the checksums right again, so that what is behind them is reached.
fn mend(bytes: &mut [u8]) {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    let (start, rows) = ((word(12) & 0xFFFF_FFFF) as usize, word(80) as usize);
    let table = 184 + rows;
    let sums: Vec<u8> =
        bytes[start..].chunks(4096).flat_map(|block| crc32c::crc32c(block).to_le_bytes()).collect();
    bytes[table..table + sums.len()].copy_from_slice(&sums);
    let sum = crc32c::crc32c(&bytes[..start - 4]);
    bytes[start - 4..start].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn damage_behind_right_checksums_is_refused_or_answered_but_never_fatal() {
    let sound = [contents(40, 20, 120), contents(10, 100, 600), contents(300, 3, 300)];
    let files = sound.map(|contents| build(&contents, &GOAL).unwrap());
    let mut random = numbers();
    let (mut opened, mut refused) = (0, 0);
    for round in 0..2000 {
        let mut bytes = files[round % 3].clone();
        // The lengths that `mend` itself needs stay as they are.
        for _ in 0..=random(3) {
            let part =
                if random(3) == 0 { 400.min(bytes.len() as u64) } else { bytes.len() as u64 };
            let at = random(part) as usize;
            if !(12..16).contains(&at) && !(80..88).contains(&at) {
                bytes[at] ^= 1 << random(8);
            }
        }
        mend(&mut bytes);
        let Ok(segment) = Segment::from_vec(bytes) else {
            refused += 1;
            continue;
        };
        opened += 1;
        let _ = segment.validate();
        let _ = segment.names();
        for mark in (0..20).map(|_| random(u64::MAX)) {
            let _ = segment.counts(mark, 0..segment.rows().len());
        }
    }
    assert!(opened > 300 && refused > 100, "{opened} opened, {refused} refused");
}
