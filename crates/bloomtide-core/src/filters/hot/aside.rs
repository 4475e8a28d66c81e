//! The time of a list, and its events that are set aside until their times are believed (`event_time`).

use super::plan::check_time;
use super::weight::{Bounds, Power};
use super::{HotList, Occurrence};
use crate::error::{Error, Result};
use crate::event_time::{ClockView, Event, Verdict};
use crate::hash::KeyHash;
use crate::key::{Key, OwnedKey};

impl HotList {
    // ---- the clock and the time

    /// Whether the clock should be looked at before an event of this instant.
    pub fn wants_clock(&self, at: f64) -> bool {
        self.plan.stepped(at) > self.time.look_after()
    }

    /// Notes what the clock shows, in seconds since 1970. Until then every time is possible.
    pub fn clock_is_at(&mut self, seconds: f64) {
        self.time.clock_is_at(ClockView::at(seconds, |seconds| self.plan.stepped(seconds)));
        self.calm_until = self.time.calm_until();
    }

    /// Whether an instant is later than the clock allows.
    pub fn is_ahead(&self, at: f64) -> bool {
        self.time.is_ahead(self.plan.stepped(at))
    }

    /// The instant of the stream, which no question may be before.
    pub fn now(&self) -> Option<f64> {
        self.time.now()
    }

    /// How many events are set aside.
    pub fn aside(&self) -> usize {
        self.time.aside().len()
    }

    /// The list's time is at least this from now on.
    pub fn advance(&mut self, now: f64) -> Result<()> {
        check_time(now)?;
        let due = self.time.advance(self.plan.stepped(now), false);
        self.take_in(&due)
    }

    /// The instant of an event that happens now by a clock: a clock behind the list's time is counted, and
    /// the event is as of the list's time.
    pub fn by_clock(&mut self, now: f64) -> Result<f64> {
        check_time(now)?;
        let at = self.plan.stepped(now);
        if at <= self.calm_until && self.time.is_at_most(at) {
            return Ok(now);
        }
        // What comes next is judged by this clock, not by what it showed long ago.
        self.clock_is_at(now);
        if self.time.is_doubted_at(at) {
            return Ok(now);
        }
        let due = self.time.advance(at, true);
        self.take_in(&due)?;
        Ok(self.time.now().map_or(now, |own| now.max(own)))
    }

    // ---- events

    /// Judges an event's time and raises its key, or sets it aside.
    #[cold]
    #[inline(never)]
    pub(super) fn raise_judged(
        &mut self,
        hash: KeyHash,
        key: Key<'_>,
        count: u64,
        at: f64,
    ) -> Result<()> {
        let key = OwnedKey::of(key)?;
        match self.time.judge(at, || Occurrence { hash, key: key.clone(), count }) {
            Verdict::At(at) => {
                self.calm_until = self.time.calm_until();
                self.raise_at(hash, || Ok(key.view()), count, at)
            }
            Verdict::Aside => {
                self.calm_until = self.time.calm_until();
                Ok(())
            }
            Verdict::Replay { again, events } => {
                if again {
                    self.forget_counts();
                }
                self.take_in(&events)
            }
        }
    }

    /// Events whose times are believed now.
    pub(super) fn take_in(&mut self, due: &[Event<Occurrence>]) -> Result<()> {
        self.calm_until = self.time.calm_until();
        due.iter().try_for_each(|Event { at, what }| {
            self.raise_at(what.hash, || Ok(what.key.view()), what.count, *at)
        })
    }

    // ---- questions

    /// What some of the events aside count at an instant.
    pub(super) fn waiting(&self, now: f64, some: impl Fn(&Occurrence) -> bool) -> Bounds {
        let now = self.plan.stepped(now);
        let due = self.time.aside().iter().filter(|event| event.at <= now && some(&event.what));
        due.fold(Bounds::ZERO, |sum, event| sum.plus(self.left_of(event, now)))
    }

    /// What is left of an event at a later instant.
    fn left_of(&self, event: &Event<Occurrence>, now: f64) -> Bounds {
        let Some(half_life) = self.plan.half_life else {
            return Power::ONE.times(event.what.count);
        };
        let shift = (event.at / half_life) as i64;
        let weight = Power::of(event.at, half_life, shift, false).times(event.what.count);
        Power::of(now, half_life, shift, true).of_bounds(weight)
    }

    /// The keys of events aside that count at an instant, each once: its place in the list and what to add to its
    /// count there. Keys that are not listed have places behind it, and their whole counts.
    pub(super) fn listed_aside(&self, now: f64) -> Vec<(usize, Bounds)> {
        let stepped = self.plan.stepped(now);
        let due = |event: &&Event<Occurrence>| event.at <= stepped;
        let mut hashes: Vec<KeyHash> = Vec::new();
        for event in self.time.aside().iter().filter(due) {
            if !hashes.contains(&event.what.hash) {
                hashes.push(event.what.hash);
            }
        }
        let outside = |hash: KeyHash| {
            let here = |event: &Event<Occurrence>| event.what.hash == hash;
            self.places.len() + self.time.aside().iter().position(here).unwrap_or(0)
        };
        let bounds = |hash: KeyHash| match self.find(hash) {
            Some(place) => (place, self.waiting(now, |event| event.hash == hash)),
            None => {
                let (low, high) = self.estimate(hash, now).unwrap_or((0.0, f64::MAX));
                (outside(hash), Bounds { low, high })
            }
        };
        hashes.into_iter().map(bounds).collect()
    }

    /// The key of a place, or of an event aside by the number behind the places.
    pub(super) fn key_at(&self, place: usize) -> Key<'_> {
        match self.keys.get(place) {
            Some(key) => key.view(),
            None => self.time.aside()[place - self.keys.len()].what.key.view(),
        }
    }

    pub(super) fn bytes_aside(&self) -> u64 {
        let bytes = |event: &Event<Occurrence>| {
            size_of::<Event<Occurrence>>() as u64 + event.what.key.heap_bytes()
        };
        self.time.aside().iter().map(bytes).sum()
    }

    // ---- snapshots

    /// Refuses events that cannot wait.
    pub(super) fn check_aside(&self) -> Result<()> {
        let kept = self.time.kept();
        let own_hash = |event: &Event<Occurrence>| {
            event.what.key.view().hash(&self.hasher) == event.what.hash && event.what.count > 0
        };
        if kept.is_sound(f64::is_finite) && kept.aside.iter().chain(&kept.first).all(own_hash) {
            return Ok(());
        }
        Err(Error::Invariant { invariant: format!("events that wait at {:?}", kept.now) })
    }
}
