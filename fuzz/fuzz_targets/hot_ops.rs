//! Any sequence of events, batches, merges and reloads of a hot list: it stays sound, its bounds enclose the exact
//! counts, and what has more than a k-th of all events is listed. Half-lives are one second and instants
//! whole, so that the naive sums are exact powers of two.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use bloomtide_core::{Hasher, HotList, HotPlan, Key, Times};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

#[derive(Arbitrary, Debug)]
enum Op {
    Add(u8, u8, u8),
    AddMany(Vec<u8>, u8),
    MergeSelf,
    Reload,
    Clear,
}

const HASHER: Hasher = Hasher::Xxh3 { seed: 5 };

fuzz_target!(|input: (u8, bool, Vec<Op>)| {
    let (k, decays, ops) = input;
    let plan = HotPlan {
        k: u64::from(k % 9),
        half_life: decays.then_some(1.0),
        steps: None,
        max_jump: Some(f64::INFINITY), // the exact counts below believe every time
    };
    let Ok(mut list) = HotList::new(plan, HASHER) else { return };
    // Weights as if at instant 0; 255 half-lives and a few doublings fit an f64.
    let mut exact: BTreeMap<u8, f64> = BTreeMap::new();
    let weight = |at: u8| if decays { f64::from(at).exp2() } else { 1.0 };
    let mut doublings = 0;
    for op in ops {
        match op {
            Op::Add(key, count, at) => {
                let count = u64::from(count) + 1;
                list.add(Key::Unsigned(u64::from(key)), count, f64::from(at)).expect("small");
                *exact.entry(key).or_default() += count as f64 * weight(at);
            }
            Op::AddMany(keys, at) => {
                let rows: Vec<_> = keys.iter().map(|key| Key::Unsigned(u64::from(*key))).collect();
                let mut twin = list.copy().expect("small");
                list.add_many(&&rows[..], None, Times::All(f64::from(at))).expect("small");
                for key in &rows {
                    twin.add(*key, 1, f64::from(at)).expect("small");
                }
                assert!(twin.same_as(&list));
                keys.iter().for_each(|key| *exact.entry(*key).or_default() += weight(at));
            }
            Op::MergeSelf if doublings < 20 => {
                doublings += 1;
                let twin = list.copy().expect("small");
                list.merge(&twin).expect("the same parameters");
                exact.values_mut().for_each(|count| *count *= 2.0);
            }
            Op::MergeSelf => (),
            Op::Reload => {
                let bytes = to_bytes(&list).expect("small");
                let Ok(Loaded::Hot(back)) = read(&bytes, None) else { panic!("lost") };
                assert!(back.same_as(&list));
                list = *back;
            }
            Op::Clear => {
                list.clear();
                exact.clear();
            }
        }
        list.validate().expect("sound");
        let now = list.time().unwrap_or(0.0);
        let total = list.total(now).expect("now");
        for (key, weight) in &exact {
            let hash = HASHER.unsigned(u64::from(*key));
            let count = if decays { weight * (-now).exp2() } else { *weight };
            let (lower, upper) = list.estimate(hash, now).expect("now");
            // The naive sum rounds, too.
            assert!(lower <= count * (1.0 + 1e-12) && count <= upper * (1.0 + 1e-12));
            let sure = count > total / plan.k as f64 * (1.0 + 1e-12);
            assert!(!sure || list.contains(hash));
        }
    }
});
