//! Events on their way into the cells: `event_time` judges their times.
//!
//! Most events are of the filter's epoch, and nothing is to be judged: one comparison tells (`Time::calm`). All others
//! come here, under a lock that only questions about events set aside share.

use super::store::{Store, on};
use super::{Fade, MOST, NEVER, TimeDecayingBloomFilter};
use crate::batch::{GROUP, KeySource};
use crate::cells::{Decay, Rounding};
use crate::event_time::{ClockView, Event, EventTime, Kept, Oddities, Verdict};
use crate::hash::KeyHash;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The epoch.
    pub epoch: i64,
    /// Whether a clock said so: then it is believed, and an earlier one means that the clock jumped back, not that
    /// the event is late.
    pub by_clock: bool,
}

/// A key and how often it occurred.
pub(crate) type Occurrence = (KeyHash, u64);
type Time = EventTime<Occurrence>;

/// What is known of the times of events, beside the filter's own time.
#[derive(Debug)]
pub(super) struct Arrivals {
    time: Mutex<Time>,
    /// How many events are set aside.
    aside: AtomicUsize,
    /// For an event of a later epoch the clock is looked at first.
    look_after: AtomicI64,
    /// What rounding may have done to counts.
    drift: Mutex<Drift>,
}

/// Units that rounding may have moved a count by: so many as of an epoch, and one for every epoch since, all of which
/// fade (specification 6.1). Filters that are merged each bring their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drift {
    /// Units that a count may be too small by, as of `since`. Only `expiring` takes too much.
    pub(crate) low: u64,
    /// Units that a count may be too large by, as of `since`: each late event is rounded up as well.
    pub(crate) high: u64,
    /// `NEVER` before the first event.
    pub(crate) since: i64,
}

impl Drift {
    pub(crate) const NONE: Drift = Drift { low: 0, high: 0, since: NEVER };

    /// The drift as of an epoch, or as it is where that is earlier.
    fn at(self, epoch: i64, decay: &Decay, fade: &Fade, rounding: Rounding) -> Drift {
        let age = if self.since == NEVER { 0 } else { epoch.saturating_sub(self.since).max(0) };
        if age == 0 {
            return self;
        }
        let (left, lambda) = (decay.power(age as u64) as f64 / 2f64.powi(64), fade.decay);
        // The sum of lambda^i below the age. What a float loses is far below a billionth of a unit.
        let sum = if lambda == 1.0 { age as f64 } else { (1.0 - left) / (1.0 - lambda) + 1e-9 };
        let moved =
            |units, by: f64| decay.fade_up(units, age as u64).saturating_add(by.ceil() as u64);
        let low = if rounding == Rounding::Expiring { moved(self.low, sum) } else { 0 };
        // Without fading nothing is rounded.
        let high = moved(self.high, if lambda == 1.0 { 0.0 } else { sum });
        Drift { low, high, since: epoch }
    }
}

/// What files keep of it.
#[derive(Clone, Debug)]
pub(crate) struct KeptArrivals {
    pub(crate) time: Kept<Occurrence>,
    pub(crate) drift: Drift,
}

impl Arrivals {
    pub(super) fn new(fade: &Fade) -> Self {
        Arrivals {
            time: Mutex::new(EventTime::new(fade.far())),
            aside: AtomicUsize::new(0),
            look_after: AtomicI64::new(i64::MIN),
            drift: Mutex::new(Drift::NONE),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Time> {
        // Whoever panicked left whole events behind.
        self.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drift(&self) -> MutexGuard<'_, Drift> {
        self.drift.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kept(&self) -> KeptArrivals {
        KeptArrivals { time: self.lock().kept(), drift: *self.drift() }
    }

    /// Whether both have set the same events aside, in whatever order.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        let sorted = |arrivals: &Self| {
            let mut aside = arrivals.kept().time.aside;
            aside.sort_by_key(|event| (event.at as i64, event.what.0.as_u128(), event.what.1));
            aside
        };
        sorted(self) == sorted(other)
    }

    /// Takes over what another filter of the same plan has.
    pub(super) fn take_over(&self, other: &Self) {
        let theirs = other.lock().clone();
        self.aside.store(theirs.aside().len(), Ordering::Release);
        let look_after = other.look_after.load(Ordering::Relaxed);
        self.look_after.store(look_after, Ordering::Relaxed);
        *self.drift() = *other.drift();
        *self.lock() = theirs;
    }
}

impl TimeDecayingBloomFilter {
    // ---- the clock and the time

