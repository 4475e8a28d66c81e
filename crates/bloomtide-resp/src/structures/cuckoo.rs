//! CF.*: what RedisBloom does with cuckoo filters, done with counting Bloom filters.
//!
//! A key may be added several times, counted and taken away again. When the newest layer is full, the next is
//! made, `expansion` times as large. A layer is full for a key, too, when the key's counters are: so a counter
//! that keys share rarely sticks, and removing stays possible.
//!
//! A filter that RedisBloom dumped is a cuckoo filter, and stays one (`redisbloom_cuckoo.rs`).
//!
//! # Invariants
//! I1  There is at least one layer, unless RedisBloom dumped it; layer i is made for capacity * expansion^i keys.
//! I2  `items` is the number of keys that went in and were not taken away, the sum of those of the layers.
//!
//! # Errors in answers
//! As `CountingBloomFilter`. The error of all layers together is below that of a cuckoo filter with buckets of
//! this size and fingerprints of eight bits: 2 b / 255.

use super::redisbloom_cuckoo::Tables;
use super::{HASHER, Membership, loaded};
use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::snapshot::{self, Kind, Loaded};
use bloomtide_core::{
    CountingBloomFilter, CountingPlan, Derivation, Error, Policy, Result, sizing,
};
use std::io::{self, Write};

/// Bits of a counter, and the count from which a layer is full for a key.
const COUNTER: u32 = 4;
const FULL: u64 = 14;
/// How much rarer a wrong "present" is in a layer beyond the first than the goal asks: a key that is taken away is
/// looked for there first, and taken from the wrong layer it would take another key with it.
const RARE: f64 = 100.0;
/// In the place of the capacity: what follows is a dump of RedisBloom.
const DUMPED: u64 = u64::MAX;
/// Layers there may be beside the first.
pub const MAX_EXPANSIONS: usize = 32;

/// What CF.RESERVE asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooGoal {
    /// Keys of the first layer.
    pub capacity: u64,
    /// Size of a bucket: here it only says which error rate is meant.
    pub bucket: u64,
    /// Tries of a cuckoo filter to make room: kept, since CF.INFO tells it.
    pub iterations: u64,
    /// How much larger each layer is than the one before; 0 for a filter that does not grow.
    pub expansion: u64,
}

impl Default for CuckooGoal {
    fn default() -> Self {
        CuckooGoal { capacity: 1024, bucket: 2, iterations: 20, expansion: 1 }
    }
}

impl CuckooGoal {
    fn layer_capacity(&self, i: usize) -> u64 {
        let times = self.expansion.max(1).checked_pow(i as u32).unwrap_or(u64::MAX);
        self.capacity.saturating_mul(times)
    }

    fn layer(&self, i: usize) -> Result<CountingPlan> {
        let error = (2.0 * self.bucket as f64 / 255.0).min(0.25);
        let error = sizing::layer_error(error, 0.5, i as u32) / if i == 0 { 1.0 } else { RARE };
        let error = error.max(1e-15);
        let capacity = self.layer_capacity(i);
        let derivation = Derivation::default();
        CountingPlan::for_goal(capacity, error, COUNTER, Policy::Plain, None, derivation)
    }

    /// Buckets that a cuckoo filter of this size would begin with.
    pub fn buckets(&self) -> u64 {
        (self.capacity / self.bucket.max(1)).max(1).next_power_of_two()
    }

    /// Memory that the filter will have, before it is made.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.layer(0)?.bytes())
    }
}

#[derive(Debug)]
struct Layer {
    filter: CountingBloomFilter,
    /// Keys that are in it.
    items: u64,
}

/// A filter.
#[derive(Debug)]
pub struct Cuckoo {
    /// What it was made for.
    pub goal: CuckooGoal,
    layers: Vec<Layer>,
    /// What RedisBloom dumped, instead of all layers.
    dumped: Option<Tables>,
    /// Keys inside.
    pub items: u64,
    /// Keys that were taken away.
    pub deleted: u64,
}

impl Cuckoo {
    /// An empty filter.
    pub fn new(goal: CuckooGoal) -> Result<Self> {
        let filter = CountingBloomFilter::new(goal.layer(0)?, HASHER)?;
        let layers = vec![Layer { filter, items: 0 }];
        Ok(Cuckoo { goal, layers, dumped: None, items: 0, deleted: 0 })
    }

    /// The filter of a dump of RedisBloom: its chunks, joined.
    pub(super) fn dumped(bytes: &[u8]) -> Result<Self> {
        let tables = Tables::read(bytes)?;
        let goal = CuckooGoal {
            capacity: tables.capacity(),
            bucket: tables.places.into(),
            iterations: tables.moves.into(),
            expansion: tables.expansion.into(),
        };
        let (items, deleted) = (tables.items, tables.deleted);
        Ok(Cuckoo { goal, layers: Vec::new(), dumped: Some(tables), items, deleted })
    }

    /// Adds a key once more; false, and nothing is changed, if the newest layer is full for it.
    #[inline]
    pub fn add(&mut self, key: &[u8]) -> bool {
        if let Some(tables) = &mut self.dumped {
            let added = tables.add(key);
            self.items += u64::from(added);
            return added;
        }
        let capacity = self.goal.layer_capacity(self.layers.len() - 1);
        let Some(newest) = self.layers.last_mut() else { return false };
        let hash = HASHER.bytes(key);
        if newest.items >= capacity || newest.filter.count(hash) >= FULL {
            return false;
        }
        newest.filter.add(hash, 1);
        newest.items += 1;
        self.items += 1;
        true
    }

