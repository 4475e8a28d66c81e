//! Goals in, sizes out: the plan of a counting Bloom filter. Allocates nothing.

use super::{Derivation, MAX_HASHES, check_capacity, check_error_rate, check_hashes, sizing};
use crate::cells::{Counters, LINE_BYTES};
use crate::error::{Error, Result};

/// Counters beyond this are refused before any arithmetic could overflow.
const MAX_CELLS: u64 = 1 << 51;

/// How an add changes the key's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Every counter rises.
    Plain,
    /// Only counters below the key's new count rise.
    Conservative,
}

impl Policy {
    /// The name users and files know it by.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Plain => "plain",
            Policy::Conservative => "conservative",
        }
    }

    /// The policy of that name.
    pub fn parse(name: &str) -> Result<Self> {
        [Policy::Plain, Policy::Conservative].into_iter().find(|p| p.name() == name).ok_or_else(
            || {
                Error::parameter(
                    "policy",
                    name,
                    "\"plain\" or \"conservative\"",
                    "\"plain\" can remove and merge exactly, \"conservative\" counts closer",
                )
            },
        )
    }
}

/// The sizes of a counting Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountingPlan {
    /// How positions come from a digest.
    pub derivation: Derivation,
    /// Number of counters, m.
    pub cells: u64,
    /// Counters per key, k.
    pub hashes: u32,
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
        derivation: Derivation,
    ) -> Result<Self> {
        check_capacity(capacity)?;
        check_error_rate(error_rate)?;
        let (cells, hashes) = sizing::classic_plan(capacity as f64, error_rate, derivation);
        CountingPlan {
            derivation,
            cells,
            hashes,
            counter_bits,
            policy,
            capacity: Some(capacity),
            error_rate: Some(error_rate),
        }
        .checked()
    }

    /// A filter of given sizes: as many counters as fit into `bits` bits.
    pub fn for_sizes(
        bits: u64,
        hashes: u32,
        counter_bits: u32,
        policy: Policy,
        derivation: Derivation,
    ) -> Result<Self> {
        Counters::check_width(counter_bits)?;
        let cells = bits / u64::from(counter_bits);
        CountingPlan {
            derivation,
            cells,
            hashes,
            counter_bits,
            policy,
            capacity: None,
            error_rate: None,
        }
        .checked()
    }

    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        if let Some(capacity) = self.capacity {
            check_capacity(capacity)?;
        }
        if let Some(error_rate) = self.error_rate {
            check_error_rate(error_rate)?;
        }
        check_hashes(self.hashes, MAX_HASHES)?;
        Counters::check_width(self.counter_bits)?;
        if self.cells < 1 || self.cells > MAX_CELLS {
            return Err(Error::parameter(
                "bits",
                self.cells.saturating_mul(u64::from(self.counter_bits)),
                "room for between 1 and 2**51 counters",
                "about 10 counters a key give 1 % error",
            ));
        }
        if self.derivation == Derivation::Slices && !self.cells.is_power_of_two() {
            return Err(Error::parameter(
                "bits",
                self.cells * u64::from(self.counter_bits),
                "room for a power of two of counters with derivation=\"slices\"",
                "a slice of b bits names one of 2**b counters",
            ));
        }
        Ok(self)
    }

    /// Memory of the counters in bytes: whole cache lines.
    pub fn bytes(&self) -> u64 {
        (self.cells * u64::from(self.counter_bits)).div_ceil(512) * LINE_BYTES as u64
    }

    /// Expected chance of a wrong "present" when `n` distinct keys are inside.
    pub fn error_at(&self, n: f64) -> f64 {
        sizing::derived_error(n, self.cells as f64, self.hashes, self.derivation)
    }

    /// Refuses to go on when `other` has other sizes.
    pub fn require_same(&self, other: &CountingPlan) -> Result<()> {
        if self.counter_bits != other.counter_bits {
            let (a, b) = (self.counter_bits, other.counter_bits);
            return Err(Error::incompatible("counter_bits", a, b));
        }
        // Before the sizes, which a goal derives from it.
        if self.derivation != other.derivation {
            let (a, b) = (self.derivation.name(), other.derivation.name());
            return Err(Error::incompatible("derivation", a, b));
        }
        if self.cells != other.cells {
            let bits = |plan: &CountingPlan| plan.cells * u64::from(plan.counter_bits);
            return Err(Error::incompatible("bits", bits(self), bits(other)));
        }
        if self.hashes != other.hashes {
            return Err(Error::incompatible("hashes", self.hashes, other.hashes));
        }
        if self.policy != other.policy {
            return Err(Error::incompatible("policy", self.policy.name(), other.policy.name()));
        }
        Ok(())
    }
}
