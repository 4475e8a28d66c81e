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

/// Bytes before the first record.
const START: usize = format::header_len(0);

/// A journal of several records of every kind, and where each ends.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut journal = Journal::default();
    journal.start(&NONE);
    let mut take = |journal: &mut Journal| {
        bytes.extend(journal.take());
        ends.push(bytes.len());
    };
    take(&mut journal);
    for row in 0..3 {
        journal.events(row, seen(row * 100, row * 100 + 7), 2);
        journal.push(row as u64 + 1, 1);
        journal.push(u64::MAX, u64::MAX);
        take(&mut journal);
        journal.name(row, OwnedKey::of(Key::Text(b"a name")).unwrap());
        journal.name(row, OwnedKey::of(Key::Negative(-4)).unwrap());
        take(&mut journal);
    }
    (bytes, ends)
}

fn read(bytes: &[u8]) -> (Vec<Record<'_>>, usize, Option<usize>) {
    let mut scan = scan(bytes).unwrap();
    let records = scan.by_ref().collect();
    (records, scan.sound_bytes(), scan.damaged())
}

#[test]
fn what_was_written_is_read_again() {
    let (bytes, ends) = sample();
    let (records, sound, damaged) = read(&bytes);
    assert_eq!((records.len(), sound, damaged), (ends.len(), bytes.len(), None));
    assert_eq!(records[0], Record::State(NONE));
    let seen = Seen { first: 100, last: 107, events: u64::MAX };
    let pairs = vec![(2, 1), (u64::MAX, u64::MAX)];
    assert_eq!(records[3], Record::Events { row: 1, seen, pairs });
    let keys = vec![Key::Text(b"a name"), Key::Negative(-4)];
    assert_eq!(records[4], Record::Names { segment: 1, keys });
}

#[test]
fn events_of_one_row_share_a_record_until_it_is_full_or_taken() {
    let mut journal = Journal::default();
    journal.start(&NONE);
    for event in 0..20_000u64 {
        journal.events(5, seen(event as i64, event as i64), 1);
        journal.push(event, 1 + event % 300);
    }
    let bytes = journal.take();
    let (mut records, _, damaged) = read(&bytes);
    assert_eq!(records.remove(0), Record::State(NONE));
    assert!((3..6).contains(&records.len()) && damaged.is_none());
    let mut all = Vec::new();
    for record in records {
        let Record::Events { row: 5, seen, pairs } = record else { panic!("{record:?}") };
        assert_eq!(seen.first, pairs[0].0 as i64);
        assert_eq!(seen.last, pairs[pairs.len() - 1].0 as i64);
        all.extend(pairs);
    }
    assert_eq!(all, (0..20_000).map(|event| (event, 1 + event % 300)).collect::<Vec<_>>());
}

#[test]
fn a_torn_tail_is_cut_at_the_last_sound_record_wherever_it_tore() {
    let (bytes, ends) = sample();
    for cut in 0..bytes.len() {
        let (records, sound, damaged) = read(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        // A file is made with its header: without one it is not torn, but damaged.
        let (begin, bad) = if cut < START { (0, Some(0)) } else { (START, None) };
        assert_eq!((records.len(), damaged), (whole, bad), "cut at {cut}");
        assert_eq!(sound, if whole == 0 { begin } else { ends[whole - 1] });
        // Zeros, as a file system may leave them, and old bytes change nothing.
        for tail in [vec![0; 300], bytes[..cut].to_vec()] {
            let torn = [&bytes[..cut], &tail].concat();
            let (again, sound_again, _) = read(&torn);
            assert!(cut < START || (again.len(), sound_again) == (whole, sound), "cut at {cut}");
        }
    }
}

#[test]
fn damage_before_sound_records_is_reported_and_costs_one_record() {
    let (bytes, ends) = sample();
    let last = ends[ends.len() - 2];
    for at in 0..last {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bad = bytes.clone();
            bad[at] ^= flip;
            let (records, sound, damaged) = read(&bad);
            if at < START {
                assert_eq!((records.len(), damaged), (ends.len(), Some(0)), "byte {at}");
                continue;
            }
            let hit = ends.iter().position(|end| at < *end).unwrap();
            let start = if hit == 0 { START } else { ends[hit - 1] };
            assert_eq!(damaged, Some(start), "byte {at}");
            assert_eq!((records.len(), sound), (ends.len() - 1, bytes.len()), "byte {at}");
        }
    }
}

#[test]
fn a_record_that_comes_twice_counts_once() {
    let (bytes, ends) = sample();
    let twice = [&bytes[..ends[1]], &bytes[ends[0]..]].concat();
    let (records, sound, damaged) = read(&twice);
    assert_eq!(records.len(), ends.len());
    assert_eq!((sound, damaged), (twice.len(), Some(ends[1])));
}

#[test]
fn a_file_of_another_kind_is_refused_by_name() {
    let other = format::header(Kind::LedgerJournal, &[], 0);
    let error = scan(&other).unwrap_err();
    assert_eq!(error.to_string(), "this is a ledger journal, not a history journal");
}
