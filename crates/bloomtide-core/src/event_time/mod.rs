//! The time of a stream, and which times of its events are believed.
//!
//! Counts that fade, and filters that forget, go by the times of events. One wrong time, years ahead of all
//! others, would fade or forget everything. So a time is not believed just because an event has it:
//!
//!   ahead    An event later than the clock by more than a day has a wrong time. It takes the clock's.
//!   near     An event within five minutes of the clock is right: two clocks agree. One that is later than the clock by
//!            more than two half-lives is not near.
//!   far      An event that is later than the stream by more than two half-lives is set aside. Every such event is a
//!            vote for its time, and every event near the stream's time, before or after it, takes the oldest vote
//!            back. A time that three votes have reached is presumed to be the stream's, which only changes what "now"
//!            means in questions. With 64 votes it is.
//!   first    Among the first sixteen events the majority decides, so that a wrong time may also be the first. An event
//!            that is near ends that, unless it is far before the stream's time: then that may be the wrong one.
//!
//! So a few wrong clocks among many right ones are never believed, and a stream that was silent for a weekend goes on
//! as if it had not been. An event that is set aside is not lost: its owner adds it to every answer about its time or
//! a later one. When the stream's time comes to it, it goes in like any other. At most a thousand events are aside;
//! then the oldest of them counts as of the stream's time.
//!
//! Times are numbers, seconds or epochs, whatever the owner goes by. This module knows no clock; its owner says what
//! the clock shows.

mod stream;

pub use stream::StreamTime;

use std::collections::VecDeque;

/// Votes that move the stream's time.
const BELIEVED: usize = 64;
/// Votes that move what is presumed to be its time.
const PRESUMED: usize = 3;
/// The first events, of which the majority decides.
const FIRST: usize = 16;
/// Events that are set aside, at most.
pub const MOST_ASIDE: usize = 1024;
/// Half-lives, or epochs if these are longer, that one event may move the time on.
pub const FAR: f64 = 2.0;
/// Seconds that an event may be later than the clock.
const DAY: f64 = 86_400.0;
/// Seconds between the clock and an event that it confirms.
const NEAR: f64 = 300.0;

/// What the clock showed when it was last looked at, as times of an owner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockView {
    shows: f64,
    /// What it confirms.
    from: f64,
    to: f64,
    /// The latest time that can be right.
    limit: f64,
}

impl ClockView {
    /// Nothing is known of it: every time is possible.
    const UNSEEN: ClockView = ClockView {
        shows: f64::INFINITY,
        from: f64::INFINITY,
        to: f64::INFINITY,
        limit: f64::INFINITY,
    };

    /// At so many seconds since 1970, of which `time` makes a time of the owner.
    pub fn at(seconds: f64, time: impl Fn(f64) -> f64) -> Self {
        ClockView {
            shows: time(seconds),
            from: time(seconds - NEAR),
            to: time(seconds + NEAR),
            limit: time(seconds + DAY),
        }
    }

    fn confirms(&self, at: f64) -> bool {
        self.from <= at && at <= self.to
    }
}

/// An event, and what its time says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<E> {
    /// When it happened, as it says.
    pub at: f64,
    /// What happened.
    pub what: E,
}

/// All that is known of the time of a stream, but for the clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<E> {
    /// The stream's time.
    pub now: Option<f64>,
    /// How often the time of an event was not taken as it was.
    pub odd: Oddities,
    /// The events that are set aside.
    pub aside: Vec<Event<E>>,
    /// The first events, as long as the majority of them decides.
    pub first: Vec<Event<E>>,
    /// Times far ahead that no event near the stream's time took back.
    pub votes: Vec<f64>,
}

impl<E> Kept<E> {
    /// Whether a stream can be like this; `is_time` says which numbers are times.
    pub fn is_sound(&self, is_time: impl Fn(f64) -> bool) -> bool {
        let Kept { now, aside, first, votes, .. } = self;
        let times = aside.iter().chain(first).map(|event| event.at).chain(votes.iter().copied());
        let few = aside.len() <= MOST_ASIDE && first.len() < FIRST && votes.len() < BELIEVED;
        let begun = now.is_some() || (aside.is_empty() && first.is_empty() && votes.is_empty());
        let after = |at: f64| now.is_some_and(|now| at > now);
        let ahead = aside.iter().map(|event| event.at).chain(votes.iter().copied()).all(after);
        few && begun && ahead && times.chain(*now).all(is_time)
    }
}

