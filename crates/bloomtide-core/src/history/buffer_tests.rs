//! What a buffer does that its tests from Python, in `tests/history_buffer`, cannot reach.

use super::*;

const HASHER: Hasher = Hasher::Xxh3 { seed: 11 };
const HOURLY: BufferPlan =
    BufferPlan { rows_by: RowsBy::Time(60), rows: 60, names: 5, hasher: HASHER };
const BY_ARRIVALS: BufferPlan = BufferPlan { rows_by: RowsBy::Arrivals(10), rows: 3, ..HOURLY };

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
        let seen = Seen { first: 996, last: 997, events: 31 };
        assert_eq!(rows[1], RowRecord { seen, ..RowRecord::empty(996, 998) });
        buffer.contents(&[0], 0).unwrap().check().unwrap();
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
    for record in [journal, buffer.take_journal()].concat() {
        back.replay(&record).unwrap();
    }
    assert_eq!(back.newest(), Some(6));
    assert_eq!(back.open[&1].items().unwrap(), buffer.open[&1].items().unwrap());
    back.add(Key::Text(b"a"), 1, 7).unwrap();
    assert_eq!(back.open[&1].rows()[0].events, 2);
}

#[test]
fn a_record_without_events_opens_nothing() {
    let mut buffer = Buffer::new(HOURLY).unwrap();
    let mut writer = Journal::default();
    writer.events(70, Seen { first: 4200, last: 4200, events: 0 }, 0);
    let [record] = &writer.take()[..] else { panic!("one record") };
    assert_eq!(buffer.replay(record).unwrap(), 0);
    assert_eq!((buffer.segments().count(), buffer.newest()), (0, None));
}
