//! Goals in, sizes out: the plan of a filter whose counters grow. Allocates nothing.

use crate::cells::Cut;
use crate::error::{Error, Result, require, require_same};
use crate::filters::{Policy, check_capacity, check_error_rate, check_goal, check_hashes};
use crate::placement::{BLOCK_CELLS, Layout, Placement};
use crate::positions::{Derivation, MAX_HASHES};
use crate::sizing;

/// Occurrences of an average key where nothing else is said.
const USUAL_MEAN: u64 = 10;

/// What the user wants of a filter whose counters grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountGoal {
    /// Distinct keys, n.
    pub capacity: Option<u64>,
    /// Chance of a wrong count or a wrong "present" at capacity.
    pub error_rate: Option<f64>,
    /// Counters, m, instead of an error rate.
    pub cells: Option<u64>,
    /// Counters per key, the paper's d; chosen where it is not given.
    pub hashes: Option<u32>,
    /// Occurrences of all keys together, the paper's M.
    pub total: Option<u64>,
    /// Where a key's counters lie; chosen where it is not given.
    pub layout: Option<Layout>,
    /// How classic positions come from a digest.
    pub derivation: Derivation,
}

/// The sizes that all filters with growing counters have; S is what their cells are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountPlan<S> {
    /// Which counters a key has.
    pub placement: Placement,
    /// How an add changes counters.
    pub policy: Policy,
    /// What the counters are like.
    pub shape: S,
    /// Whether this is one of the two partitioned structures.
    pub partitioned: bool,
    /// Number of partitions asked for, c.
    pub partitions: u64,
    /// Occurrences planned for, M.
    pub total: u64,
    /// Distinct keys planned for, if the plan came from a goal.
    pub capacity: Option<u64>,
    /// Error rate planned for, if the plan came from a goal.
    pub error_rate: Option<f64>,
}

impl CountGoal {
    /// The counters and the cells of a key.
    pub fn placement(&self) -> Result<Placement> {
        if let Some(capacity) = self.capacity {
            check_capacity(capacity)?;
        }
        match (self.capacity, self.error_rate, self.cells) {
            (Some(capacity), Some(error_rate), None) => match self.hashes {
                None => Placement::for_goal(capacity, error_rate, self.layout, self.derivation),
                Some(hashes) => {
                    check_error_rate(error_rate)?;
                    check_hashes(hashes, MAX_HASHES)?;
                    // The paper's sizing: m = -d n / ln(1 - P^(1/d)).
                    let cells = sizing::classic_cells_for(capacity as f64, error_rate, hashes);
                    let cells = cells.ceil().max(1.0) as u64;
                    Ok(Placement::for_sizes(cells, hashes, self.layout, self.derivation))
                }
            },
            (_, None, Some(cells)) => {
                let hashes = self.hashes.ok_or_else(|| {
                    Error::parameter("hashes", "none", "given with `cells`", "3 is the paper's")
                })?;
                Ok(Placement::for_sizes(cells, hashes, self.layout, self.derivation))
            }
            (_, Some(_), Some(_)) => Err(Error::parameter(
                "cells",
                self.cells.unwrap_or(0),
                "`capacity` with `error_rate`, or `cells` with `hashes`",
                "leave one of the two out",
            )),
            _ => Err(Error::parameter(
                "capacity",
                self.capacity.map_or_else(|| "none".to_owned(), |n| n.to_string()),
                "`capacity` with `error_rate`, or `cells` with `hashes`",
                "for example capacity=1_000_000, error_rate=0.01",
            )),
        }?
        .checked()
    }

    /// Distinct keys to be expected: as said, or as many as half fill the cells.
    pub fn expected(&self, placement: &Placement) -> u64 {
        let half = placement.cells as f64 * std::f64::consts::LN_2 / f64::from(placement.hashes);
        self.capacity.unwrap_or((half.round() as u64).max(1))
    }

    /// Occurrences to be expected, at least one a key.
    pub fn total(&self, expected: u64) -> Result<u64> {
        let total = self.total.unwrap_or(expected.saturating_mul(USUAL_MEAN));
        if total >= expected {
            return Ok(total);
        }
        Err(match self.capacity {
            Some(_) => total_refused(total),
            None => Error::parameter(
                "total",
                total,
                "at least the number of keys that half fill the cells",
                "give `capacity`, the distinct keys you expect, beside `cells` and `hashes`",
            ),
        })
    }
}

