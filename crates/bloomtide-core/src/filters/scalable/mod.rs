//! The scalable Bloom filter: grows with its keys and keeps the compound error under the target.
//!
//! Paper    Almeida et al. 2007; specification 10.10. What a layer is made of is ours; quotients and
//!          remainders as in Bender et al., "Don't Thrash: How to Cache Your Hash on Flash", 2012.
//! Idea     A list of Bloom filters. Layer i takes capacity * growth^i keys at the error p (1 - r) r^i,
//!          whose sum over all layers is p. A key goes into the newest layer if no layer has it; when
//!          the newest is full, the next is made.
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

mod bin;
mod part;
mod plan;

pub(crate) use part::Part;
pub(crate) use plan::Shape;
pub use plan::{LayerPlan, ScalablePlan};

use crate::batch::{self, KeySource};
use crate::cells::Words;
use crate::crew::Crew;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, Measure};
use crate::hash::{Hasher, KeyHash};
use std::collections::BTreeSet;

/// Keys of one size and error.
#[derive(Debug)]
pub(crate) struct Layer {
    plan: LayerPlan,
    cells: Cells,
    /// New keys this layer took.
    items: u64,
}

#[derive(Debug)]
pub(crate) enum Cells {
    Bloom(BloomFilter),
    Sparse(Vec<Part>),
}

impl Layer {
    fn new(plan: LayerPlan, hasher: Hasher) -> Result<Self> {
        let cells = match &plan.shape {
            Shape::Bloom(bloom) => Cells::Bloom(BloomFilter::new(*bloom, hasher)?),
            Shape::Sparse(sparse) => {
                let parts = (0..plan.parts()).map(|part| Part::new(sparse.sizes(part, 0)));
                Cells::Sparse(parts.collect::<Result<_>>()?)
            }
        };
        Ok(Layer { plan, cells, items: 0 })
    }

