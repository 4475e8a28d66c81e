//! Counts that fade, for the DECAY commands: a time-decaying filter and, if wanted, a hot list in step with it.
//!
//! Every event goes to both, so what one of them calls late is late for the other. Time is a number that comes in
//! with each call: the session's clock, or an instant that the client gave.

use super::{HASHER, expected, loaded};
use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::cells::Rounding;
use bloomtide_core::filters::{DecayStorage, Fade, When};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::snapshot::{Kind, Loaded, encoded_len, write_to};
use bloomtide_core::{
    DecayingPlan, Derivation, Error, HotItem, HotList, HotPlan, Key, Placement, Policy, Result,
    Steps, TimeDecayingBloomFilter,
};
use std::io::{self, Write};

/// Instants farther than this from the filter's own time are slips, such as milliseconds for seconds.
const CENTURY: f64 = 100.0 * 365.25 * 86_400.0;
/// Bytes of a listed key that are counted before any is there: its place, its text and its share of the index.
const LISTED: u64 = 192;

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// Now, by the session's clock, which may jump back.
    Now(f64),
    /// Then, as the client said.
    At(f64),
}

impl Moment {
    fn seconds(self) -> f64 {
        match self {
            Moment::Now(seconds) | Moment::At(seconds) => seconds,
        }
    }
}

/// The sizes of a filter and its list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingPlan {
    /// Of the filter.
    pub filter: DecayingPlan,
    /// Of the list, if there is one.
    pub hot: Option<HotPlan>,
}

impl FadingPlan {
    /// Sizes for as many different keys at that chance of a wrong count; `top` keys are listed.
    pub fn for_goal(
        capacity: u64,
        error_rate: f64,
        fade: Fade,
        storage: DecayStorage,
        top: Option<u64>,
    ) -> Result<Self> {
        let filter = DecayingPlan {
            placement: Placement::for_goal(capacity, error_rate, None, Derivation::default())?,
            storage,
            fade,
            rounding: Rounding::Strict,
            policy: Policy::Plain,
            counter_bits: 32,
            fraction_bits: 8,
            capacity: Some(capacity),
            error_rate: Some(error_rate),
        }
        .checked()?;
        let (half_life, steps) = (fade.halving(), Some(Steps::of(&fade)));
        let listed = |k| HotPlan { k, half_life, steps, max_jump: fade.max_jump }.checked();
        Ok(FadingPlan { filter, hot: top.map(listed).transpose()? })
    }

    /// Memory in bytes, with keys of usual length in the list.
    pub fn bytes(&self) -> u64 {
        let listed = self.hot.map_or(0, |plan| plan.k.saturating_mul(LISTED));
        self.filter.bytes().saturating_add(listed)
    }
}

/// Counts that fade.
#[derive(Debug)]
pub struct Fading {
    /// The filter.
    pub filter: Box<TimeDecayingBloomFilter>,
    /// The hot list, if there is one.
    pub hot: Option<HotList>,
    /// Different keys that were certainly new.
    pub items: u64,
}

impl Fading {
    /// No counts yet.
    pub fn new(plan: FadingPlan) -> Result<Self> {
        let filter = Box::new(TimeDecayingBloomFilter::new(plan.filter, HASHER)?);
        let hot = plan.hot.map(|plan| HotList::new(plan, HASHER)).transpose()?;
        Ok(Fading { filter, hot, items: 0 })
    }

    // ---- time

    /// Refuses instants that are slips.
    fn check(&self, moment: Moment, now: f64) -> Result<()> {
        let Moment::At(at) = moment else { return Ok(()) };
        let own = self.filter.now().map_or(now, |epoch| self.filter.plan().fade.begin_of(epoch));
        if (at - own).abs() <= CENTURY {
            return Ok(());
        }
        let got = format!("{at} while the filter is at {own}");
        let hint = "give seconds since 1970, not milliseconds";
        Err(Error::parameter("at", got, "within 100 years of the filter's own time", hint))
    }

