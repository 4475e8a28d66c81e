//! Time as filters see it: epochs of equal length, counted from an origin that several machines share.
//!
//! No clock here: seconds come in from above.

use crate::error::{Result, require, require_same};
use crate::event_time::FAR;

/// No epoch is shorter: a clock that is cheap to read ticks every few milliseconds.
pub const SHORTEST_EPOCH: f64 = 0.1;
/// Nor longer, nor is a half-life: three thousand years.
const LONGEST: f64 = 1e11;
/// An epoch is this part of the half-life when none is given.
const EPOCHS_PER_HALF_LIFE: f64 = 10.0;

/// How fast counts fade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fade {
    /// What remains after one epoch: the paper's lambda.
    pub decay: f64,
    /// Length of an epoch in seconds: the paper's T.
    pub epoch: f64,
    /// When epoch zero begins, in seconds since 1970.
    pub origin: f64,
    /// Seconds in which a count halves, if that was given instead of lambda.
    pub half_life: Option<f64>,
    /// Seconds that the time of one event may move the time on; if not given, two half-lives, or epochs that are longer.
    pub max_jump: Option<f64>,
}

impl Fade {
    /// From a half-life; an epoch that is not given is a tenth of it.
    pub fn from_half_life(half_life: f64, epoch: Option<f64>, origin: f64) -> Result<Self> {
        let epoch = epoch.unwrap_or((half_life / EPOCHS_PER_HALF_LIFE).max(SHORTEST_EPOCH));
        let decay = halved(epoch / half_life);
        Fade { decay, epoch, origin, half_life: Some(half_life), max_jump: None }.checked()
    }

    /// From what remains after each epoch.
    pub fn from_decay(decay: f64, epoch: f64, origin: f64) -> Result<Self> {
        Fade { decay, epoch, origin, half_life: None, max_jump: None }.checked()
    }

    /// The same, if it makes sense. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        // NaN is in no range.
        let half_life = self.half_life.unwrap_or(1.0);
        let hint = "an hour is \"1h\": what was counted an hour ago counts half";
        let allowed = "above 0 and at most 1e11 seconds";
        require(half_life > 0.0 && half_life <= LONGEST, "half_life", half_life, allowed, hint)?;
        let right = (SHORTEST_EPOCH..=LONGEST).contains(&self.epoch);
        let hint = "a tenth of the half-life is a good epoch";
        require(right, "epoch", self.epoch, "between 0.1 and 1e11 seconds", hint)?;
        let right = (0.0..=1.0).contains(&self.decay);
        let hint = "0.9 keeps nine tenths of a count every epoch; or give a half-life";
        require(right, "decay", self.decay, "between 0 and 1", hint)?;
        let right = (0.0..=LONGEST * 10.0).contains(&self.origin);
        let hint = "leave it out to count epochs from 1970";
        require(right, "origin", self.origin, "seconds since 1970", hint)?;
        check_max_jump(self.max_jump)?;
        Ok(self)
    }

    /// Seconds in which a count halves; None if it never does.
    pub fn halving(&self) -> Option<f64> {
        let from_decay = || self.epoch * std::f64::consts::LN_2 / -self.decay.ln();
        self.half_life.or_else(|| (self.decay < 1.0).then(from_decay))
    }

    /// Epochs that the time of one event may move the time on; infinite where counts do not fade.
    pub fn far(&self) -> f64 {
        if let Some(seconds) = self.max_jump {
            return (seconds / self.epoch).floor().max(1.0);
        }
        let halving = self.halving().unwrap_or(f64::INFINITY);
        (FAR * (halving / self.epoch).max(1.0)).floor()
    }

    /// The epoch of a moment given in seconds since 1970.
    #[inline(always)]
    pub fn epoch_of(&self, seconds: f64) -> i64 {
        let epochs = (seconds - self.origin) / self.epoch;
        // The floor by hand: without newer instructions, `floor` is a call.
        let whole = epochs as i64;
        whole - i64::from(whole as f64 > epochs)
    }

    /// When an epoch begins.
    pub fn begin_of(&self, epoch: i64) -> f64 {
        epoch as f64 * self.epoch + self.origin
    }

    /// Refuses to go on when `other` keeps another time.
    pub fn require_same(&self, other: &Fade) -> Result<()> {
        require_same("epoch", self.epoch, other.epoch)?;
        require_same("origin", self.origin, other.origin)?;
        require_same("decay", self.decay, other.decay)
    }
}

/// Refuses what is no length of time; infinity is one.
pub(crate) fn check_max_jump(seconds: Option<f64>) -> Result<()> {
    let seconds = seconds.unwrap_or(f64::INFINITY);
    let hint = "later events are set aside until several agree; infinity believes every time";
    require(seconds > 0.0, "max_jump", seconds, "a length of time above zero", hint)
}

/// 2^-x, the same on every machine: the C library's last digit depends on the processor, and filters
/// with different digits would not merge.
fn halved(x: f64) -> f64 {
    let whole = x.floor();
    // Below the smallest normal number nothing is left of a count. NaN is refused later.
    if whole >= 1023.0 {
        return 0.0;
    }
    let y = -(x - whole) * std::f64::consts::LN_2;
    // The series of e^y; y is within -0.7 and 0, so 22 terms are more than enough.
    let series = (1..=22).rev().fold(1.0, |sum, n| 1.0 + sum * y / f64::from(n));
    series / 2f64.powi(whole as i32)
}
