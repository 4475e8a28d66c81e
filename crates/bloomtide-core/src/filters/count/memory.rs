//! How much memory a filter takes with its stream inside. Formulas only; nothing is allocated.
//!
//! Stream   n keys with M occurrences: the key of rank r comes M / (H r^s) times, rounded down, and once at the
//!          least, where H is the sum of 1/r^s. s = 0: all keys come as often.
//! Cell     Poisson(k n / m) keys share one. Whether their counts reach T together is Panjer's recursion,
//!          in steps of T/128, as counts of a million need no finer ones.
//! Dynamic  A partition has y bits beside the base iff its largest counter does: y >= l iff one reaches
//!          2^(x+l-1) (the level model of `bloomtide.partitions`, with collisions).
//! Spectral The array is as long as an even stream needs, and skew needs no more. So it is planned empty.
//! At most  Logarithms are concave: with M occurrences counters are longest together when all are alike.

use super::plan::CountPlan;
use crate::cells::{DynamicCells, DynamicShape, SpectralCells, SpectralShape};
use crate::error::{Result, require};
use crate::filters::Policy;
use crate::placement::Layout;

/// Steps up to the value that a cell shall reach.
const STEPS: usize = 128;
/// Cells with more keys than this hold what they hold on average.
const CROWDED: f64 = 500.0;
/// Ranks that are summed one by one; beyond them the sum is as good as an integral.
const SUMMED: u64 = 10_000;

/// How often the keys of a stream come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    keys: f64,
    skew: f64,
    /// Occurrences of the first key.
    first: f64,
}

impl Stream {
    /// So many different keys with so many occurrences, the r-th in proportion to 1/r^skew.
    pub fn new(keys: u64, total: u64, skew: f64) -> Result<Self> {
        let allowed = "between 0 (all keys come as often) and 100";
        let hint = "1 is usual for words and pages";
        require((0.0..=100.0).contains(&skew), "skew", skew, allowed, hint)?;
        let near = keys.min(SUMMED);
        let mut shares: f64 = (1..=near).map(|rank| (rank as f64).powf(-skew)).sum();
        if keys > near {
            // From the middle between two ranks, where the integral of a convex curve is closest.
            let (low, high, power) = (near as f64 + 0.5, keys as f64 + 0.5, 1.0 - skew);
            shares += match power.abs() < 1e-9 {
                true => (high / low).ln(),
                false => (high.powf(power) - low.powf(power)) / power,
            };
        }
        Ok(Stream { keys: keys as f64, skew, first: total as f64 / shares })
    }

    /// How many keys come `least` times or more.
    fn keys_with(&self, least: f64) -> f64 {
        let least = least.ceil();
        if least <= 1.0 {
            return self.keys;
        }
        match self.first < least {
            true => 0.0,
            false if self.skew == 0.0 => self.keys,
            false => (self.first / least).powf(1.0 / self.skew).floor().min(self.keys),
        }
    }

    /// Chance that the keys of one cell that come less often than `least` come so often together. `share` is the
    /// chance that a key is in the cell.
    fn collisions(&self, share: f64, least: f64) -> f64 {
        let step = (least / STEPS as f64).max(1.0);
        let steps = (least / step) as usize;
        // Keys in the cell that are worth i steps, to be expected.
        let mut expected = [0.0; STEPS];
        let (mut above, mut mean, mut all) = (self.keys_with(least), 0.0, 0.0);
        for i in (1..steps).rev() {
            let from = self.keys_with((i as f64 - 0.5) * step).max(above);
            expected[i] = (from - above) * share;
            (mean, all, above) = (mean + i as f64 * expected[i], all + expected[i], from);
        }
        if all > CROWDED {
            return f64::from(mean >= steps as f64);
        }
        // The chance of each sum; the tail is added up by itself, as one less the others would lose it.
        let mut chance = [0.0; 3 * STEPS];
        chance[0] = (-all).exp();
        for sum in 1..3 * steps {
            let last = sum.min(steps - 1);
            let terms = (1..=last).map(|i| i as f64 * expected[i] * chance[sum - i]);
            chance[sum] = terms.sum::<f64>() / sum as f64;
        }
        chance[steps..3 * steps].iter().sum::<f64>().min(1.0)
    }
}

