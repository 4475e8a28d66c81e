//! The URL filter: a Bloom filter of whole URLs, with a layer for every depth of their prefixes.
//!
//! Paper    The multi-layer Bloom filter for URLs (MLBF); specification section 7, with its corrections.
//! Idea     A URL in canonical form is cut at "/" into segments. Layer i holds its first i segments bound
//!          together, X the whole:
//!              example.org / docs / intro     layer 1  example.org
//!                                             layer 2  example.org/docs
//!                                             layer 3  example.org/docs/intro
//!                                             X        example.org/docs/intro, and nothing shorter
//!          So X answers "was this URL seen?", and a layer "was anything below this directory seen?".
//! Bind     `salted_xor`, `ordered`: how segments are bound, see `address.rs`. `xor`: the paper to the letter,
//!          with bare segments in the layers, and the order of segments and pairs of equal ones lost.
//! Prefer   `BloomFilter` when only whole URLs are asked for: each layer costs as much memory as it does.
//!
//! # Invariants
//! I1  X and every layer have the sizes that the plan gives their place, and one hash function.
//! I2  There are as many layers as the deepest URL had segments, at most `max_layers`.
//!
//! # Errors in answers
//! No false negatives, at any depth; a URL deeper than the layers is certainly absent. False positives: at
//! most those of X, whatever the layers hold, which is the target at capacity. A query some of whose
//! prefixes are new must deceive their layers too. An absent prefix is called seen at most as often, since a layer
//! is made for as many prefixes as there may be URLs, unless the plan expects fewer. With `xor` no such promise holds.

mod address;
mod many;
mod plan;
mod prefixes;
#[cfg(test)]
mod tests;

pub use many::READ_FIRST;
pub use plan::{Bind, LayerSizes, MAX_LAYERS, UrlPlan};
pub use prefixes::PrefixCount;

use crate::error::{Error, Result};
use crate::filters::{BloomFilter, BloomPlan, Measure, Overfull, holds};
use crate::hash::{Hasher, KeyHash};
use crate::url::Cutter;
use address::{Trail, crossed, whole};
use std::iter;

/// How many times its capacity a part holds when it is warned of.
const WARNED: f64 = 1.1;

/// A filter of URLs and their prefixes.
#[derive(Debug)]
pub struct UrlFilter {
    plan: UrlPlan,
    hasher: Hasher,
    /// From the root on; made when the first URL is that deep (I2).
    layers: Vec<BloomFilter>,
    /// The paper's X.
    whole: BloomFilter,
}

impl UrlFilter {
    /// An empty filter, without layers.
    pub fn new(plan: UrlPlan, hasher: Hasher) -> Result<Self> {
        let plan = plan.checked()?;
        let whole = BloomFilter::new(plan.whole()?, hasher)?;
        Ok(UrlFilter { plan, hasher, layers: Vec::new(), whole })
    }

    /// A filter of parts read from a snapshot, if they are what the plan makes.
    pub(crate) fn over(
        plan: UrlPlan,
        whole: BloomFilter,
        layers: Vec<BloomFilter>,
    ) -> Result<Self> {
        let this = UrlFilter { plan, hasher: *whole.hasher(), layers, whole };
        this.validate()?;
        Ok(this)
    }

    /// The goals.
    pub fn plan(&self) -> &UrlPlan {
        &self.plan
    }

    /// The hash function with its seed or secret.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The layers there are, from the root on.
    pub fn layers(&self) -> &[BloomFilter] {
        &self.layers
    }

    /// X, which holds whole URLs.
    pub fn whole(&self) -> &BloomFilter {
        &self.whole
    }