    #[inline(always)]
    fn when(&self, moment: Moment) -> When {
        let epoch = self.filter.plan().fade.epoch_of(moment.seconds());
        When { epoch, by_clock: matches!(moment, Moment::Now(_)) }
    }

    /// The epoch of a question. What was before the filter's time is gone.
    fn asked(&self, moment: Moment, now: f64) -> Result<i64> {
        self.check(moment, now)?;
        let when = self.when(moment);
        let fade = self.filter.plan().fade;
        match self.filter.now() {
            Some(own) if when.epoch < own && !when.by_clock => {
                let got = format!("{}, the filter is at {}", moment.seconds(), fade.begin_of(own));
                let hint = "a faded count does not come back";
                Err(Error::parameter("at", got, "not before the filter's own time", hint))
            }
            _ => Ok(when.epoch),
        }
    }

    // ---- adding

    /// Adds `count` occurrences of a key; true iff it was certainly absent before. An error changes nothing.
    #[inline(always)]
    pub fn add(&mut self, item: &[u8], count: u64, moment: Moment, now: f64) -> Result<bool> {
        self.check(moment, now)?;
        if self.filter.wants_clock(self.when(moment).epoch) {
            self.filter.clock_is_at(now);
            self.hot.iter_mut().for_each(|hot| hot.clock_is_at(now));
        }
        if let Some(hot) = &mut self.hot {
            match moment {
                Moment::Now(now) => hot.add_now(Key::Bytes(item), count, now)?,
                Moment::At(at) => hot.add(Key::Bytes(item), count, at)?,
            }
        }
        let when = self.when(moment);
        // SAFETY: `&mut self`: nobody else has the filter.
        let new = unsafe { self.filter.add_unsynchronised(HASHER.bytes(item), count, when) };
        self.items += u64::from(new);
        Ok(new)
    }

    // ---- asking

    /// The key's decayed count.
    #[inline(always)]
    pub fn count(&self, item: &[u8], moment: Moment, now: f64) -> Result<f64> {
        Ok(self.filter.count(HASHER.bytes(item), self.asked(moment, now)?))
    }

    /// Events in `per` seconds: equation (4) of the paper, the average count of an epoch.
    pub fn rate(&self, item: &[u8], per: f64, moment: Moment, now: f64) -> Result<f64> {
        let fade = self.filter.plan().fade;
        Ok(self.count(item, moment, now)? * (1.0 - fade.decay) / fade.epoch * per)
    }

    /// The `n` hottest keys, the hottest first; None if there is no list.
    pub fn top(&self, n: Option<usize>, moment: Moment) -> Option<Result<Vec<HotItem<'_>>>> {
        let hot = self.hot.as_ref()?;
        let at = match moment {
            // A clock that jumped back is as of the list's time.
            Moment::Now(now) => now.max(hot.now().unwrap_or(now)),
            Moment::At(at) => at,
        };
        Some(hot.top(n, at))
    }
}

impl Structure for Fading {
    fn kind(&self) -> &'static str {
        "decaying"
    }

    fn bytes(&self) -> u64 {
        self.filter.bytes() + self.hot.as_ref().map_or(0, HotList::bytes)
    }

    fn summary(&self) -> Summary {
        let placement = &self.filter.plan().placement;
        let (cells, hashes) = (placement.cells, placement.hashes);
        expected(self.items, cells, hashes, |items| placement.error_at(items))
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let filter = self.filter.freeze().map_err(io::Error::other)?;
        put(out, &[self.items, encoded_len(&filter).map_err(io::Error::other)?])?;
        write_to(&filter, out)?;
        self.hot.as_ref().map_or(Ok(()), |hot| write_to(hot, out))
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "fading");
        let [items, length] = take(&mut from)?;
        let filter = loaded!(Decaying, from.bytes(length)?);
        let hot = match from.rest() {
            [] => None,
            bytes => Some(*loaded!(Hot, bytes)),
        };
        HASHER.require_same(filter.hasher())?;
        hot.as_ref().map_or(Ok(()), |hot| HASHER.require_same(hot.hasher()))?;
        Ok(Fading { filter, hot, items })
    }
}
