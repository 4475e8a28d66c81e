//! BF.*: a scalable Bloom filter, or one of fixed size that refuses what is too much.
//!
//! # Invariants
//! I1  `items` is the number of keys that were called new, at most the capacity if it is fixed.
//! I2  `room` is what the newest layer may still take; with none, a new key is taken only after `grow`.

use crate::structure::{Held, Summary};
use bloomtide_core::snapshot::{self, Loaded};
use bloomtide_core::{
    BloomFilter, BloomPlan, Derivation, Error, Hasher, Result, ScalableBloomFilter, ScalablePlan,
};
use std::io::{self, Write};

/// Every filter of the keyspace hashes alike, so that chunks of one server load into another.
const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };
/// Each layer has half of the error of the one before.
const TIGHTENING: f64 = 0.5;

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
    fn scalable(&self) -> Result<ScalablePlan> {
        ScalablePlan {
            capacity: self.capacity,
            error_rate: self.error,
            growth: f64::from(self.expansion),
            tightening: TIGHTENING,
            derivation: Derivation::default(),
            // The server admits the memory of a layer before it is made.
            reserve: true,
        }
        .checked()
    }

    fn fixed(&self) -> Result<BloomPlan> {
        BloomPlan::for_goal(self.capacity, self.error, None, Derivation::default())
    }

    /// Memory that the filter will have, before it is made.
    pub fn bytes(&self) -> Result<u64> {
        match self.expansion {
            0 => Ok(self.fixed()?.bytes()),
            _ => Ok(self.scalable()?.layer(0)?.bytes()),
        }
    }
}

#[derive(Debug)]
enum Filter {
    Growing(ScalableBloomFilter),
    Fixed(BloomFilter),
}

/// A filter.
#[derive(Debug)]
pub struct Bloom {
    filter: Filter,
    items: u64,
    room: u64,
}

/// One layer, or all of a filter that does not grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    /// Memory.
    pub bytes: u64,
    /// Cells.
    pub bits: u64,
    /// Cells of a key.
    pub hashes: u32,
    /// Keys it is made for.
    pub capacity: u64,
    /// Its error with so many keys.
    pub error_rate: f64,
    /// New keys that it took.
    pub items: u64,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was certainly absent.
    New,
    /// It may have been there.
    Known,
    /// It is new, but there is no room. Nothing was changed.
    Full,
}

impl Bloom {
    /// An empty filter.
    pub fn new(goal: BloomGoal) -> Result<Self> {
        let filter = match goal.expansion {
            0 => Filter::Fixed(BloomFilter::new(goal.fixed()?, HASHER)?),
            _ => Filter::Growing(ScalableBloomFilter::new(goal.scalable()?, HASHER)?),
        };
        Ok(Bloom { filter, items: 0, room: goal.capacity })
    }

    /// Adds a key, if there is room for it.
    #[inline]
    pub fn add(&mut self, key: &[u8]) -> Added {
        let hash = HASHER.bytes(key);
        if self.room == 0 {
            return if self.holds(hash) { Added::Known } else { Added::Full };
        }
        let new = match &mut self.filter {
            // There is room, so it does not grow, which is all that can fail.
            Filter::Growing(filter) => filter.add(hash).unwrap_or(false),
            Filter::Fixed(filter) => filter.add(hash),
        };
        self.items += u64::from(new);
        self.room -= u64::from(new);
        if new { Added::New } else { Added::Known }
    }

    /// Memory of the next layer; None if there is never one.
    pub fn next_bytes(&self) -> Option<Result<u64>> {
        let Filter::Growing(filter) = &self.filter else { return None };
        Some(filter.plan().layer(filter.layers().len() as u32).map(|plan| plan.bytes()))
    }

    /// Adds a new key that makes the next layer.
    pub fn add_growing(&mut self, key: &[u8]) -> Result<()> {
        if let Filter::Growing(filter) = &mut self.filter
            && filter.add(HASHER.bytes(key))?
        {
            self.items += 1;
            self.room = room(filter);
        }
        Ok(())
    }

    #[inline]
    fn holds(&self, hash: bloomtide_core::KeyHash) -> bool {
        match &self.filter {
            Filter::Growing(filter) => filter.contains(hash),
            Filter::Fixed(filter) => filter.contains(hash),
        }
    }

    /// Whether the key may be inside.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.holds(HASHER.bytes(key))
    }

    /// Keys that were called new.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// How much larger each layer is than the one before; None if it does not grow.
    pub fn expansion(&self) -> Option<u32> {
        match &self.filter {
            Filter::Growing(filter) => Some(filter.plan().growth as u32),
            Filter::Fixed(_) => None,
        }
    }

    /// What there is to say about each layer.
    pub fn layers(&self) -> Vec<Layer> {
        match &self.filter {
            Filter::Growing(filter) => filter
                .layers()
                .zip(filter.layer_items())
                .zip(filter.layer_bytes())
                .map(|((plan, items), bytes)| Layer {
                    bytes,
                    bits: plan.cells(),
                    hashes: plan.hashes(),
                    capacity: plan.capacity,
                    error_rate: plan.error_rate,
                    items,
                })
                .collect(),
            Filter::Fixed(filter) => {
                let plan = filter.plan();
                vec![Layer {
                    bytes: plan.bytes(),
                    bits: plan.bits,
                    hashes: plan.hashes,
                    capacity: plan.capacity.unwrap_or(0),
                    error_rate: plan.error_rate.unwrap_or(0.0),
                    items: self.items,
                }]
            }
        }
    }

    /// Keys that all layers together are made for.
    pub fn capacity(&self) -> u64 {
        self.layers().iter().map(|layer| layer.capacity).sum()
    }
}

