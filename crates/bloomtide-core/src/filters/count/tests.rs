//! Laws of filters of growing counters beside threads. That they answer as a counting Bloom filter does is tested
//! from Python, in `tests/test_equivalence.py`.

use super::*;
use crate::batch::KeySource;
use crate::cells::{DynamicCells, DynamicShape, SpectralCells, SpectralShape};
use crate::crew::Crew;
use crate::filters::{CountingBloomFilter, CountingPlan};
use crate::placement::{Layout, Placement};
use crate::positions::Derivation;

const HASHER: Hasher = Hasher::Xxh3 { seed: 7 };

fn digest(key: u64) -> KeyHash {
    KeyHash { h1: 11, h2: 12 }.extend(key)
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 ^ (self.0 >> 29)) * u128::from(end)) >> 64) as u64
    }

    /// Small keys come far more often than large ones.
    fn skewed(&mut self, end: u64) -> u64 {
        let below = self.below(end) + 1;
        self.below(below)
    }
}

fn plan<S: Copy + PartialEq>(
    shape: S,
    layout: Layout,
    policy: Policy,
    partitions: u64,
) -> CountPlan<S> {
    let hashes = if layout == Layout::Blocked { 4 } else { 3 };
    CountPlan {
        placement: Placement::for_sizes(2000, hashes, Some(layout), Derivation::Enhanced),
        policy,
        shape,
        partitioned: partitions > 1,
        partitions,
        total: 10_000,
        capacity: None,
        error_rate: None,
    }
}

fn dynamic(width: u32) -> DynamicShape {
    DynamicShape { width, shrink: 0.5 }
}

fn counting(layout: Layout, policy: Policy) -> CountingBloomFilter {
    let hashes = if layout == Layout::Blocked { 4 } else { 3 };
    let plan =
        CountingPlan::for_sizes(2000, hashes, 32, policy, Some(layout), Derivation::Enhanced);
    CountingBloomFilter::new(plan.unwrap(), HASHER).unwrap()
}

struct Keys(Vec<u64>);

impl KeySource for Keys {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
        digest(self.0[row])
    }
}

fn batches_equal_one_by_one<C: GrowingCells>(shape: C::Shape) {
    // Skewed at first, then every key another one, then all the same.
    let mut random = Random(9);
    let skewed: Vec<u64> = (0..6000).map(|_| random.skewed(900)).collect();
    let keys = Keys([skewed, (0..1500).collect(), vec![7; 1500]].concat());
    let counts: Vec<u64> = (0..9000).map(|i| 1 + i % 5).collect();
    for (layout, policy, hashes, counts) in [
        (Layout::Blocked, Policy::Plain, 1, None),
        (Layout::Blocked, Policy::Plain, 2, None),
        (Layout::Blocked, Policy::Plain, 4, None),
        (Layout::Blocked, Policy::Plain, 8, None),
        (Layout::Blocked, Policy::Plain, 4, Some(&counts[..])),
        (Layout::Blocked, Policy::Conservative, 4, Some(&counts)),
        (Layout::Classic, Policy::Plain, 3, Some(&counts)),
        (Layout::Classic, Policy::Conservative, 3, Some(&counts)),
    ] {
        let placement = Placement::for_sizes(2000, hashes, Some(layout), Derivation::Enhanced);
        let plan = CountPlan { placement, ..plan(shape, layout, policy, 15) };
        let model = CountFilter::<C>::new(plan, HASHER).unwrap();
        let count = |row: usize| counts.map_or(1, |counts| counts[row]);
        let rows = keys.0.iter().enumerate();
        let expected: Vec<bool> =
            rows.map(|(row, key)| model.add(digest(*key), count(row)).unwrap()).collect();
        for threads in [1, 3] {
            let crew = &mut Crew::of(threads);
            let filter = CountFilter::<C>::new(plan, HASHER).unwrap();
            let mut out = vec![true; keys.len()];
            filter.add_many(&keys, counts, &mut out, crew).unwrap();
            assert_eq!(out, expected);
            assert!(filter.same_as(&model));
            filter.validate().unwrap();
            let mut found = vec![0; keys.len()];
            filter.count_many(&keys, &mut found, crew);
            let guard = &epoch::pin();
            let one_by_one = keys.0.iter().map(|key| model.count(digest(*key), guard));
            assert_eq!(found, one_by_one.collect::<Vec<_>>());
            if policy == Policy::Plain && filter.measure().saturated == 0 {
                filter.remove_many(&keys, counts).unwrap();
                assert_eq!(filter.measure().fill, 0.0);
                let (row, error) = filter.remove_many(&keys, None).unwrap_err();
                assert!(row == 0 && matches!(error, Error::AbsentKey { estimate: 0, .. }));
            }
        }
    }
}

fn writers_and_readers_go_on_beside_rebuilds<C: GrowingCells>(shape: C::Shape) {
    let filter = CountFilter::<C>::new(plan(shape, Layout::Classic, Policy::Plain, 20), HASHER);
    let filter = filter.unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut random = Random(1);
                for _ in 0..30_000 {
                    filter.add(digest(random.skewed(300)), 1).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for i in 0..40 {
                filter.repartition(1 + i % 30).unwrap();
            }
        });
        scope.spawn(|| {
            for key in 0..60_000 {
                assert!(filter.count(digest(key % 300), &epoch::pin()) <= 90_000);
            }
        });
    });
    let model = counting(Layout::Classic, Policy::Plain);
    for _ in 0..3 {
        let mut random = Random(1);
        for _ in 0..30_000 {
            model.add(digest(random.skewed(300)), 1);
        }
    }
    let guard = &epoch::pin();
    assert!((0..300).all(|key| filter.count(digest(key), guard) == model.count(digest(key))));
    filter.validate().unwrap();
}

#[test]
fn batches_of_dynamic_filters_equal_one_by_one() {
    for width in [1, 3, 4] {
        batches_equal_one_by_one::<DynamicCells>(dynamic(width));
    }
}

#[test]
fn writers_and_readers_of_dynamic_filters_go_on_beside_rebuilds() {
    writers_and_readers_go_on_beside_rebuilds::<DynamicCells>(dynamic(2));
}

const SPECTRAL: SpectralShape = SpectralShape { design_bits: 2.0, slack: 0.1 };

#[test]
fn batches_of_spectral_filters_equal_one_by_one() {
    batches_equal_one_by_one::<SpectralCells>(SPECTRAL);
}

#[test]
fn writers_and_readers_of_spectral_filters_go_on_beside_rebuilds() {
    writers_and_readers_go_on_beside_rebuilds::<SpectralCells>(SPECTRAL);
}