impl Stream {
    /// How many keys that come less often than `least` are counted as often, where a key is counted on top of others
    /// that share all its counters. `error` is the chance of that beside so many keys.
    fn raised(&self, error: impl Fn(f64) -> f64, least: f64) -> f64 {
        let step = (least / STEPS as f64).max(1.0);
        let (mut above, mut raised) = (self.keys_with(least), 0.0);
        for i in (1..(least / step) as usize).rev() {
            let own = i as f64 * step;
            let from = self.keys_with(own - 0.5 * step).max(above);
            // Half of the others are there before it, or none, or all.
            let others = if from > above { self.keys_with(least - own) } else { 0.0 };
            if others > 0.0 {
                let there = (0..8).map(|eighth| error(others * (f64::from(eighth) + 0.5) / 8.0));
                raised += (from - above) * there.sum::<f64>() / 8.0;
            }
            above = from;
        }
        raised
    }
}

impl<S: Copy + PartialEq> CountPlan<S> {
    /// Partitions that an occurrence of a key may change.
    fn touched(&self) -> u64 {
        let spread =
            if self.placement.layout == Layout::Blocked { 1 } else { self.placement.hashes };
        u64::from(spread).min(self.cut().partitions())
    }

    /// Chance that a partition has a counter of `least` or more.
    fn reached(&self, stream: &Stream, least: f64) -> f64 {
        let (cells, partitions) = (self.cells() as f64, self.cut().partitions() as f64);
        let (share, touched) = (f64::from(self.hashes()) / cells, self.touched() as f64);
        // To be expected in the partition.
        let sums = match self.policy {
            Policy::Plain => stream.collisions(share, least) * cells / partitions,
            // A counter is no longer than the count of a key of it says. That is too large if the key shares all
            // its counters with keys that come often enough.
            Policy::Conservative => {
                stream.raised(|keys| self.error_at(keys), least) * touched / partitions
            }
        };
        let hot = stream.keys_with(least) * touched;
        // By logarithms: 1 - 1/c loses digits for large c.
        let without = if hot > 0.0 { hot * (-1.0 / partitions).ln_1p() } else { 0.0 };
        -(without - sums).exp_m1()
    }
}

impl CountPlan<DynamicShape> {
    /// Bytes with a stream inside, to be expected.
    pub fn bytes(&self, stream: &Stream) -> u64 {
        let (cut, x) = (self.cut(), self.shape.width);
        let cells = cut.per_partition().min(self.cells());
        let (mut overflow, mut before) = (0.0, 1.0);
        let mut narrower = 0;
        for level in 1..=64 - x {
            let chance = self.reached(stream, 2f64.powi((x + level - 1) as i32)).min(before);
            let bytes = DynamicCells::overflow_bytes(cells, level);
            overflow += chance * (bytes - narrower) as f64;
            (before, narrower) = (chance, bytes);
            if chance < 1e-12 {
                break;
            }
        }
        let overflow = (overflow * cut.partitions() as f64).round() as u64;
        DynamicCells::bytes_of(&cut, x).saturating_add(overflow)
    }

    /// Bytes that no stream of the planned number of occurrences exceeds by being added.
    pub fn bytes_at_most(&self) -> u64 {
        let (cut, x) = (self.cut(), self.shape.width);
        let (cells, partitions) = (self.cells() as f64, cut.partitions() as f64);
        let fits = 2f64.powi(x as i32);
        // The largest counters of all partitions together are no more than this.
        let each = self.total as f64 * self.touched() as f64 / partitions;
        let wide = if each < fits { each / fits } else { (each / fits).log2() + 1.0 };
        let records = partitions.min(each * partitions / fits).ceil();
        // The last word of each is not full.
        let record = (DynamicCells::overflow_bytes(0, 0) + 8) as f64;
        let overflow = cells * wide.min(f64::from(64 - x)) / 8.0 + records * record;
        DynamicCells::bytes_of(&cut, x).saturating_add(overflow.ceil() as u64)
    }
}

impl CountPlan<SpectralShape> {
    /// Bytes with a stream inside, to be expected.
    pub fn bytes(&self) -> u64 {
        SpectralCells::bytes_of(&self.cut(), &self.shape)
    }

    /// Bytes that no stream of the planned number of occurrences exceeds by being added.
    pub fn bytes_at_most(&self) -> u64 {
        let each = self.total as f64 * f64::from(self.hashes()) / self.cells() as f64;
        SpectralCells::bytes_at_most(&self.cut(), &self.shape, 1.0 + (1.0 + each).log2())
    }
}
