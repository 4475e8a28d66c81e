//! Any sequence of operations on filters of growing counters against a naive array of numbers: all four
//! kinds, whole and partitioned, must hold the same counters.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::cells::{
    DynamicCells, DynamicShape, GrowingCells, SpectralCells, SpectralShape,
};
use bloomtide_core::filters::{CountFilter, CountPlan};
use bloomtide_core::snapshot::{Loaded, ShapeRecord, read, to_bytes};
use bloomtide_core::{Crew, Derivation, Hasher, KeyHash, Layout, Placement, Policy, epoch};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug, Clone)]
enum Op {
    Add(u8, u32),
    AddMany(Vec<u8>, u8),
    Remove(u8, u32),
    Double,
    Repartition(u8),
    Reload,
}

#[derive(Arbitrary, Debug)]
struct Input {
    blocked: bool,
    cells: u16,
    hashes: u8,
    width: u8,
    shrink: u8,
    conservative: bool,
    partitions: u8,
    ops: Vec<Op>,
}

struct Naive {
    cells: Vec<u64>,
    conservative: bool,
}

impl Naive {
    fn count(&self, positions: &[u64]) -> u64 {
        positions.iter().map(|p| self.cells[*p as usize]).min().unwrap_or(0)
    }

    fn add(&mut self, positions: &[u64], count: u64) -> bool {
        let least = self.count(positions);
        for p in positions {
            let cell = &mut self.cells[*p as usize];
            let raised = if self.conservative {
                least.saturating_add(count).max(*cell)
            } else {
                cell.saturating_add(count)
            };
            *cell = raised;
        }
        least == 0
    }

    fn remove(&mut self, positions: &[u64], count: u64) -> bool {
        let short = |cell: u64| cell != u64::MAX && cell < count;
        if self.conservative || positions.iter().any(|p| short(self.cells[*p as usize])) {
            return false;
        }
        for p in positions {
            let cell = &mut self.cells[*p as usize];
            if *cell != u64::MAX {
                *cell -= count;
            }
        }
        true
    }
}

fn run<C: GrowingCells<Shape: ShapeRecord>>(
    input: &Input,
    shape: C::Shape,
    unwrap: impl Fn(Loaded) -> Option<CountFilter<C>>,
) {
    let layout = if input.blocked { Layout::Blocked } else { Layout::Classic };
    let hashes =
        if input.blocked { 1 << (input.hashes % 4) } else { u32::from(input.hashes % 8) + 1 };
    let cells = u64::from(input.cells % 700) + 1;
    let placement = Placement::for_sizes(cells, hashes, Some(layout), Derivation::Enhanced);
    let policy = if input.conservative { Policy::Conservative } else { Policy::Plain };
    let plan = CountPlan {
        placement,
        policy,
        shape,
        partitioned: true,
        partitions: u64::from(input.partitions) % placement.cells + 1,
        total: 1000,
        capacity: None,
        error_rate: None,
    };
    let hasher = Hasher::Xxh3 { seed: 5 };
    let mut filter = CountFilter::<C>::new(plan, hasher).expect("small");
    let mut model =
        Naive { cells: vec![0; placement.cells as usize], conservative: input.conservative };
    let hash = |key: u8| hasher.unsigned(u64::from(key));
    for op in &input.ops {
        match op {
            Op::Add(key, count) => {
                // Up to 2^52, so that a few doublings do not stick.
                let count = u64::from(*count) << (count % 21);
                let positions = filter.positions(hash(*key));
                let new = filter.add(hash(*key), count).expect("small");
                assert_eq!(new, model.add(&positions, count));
                assert_eq!(filter.count(hash(*key), &epoch::pin()), model.count(&positions));
            }
            Op::AddMany(keys, threads) => {
                let digests: Vec<KeyHash> = keys.iter().map(|key| hash(*key)).collect();
                let mut out = vec![false; keys.len()];
                let crew = &mut Crew::new(usize::from(threads % 3) + 1);
                filter.add_many(&digests.as_slice(), None, &mut out, crew).expect("small");
                for (digest, new) in digests.iter().zip(out) {
                    assert_eq!(new, model.add(&filter.positions(*digest), 1));
                }
            }
            Op::Remove(key, count) => {
                let positions = filter.positions(hash(*key));
                let done = filter.remove(hash(*key), u64::from(*count)).is_ok();
                assert_eq!(done, model.remove(&positions, u64::from(*count)));
            }
            Op::Double => {
                filter.merge(&filter).expect("same plan");
                model.cells.iter_mut().for_each(|cell| *cell = cell.saturating_mul(2));
            }
            Op::Repartition(partitions) => {
                let partitions = u64::from(*partitions) % placement.cells + 1;
                filter.repartition(partitions).expect("in range");
            }
            Op::Reload => {
                let bytes = to_bytes(&filter.freeze().expect("small")).expect("small");
                let back = read(&bytes, None).ok().and_then(&unwrap).expect("lost");
                assert!(back.same_as(&filter));
                filter = back;
            }
        }
        filter.validate().expect("sound");
        filter.look(|cells, guard| {
            assert!(
                model.cells.iter().zip(0..).all(|(value, cell)| cells.get(cell, guard) == *value)
            );
        });
    }
}

fuzz_target!(|input: Input| {
    let dynamic = DynamicShape {
        width: u32::from(input.width % 32) + 1,
        shrink: f64::from(input.shrink) / 255.0,
    };
    run::<DynamicCells>(&input, dynamic, |loaded| match loaded {
        Loaded::Dynamic(filter) => Some(filter),
        _ => None,
    });
    let spectral = SpectralShape {
        design_bits: 1.0 + f64::from(input.width % 32) / 4.0,
        slack: f64::from(input.shrink) / 255.0,
    };
    run::<SpectralCells>(&input, spectral, |loaded| match loaded {
        Loaded::Spectral(filter) => Some(filter),
        _ => None,
    });
});
