//! Laws of sealed segments, against the exact counts they were made of.

use super::*;
use crate::key::Key;
use std::collections::BTreeMap;

pub(super) const HASHER: Hasher = Hasher::Xxh3 { seed: 7 };
pub(super) const MINUTE: i64 = 60_000_000;

pub(super) fn goal(error_rate: f64, policy: CellPolicy) -> Goal {
    Goal { error_rate, gate_error: error_rate, policy, hasher: HASHER, sizes: None }
}

/// Numbers without a pattern, the same in every run.
pub(super) fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_add(1);
        HASHER.unsigned(state ^ seed << 32).h2 % below
    }
}

/// `keys` keys in `rows` rows: `often` of ten pairs have a count of one, the others more.
pub(super) fn contents(seed: u64, keys: u64, rows: u32, per_key: u64, often: u64) -> Contents {
    let mut random = numbers(seed);
    let mut pairs = BTreeMap::new();
    for key in 0..keys {
        let mark = HASHER.unsigned(seed << 40 | key).mark();
        for _ in 0..per_key {
            let row = random(rows.into()) as u32;
            let count = if random(10) < often { 1 } else { 1 << random(20) };
            *pairs.entry((mark, row)).or_insert(0) += count;
        }
    }
    of_pairs(pairs, rows)
}

pub(super) fn of_pairs(pairs: BTreeMap<(u64, u32), u64>, rows: u32) -> Contents {
    let items: Vec<Item> =
        pairs.into_iter().map(|((mark, row), count)| Item { mark, row, count }).collect();
    let record = |row: u32| {
        let begin = i64::from(row) * MINUTE;
        let events = items.iter().filter(|item| item.row == row).map(|item| item.count).sum();
        let mut record = RowRecord { events, ..RowRecord::empty(begin, begin + MINUTE) };
        if events > 0 {
            (record.first, record.last) = (begin + 5, begin + 7);
        }
        record
    };
    let name = |i: u64| Named { key: OwnedKey::of(Key::Unsigned(i)).unwrap(), count: 100 - i };
    Contents {
        level: 1,
        begin: 0,
        end: i64::from(rows) * MINUTE,
        rows: (0..rows).map(record).collect(),
        names: (0..9).map(name).collect(),
        unlisted: 90,
        items,
    }
}

pub(super) fn segment(contents: &Contents, goal: &Goal) -> Segment {
    let segment = Segment::from_vec(build(contents, goal).unwrap()).unwrap();
    segment.validate().unwrap();
    segment
}

pub(super) fn shapes() -> Vec<Contents> {
    vec![
        contents(1, 300, 60, 4, 5),
        contents(2, 500, 60, 1, 10),
        contents(3, 50, 1, 1, 5),
        contents(4, 40, 200, 300, 5),
        contents(5, 1, 64, 40, 5),
        contents(6, 30, 63, 60, 8),
        contents(7, 0, 3, 0, 0),
        contents(8, 2000, 10, 2, 7),
    ]
}

#[test]
fn no_answer_is_below_the_truth() {
    for contents in shapes() {
        for policy in [CellPolicy::Largest, CellPolicy::Plain] {
            let segment = segment(&contents, &goal(0.05, policy));
            for one in contents.items.chunk_by(|a, b| a.mark == b.mark) {
                let counts = segment.counts(one[0].mark).unwrap();
                assert!(one.iter().all(|item| counts[item.row as usize] >= item.count));
            }
        }
    }
}

#[test]
fn any_range_is_the_sum_of_its_rows() {
    let mut random = numbers(9);
    for contents in shapes() {
        let segment = segment(&contents, &goal(0.2, CellPolicy::Largest));
        let rows = contents.rows.len() as u64;
        let present = contents.items.iter().map(|item| item.mark).step_by(7);
        for mark in present.chain((0..100).map(|key| HASHER.unsigned(key).mark())) {
            let counts = segment.counts(mark).unwrap();
            let a = random(rows + 1) as usize;
            let b = random(rows + 2) as usize;
            let sum: u64 = counts.get(a..b.min(counts.len())).unwrap_or_default().iter().sum();
            assert_eq!(segment.count(mark, a..b).unwrap(), sum);
        }
    }
}

/// What each cell must hold, by the paper's own rule or by ours.
fn naive(contents: &Contents, segment: &Segment, policy: CellPolicy) -> BTreeMap<(u64, u32), u64> {
    let mut cells = BTreeMap::new();
    for item in &contents.items {
        for column in segment.positions(item.mark).1 {
            let cell: &mut u64 = cells.entry((column, item.row)).or_default();
            *cell = match policy {
                CellPolicy::Largest => item.count.max(*cell),
                CellPolicy::Plain => *cell + item.count,
            };
        }
    }
    cells
}

