//! Laws of the framing.

use super::*;

const MARK: Mark = [7, 0, 255, 9];

/// A file of some records, and where each ends.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let mut bytes =
        format::header(Kind::LedgerJournal, &[&MARK[..], &5u64.to_le_bytes()].concat(), 0);
    let payloads = [&b"first"[..], b"", &[1; 40], &MARK, b"the last one"];
    let ends = payloads.iter().zip(5..).map(|(payload, number)| {
        put(MARK, number, payload, &mut bytes).unwrap();
        bytes.len()
    });
    let ends = ends.collect();
    (bytes, ends)
}

/// Numbers of the sound records, where they end, where damage begins.
fn read(bytes: &[u8]) -> (Vec<u64>, usize, Option<usize>) {
    let mut scan = Scan::new(bytes, Kind::LedgerJournal).unwrap();
    let numbers = std::iter::from_fn(|| scan.step(bytes).map(|(number, _)| number)).collect();
    (numbers, scan.end, scan.damaged)
}

#[test]
fn what_was_written_is_read_again() {
    let (bytes, _) = sample();
    assert_eq!(read(&bytes), ((5..10).collect(), bytes.len(), None));
}

#[test]
fn a_torn_tail_is_no_damage_wherever_it_tore() {
    let (bytes, ends) = sample();
    for cut in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        // A file is made with its header: without one it is not torn, but damaged.
        let (begin, bad) = if cut < START { (cut, Some(0)) } else { (START, None) };
        let end = if whole == 0 { begin } else { ends[whole - 1] };
        assert_eq!(
            read(&bytes[..cut]),
            ((5..5 + whole as u64).collect(), end, bad),
            "cut at {cut}"
        );
        // Zeros, as a file system may leave them, change nothing.
        let torn = [&bytes[..cut], &[0; 300]].concat();
        assert!(cut < START || read(&torn) == read(&bytes[..cut]), "cut at {cut}");
    }
}

#[test]
fn damage_is_told_and_costs_the_record_that_it_hits() {
    let (bytes, ends) = sample();
    for at in 0..ends[ends.len() - 2] {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bad = bytes.clone();
            bad[at] ^= flip;
            let (numbers, end, damaged) = read(&bad);
            let hit = ends.iter().position(|end| at < *end).unwrap();
            let (start, lost) = match hit {
                _ if at < START => (0, 0),
                0 => (START, 1),
                _ => (ends[hit - 1], 1),
            };
            assert_eq!((numbers.len(), end, damaged), (5 - lost, bytes.len(), Some(start)), "{at}");
        }
    }
}

#[test]
fn a_record_that_comes_twice_or_is_cut_out_is_damage() {
    let (bytes, ends) = sample();
    let twice = [&bytes[..], &bytes[ends[3]..]].concat();
    assert_eq!(read(&twice), ((5..10).collect(), twice.len(), Some(bytes.len())));
    let out = [&bytes[..ends[0]], &bytes[ends[1]..]].concat();
    assert_eq!(read(&out), (vec![5, 7, 8, 9], out.len(), Some(ends[0])));
}

#[test]
fn a_file_of_another_kind_is_refused_by_name() {
    let error = Scan::new(&sample().0, Kind::HistoryJournal).unwrap_err();
    assert_eq!(error.to_string(), "this is a ledger journal, not a history journal");
}