/// How often the time of an event was not taken as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Events before the stream's time.
    pub late: u64,
    /// Times that the clock was behind the stream's time.
    pub clock_jumps: u64,
    /// Events later than the clock by more than a day, and those that were set aside when there was no room.
    pub ahead: u64,
}

/// What becomes of an event.
#[derive(Debug, PartialEq)]
pub enum Verdict<E> {
    /// It counts as of this time, which is the stream's or, for a late event, before it.
    At(f64),
    /// It was set aside.
    Aside,
    /// These events go in, in this order; the one that was judged is among them or aside. If `again`, all that
    /// went in before is forgotten first, and comes again.
    Replay {
        /// Whether everything is forgotten first.
        again: bool,
        /// The events that go in.
        events: Vec<Event<E>>,
    },
}

/// The time of a stream of events.
#[derive(Clone, Debug)]
pub struct EventTime<E> {
    /// The stream's time; minus infinity before the first event.
    now: f64,
    /// A step of more than this must be confirmed.
    far: f64,
    clock: ClockView,
    /// The first events, all of them, while they are few.
    first: Option<Vec<Event<E>>>,
    /// Times far ahead that no event near the stream's time took back.
    votes: VecDeque<f64>,
    aside: Vec<Event<E>>,
    odd: Oddities,
}

impl<E: Clone> EventTime<E> {
    /// Before the first event. `far` is infinite where time does no harm.
    pub fn new(far: f64) -> Self {
        EventTime {
            now: f64::NEG_INFINITY,
            far,
            clock: ClockView::UNSEEN,
            first: far.is_finite().then(Vec::new),
            votes: VecDeque::new(),
            aside: Vec::new(),
            odd: Oddities::default(),
        }
    }

    /// As it was kept.
    pub fn restored(far: f64, kept: Kept<E>) -> Self {
        let Kept { now, odd, aside, first, votes } = kept;
        let fresh = Self::new(far);
        let first = if now.is_none() { fresh.first } else { Some(first).filter(|f| !f.is_empty()) };
        let now = now.unwrap_or(fresh.now);
        EventTime { now, first, votes: votes.into(), aside, odd, ..fresh }
    }

    /// What goes on as it was, once it is restored.
    pub fn kept(&self) -> Kept<E> {
        Kept {
            now: self.now(),
            odd: self.odd,
            aside: self.aside.clone(),
            first: self.first.clone().unwrap_or_default(),
            votes: self.votes.iter().copied().collect(),
        }
    }

    /// Believes every time from now on that the clock allows: for a load in no order, of which all is known.
    pub fn believe_all(&mut self) {
        (self.far, self.first) = (f64::INFINITY, None);
        self.votes.clear();
    }

    /// The stream's time.
    pub fn now(&self) -> Option<f64> {
        (self.now > f64::NEG_INFINITY).then_some(self.now)
    }

    /// Whether the stream's time is not after this.
    #[inline(always)]
    pub fn is_at_most(&self, at: f64) -> bool {
        self.now <= at
    }

    /// The time that the stream is presumed to have: its own, or later if three votes say that it is at least so late.
    pub fn presumed(&self) -> Option<f64> {
        let now = self.now()?;
        if self.votes.len() < PRESUMED {
            return Some(now);
        }
        let mut votes: Vec<f64> = self.votes.iter().copied().collect();
        votes.sort_by(f64::total_cmp);
        Some(self.latest_from(&votes[votes.len() - PRESUMED..]).max(now))
    }

    /// How often times were not taken as they were.
    pub fn odd(&self) -> Oddities {
        self.odd
    }

    /// The events that are set aside.
    pub fn aside(&self) -> &[Event<E>] {
        &self.aside
    }

    /// Events at this time or before, and not before the stream's, need not be judged: they count as of their
    /// own time, and `move_to` notes it. Minus infinity if every event must be judged.
    pub fn calm_until(&self) -> f64 {
        if self.first.is_some() || !self.votes.is_empty() {
            return f64::NEG_INFINITY;
        }
        // Below the next of those aside, which goes in when the time comes to it.
        let aside = self.aside.iter().map(|event| event.at.next_down());
        aside.fold((self.now + self.far).min(self.clock.limit), f64::min)
    }

