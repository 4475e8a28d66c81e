//! The scalable Bloom filter: grows with its keys and keeps the compound error under the target.
//!
//! Paper    Almeida et al. 2007; specification 10.10.
//! Idea     A list of Bloom filters. Layer i is made for capacity * growth^i keys at the error
//!          p (1 - r) r^i, whose sum over all layers is p. A key goes into the newest layer if no layer
//!          has it; when the newest is full, the next is made.
//! Prefer   `BloomFilter` when the number of keys is known: one probe instead of one per layer.
//!
//! # Invariants
//! I1  There is at least one layer, and every layer has the capacity its number gives it.
//! I2  Every layer but the newest took as many new keys as its capacity, the newest no more.
//!
//! # Errors in answers
//! No false negatives. False positives at most the target, however many keys there are.

use crate::batch::{self, KeySource};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, BloomPlan, Measure, check_capacity, check_error_rate};
use crate::hash::{Hasher, KeyHash};
use crate::positions::Derivation;
use crate::sizing;

/// The goals of a scalable filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalablePlan {
    /// Keys the first layer is made for.
    pub capacity: u64,
    /// Target for all layers together.
    pub error_rate: f64,
    /// How much larger each layer is than the one before.
    pub growth: f64,
    /// How much smaller each layer's error is than the one before, r.
    pub tightening: f64,
    /// How classic positions come from a digest.
    pub derivation: Derivation,
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
                "2 doubles each new layer",
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
        Ok(self)
    }

    /// The sizes of layer `i`.
    pub fn layer(&self, i: u32) -> Result<BloomPlan> {
        let capacity = self.capacity as f64 * self.growth.powi(i as i32);
        // Below 1e-15 a layer's share no longer matters against the digest's own floor.
        let error = sizing::layer_error(self.error_rate, self.tightening, i).max(1e-15);
        // `as` saturates, and the goal's own check refuses what is too large.
        BloomPlan::for_goal(capacity.round() as u64, error, None, self.derivation)
    }
}

#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) filter: BloomFilter,
    /// New keys this layer took.
    pub(crate) items: u64,
}

/// A Bloom filter that grows.
#[derive(Debug)]
pub struct ScalableBloomFilter {
    plan: ScalablePlan,
    hasher: Hasher,
    /// Oldest first, never empty (I1).
    layers: Vec<Layer>,
}

impl ScalableBloomFilter {
    /// An empty filter with its first layer.
    pub fn new(plan: ScalablePlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        let first = Layer { filter: BloomFilter::new(plan.layer(0)?, hasher)?, items: 0 };
        Ok(ScalableBloomFilter { plan, hasher, layers: vec![first] })
    }

    /// A filter of layers read from a snapshot, if they are what the plan makes.
    pub(crate) fn over(plan: ScalablePlan, hasher: Hasher, layers: Vec<Layer>) -> Result<Self> {
        let this = ScalableBloomFilter { plan, hasher, layers };
        this.validate()?;
        Ok(this)
    }

    /// The goals.
    pub fn plan(&self) -> &ScalablePlan {
        &self.plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Each layer's filter, oldest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &BloomFilter> {
        self.layers.iter().map(|layer| &layer.filter)
    }

