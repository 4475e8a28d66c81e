//! The time of a stream alone, for stores that keep each event at its own time.

use super::{ClockView, EventTime, Kept, Oddities};

/// The time of a stream whose events are kept elsewhere, each at its own time.
#[derive(Clone, Debug)]
pub struct StreamTime {
    time: EventTime<()>,
    calm_until: f64,
}

impl StreamTime {
    /// Before the first event.
    pub fn new(far: f64) -> Self {
        Self::of(EventTime::new(far))
    }

    /// As it was kept.
    pub fn restored(far: f64, kept: Kept<()>) -> Self {
        Self::of(EventTime::restored(far, kept))
    }

    fn of(time: EventTime<()>) -> Self {
        StreamTime { calm_until: time.calm_until(), time }
    }

    /// What goes on as it was, once it is restored.
    pub fn kept(&self) -> Kept<()> {
        self.time.kept()
    }

    /// Notes what the clock shows.
    pub fn clock_is_at(&mut self, clock: ClockView) {
        self.time.clock_is_at(clock);
        self.calm_until = self.time.calm_until();
    }

    /// Notes an event; the time that it counts at, which is the clock's if its own cannot be right.
    #[inline(always)]
    pub fn note(&mut self, at: f64) -> f64 {
        if at <= self.calm_until {
            self.time.pass(at);
            return at;
        }
        let believed = self.time.believed(at);
        self.time.judge(at, || ());
        self.calm_until = self.time.calm_until();
        believed
    }

    /// Notes an event that happens now by a clock; the time that it counts at.
    pub fn note_by_clock(&mut self, now: f64) -> f64 {
        let doubted = self.time.is_doubted_at(now);
        self.time.judge_by_clock(now, || ());
        self.calm_until = self.time.calm_until();
        if doubted { now } else { self.time.now().map_or(now, |own| own.max(now)) }
    }

    /// The earliest time that the stream may turn out to have.
    pub fn earliest(&self) -> Option<f64> {
        self.time.earliest()
    }

    /// The time is at least this, by a clock or because it is said.
    pub fn advance(&mut self, now: f64, by_clock: bool) {
        self.time.advance(now, by_clock);
        self.calm_until = self.time.calm_until();
    }

    /// The stream's time.
    pub fn now(&self) -> Option<f64> {
        self.time.now()
    }

    /// The time that the stream is presumed to have.
    pub fn presumed(&self) -> Option<f64> {
        self.time.presumed()
    }

    /// How often times were not taken as they were.
    pub fn odd(&self) -> Oddities {
        self.time.odd()
    }

    /// How many events wait until their times are believed.
    pub fn aside(&self) -> usize {
        self.time.aside().len()
    }
}
