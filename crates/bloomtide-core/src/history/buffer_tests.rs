//! Laws of the open segments and their journal, against a plain map.

use super::*;
use crate::history::{Item, scan};

const HASHER: Hasher = Hasher::Xxh3 { seed: 11 };
const HOURLY: BufferPlan =
    BufferPlan { rows_by: RowsBy::Time(60), rows: 60, level: 0, names: 5, hasher: HASHER };
const BY_ARRIVALS: BufferPlan = BufferPlan { rows_by: RowsBy::Arrivals(10), rows: 3, ..HOURLY };

/// Counts by row and mark, and what each row has seen.
type Exact = (BTreeMap<(i64, Mark), u64>, BTreeMap<i64, Seen>);

fn held(buffer: &Buffer) -> Exact {
    let (mut counts, mut rows) = Exact::default();
    for (index, open) in buffer.segments() {
        let first = index * i64::from(buffer.plan.rows);
        for Item { mark, row, count } in open.items().unwrap() {
            counts.insert((first + i64::from(row), mark), count);
        }
        for (row, seen) in (first..).zip(open.rows()).filter(|(_, seen)| seen.events > 0) {
            rows.insert(row, *seen);
        }
    }
    (counts, rows)
}

fn top(buffer: &Buffer) -> Vec<(Vec<crate::history::Named>, u64)> {
    buffer.segments().map(|(_, open)| open.top()).collect()
}

struct Events {
    keys: Vec<u64>,
    counts: Vec<u64>,
    times: Vec<i64>,
}

impl Events {
    /// Events around an instant, out of order, on both sides of 1970 if it is near.
    fn some(state: &mut u64, events: usize, around: i64) -> Self {
        let mut next = |below: u64| {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*state >> 33) % below
        };
        let mut this = Events { keys: vec![], counts: vec![], times: vec![] };
        for _ in 0..events {
            let rank = next(400);
            this.keys.push(rank * rank / 400);
            this.counts.push(next(3) + 1);
            this.times.push(around + next(9000) as i64 - 4500);
        }
        this
    }

    fn marks(&self) -> Vec<Mark> {
        self.keys.iter().map(|key| HASHER.unsigned(*key).mark()).collect()
    }

    fn add_to(&self, buffer: &mut Buffer) {
        let moments = Moments::Each(&self.times);
        let wanted = buffer.add_marks(&self.marks(), Some(&self.counts), moments).unwrap();
        for each in &wanted {
            buffer.name(*each, Key::Unsigned(self.keys[each.row])).unwrap();
        }
        buffer.forget_unnamed(&wanted);
    }

    fn add_exactly(&self, exact: &mut Exact) {
        for ((mark, count), at) in self.marks().iter().zip(&self.counts).zip(&self.times) {
            let row = at.div_euclid(60);
            *exact.0.entry((row, *mark)).or_default() += count;
            let seen = Seen { first: *at, last: *at, events: *count };
            let before = exact.1.entry(row).or_insert(Seen::NOTHING);
            *before = before.with(seen);
        }
    }
}

#[test]
fn a_buffer_its_journal_and_its_dump_hold_what_a_map_does() {
    let (mut buffer, mut exact) = (Buffer::new(HOURLY).unwrap(), Exact::default());
    let (mut one_by_one, mut journal) = (Buffer::new(HOURLY).unwrap(), Vec::new());
    let mut state = 1;
    for (batch, size) in [1, 7, 0, 5000, 30, 9000, 2].into_iter().enumerate() {
        let events = Events::some(&mut state, size, batch as i64 * 3000 - 4000);
        events.add_to(&mut buffer);
        events.add_exactly(&mut exact);
        for row in 0..size {
            let key = Key::Unsigned(events.keys[row]);
            one_by_one.add(key, events.counts[row], events.times[row]).unwrap();
        }
        journal.extend(buffer.take_journal());
        assert_eq!(held(&buffer), exact);
        assert_eq!(held(&one_by_one), exact);
        assert_eq!(buffer.newest(), exact.1.values().map(|seen| seen.last).max());
        assert_eq!(buffer.entries(), exact.0.len());
    }
    let mut replayed = Buffer::new(HOURLY).unwrap();
    let report = replayed.replay(&journal).unwrap();
    assert_eq!((report.valid_bytes, report.torn, report.damaged), (journal.len(), false, None));
    assert_eq!(report.events, exact.1.values().map(|seen| seen.events).sum::<u64>());
    assert_eq!((held(&replayed), top(&replayed)), (held(&buffer), top(&buffer)));
    // A new journal with what is here, and what comes then.
    let mut second = replayed.dump(&[]).unwrap();
    Events::some(&mut state, 100, 9000).add_to(&mut replayed);
    second.extend(replayed.take_journal());
    let mut third = Buffer::new(HOURLY).unwrap();
    third.replay(&second).unwrap();
    assert_eq!((held(&third), top(&third)), (held(&replayed), top(&replayed)));
    assert_eq!(third.newest(), replayed.newest());
}

