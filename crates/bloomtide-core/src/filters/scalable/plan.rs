//! Goals in, sizes out: the plan of a scalable filter and of each of its layers. Allocates nothing.

use super::bin::SLOTS;
use super::part::Sizes;
use crate::error::{Error, Result};
use crate::filters::{BloomPlan, check_capacity, check_error_rate};
use crate::hash::KeyHash;
use crate::placement::Layout;
use crate::positions::{Derivation, reduce, split};

/// Keys of a layer for each of its parts: few enough that one moves in a tenth of a second, many enough
/// that its memory is in huge pages.
const PART: u64 = 1 << 23;
const MAX_PARTS: u64 = 1 << 12;
/// Bins of the smallest part, at most.
const FIRST: f64 = 32.0;
/// Keys for each bin that is made for all of them: with more, too many would not fit.
const RESERVED: u64 = 58;
/// Cells beyond this are not told apart by a digest: two keys of a full layer would share one anyway.
const MAX_CELLS: f64 = (1u64 << 62) as f64;

/// The goals of a scalable filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalablePlan {
    /// Keys the first layer takes.
    pub capacity: u64,
    /// Target for all layers together.
    pub error_rate: f64,
    /// How much larger each layer is than the one before.
    pub growth: f64,
    /// How much smaller each layer's error is than the one before, r.
    pub tightening: f64,
    /// How classic positions come from a digest, in the first layer.
    pub derivation: Derivation,
    /// Whether later layers too have the memory of all their keys from the start, and not as they come.
    pub reserve: bool,
}

impl Default for ScalablePlan {
    fn default() -> Self {
        ScalablePlan {
            capacity: 3 << 19,
            error_rate: 0.01,
            growth: 8.0,
            tightening: 0.5,
            derivation: Derivation::default(),
            reserve: false,
        }
    }
}

impl ScalablePlan {
    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        check_capacity(self.capacity)?;
        check_error_rate(self.error_rate)?;
        // Comparisons that NaN fails.
        if !(self.growth >= 1.0 && self.growth <= 32768.0) {
            return Err(Error::parameter(
                "growth",
                self.growth,
                "between 1 and 32768",
                "8 makes each new layer eight times as large",
            ));
        }
        if !(self.tightening >= 0.1 && self.tightening <= 0.95) {
            return Err(Error::parameter(
                "tightening",
                self.tightening,
                "between 0.1 and 0.95",
                "0.5 halves the error of each new layer",
            ));
        }
        self.layer(0)?;
        let least = 1e-15 / (1.0 - self.tightening);
        // A growth that goes beyond what a digest tells apart is refused now, and not when the filter is full.
        if self.error_rate < least || matches!(self.layer(1), Err(Error::Cells { .. })) {
            return Err(Error::parameter(
                "error_rate",
                self.error_rate,
                "large enough for layers that grow",
                "1e-8 is kept beyond a billion keys; a `BloomFilter` takes 1e-15",
            ));
        }
        Ok(self)
    }

    /// The sizes of layer `i`. Products only, so that every machine makes the same ones.
    pub fn layer(&self, i: u32) -> Result<LayerPlan> {
        let (mut capacity, mut error_rate) =
            (self.capacity as f64, self.error_rate * (1.0 - self.tightening));
        // An empty later layer takes no memory unless all of it is reserved: the second may be larger still.
        if i > 0 && !self.reserve {
            capacity *= self.growth;
        }
        for _ in 0..i {
            capacity *= self.growth;
            error_rate *= self.tightening;
        }
        // `as` saturates, and the check refuses what is too large.
        let capacity = capacity.round() as u64;
        check_capacity(capacity)?;
        let shape = if i == 0 {
            Shape::Bloom(self.first(error_rate)?)
        } else {
            let parts = if self.reserve { 1 } else { (capacity / PART).clamp(1, MAX_PARTS) };
            let cells = capacity as f64 / error_rate;
            if cells > MAX_CELLS {
                return Err(Error::Cells { needed: cells as u64, limit: MAX_CELLS as u64 });
            }
            let cells = cells / parts as f64;
            Shape::Sparse(SparsePlan { parts, cells, reserved: self.reserve.then_some(capacity) })
        };
        Ok(LayerPlan { capacity, error_rate, shape })
    }
}

impl ScalablePlan {
    /// The Bloom filter of the first layer, with that error.
    fn first(&self, error_rate: f64) -> Result<BloomPlan> {
        let load = load(self.capacity as f64, error_rate).ceil() as u64;
        // The layout of a filter with the target, which is the faster one more often.
        let goal = |error, layout| BloomPlan::for_goal(load, error, layout, self.derivation);
        let layout = goal(self.error_rate, None)?.layout;
        goal(error_rate.max(1e-15), Some(layout))
    }

