//! What a hot list is made with.

use crate::error::{Error, Result};
use crate::event_time::FAR;
use crate::filters::{Fade, check_max_jump};

/// The table behind the places has at most 2^32 entries and is at most a quarter full.
const MOST_KEYS: u64 = 1 << 30;

/// Seconds from the Unix epoch to the end of the year 9999.
const LAST_TIME: f64 = 253_402_300_800.0;

/// The parameters of a hot list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotPlan {
    /// Keys in the list, at most.
    pub k: u64,
    /// Seconds in which a count falls to its half; None for counts that stay.
    pub half_life: Option<f64>,
    /// Counts fade at the ends of epochs alone, as in a time-decaying filter; None: all the time.
    pub steps: Option<Steps>,
    /// Seconds that the time of one event may move the time on; if not given, two half-lives, or epochs that are longer.
    pub max_jump: Option<f64>,
}

/// Epochs of equal length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// Seconds of an epoch.
    pub epoch: f64,
    /// When epoch zero begins, in seconds since 1970.
    pub origin: f64,
}

impl Steps {
    /// Those of a filter.
    pub fn of(fade: &Fade) -> Self {
        Steps { epoch: fade.epoch, origin: fade.origin }
    }

    /// How a filter with these epochs fades.
    fn fade(&self, plan: &HotPlan) -> Result<Fade> {
        let HotPlan { half_life, max_jump, .. } = *plan;
        Fade { decay: 1.0, epoch: self.epoch, origin: self.origin, half_life, max_jump }.checked()
    }
}

impl HotPlan {
    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        if !(1..=MOST_KEYS).contains(&self.k) {
            return Err(Error::parameter(
                "k",
                self.k,
                "between 1 and 2**30",
                "every key with more than a k-th of all events is in the list",
            ));
        }
        // NaN is in no range. Below a millisecond the age of the Unix epoch is no exact number of half-lives.
        if let Some(seconds) = self.half_life.filter(|seconds| !(1e-3..=1e12).contains(seconds)) {
            return Err(Error::parameter(
                "half_life",
                seconds,
                "between 0.001 and 1e12 seconds",
                "\"1h\" halves a count every hour",
            ));
        }
        self.steps.map_or(Ok(()), |steps| steps.fade(&self).map(drop))?;
        check_max_jump(self.max_jump)?;
        Ok(self)
    }

    /// The instant that an event or a question counts as: the begin of its epoch if there are steps.
    #[inline(always)]
    pub(super) fn stepped(&self, at: f64) -> f64 {
        match self.steps {
            Some(Steps { epoch, origin }) => ((at - origin) / epoch).floor() * epoch + origin,
            None => at,
        }
    }

    /// Seconds that the time of one event may move the list's time on. Those of a list with steps lie between two epochs, so
    /// that rounding is never the difference between the list and its filter.
    pub fn far(&self) -> f64 {
        match self.steps.and_then(|steps| steps.fade(self).ok()) {
            Some(fade) => (fade.far() + 0.5) * fade.epoch,
            None => self.max_jump.unwrap_or(self.half_life.map_or(f64::INFINITY, |h| FAR * h)),
        }
    }

    pub(super) fn require_same(&self, other: &HotPlan) -> Result<()> {
        if self.k != other.k {
            return Err(Error::incompatible("k", self.k, other.k));
        }
        if self.half_life != other.half_life {
            let text =
                |half_life: Option<f64>| half_life.map_or("none".to_owned(), |s| s.to_string());
            return Err(Error::incompatible(
                "half_life",
                text(self.half_life),
                text(other.half_life),
            ));
        }
        let text = |plan: &HotPlan| match plan.steps {
            Some(Steps { epoch, origin }) => format!("steps of {epoch} from {origin}"),
            None => "no steps".to_owned(),
        };
        if self.steps != other.steps {
            return Err(Error::incompatible("epoch", text(self), text(other)));
        }
        Ok(())
    }
}

pub(super) fn check_time(at: f64) -> Result<()> {
    // NaN is in no range.
    if (0.0..=LAST_TIME).contains(&at) {
        return Ok(());
    }
    Err(Error::parameter(
        "at",
        at,
        "seconds between the years 1970 and 9999",
        "give seconds since the Unix epoch, not milliseconds",
    ))
}