    /// For an event later than this an owner that has a clock looks at it first.
    pub fn look_after(&self) -> f64 {
        if self.clock == ClockView::UNSEEN {
            return f64::NEG_INFINITY;
        }
        (self.now + self.far).min(self.clock.limit)
    }

    /// Notes what the clock shows.
    pub fn clock_is_at(&mut self, clock: ClockView) {
        self.clock = ClockView { to: clock.to.min(clock.shows + self.far), ..clock };
    }

    /// Whether an event that a clock confirms speaks against the stream's time, of which the majority of the first
    /// events still decides.
    pub fn is_doubted_at(&self, at: f64) -> bool {
        self.first.is_some() && at + self.far < self.now
    }

    /// The earliest time that the stream may turn out to have: before its own while the first events decide.
    pub fn earliest(&self) -> Option<f64> {
        let first = self.first.iter().flatten().map(|event| event.at);
        self.now().map(|now| first.fold(now, f64::min))
    }

    /// Whether a time is later than the clock allows.
    pub fn is_ahead(&self, at: f64) -> bool {
        at > self.clock.limit
    }

    /// Notes an event that need not be judged, since its time is not after `calm_until`.
    #[inline(always)]
    pub fn pass(&mut self, at: f64) {
        if at < self.now {
            self.odd.late += 1;
        } else {
            self.now = at;
        }
    }

    // ---- events

    /// Judges the time that an event says.
    pub fn judge(&mut self, at: f64, what: impl FnOnce() -> E) -> Verdict<E> {
        if self.clock.confirms(at) && !self.is_doubted_at(at) {
            self.first = None;
            return self.take(at, what);
        }
        let believed = self.believed(at);
        self.odd.ahead += u64::from(believed != at);
        let at = believed;
        if let Some(first) = self.first.take() {
            return self.judge_early(first, Event { at, what: what() });
        }
        if self.now == f64::NEG_INFINITY || at <= self.now + self.far {
            // What is far behind says nothing of the present: many loads are in no order.
            if at >= self.now - self.far {
                self.votes.pop_front();
            }
            return self.take(at, what);
        }
        self.aside.push(Event { at, what: what() });
        self.votes.push_back(at);
        if self.votes.len() >= BELIEVED {
            let mut votes: Vec<f64> = self.votes.iter().copied().collect();
            votes.sort_by(f64::total_cmp);
            self.now = self.latest_from(&votes);
            self.votes.retain(|vote| *vote > self.now);
            return self.replay_what_is_due();
        }
        if self.aside.len() > MOST_ASIDE {
            self.odd.ahead += 1;
            let oldest = self.aside.remove(0);
            return Verdict::Replay {
                again: false,
                events: vec![Event { at: self.now, ..oldest }],
            };
        }
        Verdict::Aside
    }

    /// The time that an event counts at: the clock's if its own cannot be right.
    fn believed(&self, at: f64) -> f64 {
        if at > self.clock.limit { self.clock.shows } else { at }
    }

    /// An event that happens now by the clock, which is believed. A clock behind the stream's time is counted, and
    /// the event is as of the stream's time, unless that is still in doubt.
    pub fn judge_by_clock(&mut self, now: f64, what: impl FnOnce() -> E) -> Verdict<E> {
        if let Some(first) = self.first.take()
            && now + self.far < self.now
        {
            return self.judge_early(first, Event { at: now, what: what() });
        }
        if now < self.now {
            self.odd.clock_jumps += 1;
        }
        self.take(now.max(self.now), what)
    }

    /// Lets the time be at least this; the events that go in by it. A clock behind the time is counted.
    pub fn advance(&mut self, now: f64, by_clock: bool) -> Vec<Event<E>> {
        self.odd.clock_jumps += u64::from(by_clock && now < self.now);
        self.first = None;
        self.now = self.now.max(now);
        self.votes.retain(|vote| *vote > self.now);
        match self.replay_what_is_due() {
            Verdict::Replay { events, .. } => events,
            Verdict::At(_) | Verdict::Aside => Vec::new(),
        }
    }