fn total_refused(total: u64) -> Error {
    Error::parameter(
        "total",
        total,
        "at least `capacity`: every distinct key occurs once or more",
        "give the number of all occurrences, the paper's M",
    )
}

impl<S: Copy + PartialEq> CountPlan<S> {
    /// The plan, if every field that does not belong to the shape can be built.
    pub fn checked(self) -> Result<Self> {
        check_goal(self.capacity, self.error_rate)?;
        self.placement.checked()?;
        let right = (1..=self.placement.cells).contains(&self.partitions);
        let (cut, hint) = (self.partitions, "\"auto\" is right for most streams");
        require(right, "partitions", cut, "between 1 and the number of counters", hint)?;
        if self.total < self.capacity.unwrap_or(1) {
            return Err(total_refused(self.total));
        }
        let hint = "make the filter with partitions=\"auto\", or with a number of them";
        let whole = "1 in a filter that is not partitioned";
        require(self.partitioned || cut == 1, "partitions", cut, whole, hint)?;
        // Blocks are not cut, so there may be fewer than were asked for.
        Ok(CountPlan { partitions: self.cut().partitions(), ..self })
    }

    /// The same sizes for counters that are like this.
    pub fn with_shape<T>(self, shape: T) -> CountPlan<T> {
        let CountPlan {
            placement,
            policy,
            partitioned,
            partitions,
            total,
            capacity,
            error_rate,
            ..
        } = self;
        CountPlan { placement, policy, shape, partitioned, partitions, total, capacity, error_rate }
    }

    /// Number of counters, m.
    pub fn cells(&self) -> u64 {
        self.placement.cells
    }

    /// Counters per key, k.
    pub fn hashes(&self) -> u32 {
        self.placement.hashes
    }

    /// How the cells are cut into partitions; a block is never cut.
    pub fn cut(&self) -> Cut {
        let grain = if self.placement.layout == Layout::Blocked { BLOCK_CELLS } else { 1 };
        Cut::new(self.placement.cells, self.partitions, grain)
    }

    /// Expected chance of a wrong "present" when `n` distinct keys are inside.
    pub fn error_at(&self, n: f64) -> f64 {
        self.placement.error_at(n)
    }

    /// Refuses to go on when `other` counts elsewhere or otherwise.
    pub fn require_same(&self, other: &CountPlan<S>) -> Result<()> {
        self.placement.require_same(&other.placement)?;
        require_same("policy", self.policy.name(), other.policy.name())?;
        require_same("partitions", self.cut().partitions(), other.cut().partitions())
    }
}

/// Mean bits of a counter at the expected load: a cell holds Poisson(dn/m) keys, each worth M/n, and
/// takes at least one bit (specification 3.2, the base array's B_design).
pub fn design_bits(placement: &Placement, expected: u64, total: u64) -> f64 {
    let load = f64::from(placement.hashes) * expected as f64 / placement.cells as f64;
    let each = total as f64 / expected.max(1) as f64;
    let (mut weight, mut mean, mut left) = ((-load).exp(), 0.0, 1.0);
    for keys in 0..1000u32 {
        let bits = (f64::from(keys) * each).max(1.0).log2().floor() + 1.0;
        mean += weight * bits;
        left -= weight;
        if left < 1e-12 {
            break;
        }
        weight *= load / f64::from(keys + 1);
    }
    mean.clamp(1.0, 64.0)
}

/// Bits of a base counter of the dynamic count filter: x = floor(log2(M/n)) + 1.
pub fn base_bits(total: u64, expected: u64) -> u32 {
    ((total / expected.max(1)).max(1).ilog2() + 1).min(32)
}

/// Refuses widths that a base counter cannot have.
pub fn check_base_bits(bits: u32) -> Result<()> {
    let hint = "leave it out to have it chosen from `total` / `capacity`";
    require((1..=32).contains(&bits), "counter_bits", bits, "between 1 and 32", hint)
}

/// Refuses a shrink hysteresis outside of 0..=1.
pub fn check_shrink(shrink: f64) -> Result<()> {
    let hint = "1 gives memory back as soon as it can, 0.5 avoids rebuilding again and again";
    require((0.0..=1.0).contains(&shrink), "shrink", shrink, "between 0 and 1", hint)
}
