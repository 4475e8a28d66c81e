//! BF.*: a scalable Bloom filter, or one of fixed size that refuses what is too much.
//!
//! # Invariants
//! I1  `items` is the number of keys that were called new.
//! I2  In a filter that RedisBloom dumped, keys are hashed and lie as there (`redisbloom.rs`).
//! I3  `room` is what the newest layer may still take; with none, a new key is taken only by `add_growing`.

use super::redisbloom::Chain;
use super::{HASHER, Membership, loaded};
use crate::structure::{Structure, Summary};
use bloomtide_core::filters::LayerPlan;
use bloomtide_core::history::varint::Reader;
use bloomtide_core::snapshot::{self, Kind, Loaded};
use bloomtide_core::{Derivation, Error, Result, ScalableBloomFilter, ScalablePlan, sizing};
use std::io::{self, Write};

/// What BF.RESERVE asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomGoal {
    /// Error rate of the whole.
    pub error: f64,
    /// Keys of the first layer.
    pub capacity: u64,
    /// How much larger each layer is than the one before; 0 for a filter that does not grow.
    pub expansion: u32,
}

impl Default for BloomGoal {
    fn default() -> Self {
        BloomGoal { error: 0.01, capacity: 100, expansion: 2 }
    }
}

impl BloomGoal {
    /// The sizes.
    pub fn plan(&self) -> Result<ScalablePlan> {
        ScalablePlan {
            capacity: self.capacity,
            error_rate: self.error,
            growth: f64::from(self.expansion.max(1)),
            // Each layer has half of the error of the one before; the only one has nearly all of it.
            tightening: if self.expansion == 0 { 0.1 } else { 0.5 },
            derivation: Derivation::default(),
            // The server admits the memory of a layer before it is made.
            reserve: true,
        }
        .checked()
    }

    /// Memory that the filter will have, before it is made.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.plan()?.layer(0)?.bytes())
    }
}

/// In the place of the expansion: what follows is a dump of RedisBloom, with its own.
const DUMPED: u32 = u32::MAX;

#[derive(Debug)]
enum Filter {
    Ours(ScalableBloomFilter),
    Dumped(Chain),
}

/// The sizes of one layer, and what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// New keys that it takes.
    pub capacity: u64,
    /// Its error with so many.
    pub error_rate: f64,
    /// Bits.
    pub cells: u64,
    /// Bits of a key.
    pub hashes: u32,
    /// Keys that it took.
    pub items: u64,
    /// Memory.
    pub bytes: u64,
    /// Its error now.
    pub error: f64,
}

/// A filter.
#[derive(Debug)]
pub struct Bloom {
    filter: Filter,
    expansion: u32,
    /// Keys that were called new.
    pub items: u64,
    room: u64,
}

impl Bloom {
    /// An empty filter.
    pub fn new(goal: BloomGoal) -> Result<Self> {
        let filter = Filter::Ours(ScalableBloomFilter::new(goal.plan()?, HASHER)?);
        Ok(Bloom { filter, expansion: goal.expansion, items: 0, room: goal.capacity })
    }

    /// Adds a key: whether it was certainly absent. None, and nothing is changed, if it is new and there is no room.
    #[inline]
    pub fn add(&mut self, key: &[u8]) -> Option<bool> {
        if self.room == 0 {
            return self.contains(key).then_some(false);
        }
        let new = match &mut self.filter {
            // There is room, so no layer is made; where memory is short all the same, `add_growing` gives the error.
            Filter::Ours(filter) => filter.add(HASHER.bytes(key)).ok()?,
            Filter::Dumped(chain) => {
                let new = !chain.contains(key);
                if new {
                    chain.add(key);
                }
                new
            }
        };
        self.items += u64::from(new);
        self.room -= u64::from(new);
        Some(new)
    }

    /// Memory of the next layer; None if there is never one.
    pub fn next_bytes(&self) -> Option<Result<u64>> {
        (self.expansion > 0).then(|| match &self.filter {
            Filter::Ours(filter) => Ok(filter.plan().layer(filter.layers().len() as u32)?.bytes()),
            Filter::Dumped(chain) => chain.next_bytes(),
        })
    }