    /// A layer read from a snapshot: of each part its items, its words and what did not fit its bins.
    pub(crate) fn over(
        plan: LayerPlan,
        hasher: Hasher,
        parts: Vec<(u64, Words, BTreeSet<u64>)>,
    ) -> Self {
        let items = parts.iter().map(|(items, ..)| items).fold(0, |a, b| b.saturating_add(a));
        let cells = match &plan.shape {
            Shape::Bloom(bloom) => {
                let words = parts.into_iter().map(|(_, words, _)| words).next();
                let filter = words.map(|words| BloomFilter::over(*bloom, hasher, words, None));
                filter.map_or(Cells::Sparse(Vec::new()), Cells::Bloom)
            }
            Shape::Sparse(sparse) => Cells::Sparse(
                parts
                    .into_iter()
                    .enumerate()
                    .map(|(part, (items, words, rest))| {
                        Part::over(sparse.sizes(part, items), words, items, rest)
                    })
                    .collect(),
            ),
        };
        Layer { plan, cells, items }
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    fn bytes(&self) -> u64 {
        match &self.cells {
            Cells::Bloom(filter) => filter.plan().bytes(),
            Cells::Sparse(parts) => parts.iter().map(Part::bytes).sum(),
        }
    }

    /// The key's part and its number in there, if the layer has parts.
    #[inline(always)]
    fn place(&self, hash: KeyHash) -> (usize, u64) {
        if let Shape::Sparse(plan) = &self.plan.shape { plan.place(hash) } else { (0, 0) }
    }

    #[inline(always)]
    fn prefetch(&self, hash: KeyHash) {
        let (part, number) = self.place(hash);
        match &self.cells {
            Cells::Bloom(filter) => filter.prefetch(hash),
            Cells::Sparse(parts) => parts[part].prefetch(number),
        }
    }

    #[inline(always)]
    fn contains<const BMI2: bool>(&self, hash: KeyHash) -> bool {
        let (part, number) = self.place(hash);
        match &self.cells {
            Cells::Bloom(filter) => filter.contains(hash),
            Cells::Sparse(parts) => parts[part].contains::<BMI2>(number),
        }
    }

    /// Adds the key unless it is there. Growing comes first, and is all that can fail.
    #[inline(always)]
    fn insert<const BMI2: bool>(&mut self, hash: KeyHash) -> Result<bool> {
        let (index, number) = self.place(hash);
        let new = match &mut self.cells {
            // SAFETY: the layer is borrowed alone.
            Cells::Bloom(filter) => unsafe { filter.add_unsynchronised(hash) },
            Cells::Sparse(parts) => {
                if parts[index].is_full() {
                    if parts[index].contains::<BMI2>(number) {
                        return Ok(false);
                    }
                    grow(&self.plan, index, &mut parts[index])?;
                }
                parts[index].insert::<BMI2>(number)
            }
        };
        self.items += u64::from(new);
        Ok(new)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.items >= self.plan.capacity
    }

    fn measure(&self) -> Measure {
        let items = self.items as f64;
        if let Cells::Bloom(filter) = &self.cells {
            return Measure { items, ..filter.measure() };
        }
        let fill = self.plan.error_at(items);
        Measure { items, fill, error: fill, saturated: 0 }
    }

    fn copy(&self) -> Result<Self> {
        let cells = match &self.cells {
            Cells::Bloom(filter) => Cells::Bloom(filter.copy()?),
            Cells::Sparse(parts) => {
                Cells::Sparse(parts.iter().map(Part::copy).collect::<Result<_>>()?)
            }
        };
        Ok(Layer { plan: self.plan, cells, items: self.items })
    }

    fn same_as(&self, other: &Layer) -> bool {
        self.items == other.items
            && match (&self.cells, &other.cells) {
                (Cells::Bloom(a), Cells::Bloom(b)) => a.same_as(b),
                (Cells::Sparse(a), Cells::Sparse(b)) => a.iter().zip(b).all(|(a, b)| a.same_as(b)),
                _ => false,
            }
    }

    fn validate(&self, hasher: &Hasher) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        match (&self.cells, &self.plan.shape) {
            (Cells::Bloom(filter), Shape::Bloom(plan)) => {
                if filter.plan() != plan || filter.hasher() != hasher {
                    return broken(format!("the first layer is {:?}", filter.plan()));
                }
                filter.validate()
            }
            (Cells::Sparse(parts), Shape::Sparse(plan)) => {
                let mut all = 0;
                for (number, part) in parts.iter().enumerate() {
                    all += part.items();
                    part.validate(plan.sizes(number, part.items()), plan.universe)?;
                }
                if all != self.items || parts.len() != self.plan.parts() {
                    return broken(format!("a layer has {all} keys and took {}", self.items));
                }
                Ok(())
            }
            _ => broken("a layer of another kind".to_owned()),
        }
    }
}

#[cold]
fn grow(plan: &LayerPlan, index: usize, part: &mut Part) -> Result<()> {
    if let Shape::Sparse(plan) = &plan.shape {
        *part = part.moved(plan.sizes(index, part.items() + 1))?;
    }
    Ok(())
}

/// A Bloom filter that grows.
#[derive(Debug)]
pub struct ScalableBloomFilter {
    plan: ScalablePlan,
    hasher: Hasher,
    /// Oldest first, never empty (I1).
    layers: Vec<Layer>,
}

/// Runs a method with `true` where the processor selects a bit in one instruction, else with `false`. Every
/// processor with AVX2 does.
macro_rules! at_best {
    ($name:ident($this:ident: $kind:ty $(, $argument:ident: $type:ty)*) -> $answer:ty, $method:ident) => {
        #[inline]
        fn $name($this: $kind $(, $argument: $type)*) -> $answer {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn newer($this: $kind $(, $argument: $type)*) -> $answer {
                    $this.$method::<true>($($argument),*)
                }
                if is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
                {
                    // SAFETY: the processor has the instructions.
                    return unsafe { newer($this $(, $argument)*) };
                }
            }
            $this.$method::<false>($($argument),*)
        }
    };
}

type Many = std::result::Result<(), (usize, Error)>;

at_best!(add_one(this: &mut ScalableBloomFilter, hash: KeyHash) -> Result<bool>, add_by);
at_best!(ask_one(this: &ScalableBloomFilter, hash: KeyHash) -> bool, contains_by);
at_best!(add_group(this: &mut ScalableBloomFilter, first: usize, group: &[KeyHash], out: &mut [bool]) -> Many, add_group_by);
at_best!(ask_group(this: &ScalableBloomFilter, group: &[KeyHash], out: &mut [bool]) -> (), ask_group_by);