    /// Whether a file with these goals may have this layer `i`.
    pub(super) fn makes(&self, i: u32, layer: &LayerPlan) -> Result<bool> {
        let expected = self.layer(i)?;
        let Shape::Bloom(found) = layer.shape else { return Ok(*layer == expected) };
        let as_expected = LayerPlan { shape: layer.shape, ..expected };
        let same = i == 0 && *layer == as_expected;
        Ok(same && found.is_made_by(expected.error_rate, |error| self.first(error))?)
    }
}

/// Keys that a Bloom filter is as full of, at most, as of `new` ones at error e. A key that is called new set a cell for
/// certain, so they count for more: as if all false positives on the way had come on top.
fn load(new: f64, error_rate: f64) -> f64 {
    new / (1.0 - error_rate)
}

/// The sizes of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerPlan {
    /// New keys that the layer takes.
    pub capacity: u64,
    /// Its error with so many keys inside.
    pub error_rate: f64,
    pub(crate) shape: Shape,
}

/// What a layer is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// The first: a Bloom filter of that size.
    Bloom(BloomPlan),
    /// All others: one cell a key, of which the set ones are stored.
    Sparse(SparsePlan),
}

impl LayerPlan {
    /// Number of cells, m.
    pub fn cells(&self) -> u64 {
        match &self.shape {
            Shape::Bloom(plan) => plan.bits,
            Shape::Sparse(plan) => plan.all().map(|sizes| sizes.universe()).sum(),
        }
    }

    /// Cells of a key, k.
    pub fn hashes(&self) -> u32 {
        if let Shape::Bloom(plan) = &self.shape { plan.hashes } else { 1 }
    }

    /// Where a key's cells lie.
    pub fn layout(&self) -> Layout {
        if let Shape::Bloom(plan) = &self.shape { plan.layout } else { Layout::Classic }
    }

    /// The key's cells.
    pub fn positions(&self, hash: KeyHash) -> Vec<u64> {
        match &self.shape {
            Shape::Bloom(plan) => plan.positions(hash),
            Shape::Sparse(plan) => {
                let (part, rest) = plan.part(hash);
                let before: u64 = plan.all().take(part).map(|sizes| sizes.universe()).sum();
                vec![before + reduce(rest, plan.sizes(part, 0).universe())]
            }
        }
    }

    /// How many parts there are.
    pub(crate) fn parts(&self) -> usize {
        if let Shape::Sparse(plan) = &self.shape { plan.parts as usize } else { 1 }
    }

    /// Memory of the empty layer in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.shape {
            Shape::Bloom(plan) => plan.bytes(),
            Shape::Sparse(plan) => plan.all().map(|sizes| sizes.bytes()).sum(),
        }
    }

    /// Error with `n` new keys inside, at most. Of one cell a key, it is the share of the cells that are set, on
    /// average over the parts, as each part has as many keys.
    pub fn error_at(&self, n: f64) -> f64 {
        match &self.shape {
            Shape::Bloom(plan) => plan.error_at(load(n, self.error_rate)),
            Shape::Sparse(plan) => {
                let each = n / plan.parts as f64;
                let errors = plan.all().map(|sizes| each / sizes.universe() as f64);
                (errors.sum::<f64>() / plan.parts as f64).min(1.0)
            }
        }
    }
}

/// The sizes of a layer with one cell a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SparsePlan {
    parts: u64,
    /// Cells that each part would need if all had as many.
    cells: f64,
    /// Keys of its only part, if it has the memory of all of them from the start.
    reserved: Option<u64>,
}

impl SparsePlan {
    /// The key's part, and what its cell in there comes from.
    #[inline(always)]
    pub(super) fn part(&self, hash: KeyHash) -> (usize, u64) {
        let (part, rest) = split(hash.h1, self.parts);
        (part as usize, rest)
    }

    /// The sizes of a part with so many items.
    ///
    /// All parts have as many keys. They begin with 1 to 2 times as many bins, about 2^x for x from 0 to 1, so that they double at
    /// different times and the memory of all together has no steps. With so many cells as well, 1 / 2^x of them
    /// is set in each, which is 0.721 on average.
    pub(crate) fn sizes(&self, part: usize, items: u64) -> Sizes {
        if let Some(capacity) = self.reserved {
            let first = capacity.div_ceil(RESERVED);
            let each = (self.cells as u64).div_ceil(first * u64::from(SLOTS));
            return Sizes::new(first, each.next_power_of_two().trailing_zeros());
        }
        let (mut bins, mut bits) = (self.cells * 0.721 / f64::from(SLOTS), 0);
        while bins >= FIRST {
            (bins, bits) = (bins / 2.0, bits + 1);
        }
        let x = (part as f64 + 0.5) / self.parts as f64;
        let bins = (bins * (1.0 + x * (2.0 + x) / 3.0)).ceil();
        Sizes::new(bins as u64, bits).grown(items)
    }

    /// The sizes of all parts when they are empty.
    fn all(&self) -> impl Iterator<Item = Sizes> + '_ {
        (0..self.parts as usize).map(|part| self.sizes(part, 0))
    }
}
