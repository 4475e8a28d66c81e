//! Any sequence of adds to a scalable filter: no key is ever lost, and it stays sound.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use bloomtide_core::{Hasher, KeyHash, ScalableBloomFilter, ScalablePlan};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

#[derive(Arbitrary, Debug)]
enum Op {
    Add(u16),
    AddMany(Vec<u16>),
    Reload,
    Clear,
}

fuzz_target!(|input: (u8, u8, u8, bool, Vec<Op>)| {
    let (capacity, growth, tightening, reserve, ops) = input;
    let plan = ScalablePlan {
        capacity: u64::from(capacity % 32),
        error_rate: 0.01,
        growth: f64::from(growth) / 16.0,
        tightening: f64::from(tightening) / 256.0,
        reserve,
        ..ScalablePlan::default()
    };
    let hasher = Hasher::Xxh3 { seed: 5 };
    let Ok(mut filter) = ScalableBloomFilter::new(plan, hasher) else { return };
    let hash = |key: u16| hasher.unsigned(u64::from(key));
    let mut keys = BTreeSet::new();
    for op in ops {
        match op {
            Op::Add(key) => {
                let before = filter.contains(hash(key));
                assert_eq!(filter.add(hash(key)).expect("small"), !before);
                keys.insert(key);
            }
            Op::AddMany(many) => {
                let digests: Vec<KeyHash> = many.iter().map(|key| hash(*key)).collect();
                let mut twin = filter.copy().expect("small");
                let mut out = vec![false; many.len()];
                filter.add_many(&digests.as_slice(), &mut out).expect("small");
                for (digest, new) in digests.iter().zip(out) {
                    assert_eq!(twin.add(*digest).expect("small"), new);
                }
                assert!(twin.same_as(&filter));
                keys.extend(many);
            }
            Op::Reload => {
                let bytes = to_bytes(&filter).expect("small");
                let Ok(Loaded::Scalable(back)) = read(&bytes, None) else { panic!("lost") };
                assert!(back.same_as(&filter));
                filter = back;
            }
            Op::Clear => {
                filter.clear().expect("small");
                keys.clear();
            }
        }
        filter.validate().expect("sound");
        assert!(keys.iter().all(|key| filter.contains(hash(*key))));
    }
});