#[test]
fn every_cell_holds_what_its_policy_says() {
    for contents in shapes() {
        for policy in [CellPolicy::Largest, CellPolicy::Plain] {
            let segment = segment(&contents, &goal(0.2, policy));
            let expected = naive(&contents, &segment, policy);
            let mut cells = Vec::new();
            for column in 0..segment.sizes().columns {
                segment.cells(column, &mut cells).unwrap();
                for (row, cell) in (0..).zip(&cells) {
                    assert_eq!(*cell, expected.get(&(column, row)).copied().unwrap_or(0));
                }
            }
        }
    }
}

#[test]
fn an_answer_is_the_least_of_the_keys_cells_behind_the_gate() {
    for contents in shapes() {
        let segment = segment(&contents, &goal(0.2, CellPolicy::Plain));
        let cells = naive(&contents, &segment, CellPolicy::Plain);
        for mark in (0..200)
            .map(|key| HASHER.unsigned(key).mark())
            .chain(contents.items.iter().map(|item| item.mark).step_by(5))
        {
            let columns = segment.positions(mark).1;
            let passes = segment.contains(mark).unwrap();
            for (row, count) in (0..).zip(segment.counts(mark).unwrap()) {
                let least = columns
                    .iter()
                    .map(|column| cells.get(&(*column, row)).copied().unwrap_or(0))
                    .min();
                assert_eq!(count, if passes { least.unwrap() } else { 0 });
            }
        }
    }
}

#[test]
fn the_largest_count_is_never_more_than_the_sum() {
    for contents in shapes() {
        let largest = segment(&contents, &goal(0.5, CellPolicy::Largest));
        let plain = segment(
            &contents,
            &Goal { sizes: Some(*largest.sizes()), ..goal(0.5, CellPolicy::Plain) },
        );
        for item in contents.items.iter().step_by(3) {
            let (a, b) = (largest.counts(item.mark).unwrap(), plain.counts(item.mark).unwrap());
            assert!(a.iter().zip(b).all(|(a, b)| *a <= b));
        }
    }
}

#[test]
fn keys_are_counted_wrongly_no_more_often_than_promised() {
    for (error_rate, contents) in
        [(0.01, contents(11, 20_000, 60, 2, 7)), (0.05, contents(12, 20_000, 24, 1, 10))]
    {
        let segment = segment(&contents, &goal(error_rate, CellPolicy::Largest));
        let mut truth: BTreeMap<u64, u64> = BTreeMap::new();
        contents.items.iter().for_each(|item| *truth.entry(item.mark).or_default() += item.count);
        let wrong = truth
            .iter()
            .filter(|(mark, count)| segment.count(**mark, 0..99).unwrap() != **count)
            .count();
        let keys = truth.len() as f64;
        // Four standard deviations of a binomial count; the size is near the promise, so not far below either.
        let (mean, sigma) = (keys * error_rate, (keys * error_rate).sqrt());
        assert!((wrong as f64) < mean + 4.0 * sigma, "{wrong} of {keys}");
        assert!((wrong as f64) > 0.5 * mean - 4.0 * sigma, "{wrong} of {keys}");
        let (predicted, gate) = segment.predicted_errors();
        assert!((0.8 * error_rate..1.05 * error_rate).contains(&predicted), "{predicted}");
        let strangers = 100_000;
        let passed = (0..strangers)
            .filter(|key| segment.contains(HASHER.unsigned(key | 1 << 60).mark()).unwrap())
            .count();
        let mean = strangers as f64 * gate;
        assert!((passed as f64 - mean).abs() < 5.0 * mean.sqrt(), "{passed}, predicted {mean}");
    }
}

#[test]
fn what_is_known_of_a_segment_comes_back() {
    for contents in shapes() {
        let segment = segment(&contents, &goal(0.01, CellPolicy::Largest));
        assert_eq!(segment.rows(), contents.rows);
        assert_eq!(segment.span(), (contents.begin, contents.end));
        assert_eq!(segment.names().unwrap(), (contents.names.clone(), contents.unlisted));
        assert_eq!(segment.load().1, contents.items.len() as u64);
        let [file, parts @ ..] = segment.bytes();
        assert!(parts.iter().sum::<u64>() < file);
    }
}

#[test]
fn damage_in_any_byte_is_refused() {
    let contents = contents(21, 60, 20, 3, 5);
    let bytes = build(&contents, &goal(0.01, CellPolicy::Largest)).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let refused = Segment::from_vec(damaged).and_then(|segment| segment.validate());
        assert!(refused.is_err(), "byte {at} of {}", bytes.len());
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let bytes = build(&contents(22, 20, 5, 2, 5), &goal(0.01, CellPolicy::Largest)).unwrap();
    for len in 1..bytes.len() {
        assert!(
            matches!(Segment::from_vec(bytes[..len].to_vec()), Err(Error::Truncated { .. })),
            "{len}"
        );
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(Segment::from_vec(longer), Err(Error::Truncated { .. })));
    assert!(matches!(Segment::from_vec(b"something else".to_vec()), Err(Error::NotASnapshot)));
}

