//! A count with its bounds (specification 10.7), for every filter of counters.

/// A count with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The smallest counter.
    pub value: u64,
    /// The true count is at least this with the confidence asked for.
    pub lower: u64,
    /// A counter of the key is stuck, so the true count may be larger.
    pub saturated: bool,
}

impl Estimate {
    /// The bounds of `value`, the smallest of the key's `cells` among `m`. Noise above t must be in all k
    /// cells at once, Pr = (1 - G(t))^k with G the distribution of other cells, which are read by `get`.
    pub(super) fn new(
        value: u64,
        saturated: bool,
        cells: &[u64],
        m: u64,
        get: impl Fn(u64) -> u64,
        confidence: f64,
    ) -> Self {
        let mut noise = sample(cells, m, get);
        noise.sort_unstable();
        // The share of cells that may lie above t: (1 - G(t))^k <= 1 - confidence.
        let share_above = (1.0 - confidence).powf(1.0 / cells.len() as f64);
        let above = (share_above * noise.len() as f64).floor() as usize;
        let t = noise.len().checked_sub(above + 1).map_or(value, |i| noise[i]);
        Estimate { value, lower: value.saturating_sub(t), saturated }
    }
}

/// Values of cells that are not the key's: all, or an even sample of a large filter.
fn sample(except: &[u64], m: u64, get: impl Fn(u64) -> u64) -> Vec<u64> {
    const MOST: u64 = 1 << 12;
    let step = m.div_ceil(MOST).max(1);
    (0..m).step_by(step as usize).filter(|cell| !except.contains(cell)).map(get).collect()
}