impl ScalableBloomFilter {
    /// An empty filter with its first layer.
    pub fn new(plan: ScalablePlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        Ok(ScalableBloomFilter { plan, hasher, layers: vec![Layer::new(plan.layer(0)?, hasher)?] })
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
        self.prefetch(hash);
        add_one(self, hash)
    }

    #[inline(always)]
    fn add_by<const BMI2: bool>(&mut self, hash: KeyHash) -> Result<bool> {
        let Some((newest, older)) = self.layers.split_last_mut() else { return Ok(false) };
        // A loop, as a closure would not be compiled for the newer processor.
        for layer in older {
            if layer.contains::<BMI2>(hash) {
                return Ok(false);
            }
        }
        if !newest.is_full() {
            return newest.insert::<BMI2>(hash);
        }
        Ok(!newest.contains::<BMI2>(hash) && self.add_above(hash)?)
    }

    /// Makes the next layer, with a key in it.
    #[cold]
    fn add_above(&mut self, hash: KeyHash) -> Result<bool> {
        let mut layer = Layer::new(self.plan.layer(self.layers.len() as u32)?, self.hasher)?;
        let new = layer.insert::<false>(hash)?;
        self.layers.push(layer);
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
        let mut buffers = [[KeyHash::default(); batch::GROUP]; 2];
        let mut before = 0;
        // While the cells of one group are on their way, the group before it is added.
        for (turn, start) in (0..keys.len()).step_by(batch::GROUP).enumerate() {
            let rows = batch::GROUP.min(keys.len() - start);
            let [even, odd] = &mut buffers;
            let (next, group) = if turn % 2 == 0 { (even, odd) } else { (odd, even) };
            keys.fill(&hasher, start, &mut next[..rows]);
            next[..rows].iter().for_each(|digest| self.prefetch(*digest));
            add_group(self, before, &group[..start - before], out)?;
            before = start;
        }
        let last = (keys.len().div_ceil(batch::GROUP) + 1) % 2;
        add_group(self, before, &buffers[last][..keys.len() - before], out)
    }

    /// Adds the keys of the rows from `first` on.
    #[inline(always)]
    fn add_group_by<const BMI2: bool>(
        &mut self,
        first: usize,
        group: &[KeyHash],
        out: &mut [bool],
    ) -> Many {
        for (row, hash) in group.iter().enumerate() {
            match self.add_by::<BMI2>(*hash) {
                Ok(new) => out[first + row] = new,
                Err(error) => return Err((first + row, error)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, hash: KeyHash) {
        self.layers.iter().for_each(|layer| layer.prefetch(hash));
    }

    /// Whether the key may be inside; false is certain.
    pub fn contains(&self, hash: KeyHash) -> bool {
        self.prefetch(hash);
        ask_one(self, hash)
    }

    #[inline(always)]
    fn contains_by<const BMI2: bool>(&self, hash: KeyHash) -> bool {
        // Newest first: it is the largest, and repeats come soon.
        for layer in self.layers.iter().rev() {
            if layer.contains::<BMI2>(hash) {
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn ask_group_by<const BMI2: bool>(&self, group: &[KeyHash], out: &mut [bool]) {
        for (hash, answer) in group.iter().zip(out) {
            *answer = self.contains_by::<BMI2>(*hash);
        }
    }

    /// `contains` for every key.
    pub fn contains_many(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        if let [Layer { cells: Cells::Bloom(filter), .. }] = &self.layers[..] {
            return filter.contains_many(keys, out, crew);
        }
        batch::split(out, crew, |rows, out| {
            let first = rows.start;
            batch::pipeline(
                keys,
                &self.hasher,
                rows,
                |h| self.prefetch(h),
                |row, group| ask_group(self, group, &mut out[row - first..]),
            );
        });
    }

    /// Back to one empty layer.
    pub fn clear(&mut self) -> Result<()> {
        self.layers = vec![Layer::new(self.plan.layer(0)?, self.hasher)?];
        Ok(())
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let layers = self.layers.iter().map(Layer::copy).collect::<Result<_>>()?;
        Ok(ScalableBloomFilter { plan: self.plan, hasher: self.hasher, layers })
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
            if !layer.plan.is_as_good_as(&self.plan.layer(i as u32)?) {
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

#[cfg(test)]
mod tests;
