//! BF.*: a scalable Bloom filter, or one of fixed size that refuses what is too much.
//!
//! # Invariants
//! I1  `items` is the number of keys that were called new.
//! I2  `room` is what the newest layer may still take; with none, a new key is taken only by `add_growing`.

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

/// A filter.
#[derive(Debug)]
pub struct Bloom {
    filter: ScalableBloomFilter,
    expansion: u32,
    /// Keys that were called new.
    pub items: u64,
    room: u64,
}

impl Bloom {
    /// An empty filter.
    pub fn new(goal: BloomGoal) -> Result<Self> {
        let filter = ScalableBloomFilter::new(goal.plan()?, HASHER)?;
        Ok(Bloom { filter, expansion: goal.expansion, items: 0, room: goal.capacity })
    }

    /// Adds a key: whether it was certainly absent. None, and nothing is changed, if it is new and there is no room.
    #[inline]
    pub fn add(&mut self, key: &[u8]) -> Option<bool> {
        let hash = HASHER.bytes(key);
        if self.room == 0 {
            return self.filter.contains(hash).then_some(false);
        }
        // There is room, so no layer is made; where memory is short all the same, `add_growing` gives the error.
        let new = self.filter.add(hash).ok()?;
        self.items += u64::from(new);
        self.room -= u64::from(new);
        Some(new)
    }

    /// Memory of the next layer; None if there is never one.
    pub fn next_bytes(&self) -> Option<Result<u64>> {
        let next = self.filter.layers().len() as u32;
        (self.expansion > 0).then(|| Ok(self.filter.plan().layer(next)?.bytes()))
    }

    /// Adds a new key that makes the next layer.
    pub fn add_growing(&mut self, key: &[u8]) -> Result<()> {
        self.filter.add(HASHER.bytes(key))?;
        self.recount();
        Ok(())
    }

    fn recount(&mut self) {
        self.items = self.filter.layer_items().sum();
        let newest = self.layers().last();
        self.room = newest.map_or(0, |(plan, items, _)| plan.capacity.saturating_sub(items));
    }

    /// How much larger each layer is than the one before; None if it does not grow.
    pub fn expansion(&self) -> Option<u32> {
        Some(self.expansion).filter(|expansion| *expansion > 0)
    }

    /// The sizes, the keys and the memory of each layer.
    pub fn layers(&self) -> impl Iterator<Item = (&LayerPlan, u64, u64)> {
        let counted = self.filter.layer_items().zip(self.filter.layer_bytes());
        self.filter.layers().zip(counted).map(|(plan, (items, bytes))| (plan, items, bytes))
    }
}

impl Membership for Bloom {
    #[inline]
    fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(HASHER.bytes(key))
    }
}

impl Structure for Bloom {
    fn kind(&self) -> &'static str {
        if self.expansion == 0 { "bloom" } else { "scalable" }
    }

    fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    fn summary(&self) -> Summary {
        let (mut cells, mut used, mut error) = (0.0, 0.0, 0.0);
        for (plan, items, _) in self.layers() {
            let (m, n) = (plan.cells() as f64, items as f64);
            cells += m;
            used += m * sizing::classic_fill(n, m, plan.hashes());
            error += plan.error_at(n);
        }
        Summary { items: self.items as f64, fill: used / cells, error: error.min(1.0) }
    }

    /// The expansion, then the filter's snapshot.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.expansion.to_le_bytes())?;
        snapshot::write_to(&self.filter, out)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "bloom");
        let expansion = u32::from_le_bytes(from.fixed()?);
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
        let mut this = Bloom { filter, expansion, items: 0, room: 0 };
        this.recount();
        Ok(this)
    }
}
