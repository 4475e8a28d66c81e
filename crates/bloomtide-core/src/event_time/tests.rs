use super::*;

/// Judges a stream; what went in, with its time, forgotten when everything comes again.
struct Stream {
    time: EventTime<usize>,
    went_in: Vec<(usize, f64)>,
    count: usize,
}

impl Stream {
    fn new(far: f64) -> Self {
        Stream { time: EventTime::new(far), went_in: Vec::new(), count: 0 }
    }

    fn add(&mut self, at: f64) -> &mut Self {
        let number = self.count;
        self.count += 1;
        match self.time.judge(at, || number) {
            Verdict::At(at) => self.went_in.push((number, at)),
            Verdict::Aside => {}
            Verdict::Replay { again, events } => {
                if again {
                    self.went_in.clear();
                }
                self.went_in.extend(events.iter().map(|event| (event.what, event.at)));
            }
        }
        let inside = self.went_in.len() + self.time.aside().len();
        assert_eq!(inside, self.count, "every event is in or aside, once");
        self
    }

    fn add_all(&mut self, times: impl IntoIterator<Item = f64>) -> &mut Self {
        times.into_iter().for_each(|at| {
            self.add(at);
        });
        self
    }
}

fn ticks(from: i64, to: i64) -> impl Iterator<Item = f64> {
    (from..to).map(|at| at as f64)
}

#[test]
fn one_event_far_ahead_moves_nothing_wherever_it_comes() {
    for place in 0..100 {
        let mut stream = Stream::new(10.0);
        stream.add_all(ticks(0, place)).add(1e6).add_all(ticks(place, 100));
        assert_eq!(stream.time.now(), Some(99.0), "{place}");
        assert_eq!(stream.time.presumed(), Some(99.0));
        assert_eq!(stream.time.aside(), [Event { at: 1e6, what: place as usize }]);
    }
}

#[test]
fn a_silent_stream_goes_on_as_if_it_had_not_been_silent() {
    let mut stream = Stream::new(10.0);
    stream.add_all(ticks(0, 100)).add_all(ticks(1000, 1002));
    assert_eq!(stream.time.presumed(), Some(99.0));
    stream.add(1002.0);
    assert_eq!((stream.time.now(), stream.time.presumed()), (Some(99.0), Some(1002.0)));
    stream.add_all(ticks(1003, 1100));
    assert_eq!(stream.time.now(), Some(1099.0));
    assert!(stream.time.aside().is_empty());
    assert_eq!(stream.time.odd(), Oddities::default());
    let times: Vec<f64> = stream.went_in.iter().map(|(_, at)| *at).collect();
    assert!(times.is_sorted());
}

#[test]
fn a_third_of_wrong_clocks_is_never_believed_and_what_is_dropped_is_told() {
    let mut stream = Stream::new(10.0);
    let mut random = 9u64;
    for at in ticks(0, 20_000) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        stream.add(if random >> 33 < 1 << 29 { 1e6 + at } else { at });
    }
    assert!(stream.time.now() <= Some(19_999.0));
    assert_eq!(stream.time.aside().len(), MOST_ASIDE);
    let dropped = stream.time.odd().ahead;
    assert!((3000..6000).contains(&dropped), "{dropped}");
}

#[test]
fn sparse_events_move_the_time_too() {
    let mut stream = Stream::new(10.0);
    stream.add_all(ticks(0, 200).map(|at| at * 100.0));
    // The last one that three have reached.
    assert_eq!(stream.time.presumed(), Some(19_700.0));
    assert!(stream.time.now() >= Some(13_000.0));
    assert_eq!(stream.time.odd().late, 0);
}

#[test]
fn what_is_aside_goes_in_when_its_time_comes() {
    let mut stream = Stream::new(10.0);
    stream.add_all(ticks(0, 100)).add(150.0).add_all(ticks(100, 200));
    assert!(stream.time.aside().is_empty());
    let place = |number: usize| stream.went_in.iter().position(|(what, _)| *what == number);
    // Number 100 is the one ahead; the event of time 150 is number 151.
    assert_eq!(stream.went_in[place(100).unwrap()].1, 150.0);
    assert_eq!(place(100).unwrap().abs_diff(place(151).unwrap()), 1);
}

