//! A count with its bounds (specification 10.7), for every filter of counters.

use crate::placement::{BLOCK_CELLS, Layout, Placement};

/// A count with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The smallest counter.
    pub value: u64,
    /// The true count is at least this with the confidence asked for.
    pub lower: u64,
    /// The true count is at most this, unless a counter of the key is stuck.
    pub upper: u64,
    /// A counter of the key is stuck, so the true count may be larger.
    pub saturated: bool,
}

impl Estimate {
    /// The bounds of `value`, the smallest of a key's `probes` cells: noise above t must be in all of them
    /// at once, as likely as for any cells of the filter. Its cells are read by `get`.
    pub(super) fn new(
        value: u64,
        saturated: bool,
        probes: u32,
        placement: &Placement,
        get: impl Fn(u64) -> u64,
        confidence: f64,
    ) -> Self {
        let sample = sample(placement, get);
        // The smallest t that noise exceeds with chance 1 - confidence at most; it is never above `value`.
        let (mut t, mut enough) = (0, value);
        while t < enough {
            let middle = t + (enough - t) / 2;
            let above = sample.iter().map(|cell| *cell > middle);
            if placement.all_chosen(above, probes).1 <= 1.0 - confidence {
                enough = middle;
            } else {
                t = middle + 1;
            }
        }
        Estimate { value, lower: value - t, upper: value, saturated }
    }
}

/// Values of all cells, or of an even sample of a large filter; of whole blocks if it has any.
fn sample(placement: &Placement, get: impl Fn(u64) -> u64) -> Vec<u64> {
    const MOST: u64 = 1 << 14;
    let unit = match placement.layout {
        Layout::Blocked => BLOCK_CELLS,
        Layout::Classic => 1,
    };
    let step = placement.cells.div_ceil(MOST) * unit;
    (0..placement.cells)
        .step_by(step as usize)
        .flat_map(|first| first..first + unit)
        .map(get)
        .collect()
}