    /// Whether the clock should be looked at before an event of this epoch.
    #[inline(always)]
    pub fn wants_clock(&self, epoch: i64) -> bool {
        epoch > self.arrivals.look_after.load(Ordering::Relaxed)
    }

    /// Notes what the clock shows, in seconds since 1970. Until then every time is possible.
    pub fn clock_is_at(&self, seconds: f64) {
        let mut time = self.arrivals.lock();
        let fade = self.plan.fade;
        time.clock_is_at(ClockView::at(seconds, |seconds| fade.epoch_of(seconds) as f64));
        self.note(&time);
    }

    /// Whether an epoch is later than the clock allows.
    pub fn is_ahead(&self, epoch: i64) -> bool {
        self.arrivals.lock().is_ahead(epoch as f64)
    }

    /// Believes every time that the clock allows: for a load in no order, of which all is known.
    pub fn believe_all(&self) {
        let _entered = self.gate.enter();
        let mut time = self.arrivals.lock();
        time.believe_all();
        self.note(&time);
    }

    /// The epoch that the stream is presumed to have: that of some events that are set aside, if the last ones agree.
    pub fn presumed(&self) -> Option<i64> {
        self.arrivals.lock().presumed().map(|now| now as i64)
    }

    /// How often the time of an event was not taken as it was.
    pub fn oddities(&self) -> Oddities {
        self.arrivals.lock().odd()
    }

    /// How many events are set aside.
    pub fn aside(&self) -> usize {
        self.arrivals.aside.load(Ordering::Acquire)
    }

    /// Moves the time on, if the epoch is later, and brings some blocks up to it.
    pub fn advance(&self, when: When) {
        let _entered = self.gate.enter();
        let mut time = self.arrivals.lock();
        let due = time.advance(when.epoch as f64, when.by_clock);
        self.replay(&time, &due);
        drop(time);
        on!(&self.store, level => level.sweep_many(&self.time));
    }

    /// Lets the cells follow the time: events that are due go in, in their order. The only writer.
    fn replay(&self, time: &Time, due: &[Event<Occurrence>]) {
        for Event { at, what: (hash, count) } in due {
            let (now, epoch) = (self.time.now(), *at as i64);
            self.time.now.store(now.max(epoch), Ordering::Release);
            let age = if now == NEVER { 0 } else { (now - epoch).max(0) as u64 };
            if age > 0 {
                let drift = self.drift(now);
                *self.arrivals.drift() = Drift { high: drift.high.saturating_add(1), ..drift };
            }
            self.raise_aged(self.cells::<MOST>(*hash).as_slice(), *count, age);
        }
        if let Some(now) = time.now() {
            self.time.now.store(now as i64, Ordering::Release);
        }
        self.note(time);
    }

    /// What rounding may have done to counts by an epoch.
    pub(super) fn drift(&self, epoch: i64) -> Drift {
        let epoch = epoch.max(self.time.now());
        self.arrivals.drift().at(epoch, &self.time.decay, &self.plan.fade, self.plan.rounding)
    }

    /// Notes what every event and question must know. Events that went in are no longer aside after that.
    fn note(&self, time: &Time) {
        let now = self.time.now();
        let calm = now != NEVER && time.calm_until() >= now as f64;
        self.time.calm.store(if calm { now } else { NEVER }, Ordering::Relaxed);
        let mut drift = self.arrivals.drift();
        if drift.since == NEVER {
            drift.since = now;
        }
        drop(drift);
        self.arrivals.look_after.store(time.look_after() as i64, Ordering::Relaxed);
        self.arrivals.aside.store(time.aside().len(), Ordering::Release);
    }

    // ---- events

