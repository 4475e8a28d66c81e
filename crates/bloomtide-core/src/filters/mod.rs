//! The structures, one file or folder each.

mod bloom;
mod count;
mod counting;
mod decaying;
mod estimate;
mod group;
mod hot;
mod overfull;
mod repeated;
mod scalable;
mod url;

pub use bloom::{BloomFilter, BloomPlan};
pub use count::{
    CountFilter, CountGoal, CountPlan, Stream, base_bits, check_base_bits, check_shrink,
    design_bits,
};
pub use counting::{CountingBloomFilter, CountingPlan, Policy};
pub use decaying::{
    DecayStorage, DecayingPlan, Epochs, Fade, SHORTEST_EPOCH, TimeDecayingBloomFilter, When,
};
pub(crate) use decaying::{Drift, Frozen as FrozenCells, KeptArrivals, Occurrence, check_max_jump};
pub use estimate::Estimate;
pub use hot::{HotItem, HotList, HotPlan, Steps, Times};
pub(crate) use hot::{HotState, Occurrence as HotOccurrence};
pub use overfull::{OVERFULL, Overfull, holds};
pub(crate) use scalable::{Cells, Layer, Part, Shape};
pub use scalable::{LayerPlan, ScalableBloomFilter, ScalablePlan};
pub use url::{Bind, LayerSizes, MAX_LAYERS, PrefixCount, READ_FIRST, UrlFilter, UrlPlan};

use crate::error::{Result, require};
use crate::positions::MAX_HASHES;

/// More keys than this are refused: the largest filter's bits must stay below 2^63.
const MAX_CAPACITY: u64 = 1 << 48;

/// What a filter measures of itself. Which fields mean what is said in each structure's `stats`.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Estimated distinct keys inside.
    pub items: f64,
    /// Share of cells that are not zero.
    pub fill: f64,
    /// Chance that an absent key is called present now.
    pub error: f64,
    /// Counters stuck at their largest value.
    pub saturated: u64,
}

pub(crate) fn check_capacity(capacity: u64) -> Result<()> {
    let right = (1..=MAX_CAPACITY).contains(&capacity);
    let hint = "give the number of distinct keys you expect";
    require(right, "capacity", capacity, "between 1 and 2**48", hint)
}

pub(crate) fn check_error_rate(error_rate: f64) -> Result<()> {
    // NaN is in no range; the floor is far below what a 128-bit digest can promise.
    let right = (1e-15..=0.5).contains(&error_rate);
    let hint = "0.01 means one wrong \"present\" in a hundred absent keys";
    require(right, "error_rate", error_rate, "between 1e-15 and 0.5", hint)
}

/// What a plan came from, if it came from a goal.
pub(crate) fn check_goal(capacity: Option<u64>, error_rate: Option<f64>) -> Result<()> {
    capacity.map_or(Ok(()), check_capacity)?;
    error_rate.map_or(Ok(()), check_error_rate)
}

pub(crate) fn check_hashes(hashes: u32, most: u32) -> Result<()> {
    let allowed = if most == MAX_HASHES { "between 1 and 64" } else { "between 1 and 8" };
    let hint = if most == MAX_HASHES {
        "give `capacity` and `error_rate` instead to have it chosen"
    } else {
        "the blocked layout sets one bit in each of at most eight words; use layout=\"classic\" for more"
    };
    require((1..=most).contains(&hashes), "hashes", hashes, allowed, hint)
}