    /// Memory of all cells in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts().map(|part| part.plan().bytes()).sum()
    }

    /// X, then the layers.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &BloomFilter> {
        iter::once(&self.whole).chain(&self.layers)
    }

    /// The cells of a URL: in each of its layers, from the root on, and at last in X. Layers need not exist.
    pub fn positions(&self, url: &[u8]) -> Result<Vec<Vec<u64>>> {
        let mut trail = Trail::new();
        let digests = trail.of(&self.plan, &self.hasher, url)?;
        let mut found = Vec::new();
        for (depth, digest) in (1..).zip(digests) {
            found.push(self.layer_plan(depth)?.positions(*digest));
        }
        found.push(match digests.last() {
            Some(deepest) if self.plan.bind != Bind::Xor => self.whole.positions(whole(*deepest)),
            _ => self.crossed(digests).collect(),
        });
        Ok(found)
    }

    /// The sizes of a layer, from 1 on. Those of X, where it is made for as many, need not be found again.
    fn layer_plan(&self, depth: u32) -> Result<BloomPlan> {
        match self.plan.layer_sizes {
            LayerSizes::Uniform => Ok(*self.whole.plan()),
            LayerSizes::Expected(_) => self.plan.layer(depth),
        }
    }

    fn crossed(&self, layers: &[KeyHash]) -> impl Iterator<Item = u64> + use<> {
        let BloomPlan { bits, hashes, .. } = *self.whole.plan();
        crossed(layers, bits, hashes).into_iter().take(hashes as usize)
    }

    // ---- adding

    /// Adds the URL and its prefixes; true iff the URL was certainly absent before. A URL that is none, or no
    /// memory for a new layer, is refused before anything changes.
    pub fn add(&mut self, url: &[u8]) -> Result<bool> {
        let mut trail = Trail::new();
        let digests = trail.of(&self.plan, &self.hasher, url)?;
        self.reach(digests.len())?;
        let Some(whole) = self.prefetch(digests) else { return Ok(false) };
        let mut new = match self.plan.bind {
            Bind::Xor => self.whole.add_cells(self.crossed(digests)),
            // SAFETY: nobody else has this filter.
            _ => unsafe { self.whole.add_unsynchronised(whole) },
        };
        for (layer, digest) in self.layers.iter().zip(digests) {
            // SAFETY: nobody else has this filter.
            new |= unsafe { layer.add_unsynchronised(*digest) };
        }
        Ok(new)
    }

    /// Asks for the cells of a URL in all layers at once; X's digest of it.
    #[inline(always)]
    fn prefetch(&self, digests: &[KeyHash]) -> Option<KeyHash> {
        let whole = whole(*digests.last()?);
        if self.plan.bind != Bind::Xor {
            self.whole.prefetch(whole);
        }
        self.layers.iter().zip(digests).for_each(|(layer, digest)| layer.prefetch(*digest));
        Some(whole)
    }

    /// Makes the layers down to a depth.
    fn reach(&mut self, depth: usize) -> Result<()> {
        if depth <= self.layers.len() {
            return Ok(());
        }
        let made = (self.layers.len()..depth)
            .map(|above| BloomFilter::new(self.layer_plan(above as u32 + 1)?, self.hasher))
            .collect::<Result<Vec<_>>>()?;
        self.layers.extend(made);
        Ok(())
    }

    // ---- asking

    /// Whether the URL may have been added; false is certain.
    pub fn contains(&self, url: &[u8]) -> Result<bool> {
        let mut trail = Trail::new();
        let digests = trail.of(&self.plan, &self.hasher, url)?;
        if digests.len() > self.layers.len() {
            return Ok(false);
        }
        let Some(whole) = self.prefetch(digests) else { return Ok(false) };
        let whole = match self.plan.bind {
            Bind::Xor => self.whole.has_cells(self.crossed(digests)),
            _ => self.whole.contains(whole),
        };
        // X ends most absent URLs.
        Ok(whole && self.layers_have(digests))
    }

    fn layers_have(&self, digests: &[KeyHash]) -> bool {
        self.layers.iter().zip(digests).all(|(layer, digest)| layer.contains(*digest))
    }

    /// Whether a URL may have been added that begins with the first `depth` segments of this one; false is
    /// certain. With `Bind::Xor`: whether each of these segments was seen at its depth.
    ///
    /// The last layer holds whole rests, not prefixes, so it cannot be asked.
    pub fn seen_prefix(&self, url: &[u8], depth: u32) -> Result<bool> {
        if depth < 1 || depth >= self.plan.max_layers {
            return Err(Error::parameter(
                "depth",
                depth,
                "at least 1 and less than `max_layers`",
                "the host is depth 1; the last layer holds all deeper segments as one",
            ));
        }
        let mut trail = Trail::new();
        let depth = depth as usize;
        let Some(digests) = trail.of(&self.plan, &self.hasher, url)?.get(..depth) else {
            return Err(Error::parameter(
                "depth",
                depth,
                "at most the number of the URL's segments",
                "the host is one segment, and so is each part of the path between slashes",
            ));
        };
        if depth > self.layers.len() {
            return Ok(false);
        }
        // A bound prefix names all that is before it, so its own layer would do; those above it have it too,
        // and to deceive them all is harder.
        Ok(self.layers_have(digests))
    }

    /// Whether any URL of this host may have been added: `example.org`, `example.org:8080`.
    pub fn seen_host(&self, host: &[u8]) -> Result<bool> {
        let mut url = Vec::with_capacity(host.len() + 8);
        if !host.windows(3).any(|part| part == b"://") {
            url.extend(b"http://");
        }
        url.extend(host);
        let mut cutter = Cutter::default();
        let alone = cutter.cut(&url, MAX_LAYERS).is_ok_and(|cut| cut.segments(1).eq([b""]));
        if !alone {
            return Err(Error::parameter(
                "host",
                String::from_utf8_lossy(host),
                "a host alone, with its port if that is not the usual one",
                "seen_prefix(url, 1) asks for the host of a URL",
            ));
        }
        if self.plan.max_layers == 1 {
            return Err(Error::parameter(
                "max_layers",
                1,
                "at least 2 in a filter that is asked for hosts",
                "one layer holds whole URLs only: make the filter with max_layers=2 or more",
            ));
        }
        self.seen_prefix(&url, 1)
    }

    // ---- whole filters

    /// Refuses to go on when `other` was made with other parameters.
    pub fn require_compatible(&self, other: &UrlFilter) -> Result<()> {
        self.plan.require_same(&other.plan)?;
        self.hasher.require_same(&other.hasher)
    }

    /// Becomes the filter of the union, bit for bit; gets the layers that only `other` has.
    pub fn merge(&mut self, other: &UrlFilter) -> Result<()> {
        self.require_compatible(other)?;
        // Copies first: they are what can fail.
        let shared = self.layers.len().min(other.layers.len());
        let deeper = other.layers[shared..].iter().map(BloomFilter::copy);
        let deeper = deeper.collect::<Result<Vec<_>>>()?;
        for (mine, theirs) in self.parts().zip(other.parts()) {
            mine.merge(theirs)?;
        }
        self.layers.extend(deeper);
        Ok(())
    }

    /// Forgets everything, and the layers with it.
    pub fn clear(&mut self) {
        self.layers.clear();
        self.whole.clear();
    }

    /// A copy.
    pub fn copy(&self) -> Result<Self> {
        let layers = self.layers.iter().map(BloomFilter::copy).collect::<Result<_>>()?;
        let (plan, whole) = (self.plan.clone(), self.whole.copy()?);
        Ok(UrlFilter { plan, hasher: self.hasher, layers, whole })
    }

    /// Whether both have the same goals, the same layers and the same bits.
    pub fn same_as(&self, other: &UrlFilter) -> bool {
        self.require_compatible(other).is_ok()
            && self.layers.len() == other.layers.len()
            && self.parts().zip(other.parts()).all(|(mine, theirs)| mine.same_as(theirs))
    }

    /// The whole, whose items and error are those of X and whose fill is that of all cells; and each layer.
    pub fn measure(&self) -> (Measure, Vec<Measure>) {
        let layers: Vec<_> = self.layers.iter().map(BloomFilter::measure).collect();
        let mut whole = self.whole.measure();
        let bits = |part: &BloomFilter| part.plan().bits as f64;
        let mut set = whole.fill * bits(&self.whole);
        set += self.layers.iter().zip(&layers).map(|(l, m)| m.fill * bits(l)).sum::<f64>();
        whole.fill = set / self.parts().map(bits).sum::<f64>();
        (whole, layers)
    }

    /// What to tell about parts that hold more than they were made for, and so err more often than was asked; X
    /// first. The measures are those of `measure`.
    pub fn warnings(&self, whole: &Measure, layers: &[Measure]) -> Vec<String> {
        let mut told = Vec::new();
        for (depth, (part, measure)) in
            self.parts().zip(iter::once(whole).chain(layers)).enumerate()
        {
            let capacity = part.plan().capacity.unwrap_or(u64::MAX);
            // The number of items is an estimate, so a full part may seem to hold a little more.
            if measure.items > capacity as f64 * WARNED {
                let Measure { items, error, .. } = *measure;
                let found = Overfull { items, capacity, error };
                told.push(match depth {
                    0 => holds("the filter", "URLs", &found),
                    depth => holds(&format!("depth {depth}"), "prefixes", &found),
                });
            }
        }
        told
    }

    /// The part that holds most of its capacity, if that is more than twice as much, by looking at some of its bits.
    pub fn overfull(&self) -> Option<Overfull> {
        let share = |found: &Overfull| found.items / found.capacity as f64;
        let found = self.parts().filter_map(BloomFilter::overfull);
        found.max_by(|one, other| share(one).total_cmp(&share(other)))
    }

    /// Checks I1, I2, and every part.
    pub fn validate(&self) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        let deepest = self.plan.max_layers as usize;
        if self.layers.len() > deepest {
            return broken(format!("{} layers of at most {deepest}", self.layers.len()));
        }
        for (depth, part) in (0..).zip(self.parts()) {
            let sizes = (part.plan().bits, part.plan().hashes);
            let crossed = self.plan.bind == Bind::Xor
                && (sizes != (self.whole.plan().bits, self.whole.plan().hashes)
                    || !sizes.0.is_power_of_two());
            if !self.plan.makes(depth, part.plan())? || crossed || *part.hasher() != self.hasher {
                return broken(format!("the part at depth {depth} is {:?}", part.plan()));
            }
            part.validate()?;
        }
        Ok(())
    }
}
