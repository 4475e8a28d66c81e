//! Laws of the journal's records.

use super::*;

const NONE: State = State {
    rows_by: RowsBy::Time(60_000_000),
    rows: 60,
    fingerprint: 77,
    next_row: 0,
    newest: None,
};

fn seen(first: i64, last: i64) -> Seen {
    Seen { first, last, events: 0 }
}

#[test]
fn what_was_written_is_read_again() {
    let mut journal = Journal::default();
    journal.state(&NONE);
    journal.events(1, seen(100, 107), 2);
    journal.push(2, 1);
    journal.push(u64::MAX, u64::MAX);
    for (segment, key) in
        [(9, Key::Text(b"later")), (1, Key::Text(b"a name")), (1, Key::Negative(-4))]
    {
        journal.name(segment, OwnedKey::of(key).unwrap());
    }
    let taken = journal.take();
    let records: Vec<_> = taken.iter().map(|payload| Record::parse(payload).unwrap()).collect();
    let seen = Seen { first: 100, last: 107, events: u64::MAX };
    let expected = [
        Record::State(NONE),
        Record::Events { row: 1, seen, pairs: vec![(2, 1), (u64::MAX, u64::MAX)] },
        Record::Names { segment: 1, keys: vec![Key::Text(b"a name"), Key::Negative(-4)] },
        Record::Names { segment: 9, keys: vec![Key::Text(b"later")] },
    ];
    assert_eq!(records, expected);
    assert!(journal.is_empty() && journal.take().is_empty());
    for payload in &taken {
        for cut in 0..payload.len() {
            let shorter = Record::parse(&payload[..cut]);
            assert!(shorter.is_err() || shorter.ok() != Record::parse(payload).ok());
        }
    }
}

#[test]
fn events_of_one_row_share_a_record_until_it_is_full_or_taken() {
    let mut journal = Journal::default();
    for event in 0..20_000u64 {
        journal.events(5, seen(event as i64, event as i64), 1);
        journal.push(event, 1 + event % 300);
    }
    let records = journal.take();
    assert!((3..6).contains(&records.len()));
    let mut all = Vec::new();
    for record in &records {
        let Ok(Record::Events { row: 5, seen, pairs }) = Record::parse(record) else { panic!() };
        assert_eq!(seen.first, pairs[0].0 as i64);
        assert_eq!(seen.last, pairs[pairs.len() - 1].0 as i64);
        all.extend(pairs);
    }
    assert_eq!(all, (0..20_000).map(|event| (event, 1 + event % 300)).collect::<Vec<_>>());
}