#[test]
fn later_than_the_clock_by_more_than_a_day_takes_the_time_of_the_clock() {
    let day = |at: f64| ClockView::at(at * DAY, |seconds| seconds / DAY);
    let mut stream = Stream::new(10.0);
    stream.time.clock_is_at(day(105.0));
    stream.add_all(ticks(0, 100)).add(1e9);
    assert_eq!((stream.time.now(), stream.time.odd().ahead), (Some(105.0), 1));
    // In an old log the clock is far ahead itself.
    let mut old = Stream::new(10.0);
    old.time.clock_is_at(day(5e5));
    old.add(1e9).add_all(ticks(0, 100)).add(1e9);
    assert_eq!((old.time.now(), old.time.odd().ahead), (Some(99.0), 2));
    assert_eq!(old.time.aside().len(), 2);
}

#[test]
fn what_the_clock_confirms_is_believed_at_once() {
    let mut stream = Stream::new(10.0);
    stream.add_all(ticks(0, 100));
    stream.time.clock_is_at(ClockView::at(1000.0, |seconds| seconds));
    stream.add(650.0);
    assert_eq!(stream.time.now(), Some(99.0));
    stream.add(750.0);
    assert_eq!(stream.time.now(), Some(750.0));
    assert!(stream.time.aside().is_empty());
}

#[test]
fn the_last_of_few_events_are_presumed_to_be_right() {
    let mut stream = Stream::new(10.0);
    stream.add_all(ticks(0, 8)).add_all([100.0, 101.0]);
    assert_eq!(stream.time.presumed(), Some(7.0));
    stream.add(102.0);
    assert_eq!((stream.time.now(), stream.time.presumed()), (Some(7.0), Some(102.0)));
    stream.add(9999.0);
    assert_eq!(stream.time.presumed(), Some(102.0), "one alone says more");
    stream.add(8.0).add(8.0);
    assert_eq!(stream.time.presumed(), Some(8.0));
}

#[test]
fn half_of_the_first_events_is_no_majority() {
    let mut stream = Stream::new(10.0);
    stream.add(100.0).add(50.0);
    assert_eq!((stream.time.now(), stream.time.odd().late), (Some(100.0), 1));
    stream.add(51.0);
    assert_eq!((stream.time.now(), stream.time.odd().late), (Some(51.0), 0));
    assert_eq!(stream.went_in, [(1, 50.0), (2, 51.0)]);
    stream.add_all([101.0, 102.0]);
    assert_eq!(stream.time.now(), Some(102.0));
    assert_eq!(stream.went_in.len(), 5);
}

#[test]
fn calm_streams_need_no_judge() {
    let mut stream = Stream::new(10.0);
    assert_eq!(stream.time.calm_until(), f64::NEG_INFINITY);
    stream.add_all(ticks(0, 16));
    assert_eq!(stream.time.calm_until(), 25.0);
    stream.add(40.0);
    assert_eq!(stream.time.calm_until(), f64::NEG_INFINITY);
    stream.add(20.0);
    assert_eq!(stream.time.calm_until(), 30.0);
    stream.add(30.0);
    assert!(stream.time.calm_until() < 40.0);
}

#[test]
fn a_merge_keeps_what_is_aside() {
    let (mut one, mut two) = (Stream::new(10.0), Stream::new(10.0));
    one.add_all(ticks(0, 100)).add(500.0);
    two.add_all(ticks(450, 550)).add(900.0);
    let events = one.time.merge(&two.time);
    assert_eq!(events, [Event { at: 500.0, what: 100 }]);
    assert_eq!(one.time.now(), Some(549.0));
    assert_eq!(one.time.aside(), [Event { at: 900.0, what: 100 }]);
}

#[test]
fn where_time_does_no_harm_every_time_is_believed() {
    let mut stream = Stream::new(f64::INFINITY);
    stream.add(0.0).add(1e9).add(5.0);
    assert_eq!((stream.time.now(), stream.time.odd().late), (Some(1e9), 1));
    assert_eq!(stream.went_in.len(), 3);
}