    /// Judges an event's time and raises the key's cells, or sets it aside; true iff the key was certainly absent
    /// before. The only writer.
    #[cold]
    #[inline(never)]
    pub(super) fn raise_judged(&self, hash: KeyHash, count: u64, when: When) -> bool {
        let mut time = self.arrivals.lock();
        let now = self.time.now();
        let inside = now != NEVER && self.units_inside(hash, when.epoch.max(now)) != 0;
        let absent = !inside && sum_aside(self, &time, hash, when.epoch) == 0;
        let (at, what) = (when.epoch as f64, || (hash, count));
        let verdict =
            if when.by_clock { time.judge_by_clock(at, what) } else { time.judge(at, what) };
        match verdict {
            Verdict::At(at) => {
                let due = [Event { at, what: (hash, count) }];
                self.replay(&time, &due);
            }
            Verdict::Aside => self.note(&time),
            Verdict::Replay { again, events } => {
                if again {
                    // Until all are in again, questions wait for the lock.
                    self.arrivals.aside.store(events.len(), Ordering::Release);
                    on!(&self.store, level => level.clear());
                    self.time.now.store(NEVER, Ordering::Release);
                    // The first event may have been the wrong one, and later than all that count now.
                    let first = events.iter().map(|event| event.at as i64).min();
                    *self.arrivals.drift() = Drift { since: first.unwrap_or(NEVER), ..Drift::NONE };
                }
                self.replay(&time, &events);
            }
        }
        absent
    }

    // ---- questions

    /// What is left in an epoch of the key's events that are set aside.
    #[inline(always)]
    pub(super) fn units_aside(&self, hash: KeyHash, epoch: i64) -> u64 {
        if self.aside() == 0 { 0 } else { self.look_aside(hash, epoch) }
    }

    #[cold]
    fn look_aside(&self, hash: KeyHash, epoch: i64) -> u64 {
        let time = self.arrivals.lock();
        sum_aside(self, &time, hash, epoch)
    }

    /// Units that `units_aside` may be too large by, and in `expiring` too small.
    pub(super) fn drift_aside(&self, hash: KeyHash) -> u64 {
        self.arrivals.lock().aside().iter().filter(|event| event.what.0 == hash).count() as u64
    }

    /// `ask_many` while events are set aside: key by key.
    pub(super) fn ask_each<T>(
        &self,
        keys: &dyn KeySource,
        first: usize,
        epoch: impl Fn(usize) -> i64,
        out: &mut [T],
        answer: impl Fn(u64) -> T,
    ) {
        let mut digests = [KeyHash::default(); GROUP];
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let first = first + group * GROUP;
            let digests = &mut digests[..out.len()];
            keys.fill(&self.hasher, first, digests);
            for ((row, hash), out) in (first..).zip(digests).zip(out) {
                *out = answer(self.units(*hash, epoch(row)));
            }
        }
    }

    // ---- whole filters

    /// Takes the other's time over as well as ours; its cells are added by `merge`.
    pub(super) fn merge_arrivals(&self, other: &Self, add: impl FnOnce()) {
        let mut time = self.arrivals.lock();
        let due = time.merge(&other.arrivals.lock());
        if let Some(now) = time.now() {
            // First, since no stamp may be later than the time (I3).
            self.time.now.store(now as i64, Ordering::Release);
            let theirs = *other.arrivals.drift();
            let ours = *self.arrivals.drift();
            *self.arrivals.drift() = match (ours, theirs) {
                (ours, Drift::NONE) => ours,
                (Drift::NONE, theirs) => theirs,
                _ => {
                    let (ours, theirs) = (self.drift(now as i64), other.drift(now as i64));
                    let low = ours.low.saturating_add(theirs.low);
                    let high = ours.high.saturating_add(theirs.high);
                    Drift { low, high, since: now as i64 }
                }
            };
        }
        add();
        self.replay(&time, &due);
    }

    pub(super) fn forget_arrivals(&self) {
        let mut time = self.arrivals.lock();
        time.clear();
        *self.arrivals.drift() = Drift::NONE;
        self.time.now.store(NEVER, Ordering::Release);
        self.note(&time);
    }

    pub(super) fn restore_arrivals(&self, kept: KeptArrivals) {
        let mut time = self.arrivals.lock();
        *time = EventTime::restored(self.plan.fade.far(), kept.time);
        *self.arrivals.drift() = kept.drift;
        self.note(&time);
    }
}

fn sum_aside(filter: &TimeDecayingBloomFilter, time: &Time, hash: KeyHash, epoch: i64) -> u64 {
    let left = |event: &Event<Occurrence>| {
        let age = epoch - event.at as i64;
        let weight = event.what.1.saturating_mul(filter.plan.one());
        if event.what.0 != hash || age < 0 {
            return 0;
        }
        let left = filter.time.decay.fade_up(weight, age as u64);
        // The last unit of each would stay for ever.
        let gone = filter.plan.rounding == Rounding::Expiring && age > 0 && left <= 1;
        if gone { 0 } else { left }
    };
    time.aside().iter().map(left).fold(0, u64::saturating_add)
}
