//! The scalable Bloom filter: grows with its keys and keeps the compound error under the target.
//!
//! Paper    Almeida et al. 2007; specification 10.10. What a layer is made of is ours; quotients and
//!          remainders as in Bender et al., "Don't Thrash: How to Cache Your Hash on Flash", 2012.
//! Idea     A list of Bloom filters. Each is `growth` times as large as the one before, the second growth^2
//!          times. Layer i has the error p (1 - r) r^i, whose sum over all layers is p. A key goes into the
//!          newest layer if no layer has it; when the newest is full, the next is made.
//! Layers   The first is a `BloomFilter` of its capacity. A later one has one hash. Then nearly all cells are
//!          empty, so the set ones are kept as sorted numbers (`part.rs`), and a key is looked for in one
//!          line. Memory follows the keys, so such a layer is made for many more than will come.
//! Prefer   `BloomFilter` when the number of keys is known: faster, threads that add at once.
//!
//! # Invariants
//! I1  There is at least one layer, and every layer has the sizes its number and its items give it.
//! I2  Every layer but the newest took as many new keys as its capacity, the newest no more.
//!
//! # Errors in answers
//! No false negatives. False positives at most the target, however many keys there are.

/// What the processor has: nothing in particular, the instructions for bits that came with AVX2, or AVX-512 as well.
const PLAIN: u8 = 0;
const NEWER: u8 = 1;
#[cfg(target_arch = "x86_64")]
const NEWEST: u8 = 2;

/// Runs a method with the best of these that the processor has.
macro_rules! at_best {
    ($vis:vis $name:ident($this:ident: $kind:ty $(, $argument:ident: $type:ty)*) -> $answer:ty, $method:ident) => {
        #[inline]
        $vis fn $name($this: $kind $(, $argument: $type)*) -> $answer {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn newer($this: $kind $(, $argument: $type)*) -> $answer {
                    $this.$method::<{ $crate::filters::scalable::NEWER }>($($argument),*)
                }
                #[target_feature(enable = "avx512f,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn newest($this: $kind $(, $argument: $type)*) -> $answer {
                    $this.$method::<{ $crate::filters::scalable::NEWEST }>($($argument),*)
                }
                if is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
                {
                    // SAFETY: the processor has the instructions.
                    return unsafe {
                        if is_x86_feature_detected!("avx512f") {
                            newest($this $(, $argument)*)
                        } else {
                            newer($this $(, $argument)*)
                        }
                    };
                }
            }
            $this.$method::<{ $crate::filters::scalable::PLAIN }>($($argument),*)
        }
    };
}

mod bin;
mod layer;
mod part;
mod plan;

pub(crate) use layer::{Cells, Layer};
pub(crate) use part::Part;
pub(crate) use plan::Shape;
pub use plan::{LayerPlan, ScalablePlan};

use crate::batch::{self, GROUP, KeySource};
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::filters::Measure;
use crate::hash::{Hasher, KeyHash};
use part::Place;
use std::ops::Range;

/// A Bloom filter that grows.
#[derive(Debug)]
pub struct ScalableBloomFilter {
    plan: ScalablePlan,
    hasher: Hasher,
    /// Oldest first, never empty (I1).
    layers: Vec<Layer>,
    /// How often keys moved or went on to a new layer.
    moves: u64,
}

/// Keys that are hashed together, and where they belong in the newest layer.
#[derive(Clone, Copy, Default)]
struct Group {
    hashes: [KeyHash; GROUP],
    places: [(usize, Place); GROUP],
    len: usize,
    /// The filter's moves when the places were found.
    moves: u64,
}

impl Group {
    fn hashes(&self) -> &[KeyHash] {
        &self.hashes[..self.len]
    }
}

type Many = std::result::Result<(), (usize, Error)>;

at_best!(add_one(this: &mut ScalableBloomFilter, hash: KeyHash) -> Result<bool>, add_by);
at_best!(ask_one(this: &ScalableBloomFilter, hash: KeyHash) -> bool, contains_by);
at_best!(prepare(this: &ScalableBloomFilter, group: &mut Group) -> (), prepare_by);
at_best!(add_group(this: &mut ScalableBloomFilter, group: &Group, out: &mut [bool]) -> Many, add_group_by);
at_best!(ask_group(this: &ScalableBloomFilter, group: &Group, out: &mut [bool]) -> (), ask_group_by);

impl ScalableBloomFilter {
    /// An empty filter with its first layer.
    pub fn new(plan: ScalablePlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        let layers = vec![Layer::new(plan.layer(0)?, hasher)?];
        Ok(ScalableBloomFilter { plan, hasher, layers, moves: 0 })
    }