#[test]
fn damage_that_no_question_touches_does_not_stop_other_questions() {
    let contents = contents(23, 3000, 30, 3, 5);
    let mut bytes = build(&contents, &goal(0.01, CellPolicy::Largest)).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let segment = Segment::from_vec(bytes).unwrap();
    let answers = contents.items.iter().map(|item| segment.count(item.mark, 0..30));
    let (good, bad): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
    assert!(!good.is_empty() && !bad.is_empty());
    assert!(bad.iter().all(|answer| matches!(answer, Err(Error::Checksum { .. }))));
}

#[test]
fn contents_that_are_out_of_order_are_refused() {
    let sound = contents(24, 20, 5, 2, 5);
    let refused = |change: &dyn Fn(&mut Contents)| {
        let mut contents = sound.clone();
        change(&mut contents);
        build(&contents, &goal(0.01, CellPolicy::Largest)).is_err()
    };
    assert!(!refused(&|_| ()));
    assert!(refused(&|contents| contents.items.swap(0, 1)));
    assert!(refused(&|contents| contents.items[3].row = 5));
    assert!(refused(&|contents| contents.items[3].count = 0));
    assert!(refused(&|contents| contents.items[3].count = u64::MAX));
    assert!(refused(&|contents| contents.rows.clear()));
    assert!(refused(&|contents| contents.rows[0].last = MINUTE));
    assert!(refused(&|contents| contents.rows[0].windows = 0));
    assert!(refused(&|contents| contents.names.reverse()));
    assert!(refused(&|contents| contents.begin = contents.end + 1));
}

#[test]
fn the_papers_example_has_the_papers_numbers() {
    // n2 = 10,000, l = 10, both errors 1 %: k = 7, m2/n2 = 10.1; P_CM 7.5 %, 51 % after rows were added in pairs.
    let sizes = paper_sizes(10_000, 10, 0.01, 0.01).unwrap();
    assert_eq!((sizes.hashes, sizes.gate_hashes), (7, 7));
    assert_eq!(sizes.columns, (10_000.0 * 7.0 / std::f64::consts::LN_2).ceil() as u64);
    let formulas = formulas(&sizes, 1e5, 1e4, 10).unwrap();
    let near = |a: f64, b: f64| (a - b).abs() < 0.01 * b;
    assert!(near(formulas.p_cbf, 0.5f64.powi(7)) && near(formulas.p_bf, 0.5f64.powi(7)));
    assert!(near(formulas.p_cm, 0.0754) && near(formulas.p_ff, 0.0754));
    assert!(near(formulas.p_fp, 0.0754 * 0.5f64.powi(7)));
    assert!(
        near(formulas.p_cbf_merged, 0.75f64.powi(7)) && near(formulas.p_bf_joined, 0.75f64.powi(7))
    );
    assert!(near(formulas.p_ff_merged, 1.0 - (1.0 - 0.75f64.powi(7)).powi(5)));
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
    let sound =
        [contents(41, 40, 20, 3, 5), contents(42, 10, 100, 60, 5), contents(43, 300, 3, 1, 10)];
    let files = sound.map(|contents| build(&contents, &goal(0.05, CellPolicy::Largest)).unwrap());
    let mut random = numbers(44);
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
            let _ = segment.counts(mark);
        }
        if round % 20 == 0 {
            let _ = merge_rows(&segment, 3, 1.0);
            let _ = join(&segment, &segment, 1.0);
        }
    }
    assert!(opened > 300 && refused > 100, "{opened} opened, {refused} refused");
}

#[test]
fn marks_of_many_keys_are_those_of_each() {
    let keys: Vec<Key<'_>> = (0..1000).map(Key::Unsigned).collect();
    let mut marks = vec![None; keys.len()];
    mark_rows(&keys.as_slice(), &HASHER, &mut marks);
    assert!(keys.iter().zip(marks).all(|(key, mark)| mark == Some(key.hash(&HASHER).mark())));
}

#[test]
fn events_in_any_order_become_the_same_contents() {
    let rows = |_| (0..3).map(|row| RowRecord::empty(row * 10, row * 10 + 10)).collect::<Vec<_>>();
    let events = [(5, 2, 1), (3, 0, 7), (5, 2, 4), (5, 0, 1)];
    let forward = Contents::of_events(rows(0), events.into_iter()).unwrap();
    let backward = Contents::of_events(rows(0), events.into_iter().rev()).unwrap();
    assert_eq!(forward, backward);
    let item = |mark, row, count| Item { mark, row, count };
    assert_eq!(forward.items, [item(3, 0, 7), item(5, 0, 1), item(5, 2, 5)]);
    assert_eq!(forward.rows.iter().map(|row| row.events).collect::<Vec<_>>(), [8, 0, 5]);
    assert_eq!((forward.begin, forward.end, forward.unlisted), (0, 30, 7));
    assert!(Contents::of_events(rows(0), [(1, 3, 1)].into_iter()).is_err());
}