    /// Each layer's number of new keys, oldest first.
    pub fn layer_items(&self) -> impl Iterator<Item = u64> + '_ {
        self.layers.iter().map(|layer| layer.items)
    }

    /// Memory of all layers in bytes.
    pub fn bytes(&self) -> u64 {
        self.layers().map(|filter| filter.plan().bytes()).sum()
    }

    /// Adds the key unless a layer has it; true iff the key was certainly absent before. Growing is
    /// the only thing that can fail, and it happens before the key goes in.
    pub fn add(&mut self, hash: KeyHash) -> Result<bool> {
        if self.contains(hash) {
            return Ok(false);
        }
        self.make_room()?;
        let Some(newest) = self.layers.last_mut() else { return Ok(false) };
        // SAFETY: the filter is borrowed alone.
        unsafe { newest.filter.add_unsynchronised(hash) };
        newest.items += 1;
        Ok(true)
    }

    fn make_room(&mut self) -> Result<()> {
        let full = self.layers.last().is_none_or(|layer| layer.items >= capacity(&layer.filter));
        if full {
            let plan = self.plan.layer(self.layers.len() as u32)?;
            self.layers.push(Layer { filter: BloomFilter::new(plan, self.hasher)?, items: 0 });
        }
        Ok(())
    }

    /// Adds every key in order; `out[i]` as `add` would have answered. On an error, the number of keys
    /// that went in comes with it.
    pub fn add_many(
        &mut self,
        keys: &dyn KeySource,
        out: &mut [bool],
    ) -> std::result::Result<(), (usize, Error)> {
        let hasher = self.hasher;
        let mut buffers = [[KeyHash::default(); batch::GROUP]; 2];
        let mut before = 0;
        // While the cells of one group are on their way, the group before it is added.
        for (turn, start) in (0..keys.len()).step_by(batch::GROUP).enumerate() {
            let rows = batch::GROUP.min(keys.len() - start);
            let [even, odd] = &mut buffers;
            let (next, group) = if turn % 2 == 0 { (even, odd) } else { (odd, even) };
            keys.fill(&hasher, start, &mut next[..rows]);
            next[..rows].iter().for_each(|digest| self.prefetch_to_add(*digest));
            self.add_group(before, &group[..start - before], out)?;
            before = start;
        }
        let last = (keys.len().div_ceil(batch::GROUP) + 1) % 2;
        self.add_group(before, &buffers[last][..keys.len() - before], out)
    }

    /// Adds the keys of the rows from `first` on.
    fn add_group(
        &mut self,
        first: usize,
        group: &[KeyHash],
        out: &mut [bool],
    ) -> std::result::Result<(), (usize, Error)> {
        for (row, hash) in group.iter().enumerate() {
            out[first + row] = self.add(*hash).map_err(|error| (first + row, error))?;
        }
        Ok(())
    }

    /// Asks for the cells that an addition will look at: all of the newest layer. An older one is mostly
    /// left after a few, since half of the cells of a full layer are not set.
    fn prefetch_to_add(&self, hash: KeyHash) {
        const FEW: usize = 3;
        if let Some((newest, older)) = self.layers.split_last() {
            newest.filter.prefetch(hash);
            older.iter().for_each(|layer| layer.filter.prefetch_first(hash, FEW));
        }
    }

    fn prefetch(&self, hash: KeyHash) {
        for layer in &self.layers {
            layer.filter.prefetch(hash);
        }
    }

    /// Whether the key may be inside; false is certain.
    pub fn contains(&self, hash: KeyHash) -> bool {
        // Newest first: it is the largest, and repeats come soon.
        self.layers.iter().rev().any(|layer| layer.filter.contains(hash))
    }

    /// `contains` for every key.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        batch::split(out, crew, |rows, out| {
            let first = rows.start;
            batch::pipeline(
                keys,
                &self.hasher,
                rows,
                |h| self.prefetch(h),
                |row, group| {
                    for (hash, answer) in group.iter().zip(&mut out[row - first..]) {
                        *answer = self.contains(*hash);
                    }
                },
            );
        });
    }

    /// Back to one empty layer.
    pub fn clear(&mut self) {
        self.layers.truncate(1);
        for layer in &mut self.layers {
            layer.filter.clear();
            layer.items = 0;
        }
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let copy = |layer: &Layer| Ok(Layer { filter: layer.filter.copy()?, items: layer.items });
        let layers = self.layers.iter().map(copy).collect::<Result<_>>()?;
        Ok(ScalableBloomFilter { plan: self.plan, hasher: self.hasher, layers })
    }

    /// Whether both have the same goals and the same bits in every layer.
    pub fn same_as(&self, other: &ScalableBloomFilter) -> bool {
        let pairs = self.layers.iter().zip(&other.layers);
        self.plan == other.plan
            && self.hasher == other.hasher
            && self.layers.len() == other.layers.len()
            && pairs.into_iter().all(|(a, b)| a.items == b.items && a.filter.same_as(&b.filter))
    }

    /// The whole, and each layer: items add up, errors compound.
    pub fn measure(&self) -> (Measure, Vec<Measure>) {
        let layers: Vec<_> = self.layers().map(BloomFilter::measure).collect();
        let bits = |i: usize| self.layers[i].filter.plan().bits as f64;
        let all_bits: f64 = (0..layers.len()).map(bits).sum();
        let set: f64 = layers.iter().enumerate().map(|(i, layer)| layer.fill * bits(i)).sum();
        let whole = Measure {
            items: layers.iter().map(|layer| layer.items).sum(),
            fill: set / all_bits,
            error: sizing::compound_error(layers.iter().map(|layer| layer.error)),
            saturated: 0,
        };
        (whole, layers)
    }

    /// Checks I1 and I2, and every layer.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        if self.layers.is_empty() {
            return broken("no layer".to_owned());
        }
        for (i, layer) in self.layers.iter().enumerate() {
            // Only the capacity is compared: another machine's logarithm may round a size
            // differently, and the layer's own plan is the one its bits were made by.
            let expected = self.plan.layer(i as u32)?.capacity;
            if layer.filter.plan().capacity != expected || *layer.filter.hasher() != self.hasher {
                return broken(format!("layer {i} is {:?}", layer.filter.plan()));
            }
            let (items, most) = (layer.items, capacity(&layer.filter));
            let newest = i + 1 == self.layers.len();
            if items > most || (!newest && items < most) {
                return broken(format!("layer {i} took {items} keys of {most}"));
            }
            layer.filter.validate()?;
        }
        Ok(())
    }
}

fn capacity(filter: &BloomFilter) -> u64 {
    filter.plan().capacity.unwrap_or(u64::MAX)
}
