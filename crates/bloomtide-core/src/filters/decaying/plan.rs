//! Goals in, sizes out: the plan of a time-decaying Bloom filter. Allocates nothing.

use super::time::Fade;
use crate::cells::{
    BasicCells, DECAY_BLOCK, OptimizedCells, ROOM_128B, ROOM_192B, Rounding, bytes_for,
};
use crate::error::{Result, require, require_same};
use crate::filters::{Policy, check_goal};
use crate::named::named;
use crate::placement::Placement;

/// What holds the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecayStorage {
    /// Every cell has all its bits (paper, section 3.1).
    Basic,
    /// Digits of four bits, as many as a cell needs (paper, section 4).
    Optimized,
}

named! {
    DecayStorage: "storage", "\"basic\" or \"optimized\"", "where the cells of a key lie is `layout`";
    Basic = "basic", Optimized = "optimized"
}

/// The sizes of a time-decaying Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecayingPlan {
    /// Which cells a key has.
    pub placement: Placement,
    /// What holds them.
    pub storage: DecayStorage,
    /// How fast they fade.
    pub fade: Fade,
    /// Which way they are rounded.
    pub rounding: Rounding,
    /// How an add changes them.
    pub policy: Policy,
    /// Width of a cell in bits.
    pub counter_bits: u32,
    /// How many of them stand behind the point.
    pub fraction_bits: u32,
    /// Distinct keys planned for, if the plan came from a goal.
    pub capacity: Option<u64>,
    /// Error rate planned for, if the plan came from a goal.
    pub error_rate: Option<f64>,
}

impl DecayingPlan {
    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        check_goal(self.capacity, self.error_rate)?;
        self.fade.checked()?;
        let (bits, hint) =
            (self.counter_bits, "16 bits count to 255 with 8 of them behind the point");
        require(matches!(bits, 16 | 32), "counter_bits", bits, "16 or 32", hint)?;
        let (allowed, fraction) = ("between 0 and 4 less than `counter_bits`", self.fraction_bits);
        let hint = "8 bits behind the point round to 1/256 of an occurrence";
        require(fraction <= bits - 4, "fraction_bits", fraction, allowed, hint)?;
        self.placement.checked()?;
        Ok(self)
    }

    /// Number of cells, m.
    pub fn cells(&self) -> u64 {
        self.placement.cells
    }

    /// Cells per key, k.
    pub fn hashes(&self) -> u32 {
        self.placement.hashes
    }

    /// Whether the records of the optimized layout have room for an entry of every key that is planned for,
    /// since an occurrence takes more than a digit.
    pub(super) fn is_ample(&self) -> bool {
        self.fraction_bits >= 4
    }

    /// What one occurrence adds to a cell.
    pub fn one(&self) -> u64 {
        1 << self.fraction_bits
    }

    /// The largest value of a cell.
    pub fn max(&self) -> u32 {
        ((1u64 << self.counter_bits) - 1) as u32
    }

    /// Memory of an empty filter in bytes: cells and stamps.
    pub fn bytes(&self) -> u64 {
        let stamps = bytes_for(self.cells().div_ceil(DECAY_BLOCK).saturating_mul(64));
        let cells = match self.storage {
            DecayStorage::Basic => BasicCells::bytes_of(self.cells(), self.counter_bits),
            DecayStorage::Optimized if self.is_ample() => {
                OptimizedCells::<ROOM_192B>::bytes_of(self.cells())
            }
            DecayStorage::Optimized => OptimizedCells::<ROOM_128B>::bytes_of(self.cells()),
        };
        stamps.saturating_add(cells)
    }

    /// Expected chance of a wrong "present" when `n` distinct keys are inside.
    pub fn error_at(&self, n: f64) -> f64 {
        self.placement.error_at(n)
    }

    /// Refuses to go on when `other` has other parameters.
    pub fn require_same(&self, other: &DecayingPlan) -> Result<()> {
        self.placement.require_same(&other.placement)?;
        require_same("storage", self.storage.name(), other.storage.name())?;
        require_same("counter_bits", self.counter_bits, other.counter_bits)?;
        require_same("fraction_bits", self.fraction_bits, other.fraction_bits)?;
        require_same("rounding", self.rounding.name(), other.rounding.name())?;
        require_same("policy", self.policy.name(), other.policy.name())?;
        self.fade.require_same(&other.fade)
    }
}