    /// Adds a new key that makes the next layer.
    pub fn add_growing(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.filter {
            Filter::Ours(filter) => {
                filter.add(HASHER.bytes(key))?;
            }
            Filter::Dumped(chain) => {
                chain.grow()?;
                chain.add(key);
            }
        }
        self.recount();
        Ok(())
    }

    /// The filter of a dump of RedisBloom: its chunks, joined.
    pub(super) fn dumped(bytes: &[u8]) -> Result<Self> {
        let chain = Chain::read(bytes)?;
        let (expansion, filter) = (chain.growth(), Filter::Dumped(chain));
        let mut this = Bloom { filter, expansion, items: 0, room: 0 };
        this.recount();
        Ok(this)
    }

    fn recount(&mut self) {
        self.items = self.layers().iter().map(|layer| layer.items).sum();
        let newest = self.layers().last().copied();
        self.room = newest.map_or(0, |layer| layer.capacity.saturating_sub(layer.items));
    }

    /// How much larger each layer is than the one before; None if it does not grow.
    pub fn expansion(&self) -> Option<u32> {
        Some(self.expansion).filter(|expansion| *expansion > 0)
    }

    /// The sizes, the keys and the memory of each layer.
    pub fn layers(&self) -> Vec<Layer> {
        match &self.filter {
            Filter::Ours(filter) => {
                let counted = filter.layer_items().zip(filter.layer_bytes());
                let layer = |(plan, (items, bytes)): (&LayerPlan, (u64, u64))| Layer {
                    capacity: plan.capacity,
                    error_rate: plan.error_rate,
                    cells: plan.cells(),
                    hashes: plan.hashes(),
                    items,
                    bytes,
                    error: plan.error_at(items as f64),
                };
                filter.layers().zip(counted).map(layer).collect()
            }
            Filter::Dumped(chain) => chain.layers().collect(),
        }
    }
}

impl Membership for Bloom {
    #[inline]
    fn contains(&self, key: &[u8]) -> bool {
        match &self.filter {
            Filter::Ours(filter) => filter.contains(HASHER.bytes(key)),
            Filter::Dumped(chain) => chain.contains(key),
        }
    }
}

impl Structure for Bloom {
    fn kind(&self) -> &'static str {
        if self.expansion == 0 { "bloom" } else { "scalable" }
    }

    fn bytes(&self) -> u64 {
        match &self.filter {
            Filter::Ours(filter) => filter.bytes(),
            Filter::Dumped(chain) => chain.layers().map(|layer| layer.bytes).sum(),
        }
    }

    fn summary(&self) -> Summary {
        let (mut cells, mut used, mut error) = (0.0, 0.0, 0.0);
        for layer in self.layers() {
            let (m, n) = (layer.cells as f64, layer.items as f64);
            cells += m;
            used += m * sizing::classic_fill(n, m, layer.hashes);
            error += layer.error;
        }
        Summary { items: self.items as f64, fill: used / cells, error: error.min(1.0) }
    }

    /// The expansion, then the filter's snapshot; or a mark, then the chunks of RedisBloom.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.filter {
            Filter::Ours(filter) => {
                out.write_all(&self.expansion.to_le_bytes())?;
                snapshot::write_to(filter, out)
            }
            Filter::Dumped(chain) => {
                out.write_all(&DUMPED.to_le_bytes())?;
                chain.write(out)
            }
        }
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "bloom");
        let expansion = u32::from_le_bytes(from.fixed()?);
        if expansion == DUMPED {
            return Bloom::dumped(from.rest());
        }
        let filter = loaded!(Scalable, from.rest());
        let plan = filter.plan();
        let (error, capacity, hasher) = (plan.error_rate, plan.capacity, filter.hasher());
        let goal = BloomGoal { error, capacity, expansion };
        if goal.plan()? != *plan
            || *hasher != HASHER
            || (expansion == 0 && filter.layers().len() > 1)
        {
            let got = format!("{plan:?} with expansion {expansion}, hashed by {}", hasher.name());
            return Err(Error::Field { name: "bloom", got });
        }
        let mut this = Bloom { filter: Filter::Ours(filter), expansion, items: 0, room: 0 };
        this.recount();
        Ok(this)
    }
}