/// Keys that the newest layer may still take.
fn room(filter: &ScalableBloomFilter) -> u64 {
    let newest = filter.layers().last().map_or(0, |layer| layer.capacity);
    newest.saturating_sub(filter.layer_items().last().unwrap_or(0))
}

impl Held for Bloom {
    const TYPE: &'static str = "MBbloom--";

    fn kind(&self) -> &'static str {
        match &self.filter {
            Filter::Growing(_) => "scalable",
            Filter::Fixed(_) => "bloom",
        }
    }

    fn bytes(&self) -> u64 {
        match &self.filter {
            Filter::Growing(filter) => filter.bytes(),
            Filter::Fixed(filter) => filter.plan().bytes(),
        }
    }

    fn summary(&self) -> Summary {
        let items = self.items as f64;
        match &self.filter {
            Filter::Growing(filter) => {
                let measured = filter.measure().0;
                Summary { items, fill: measured.fill, error: measured.error }
            }
            Filter::Fixed(filter) => {
                let plan = filter.plan();
                let fill = -(-f64::from(plan.hashes) * items / plan.bits as f64).exp_m1();
                Summary { items, fill, error: plan.error_at(items) }
            }
        }
    }

    /// The number of keys, then the filter's snapshot.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.items.to_le_bytes())?;
        match &self.filter {
            Filter::Growing(filter) => snapshot::write_to(filter, out),
            Filter::Fixed(filter) => snapshot::write_to(filter, out),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |got: String| Error::Field { name: "bloom", got };
        let Some((items, filter)) = bytes.split_first_chunk() else {
            return Err(wrong(format!("{} bytes", bytes.len())));
        };
        let items = u64::from_le_bytes(*items);
        let (filter, most, room) = match snapshot::read(filter, None)? {
            Loaded::Scalable(filter) => {
                let (all, room) = (filter.layer_items().sum(), room(&filter));
                (Filter::Growing(filter), all, room)
            }
            Loaded::Bloom(filter) => {
                let capacity = filter.plan().capacity.unwrap_or(0);
                (Filter::Fixed(filter), capacity, capacity.saturating_sub(items))
            }
            other => return Err(wrong(format!("a `{}` filter", other.kind().name()))),
        };
        let hasher = match &filter {
            Filter::Growing(filter) => filter.hasher(),
            Filter::Fixed(filter) => filter.hasher(),
        };
        if *hasher != HASHER
            || items > most
            || (matches!(filter, Filter::Growing(_)) && items != most)
        {
            return Err(wrong(format!("{items} keys of {most}, hashed by {}", hasher.name())));
        }
        Ok(Bloom { filter, items, room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(expansion: u32, keys: u32) -> Bloom {
        let mut bloom =
            Bloom::new(BloomGoal { error: 0.01, capacity: 50, expansion }).expect("small");
        for key in 0..keys {
            if bloom.add(&key.to_le_bytes()) == Added::Full && expansion > 0 {
                bloom.add_growing(&key.to_le_bytes()).expect("small");
            }
        }
        bloom
    }

    #[test]
    fn no_key_is_lost_when_it_grows_and_none_is_taken_when_it_is_full() {
        let growing = filled(2, 1000);
        assert!((0..1000u32).all(|key| growing.contains(&key.to_le_bytes())));
        assert!(growing.layers().len() > 3 && growing.items() > 950);
        let mut fixed = filled(0, 60);
        assert_eq!(fixed.items(), 50);
        assert_eq!(fixed.add(b"one more"), Added::Full);
        assert_eq!(fixed.add(&0u32.to_le_bytes()), Added::Known);
        assert!(fixed.next_bytes().is_none());
    }

    #[test]
    fn what_is_written_is_read_again_and_goes_on_alike() {
        for (expansion, keys) in [(2, 0), (2, 100), (2, 149), (2, 150), (0, 30), (0, 50)] {
            let mut one = filled(expansion, keys);
            let mut bytes = Vec::new();
            one.write(&mut bytes).expect("memory");
            let mut two = Bloom::read(&bytes).expect("our own");
            for key in 1000..1100u32 {
                assert_eq!(one.add(&key.to_le_bytes()), two.add(&key.to_le_bytes()));
            }
            assert_eq!((one.items, one.room), (two.items, two.room));
        }
    }

    #[test]
    fn the_memory_is_known_before() {
        for expansion in [0, 1, 4] {
            let goal = BloomGoal { error: 0.001, capacity: 12345, expansion };
            let bloom = Bloom::new(goal).expect("small");
            assert_eq!(bloom.bytes(), goal.bytes().expect("small"));
        }
        let mut bloom = filled(2, 50);
        while bloom.add(&rand(bloom.items())) != Added::Full {}
        let (before, next) = (bloom.bytes(), bloom.next_bytes().expect("grows").expect("small"));
        let mut key = 1_000_000u64;
        while bloom.bytes() == before {
            key += 1;
            bloom.add_growing(&key.to_le_bytes()).expect("small");
        }
        assert_eq!(bloom.bytes(), before + next);
    }

    fn rand(seed: u64) -> [u8; 8] {
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
    }
}
