//! What a hot list is made with.

use crate::error::{Error, Result};

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
        Ok(self)
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
