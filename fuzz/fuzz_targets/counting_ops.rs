//! Any sequence of operations on a counting filter against a naive array of numbers.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::snapshot::{Loaded, read, to_bytes};
use bloomtide_core::{
    CountingBloomFilter, CountingPlan, Crew, Derivation, Hasher, KeyHash, Layout, Policy,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Op {
    Add(u8, u16),
    AddMany(Vec<u8>, u8),
    CountMany(Vec<u8>, u8),
    Remove(u8, u16),
    Double,
    Reload,
}

#[derive(Arbitrary, Debug)]
struct Input {
    blocked: bool,
    derivation: u8,
    cells: u16,
    hashes: u8,
    width: u8,
    conservative: bool,
    ops: Vec<Op>,
}

struct Naive {
    cells: Vec<u64>,
    max: u64,
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
            let raised = if self.conservative { (least + count).max(*cell) } else { *cell + count };
            *cell = raised.min(self.max);
        }
        least == 0
    }

    fn remove(&mut self, positions: &[u64], count: u64) -> bool {
        let short = |cell: u64| cell != self.max && cell < count;
        if self.conservative || positions.iter().any(|p| short(self.cells[*p as usize])) {
            return false;
        }
        for p in positions {
            let cell = &mut self.cells[*p as usize];
            if *cell != self.max {
                *cell -= count;
            }
        }
        true
    }
}

fuzz_target!(|input: Input| {
    let width = [4, 8, 16, 32][usize::from(input.width % 4)];
    let policy = if input.conservative { Policy::Conservative } else { Policy::Plain };
    let (layout, derivation) = match (input.blocked, input.derivation % 3) {
        (true, _) => (Layout::Blocked, Derivation::Enhanced),
        (false, 0) => (Layout::Classic, Derivation::Enhanced),
        (false, 1) => (Layout::Classic, Derivation::Double),
        (false, _) => (Layout::Classic, Derivation::Slices),
    };
    // Few cells, so that keys meet.
    let cells = match derivation {
        Derivation::Slices => u64::from(input.cells % 1024).next_power_of_two(),
        _ => u64::from(input.cells % 1024),
    };
    // A block has 1, 2, 4 or 8 groups; another number would be refused and end the run.
    let hashes = if input.blocked { 1 << (input.hashes % 4) } else { u32::from(input.hashes) };
    let Ok(plan) = CountingPlan::for_sizes(cells, hashes, width, policy, Some(layout), derivation)
    else {
        return;
    };
    let hasher = Hasher::Xxh3 { seed: 5 };
    let mut filter = CountingBloomFilter::new(plan, hasher).expect("small");
    let mut model = Naive {
        cells: vec![0; plan.cells() as usize],
        max: (1 << width) - 1,
        conservative: input.conservative,
    };
    let hash = |key: u8| hasher.unsigned(u64::from(key));
    for op in input.ops {
        match op {
            Op::Add(key, count) => {
                let positions = filter.positions(hash(key));
                let new = filter.add(hash(key), u64::from(count));
                assert_eq!(new, model.add(&positions, u64::from(count)));
            }
            Op::AddMany(keys, threads) => {
                let digests: Vec<KeyHash> = keys.iter().map(|key| hash(*key)).collect();
                let mut out = vec![false; keys.len()];
                filter.add_many(
                    &digests.as_slice(),
                    None,
                    &mut out,
                    &mut Crew::new(usize::from(threads % 3) + 1),
                );
                for (digest, new) in digests.iter().zip(out) {
                    assert_eq!(new, model.add(&filter.positions(*digest), 1));
                }
            }
            Op::CountMany(keys, threads) => {
                let digests: Vec<KeyHash> = keys.iter().map(|key| hash(*key)).collect();
                let mut out = vec![0; keys.len()];
                filter.count_many(
                    &digests.as_slice(),
                    &mut out,
                    &mut Crew::new(usize::from(threads % 3) + 1),
                );
                for (digest, count) in digests.iter().zip(out) {
                    assert_eq!(u64::from(count), model.count(&filter.positions(*digest)));
                    assert_eq!(u64::from(count), filter.count(*digest));
                }
            }
            Op::Remove(key, count) => {
                let positions = filter.positions(hash(key));
                let done = filter.remove(hash(key), u64::from(count)).is_ok();
                assert_eq!(done, model.remove(&positions, u64::from(count)));
            }
            Op::Double => {
                filter.merge(&filter).expect("same plan");
                for cell in &mut model.cells {
                    *cell = (*cell * 2).min(model.max);
                }
            }
            Op::Reload => {
                let bytes = to_bytes(&filter).expect("small");
                let Ok(Loaded::Counting(back)) = read(&bytes, None) else { panic!("lost") };
                assert!(back.same_as(&filter));
                filter = back;
            }
        }
        filter.validate().expect("sound");
        assert!(filter.counters().values().eq(model.cells.iter().copied()));
    }
});
