use super::*;
use crate::event_time::StreamTime;
use crate::history::{BufferPlan, RowsBy};
use crate::{BloomFilter, BloomPlan, Hasher, HotList, HotPlan, Layout};

const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };
const SECOND: i64 = 1_000_000;

fn sample() -> Vec<Event<'static>> {
    let keys = [
        Key::Text(b"/a"),
        Key::Bytes(b""),
        Key::Unsigned(u64::MAX),
        Key::Negative(i64::MIN),
        Key::Text(b"/a much longer path than sixteen bytes"),
    ];
    let times = [5 * SECOND, 5 * SECOND, 4 * SECOND, 0, LAST_TIME];
    let counts = [1, 7, 1, (1 << 62) - 1, 1];
    let both = keys.into_iter().zip(times).zip(counts);
    both.map(|((key, at), count)| Event { key, count, at }).collect()
}

fn block_of(events: &[Event<'_>], note: &[u8]) -> Vec<u8> {
    let mut made = Events::new(false);
    events.iter().for_each(|event| made.push(event.key, event.count, event.at).unwrap());
    made.take(9 * SECOND, note)
}

fn read(data: &[u8]) -> Result<Vec<(String, u64, i64)>> {
    let block = Block::parse(data)?;
    let (mut cursor, mut found) = (block.cursor(), Vec::new());
    while let Some(event) = cursor.next()? {
        found.push((format!("{:?}", event.key), event.count, event.at));
    }
    Ok(found)
}

#[test]
fn a_block_says_what_was_put_into_it() {
    let data = block_of(&sample(), b"where");
    let block = Block::parse(&data).unwrap();
    assert_eq!((block.arrived, block.note, block.len()), (9 * SECOND, &b"where"[..], 5));
    let expected: Vec<_> =
        sample().iter().map(|e| (format!("{:?}", e.key), e.count, e.at)).collect();
    assert_eq!(read(&data).unwrap(), expected);
    assert!(Block::parse(&block_of(&[], b"")).unwrap().is_empty());
}

#[test]
fn a_block_that_was_cut_or_grew_is_refused_before_anything_changes() {
    let data = block_of(&sample(), b"where");
    let filter = BloomFilter::new(
        BloomPlan::for_sizes(4096, 4, Some(Layout::Blocked), crate::Derivation::Enhanced).unwrap(),
        HASHER,
    )
    .unwrap();
    let mut longer = data.clone();
    longer.push(0);
    for bad in (0..data.len()).map(|len| &data[..len]).chain([&longer[..]]) {
        let passed = Block::parse(bad).and_then(|block| {
            pass(&block, &HASHER, &mut [&mut &filter], &mut StreamTime::new(1e9)).map(|_| ())
        });
        assert!(passed.is_err(), "{} of {} bytes", bad.len(), data.len());
    }
    assert_eq!(filter.measure().fill, 0.0);
}

#[test]
fn what_no_structure_takes_is_refused() {
    let mut events = Events::new(false);
    assert!(events.push(Key::Text(b"a"), 0, 0).is_err());
    assert!(events.push(Key::Text(b"a"), 1, -1).is_err());
    assert!(events.push(Key::Text(b"a"), 1, LAST_TIME + 1).is_err());
    let mut urls = Events::new(true);
    assert!(urls.push(Key::Text(b"no url"), 1, 0).is_err());
    assert!(urls.push(Key::Unsigned(1), 1, 0).is_err());
    assert!(urls.push(Key::Text(b"http://example.org/"), 1, 0).is_ok());
    Sink::add(&mut urls, b"/path", 1.0).unwrap();
    assert_eq!((urls.len(), urls.refused()), (1, 1));
}

#[test]
fn an_event_ahead_of_the_clock_takes_its_time_in_all_structures() {
    let day = 86_400 * SECOND;
    let key = |name: &'static str| Key::Text(name.as_bytes());
    let events = [
        Event { key: key("/a"), count: 1, at: 10 * day },
        Event { key: key("/b"), count: 1, at: 400 * day },
    ];
    let mut made = Events::new(false);
    events.iter().for_each(|event| made.push(event.key, event.count, event.at).unwrap());
    let data = made.take(10 * day + SECOND, b"");
    let plan = HotPlan { k: 50, half_life: Some(60.0), steps: None, max_jump: None };
    let mut list = HotList::new(plan, HASHER).unwrap();
    let mut time = StreamTime::new(120e6);
    pass(&Block::parse(&data).unwrap(), &HASHER, &mut [&mut list], &mut time).unwrap();
    assert_eq!((time.odd().ahead, time.now()), (1, Some((10 * day + SECOND) as f64)));
    let top = list.top(None, list.time().unwrap()).unwrap();
    assert_eq!(top.len(), 2);
    assert!(top.iter().all(|item| item.count > 0.9));
}

#[test]
fn a_pass_is_the_same_as_adding_to_each_structure() {
    // More than one piece, times that go back and forth, and counts in one of the pieces only.
    let names: Vec<String> = (0..3000).map(|i| format!("/page/{}", i * i % 701)).collect();
    let event = |(i, name): (usize, &'static str)| Event {
        key: Key::Text(name.as_bytes()),
        count: if (1500..1600).contains(&i) { 3 } else { 1 },
        at: (i as i64 / 10 - (i as i64 % 7)).max(0) * SECOND,
    };
    let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let events: Vec<Event<'_>> = names.into_iter().enumerate().map(event).collect();

    let plan = HotPlan { k: 50, half_life: Some(60.0), steps: None, max_jump: None };
    let bits = BloomPlan::for_sizes(1 << 16, 5, None, crate::Derivation::Enhanced).unwrap();
    let rows = BufferPlan {
        rows_by: RowsBy::Time(10 * SECOND),
        rows: 6,
        level: 0,
        names: 20,
        hasher: HASHER,
    };
    let fresh = || {
        let filter = BloomFilter::new(bits, HASHER).unwrap();
        (filter, HotList::new(plan, HASHER).unwrap(), crate::history::Buffer::new(rows).unwrap())
    };

    let (filter, mut list, mut buffer) = fresh();
    let data = block_of(&events, b"");
    let targets: &mut [&mut dyn Target] = &mut [&mut &filter, &mut list, &mut buffer];
    let mut time = StreamTime::new(f64::INFINITY);
    let passed = pass(&Block::parse(&data).unwrap(), &HASHER, targets, &mut time).unwrap();

    let (one, mut hot, mut open) = fresh();
    let (mut new, mut late, mut newest) = (0, 0, None);
    for event in &events {
        new += u64::from(one.add(event.key.hash(&HASHER)));
        hot.add(event.key, event.count, event.at as f64 / 1e6).unwrap();
        open.add(event.key, event.count, event.at).unwrap();
        late += u64::from(Some(event.at) < newest);
        newest = newest.max(Some(event.at));
    }
    let all = events.iter().map(|event| event.count).sum::<u64>();
    let first = events.iter().map(|event| event.at).min();
    assert_eq!(passed, Passed { events: all, new, first });
    assert_eq!((time.odd().late, time.now().map(|now| now as i64)), (late, newest));
    assert!(filter.same_as(&one));
    let now = list.time().unwrap();
    assert_eq!(list.top(None, now).unwrap(), hot.top(None, now).unwrap());
    for (index, segment) in open.segments() {
        assert_eq!(buffer.segment(index).unwrap().rows(), segment.rows());
        assert_eq!(buffer.segment(index).unwrap().items().unwrap(), segment.items().unwrap());
    }
}
