//! Laws of the core's time-decaying filter beside threads and over centuries. That values are the exact ones is tested
//! from Python, in `tests/test_fading_values.py`.

use super::*;
use crate::cells::Rounding;
use crate::filters::Policy;
use crate::placement::{Layout, Placement};
use crate::positions::Derivation;
use crate::snapshot::{Loaded, read, to_bytes};

const HASHER: Hasher = Hasher::Xxh3 { seed: 5 };

fn plan(layout: Layout, lambda: f64) -> DecayingPlan {
    DecayingPlan {
        placement: Placement::for_sizes(1000, 4, Some(layout), Derivation::Enhanced),
        storage: DecayStorage::Basic,
        fade: Fade::from_decay(lambda, 1.0, 0.0).unwrap(),
        rounding: Rounding::Strict,
        policy: Policy::Plain,
        counter_bits: 32,
        fraction_bits: 8,
        capacity: None,
        error_rate: None,
    }
}

fn filter(plan: DecayingPlan) -> TimeDecayingBloomFilter {
    TimeDecayingBloomFilter::new(plan, HASHER).unwrap()
}

fn at(epoch: i64) -> When {
    When { epoch, by_clock: false }
}

fn key(number: u64) -> KeyHash {
    HASHER.unsigned(number)
}

#[test]
fn a_rest_of_centuries_loses_nothing_and_costs_no_call() {
    // Lambda so near to one that 2^30 epochs are a part of a half-life: nothing may be lost.
    let filled = filter(plan(Layout::Classic, 1.0 - 1e-10));
    for number in 0..50 {
        filled.add(key(number), 1000, at(5));
    }
    let jump = 3 << 30;
    let before = filled.count(key(3), 5 + jump);
    assert!(before > 700.0 && before < 750.0, "{before}");
    filled.add(key(99), 1, at(5 + jump));
    assert_eq!(filled.count(key(3), 5 + jump), before);
    filled.validate().unwrap();
    let loaded = read(&to_bytes(&filled.freeze().unwrap()).unwrap(), None).unwrap();
    let Loaded::Decaying(loaded) = loaded else { unreachable!() };
    assert!(loaded.same_as(&filled));
    // The file knows of these blocks as of its time, rounded up once more.
    let after = loaded.count(key(3), 7 + jump);
    assert!(after >= filled.count(key(3), 7 + jump) && after <= before + 0.01);
}

#[test]
fn readers_beside_a_writer_never_see_a_count_fall_below_what_is_certain() {
    let filled = filter(plan(Layout::Blocked, 0.5));
    filled.add(key(1), 1 << 20, at(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for epoch in 0..30_000 {
                // Doubles every epoch what the epoch halves.
                filled.add(key(1), 1 << 19, at(epoch));
            }
        });
        for _ in 0..200_000 {
            let count = filled.count(key(1), i64::MIN + 1);
            assert!(count >= f64::from(1 << 19), "{count}");
        }
    });
}

#[test]
fn optimized_answers_like_basic_and_readers_beside_a_writer_see_whole_tables() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let basic = filter(plan(layout, 0.8));
        let optimized =
            filter(DecayingPlan { storage: DecayStorage::Optimized, ..plan(layout, 0.8) });
        std::thread::scope(|scope| {
            let reader = scope
                .spawn(|| (0..20_000).map(|i| optimized.count(key(i % 50), 0)).fold(0.0, f64::max));
            for step in 0..5000 {
                let (hash, count, when) = (key(step % 97), 1 + step % 40, at(step as i64 / 60));
                assert_eq!(basic.add(hash, count, when), optimized.add(hash, count, when));
            }
            assert!(reader.join().unwrap() < 1e6);
        });
        for number in 0..97 {
            assert_eq!(basic.units(key(number), 90), optimized.units(key(number), 90));
        }
        optimized.validate().unwrap();
    }
}