#[test]
fn one_batch_has_one_record_for_each_row_and_piece_however_shuffled() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    let mut state = 1;
    Events::some(&mut state, 4000, 4500).add_to(&mut buffer);
    let rows = held(&buffer).1.len();
    let journal = buffer.take_journal();
    // The state, the rows, and the names of each of three segments at most.
    assert!(scan(&journal).unwrap().count() <= 1 + rows + 3);
}

#[test]
fn a_journal_cut_anywhere_makes_a_beginning_of_what_was() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    let (mut journal, mut ends, mut states) = (Vec::new(), vec![0], vec![Exact::default()]);
    for at in 0..9 {
        buffer.add(Key::Unsigned(at % 4), 1 + at * 100, 50 + at as i64 * 8).unwrap();
        journal.extend(buffer.take_journal());
        ends.push(journal.len());
        states.push(held(&buffer));
    }
    for cut in 0..=journal.len() {
        let mut back = Buffer::new(HOURLY).unwrap();
        let report = back.replay(&journal[..cut]).unwrap();
        let bad = (cut < crate::format::header_len(0)).then_some(0);
        assert_eq!((report.damaged, report.torn), (bad, report.valid_bytes < cut));
        // Names of an add may be cut off its events.
        assert!(states.contains(&held(&back)));
        let whole = ends.iter().rposition(|end| *end <= cut).unwrap();
        let sums = |exact: &Exact| exact.0.values().sum::<u64>();
        assert!(sums(&held(&back)) >= sums(&states[whole]), "cut at {cut}");
    }
}

#[test]
fn a_buffer_goes_on_after_a_replay_in_the_same_journal() {
    let mut first = Buffer::new(BY_ARRIVALS).unwrap();
    (0..14).for_each(|at| first.add(Key::Text(b"a"), 1, at).unwrap());
    let mut journal = first.take_journal();
    let mut second = Buffer::new(BY_ARRIVALS).unwrap();
    second.replay(&journal).unwrap();
    (14..18).for_each(|at| second.add(Key::Text(b"b"), 1, at).unwrap());
    journal.extend(second.take_journal());
    let mut third = Buffer::new(BY_ARRIVALS).unwrap();
    let report = third.replay(&journal).unwrap();
    assert_eq!((report.events, report.damaged, report.torn), (18, None, false));
    assert_eq!(held(&third), held(&second));
    assert_eq!(third.open[&0].rows()[1], Seen { first: 10, last: 17, events: 8 });
}

#[test]
fn by_arrivals_a_row_ends_when_it_is_full_and_a_counted_event_stays_whole() {
    for size in [1, 3, 1000] {
        let mut buffer = Buffer::new(BY_ARRIVALS).unwrap();
        let counts = [4, 5, 9, 1, 30, 10, 2, 7, 3];
        let (marks, times): (Vec<Mark>, Vec<i64>) =
            (0..9).map(|i| (i % 2, 1000 - i as i64)).unzip();
        for start in (0..9).step_by(size) {
            let rows = start..(start + size).min(9);
            let moments = Moments::Each(&times[rows.clone()]);
            buffer.add_marks(&marks[rows.clone()], Some(&counts[rows]), moments).unwrap();
        }
        let events = |index| buffer.open[&index].rows().iter().map(|row| row.events);
        assert_eq!(events(0).collect::<Vec<_>>(), [18, 31, 10]);
        assert_eq!(events(1).collect::<Vec<_>>(), [12]);
        assert!(buffer.is_complete(0).unwrap() && !buffer.is_complete(1).unwrap());
        // Times are what the events say, in whatever order they came.
        assert_eq!(buffer.span(0).unwrap(), (995, 1001));
        let rows = buffer.row_records(0).unwrap();
        assert_eq!((rows[1].begin, rows[1].end, rows[1].first, rows[1].last), (996, 998, 996, 997));
        buffer.contents(0).unwrap().check().unwrap();
    }
}

#[test]
fn by_arrivals_a_dropped_segment_is_not_taken_up_again() {
    let mut buffer = Buffer::new(BY_ARRIVALS).unwrap();
    buffer.add(Key::Text(b"a"), 1, 5).unwrap();
    buffer.take_journal();
    let journal = buffer.dump(&[0]).unwrap();
    buffer.drop_segment(0).unwrap();
    buffer.add(Key::Text(b"a"), 1, 6).unwrap();
    assert_eq!(buffer.segments().map(|(index, _)| index).collect::<Vec<_>>(), [1]);
    let mut back = Buffer::new(BY_ARRIVALS).unwrap();
    back.replay(&[journal, buffer.take_journal()].concat()).unwrap();
    assert_eq!((held(&back), back.newest()), (held(&buffer), Some(6)));
    back.add(Key::Text(b"a"), 1, 7).unwrap();
    assert_eq!(back.open[&1].rows()[0].events, 2);
}

