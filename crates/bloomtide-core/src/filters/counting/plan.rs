//! Goals in, sizes out: the plan of a counting Bloom filter. Allocates nothing.

use crate::cells::{Counters, LINE_BYTES};
use crate::error::{Result, require_same};
use crate::filters::check_goal;
use crate::named::named;
use crate::placement::{Layout, Placement};
use crate::positions::Derivation;

/// How an add changes the key's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every counter rises.
    Plain,
    /// Only counters below the key's new count rise.
    Conservative,
}

named! {
    Policy: "policy", "\"plain\" or \"conservative\"",
        "\"plain\" can remove and merge exactly, \"conservative\" counts closer";
    Plain = "plain", Conservative = "conservative"
}

/// The sizes of a counting Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountingPlan {
    /// Which counters a key has.
    pub placement: Placement,
    /// Width of a counter in bits.
    pub counter_bits: u32,
    /// How an add changes counters.
    pub policy: Policy,
    /// Distinct keys planned for, if the plan came from a goal.
    pub capacity: Option<u64>,
    /// Error rate planned for, if the plan came from a goal.
    pub error_rate: Option<f64>,
}

impl CountingPlan {
    /// The smallest filter whose chance of a wrong count or a wrong "present" is `error_rate` when it
    /// holds `capacity` different keys.
    pub fn for_goal(
        capacity: u64,
        error_rate: f64,
        counter_bits: u32,
        policy: Policy,
        layout: Option<Layout>,
        derivation: Derivation,
    ) -> Result<Self> {
        let placement = Placement::for_goal(capacity, error_rate, layout, derivation)?;
        let (capacity, error_rate) = (Some(capacity), Some(error_rate));
        CountingPlan { placement, counter_bits, policy, capacity, error_rate }.checked()
    }

    /// A filter of given sizes.
    pub fn for_sizes(
        cells: u64,
        hashes: u32,
        counter_bits: u32,
        policy: Policy,
        layout: Option<Layout>,
        derivation: Derivation,
    ) -> Result<Self> {
        let placement = Placement::for_sizes(cells, hashes, layout, derivation);
        CountingPlan { placement, counter_bits, policy, capacity: None, error_rate: None }.checked()
    }

    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        check_goal(self.capacity, self.error_rate)?;
        Counters::check_width(self.counter_bits)?;
        self.placement.checked()?;
        Ok(self)
    }

    /// Number of counters, m.
    pub fn cells(&self) -> u64 {
        self.placement.cells
    }

    /// Counters per key, k.
    pub fn hashes(&self) -> u32 {
        self.placement.hashes
    }

    /// Memory of the counters in bytes: whole cache lines.
    pub fn bytes(&self) -> u64 {
        (self.cells() * u64::from(self.counter_bits)).div_ceil(512) * LINE_BYTES as u64
    }

    /// Expected chance of a wrong "present" when `n` distinct keys are inside.
    pub fn error_at(&self, n: f64) -> f64 {
        self.placement.error_at(n)
    }

    /// Refuses to go on when `other` has other sizes.
    pub fn require_same(&self, other: &CountingPlan) -> Result<()> {
        require_same("counter_bits", self.counter_bits, other.counter_bits)?;
        self.placement.require_same(&other.placement)?;
        require_same("policy", self.policy.name(), other.policy.name())
    }
}
