//! Any sequence of operations on two Bloom filters against exact sets and naive bits.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use bloomtide_core::{BloomFilter, BloomPlan, Crew, Derivation, Hasher, KeyHash, Layout};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

#[derive(Arbitrary, Debug)]
enum Op {
    Add(u8, u16),
    AddMany(u8, Vec<u16>, u8),
    Merge(bool),
    Intersect(bool),
    Clear(u8),
    Reload(u8),
}

#[derive(Arbitrary, Debug)]
struct Input {
    blocked: bool,
    derivation: u8,
    bits: u16,
    hashes: u8,
    ops: Vec<Op>,
}

/// The filter as a plain set of bit numbers.
#[derive(Clone, Default)]
struct Naive(BTreeSet<u64>);

impl Naive {
    fn add(&mut self, positions: &[u64]) -> bool {
        positions.iter().fold(false, |new, position| self.0.insert(*position) | new)
    }
}

fuzz_target!(|input: Input| {
    let derivation = [Derivation::Enhanced, Derivation::Double, Derivation::Slices]
        [usize::from(input.derivation % 3)];
    let layout = if input.blocked { Layout::Blocked } else { Layout::Classic };
    let bits = match derivation {
        Derivation::Slices => u64::from(input.bits).next_power_of_two(),
        _ => u64::from(input.bits),
    };
    let Ok(plan) = BloomPlan::for_sizes(bits, u32::from(input.hashes), Some(layout), derivation)
    else {
        return;
    };
    let hasher = Hasher::Xxh3 { seed: 5 };
    let mut filters = [0, 1].map(|_| BloomFilter::new(plan, hasher).expect("small"));
    let mut models = [Naive::default(), Naive::default()];
    let hash = |key: u16| hasher.unsigned(u64::from(key));
    for op in input.ops {
        match op {
            Op::Add(which, key) => {
                let i = usize::from(which % 2);
                let positions = filters[i].positions(hash(key));
                assert_eq!(filters[i].add(hash(key)), models[i].add(&positions));
                assert!(filters[i].contains(hash(key)));
            }
            Op::AddMany(which, keys, threads) => {
                let i = usize::from(which % 2);
                let digests: Vec<KeyHash> = keys.iter().map(|key| hash(*key)).collect();
                let mut out = vec![false; keys.len()];
                filters[i].add_many(
                    &digests.as_slice(),
                    &mut out,
                    &mut Crew::new(usize::from(threads % 3) + 1),
                );
                for (digest, new) in digests.iter().zip(out) {
                    let positions = filters[i].positions(*digest);
                    assert_eq!(new, models[i].add(&positions));
                }
            }
            Op::Merge(flip) => {
                let (i, j) = if flip { (1, 0) } else { (0, 1) };
                filters[i].merge(&filters[j]).expect("same plan");
                let other = models[j].clone();
                models[i].0.extend(other.0);
            }
            Op::Intersect(flip) => {
                let (i, j) = if flip { (1, 0) } else { (0, 1) };
                filters[i].intersect(&filters[j]).expect("same plan");
                let other = models[j].clone();
                models[i].0.retain(|bit| other.0.contains(bit));
            }
            Op::Clear(which) => {
                let i = usize::from(which % 2);
                filters[i].clear();
                models[i].0.clear();
            }
            Op::Reload(which) => {
                let i = usize::from(which % 2);
                let bytes = to_bytes(&filters[i]).expect("small");
                let Ok(Loaded::Bloom(back)) = read(&bytes, None) else { panic!("lost a filter") };
                assert!(back.same_as(&filters[i]));
                filters[i] = back;
            }
        }
        for (filter, model) in filters.iter().zip(&models) {
            filter.validate().expect("sound");
            assert_eq!(filter.words().count_ones(), model.0.len() as u64);
        }
    }
});