    /// A filter of layers read from a snapshot, if they are what the plan makes.
    pub(crate) fn over(plan: ScalablePlan, hasher: Hasher, layers: Vec<Layer>) -> Result<Self> {
        let this = ScalableBloomFilter { plan, hasher, layers, moves: 0 };
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

    /// Each layer's sizes, oldest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &LayerPlan> {
        self.layers.iter().map(|layer| &layer.plan)
    }

    pub(crate) fn cells(&self) -> &[Layer] {
        &self.layers
    }

    /// Each layer's number of new keys, oldest first.
    pub fn layer_items(&self) -> impl Iterator<Item = u64> + '_ {
        self.layers.iter().map(|layer| layer.items)
    }

    /// Each layer's memory in bytes, oldest first.
    pub fn layer_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.layers.iter().map(Layer::bytes)
    }

    /// Memory of all layers in bytes.
    pub fn bytes(&self) -> u64 {
        self.layer_bytes().sum()
    }

    /// Adds the key unless a layer has it; true iff the key was certainly absent before. Growing is
    /// the only thing that can fail, and it happens before the key goes in.
    pub fn add(&mut self, hash: KeyHash) -> Result<bool> {
        add_one(self, hash)
    }

    #[inline(always)]
    fn add_by<const LEVEL: u8>(&mut self, hash: KeyHash) -> Result<bool> {
        let Some((newest, older)) = self.layers.split_last_mut() else { return Ok(false) };
        let place = newest.place(hash);
        // The largest layer is the farthest away: it is asked for before the others are looked at.
        newest.prefetch(hash, place);
        // A loop, as a closure would not be compiled for the newer processor.
        for layer in older {
            if layer.contains::<LEVEL>(hash, layer.place(hash)) {
                return Ok(false);
            }
        }
        if !newest.is_full() {
            return newest.insert::<LEVEL>(hash, place, &mut self.moves);
        }
        Ok(!newest.contains::<LEVEL>(hash, place) && self.add_above(hash)?)
    }

    /// Makes the next layer, with a key in it.
    #[cold]
    fn add_above(&mut self, hash: KeyHash) -> Result<bool> {
        let mut layer = Layer::new(self.plan.layer(self.layers.len() as u32)?, self.hasher)?;
        let new = layer.insert::<PLAIN>(hash, layer.place(hash), &mut self.moves)?;
        self.layers.push(layer);
        self.moves += 1;
        Ok(new)
    }

    /// Adds every key in order; `out[i]` as `add` would have answered. On an error, the number of keys
    /// that went in comes with it.
    pub fn add_many(&mut self, keys: &dyn KeySource, out: &mut [bool]) -> Many {
        if let [Layer { cells: Cells::Bloom(filter), items, plan }] = &mut self.layers[..]
            && plan.capacity - *items >= keys.len() as u64
        {
            filter.add_many(keys, out, &mut Crew::new(1));
            *items += out[..keys.len()].iter().filter(|new| **new).count() as u64;
            return Ok(());
        }
        let hasher = self.hasher;
        let prepare = |this: &mut &mut Self, group: &mut Group| prepare(this, group);
        by_groups(self, keys, &hasher, 0..keys.len(), prepare, |this, row, group| {
            add_group(this, group, &mut out[row..]).map_err(|(at, error)| (row + at, error))
        })
    }

    /// Adds the keys of a group in order.
    #[inline(always)]
    fn add_group_by<const LEVEL: u8>(&mut self, group: &Group, out: &mut [bool]) -> Many {
        let mut known = [false; GROUP];
        let newest = self.layers.len() - 1;
        // Only the newest layer changes. Nearly full, it could become an older one among these keys.
        let apart = newest > 0
            && self.layers[newest].plan.capacity - self.layers[newest].items >= GROUP as u64;
        if apart {
            for layer in &self.layers[..newest] {
                layer.recognize::<LEVEL>(group.hashes(), &mut known);
            }
        }
        for (row, hash) in group.hashes().iter().enumerate() {
            let added = if !apart {
                self.add_by::<LEVEL>(*hash)
            } else if known[row] {
                Ok(false)
            } else {
                let layer = &mut self.layers[newest];
                let place =
                    if group.moves == self.moves { group.places[row] } else { layer.place(*hash) };
                layer.insert::<LEVEL>(*hash, place, &mut self.moves)
            };
            out[row] = added.map_err(|error| (row, error))?;
        }
        Ok(())
    }

    /// Finds the places of a group and asks for their lines.
    #[inline(always)]
    fn prepare_by<const LEVEL: u8>(&self, group: &mut Group) {
        group.moves = self.moves;
        let Some((newest, older)) = self.layers.split_last() else { return };
        for (hash, place) in group.hashes[..group.len].iter().zip(&mut group.places) {
            *place = newest.place(*hash);
            newest.prefetch(*hash, *place);
            for layer in older {
                layer.prefetch(*hash, layer.place(*hash));
            }
        }
    }

    /// Whether the key may be inside; false is certain.
    pub fn contains(&self, hash: KeyHash) -> bool {
        ask_one(self, hash)
    }

    #[inline(always)]
    fn contains_by<const LEVEL: u8>(&self, hash: KeyHash) -> bool {
        // Newest first: it is the largest, and repeats come soon.
        for layer in self.layers.iter().rev() {
            if layer.contains::<LEVEL>(hash, layer.place(hash)) {
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn ask_group_by<const LEVEL: u8>(&self, group: &Group, out: &mut [bool]) {
        let mut known = [false; GROUP];
        let Some((newest, older)) = self.layers.split_last() else { return };
        for layer in older {
            layer.recognize::<LEVEL>(group.hashes(), &mut known);
        }
        for (row, hash) in group.hashes().iter().enumerate() {
            out[row] = newest.contains::<LEVEL>(*hash, group.places[row]) | known[row];
        }
    }

    /// `contains` for every key.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        if let [Layer { cells: Cells::Bloom(filter), .. }] = &self.layers[..] {
            return filter.contains_many(keys, out, crew);
        }
        batch::split(out, crew, |rows, out| {
            let first = rows.start;
            let prepare = |_: &mut (), group: &mut Group| prepare(self, group);
            let asked = by_groups((), keys, &self.hasher, rows, prepare, |_, row, group| {
                ask_group(self, group, &mut out[row - first..]);
                Ok(())
            });
            debug_assert!(asked.is_ok());
        });
    }

    /// Back to one empty layer.
    pub fn clear(&mut self) -> Result<()> {
        self.layers = vec![Layer::new(self.plan.layer(0)?, self.hasher)?];
        self.moves += 1;
        Ok(())
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let layers = self.layers.iter().map(Layer::copy).collect::<Result<_>>()?;
        Ok(ScalableBloomFilter { layers, ..*self })
    }

    /// Whether both have the same goals and the same cells in every layer.
    pub fn same_as(&self, other: &ScalableBloomFilter) -> bool {
        self.plan == other.plan
            && self.hasher == other.hasher
            && self.layers.len() == other.layers.len()
            && self.layers.iter().zip(&other.layers).all(|(a, b)| a.same_as(b))
    }

    /// The whole, and each layer. Errors add up too: a key goes into a layer only if no earlier one has its cells, so
    /// layers are wrong about different keys.
    pub fn measure(&self) -> (Measure, Vec<Measure>) {
        let layers: Vec<_> = self.layers.iter().map(Layer::measure).collect();
        let items: f64 = layers.iter().map(|layer| layer.items).sum();
        let cells: Vec<_> = self.layers().map(|plan| plan.cells() as f64).collect();
        let set: f64 = layers.iter().zip(&cells).map(|(layer, cells)| layer.fill * cells).sum();
        let error = layers.iter().map(|layer| layer.error).sum::<f64>().min(1.0);
        (Measure { items, fill: set / cells.iter().sum::<f64>(), error, saturated: 0 }, layers)
    }

    /// Checks I1 and I2, and every layer.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        if self.layers.is_empty() {
            return broken("no layer".to_owned());
        }
        for (i, layer) in self.layers.iter().enumerate() {
            if !self.plan.makes(i as u32, &layer.plan)? {
                return broken(format!("layer {i} is {:?}", layer.plan));
            }
            let (items, most) = (layer.items, layer.plan.capacity);
            let newest = i + 1 == self.layers.len();
            if items > most || (!newest && items < most) {
                return broken(format!("layer {i} took {items} keys of {most}"));
            }
            layer.validate(&self.hasher)?;
        }
        Ok(())
    }
}

/// Runs `probe(state, first row, group)` over the rows, each group after the next one was hashed and prepared.
#[inline(always)]
fn by_groups<S>(
    mut state: S,
    keys: &dyn KeySource,
    hasher: &Hasher,
    rows: Range<usize>,
    prepare: impl Fn(&mut S, &mut Group),
    mut probe: impl FnMut(&mut S, usize, &Group) -> Many,
) -> Many {
    let (mut current, mut next) = (Group::default(), Group::default());
    for start in rows.clone().step_by(GROUP) {
        next.len = GROUP.min(rows.end - start);
        keys.fill(hasher, start, &mut next.hashes[..next.len]);
        prepare(&mut state, &mut next);
        probe(&mut state, start - current.len, &current)?;
        std::mem::swap(&mut current, &mut next);
    }
    probe(&mut state, rows.end - current.len, &current)
}

#[cfg(test)]
mod tests;