    /// An event whose time is believed.
    fn take(&mut self, at: f64, what: impl FnOnce() -> E) -> Verdict<E> {
        if at < self.now {
            self.odd.late += 1;
        } else {
            self.now = at;
            self.votes.retain(|vote| *vote > at);
            if self.aside.iter().any(|event| event.at <= at) {
                self.aside.push(Event { at, what: what() });
                return self.replay_what_is_due();
            }
        }
        Verdict::At(at)
    }

    /// What is aside and not after the stream's time, in order.
    fn replay_what_is_due(&mut self) -> Verdict<E> {
        let (mut events, aside): (Vec<_>, _) =
            std::mem::take(&mut self.aside).into_iter().partition(|event| event.at <= self.now);
        self.aside = aside;
        events.sort_by(|a, b| a.at.total_cmp(&b.at));
        Verdict::Replay { again: false, events }
    }

    /// One of the first events. The majority of them has the stream's time; what is far beyond is aside.
    fn judge_early(&mut self, mut first: Vec<Event<E>>, event: Event<E>) -> Verdict<E> {
        let (at, before) = (event.at, first.len());
        let was_in = |event: &Event<E>, now: f64| event.at <= now;
        first.push(event);
        let latest = self.latest_of_majority(&first);
        let again = first[..before].iter().any(|e| was_in(e, self.now) && e.at > latest);
        let start = if again { f64::NEG_INFINITY } else { self.now };
        let due = first.iter().enumerate().filter(|(_, event)| event.at <= latest);
        let due = due.filter(|(row, event)| *row == before || !was_in(event, start));
        let mut events: Vec<_> = due.map(|(_, event)| event.clone()).collect();
        if !again {
            events.sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        self.aside = first.iter().filter(|event| event.at > latest).cloned().collect();
        let (mut now, mut late) = (start, 0);
        for event in &events {
            late += u64::from(event.at < now);
            now = now.max(event.at);
        }
        self.odd.late = if again { late } else { self.odd.late + late };
        self.now = now;
        if at > now {
            self.votes.push_back(at);
        } else if at >= now - self.far {
            self.votes.pop_front();
        }
        self.votes.retain(|vote| *vote > now);
        self.first = (first.len() < FIRST).then_some(first);
        match &events[..] {
            [] => Verdict::Aside,
            [only] if !again && only.at == at => Verdict::At(at),
            _ => Verdict::Replay { again, events },
        }
    }

    /// The latest of the first events that are in steps of at most `far` from the median. Of two medians the one
    /// that agrees with the stream's time counts: half is no majority.
    fn latest_of_majority(&self, first: &[Event<E>]) -> f64 {
        let mut times: Vec<f64> = first.iter().map(|event| event.at).collect();
        times.sort_by(f64::total_cmp);
        let low = self.latest_from(&times[(times.len() - 1) / 2..]);
        let high = self.latest_from(&times[times.len() / 2..]);
        if low < self.now && self.now <= high { high } else { low }
    }

    /// The latest of these times, in order, that steps of at most `far` lead to from the first.
    fn latest_from(&self, times: &[f64]) -> f64 {
        let step = |latest: f64, at: &f64| if *at <= latest + self.far { *at } else { latest };
        times.iter().fold(times[0], step)
    }

    // ---- whole streams

    /// Forgets all events, and keeps what the clock shows.
    pub fn clear(&mut self) {
        *self = EventTime { clock: self.clock, ..Self::new(self.far) };
    }

    /// Takes the time and the events aside of another stream in; the events that go in by it.
    pub fn merge(&mut self, other: &EventTime<E>) -> Vec<Event<E>> {
        self.aside.extend(other.aside.iter().cloned());
        self.odd.late = self.odd.late.saturating_add(other.odd.late);
        self.odd.clock_jumps = self.odd.clock_jumps.saturating_add(other.odd.clock_jumps);
        self.odd.ahead = self.odd.ahead.saturating_add(other.odd.ahead);
        let mut events = match other.now() {
            Some(now) => self.advance(now, false),
            None => Vec::new(),
        };
        while self.aside.len() > MOST_ASIDE {
            self.odd.ahead += 1;
            let oldest = self.aside.remove(0);
            events.push(Event { at: self.now, ..oldest });
        }
        events
    }
}