    /// Memory of the next layer; None if there is never one.
    pub fn next_bytes(&self) -> Option<Result<u64>> {
        if let Some(tables) = &self.dumped {
            return tables.next_bytes().map(Ok);
        }
        if self.goal.expansion == 0 || self.layers.len() > MAX_EXPANSIONS {
            return None;
        }
        Some(self.goal.layer(self.layers.len()).map(|plan| plan.bytes()))
    }

    /// Makes the next layer.
    pub fn grow(&mut self) -> Result<()> {
        if let Some(tables) = &mut self.dumped {
            return tables.grow();
        }
        let plan = self.goal.layer(self.layers.len())?;
        self.layers.push(Layer { filter: CountingBloomFilter::new(plan, HASHER)?, items: 0 });
        Ok(())
    }

    /// Takes a key away once; false if it is certainly absent.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        if let Some(tables) = &mut self.dumped {
            let removed = tables.remove(key);
            self.items -= u64::from(removed);
            self.deleted += u64::from(removed);
            return removed;
        }
        let hash = HASHER.bytes(key);
        // Newest first, as keys come.
        for layer in self.layers.iter_mut().rev() {
            if layer.items > 0 && layer.filter.remove(hash, 1).is_ok() {
                layer.items -= 1;
                self.items -= 1;
                self.deleted += 1;
                return true;
            }
        }
        false
    }

    /// How often the key is inside: that often at least, rarely more.
    #[inline]
    pub fn count(&self, key: &[u8]) -> u64 {
        if let Some(tables) = &self.dumped {
            return tables.count(key);
        }
        let hash = HASHER.bytes(key);
        self.layers.iter().map(|layer| layer.filter.count(hash)).sum()
    }

    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.dumped.as_ref().map_or(self.layers.len(), Tables::len)
    }
}

impl Membership for Cuckoo {
    #[inline]
    fn contains(&self, key: &[u8]) -> bool {
        if let Some(tables) = &self.dumped {
            return tables.contains(key);
        }
        let hash = HASHER.bytes(key);
        self.layers.iter().rev().any(|layer| layer.filter.contains(hash))
    }
}

impl Structure for Cuckoo {
    fn kind(&self) -> &'static str {
        "counting"
    }

    fn bytes(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(|layer| layer.filter.plan().bytes()).sum();
        layers + self.dumped.as_ref().map_or(0, Tables::bytes)
    }

    fn summary(&self) -> Summary {
        if let Some(tables) = &self.dumped {
            // A wrong fingerprint in one of two buckets of each table.
            let fill = self.items as f64 / tables.bytes() as f64;
            let seen = 2.0 * self.goal.bucket as f64 * tables.len() as f64 * fill;
            let error = 1.0 - (1.0 - 1.0 / 255.0f64).powf(seen);
            return Summary { items: self.items as f64, fill, error };
        }
        let (mut cells, mut used, mut right) = (0.0, 0.0, 1.0);
        for layer in &self.layers {
            let (plan, n) = (layer.filter.plan(), layer.items as f64);
            let m = plan.cells() as f64;
            cells += m;
            used += m * sizing::classic_fill(n, m, plan.hashes());
            right *= 1.0 - plan.error_at(n);
        }
        Summary { items: self.items as f64, fill: used / cells, error: 1.0 - right }
    }

    /// Six numbers; then for each layer its keys, the length of its snapshot, and that. Or a mark, then the chunks of
    /// RedisBloom.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(tables) = &self.dumped {
            put(out, &[DUMPED])?;
            return tables.write(out);
        }
        let CuckooGoal { capacity, bucket, iterations, expansion } = self.goal;
        let layers = self.layers.len() as u64;
        put(out, &[capacity, bucket, iterations, expansion, self.deleted, layers])?;
        for layer in &self.layers {
            let len = snapshot::encoded_len(&layer.filter).map_err(io::Error::other)?;
            put(out, &[layer.items, len])?;
            snapshot::write_to(&layer.filter, out)?;
        }
        Ok(())
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        if let Some(dump) = bytes.strip_prefix(&DUMPED.to_le_bytes()) {
            return Cuckoo::dumped(dump);
        }
        let wrong = |got: String| Error::Field { name: "cuckoo", got };
        let mut from = Reader::new(bytes, "cuckoo");
        let [capacity, bucket, iterations, expansion, deleted, count] = take(&mut from)?;
        let goal = CuckooGoal { capacity, bucket, iterations, expansion };
        if count == 0 || count > 1 + MAX_EXPANSIONS as u64 {
            return Err(wrong(format!("{count} layers")));
        }
        let (mut layers, mut all) = (Vec::new(), 0u64);
        for i in 0..count as usize {
            let [items, len] = take(&mut from)?;
            let filter = loaded!(Counting, from.bytes(len)?);
            let (plan, right) = (filter.plan(), goal.layer(i)?.capacity);
            if plan.capacity != right || plan.counter_bits != COUNTER || *filter.hasher() != HASHER
            {
                return Err(wrong(format!("layer {i} is {plan:?}")));
            }
            layers.push(Layer { filter, items });
            all = all.checked_add(items).ok_or_else(|| wrong(format!("{items} keys")))?;
        }
        from.end()?;
        Ok(Cuckoo { goal, layers, dumped: None, items: all, deleted })
    }
}