#[test]
fn a_late_event_opens_its_segment_anew() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    buffer.add(Key::Unsigned(1), 5, 100).unwrap();
    buffer.add(Key::Unsigned(1), 5, 3600).unwrap();
    assert!(buffer.is_complete(0).unwrap() && !buffer.is_complete(1).unwrap());
    buffer.drop_segment(0).unwrap();
    assert!(buffer.drop_segment(0).is_err());
    buffer.add(Key::Unsigned(1), 2, 100).unwrap();
    assert_eq!(buffer.segment(0).unwrap().seen().events, 2);
    assert_eq!(buffer.newest(), Some(3600));
}

#[test]
fn a_batch_with_a_bad_row_changes_nothing() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    buffer.add(Key::Unsigned(1), 1, 0).unwrap();
    buffer.take_journal();
    let far = [5, 1 << 60];
    let bad = [
        (Some(&[1, 0][..]), Moments::All(5)),
        (Some(&[1][..]), Moments::All(5)),
        (None, Moments::Each(&far)),
        (None, Moments::Each(&far[..1])),
        (None, Moments::All(i64::MIN)),
    ];
    for (counts, moments) in bad {
        assert!(buffer.add_marks(&[1, 2], counts, moments).is_err());
        assert_eq!(buffer.entries(), 1);
        assert!(buffer.take_journal().is_empty());
    }
}

#[test]
fn contents_are_whole_rows_of_time() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    buffer.add(Key::Unsigned(1), 5, -3000).unwrap();
    let contents = buffer.contents(-1).unwrap();
    contents.check().unwrap();
    assert_eq!((contents.begin, contents.end, contents.rows.len()), (-3600, 0, 60));
    let row =
        RowRecord { begin: -3000, end: -2940, first: -3000, last: -3000, events: 5, windows: 1 };
    assert_eq!(contents.rows[10], row);
    assert_eq!(contents.rows[11], RowRecord::empty(-2940, -2880));
    assert_eq!(contents.names[0].count, 5);
}

#[test]
fn a_journal_of_another_store_is_refused() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    let journal = buffer.take_journal();
    let others = [
        ("rows by", BY_ARRIVALS),
        ("window", BufferPlan { rows_by: RowsBy::Time(61), ..HOURLY }),
        ("rows", BufferPlan { rows: 59, ..HOURLY }),
        ("hash", BufferPlan { hasher: Hasher::Xxh3 { seed: 12 }, ..HOURLY }),
        ("hash", BufferPlan { hasher: Hasher::Keyed { secret: [1; 16] }, ..HOURLY }),
    ];
    for (expected, plan) in others {
        match Buffer::new(plan).unwrap().replay(&journal) {
            Err(Error::Incompatible { field, .. }) => assert_eq!(field, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_was_not_taken_cannot_be_lost_by_a_dump_or_a_replay() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    buffer.add(Key::Unsigned(1), 1, 0).unwrap();
    assert!(buffer.dump(&[]).is_err() && buffer.replay(b"").is_err());
    buffer.take_journal();
    assert!(buffer.dump(&[]).is_ok() && buffer.replay(b"").is_ok());
}

#[test]
fn a_record_without_events_opens_nothing() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    let mut writer = Journal::default();
    writer.start(&buffer.state());
    writer.events(70, Seen { first: 4200, last: 4200, events: 0 }, 0);
    let report = buffer.replay(&writer.take()).unwrap();
    assert_eq!((report.records, report.events, report.damaged), (2, 0, None));
    assert_eq!((buffer.segments().count(), buffer.newest()), (0, None));
}

#[test]
fn plans_that_make_no_sense_are_refused_by_name() {
    let bad = [
        ("rows", BufferPlan { rows: 0, ..HOURLY }),
        ("rows", BufferPlan { rows: u32::MAX, ..HOURLY }),
        ("window", BufferPlan { rows_by: RowsBy::Time(0), ..HOURLY }),
        ("window", BufferPlan { rows_by: RowsBy::Time(i64::MAX), ..HOURLY }),
        ("arrivals", BufferPlan { rows_by: RowsBy::Arrivals(0), ..HOURLY }),
        ("names", BufferPlan { names: usize::MAX, ..HOURLY }),
    ];
    for (expected, plan) in bad {
        match Buffer::new(plan) {
            Err(Error::Parameter { name, .. }) => assert_eq!(name, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_log_goes_in_by_its_seconds() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    Sink::add(&mut buffer, b"/a", 1.25).unwrap();
    let open = buffer.segment(1_250_000 / 3600).unwrap();
    assert_eq!(open.seen(), Seen { first: 1_250_000, last: 1_250_000, events: 1 });
    assert_eq!(open.top().0[0].key.view(), Key::Bytes(b"/a"));
}
