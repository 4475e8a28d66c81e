//! Any sequence of operations and times on time-decaying filters: the optimized layout must hold the cells of
//! the basic one.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::cells::Rounding;
use bloomtide_core::filters::{DecayStorage, Epochs, Fade, When};
use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use bloomtide_core::{
    DecayingPlan, Derivation, Hasher, KeyHash, Layout, Placement, Policy, TimeDecayingBloomFilter,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug, Clone)]
enum Op {
    Add(u8, u32, i16),
    AddMany(Vec<(u8, u8, i8)>),
    Advance(u16),
    Rest(u32),
    Double,
    Clear,
    Reload,
}

#[derive(Arbitrary, Debug)]
struct Input {
    blocked: bool,
    cells: u16,
    hashes: u8,
    decay: u8,
    wide: bool,
    expiring: bool,
    conservative: bool,
    ops: Vec<Op>,
}

const HASHER: Hasher = Hasher::Xxh3 { seed: 5 };

fn plan(input: &Input, storage: DecayStorage) -> DecayingPlan {
    let placed = if input.blocked { Layout::Blocked } else { Layout::Classic };
    let hashes =
        if input.blocked { 1 << (input.hashes % 4) } else { u32::from(input.hashes % 12) + 1 };
    let cells = u64::from(input.cells % 700) + 1;
    DecayingPlan {
        placement: Placement::for_sizes(cells, hashes, Some(placed), Derivation::Enhanced),
        storage,
        fade: Fade::from_decay(f64::from(input.decay) / 255.0, 1.0, 0.0).expect("in range"),
        rounding: if input.expiring { Rounding::Expiring } else { Rounding::Strict },
        policy: if input.conservative { Policy::Conservative } else { Policy::Plain },
        counter_bits: if input.wide { 32 } else { 16 },
        fraction_bits: u32::from(input.hashes % 9),
        capacity: None,
        error_rate: None,
    }
}

fn bytes(filter: &TimeDecayingBloomFilter) -> Vec<u8> {
    to_bytes(&filter.freeze().expect("small")).expect("small")
}

fn reloaded(filter: &TimeDecayingBloomFilter) -> TimeDecayingBloomFilter {
    let Ok(Loaded::Decaying(back)) = read(&bytes(filter), None) else { panic!("lost") };
    assert!(back.same_as(filter));
    *back
}

fuzz_target!(|input: Input| {
    let made = |storage| TimeDecayingBloomFilter::new(plan(&input, storage), HASHER);
    let mut basic = made(DecayStorage::Basic).expect("small");
    let mut optimized = made(DecayStorage::Optimized).expect("small");
    let mut now = 0i64;
    let at = |epoch| When { epoch, by_clock: false };
    for op in &input.ops {
        match op {
            Op::Add(key, count, step) => {
                let (hash, count) = (HASHER.unsigned(u64::from(*key)), u64::from(*count));
                let epoch = now + i64::from(*step);
                now = now.max(epoch);
                assert_eq!(
                    basic.add(hash, count, at(epoch)),
                    optimized.add(hash, count, at(epoch))
                );
            }
            Op::AddMany(rows) => {
                let digests: Vec<KeyHash> =
                    rows.iter().map(|(key, ..)| HASHER.unsigned(u64::from(*key))).collect();
                let counts: Vec<u64> = rows.iter().map(|(_, count, _)| u64::from(*count)).collect();
                let epochs: Vec<i64> =
                    rows.iter().map(|(.., step)| now + i64::from(*step)).collect();
                now = epochs.iter().fold(now, |now, epoch| now.max(*epoch));
                let run = |filter: &TimeDecayingBloomFilter| {
                    let mut out = vec![false; rows.len()];
                    let times = Epochs::Each(&epochs);
                    filter.add_many(&digests.as_slice(), Some(&counts), times, &mut out);
                    out
                };
                assert_eq!(run(&basic), run(&optimized));
            }
            Op::Advance(step) => {
                now += i64::from(*step);
                [&basic, &optimized].iter().for_each(|f| f.advance(at(now)));
            }
            Op::Rest(step) => {
                now += i64::from(*step) << 4;
                [&basic, &optimized].iter().for_each(|f| f.advance(at(now)));
            }
            Op::Double => {
                for filter in [&basic, &optimized] {
                    filter.merge(&filter.copy().expect("small")).expect("same plan");
                }
            }
            Op::Clear => [&basic, &optimized].iter().for_each(|f| f.clear()),
            Op::Reload => {
                for filter in [&mut basic, &mut optimized] {
                    *filter = reloaded(filter);
                }
            }
        }
        assert_eq!(basic.values(now), optimized.values(now));
        for filter in [&basic, &optimized] {
            filter.validate().expect("sound");
        }
    }
});
