//! A scalable filter from its default start beside a Bloom filter of the right size: time and memory.
//!
//!     cargo run --release -p bloomtide-core --example growing -- KEYS...
//!
//! Nanoseconds a key: additions and questions in batches, and one by one; the best of some rounds. Memory is
//! that of the filters, and the largest ratio is looked for at every thousandth part past a million keys.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use bloomtide_core::{
    BloomFilter, BloomPlan, Crew, Derivation, Hasher, Key, KeySource, Result, ScalableBloomFilter,
    ScalablePlan,
};
use std::ops::Range;
use std::time::Instant;

const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };
const ERROR: f64 = 0.01;
/// Keys of a batch.
const BATCH: usize = 1 << 20;
/// Questions of a round.
const ASKED: u64 = 4 << 20;

/// Whole numbers.
struct Numbers(Range<u64>);

impl KeySource for Numbers {
    fn len(&self) -> usize {
        (self.0.end - self.0.start) as usize
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Unsigned(self.0.start + row as u64))
    }
}

fn right(keys: u64) -> Result<BloomPlan> {
    BloomPlan::for_goal(keys, ERROR, None, Derivation::Enhanced)
}

/// Nanoseconds that this thread ran, so that others on the machine do not count; where the system does not
/// say, those that passed since `start`.
fn clock(start: Instant) -> f64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = ran.and_then(|text| text.split(' ').next()?.parse().ok());
    ran.unwrap_or_else(|| start.elapsed().as_secs_f64() * 1e9)
}

/// Nanoseconds a key of work on all keys.
fn timed(keys: u64, work: impl FnOnce()) -> f64 {
    let (start, before) = (Instant::now(), clock(Instant::now()));
    work();
    (clock(start) - before) / keys as f64
}

fn batches(keys: Range<u64>, mut work: impl FnMut(&Numbers)) {
    for first in keys.clone().step_by(BATCH) {
        work(&Numbers(first..keys.end.min(first + BATCH as u64)));
    }
}

type Row = [f64; 6];

fn bloom(keys: u64) -> Result<(Row, u64)> {
    let (filter, mut out, mut crew) =
        (BloomFilter::new(right(keys)?, HASHER)?, vec![false; BATCH], Crew::new(1));
    let add = timed(keys, || {
        batches(0..keys, |some| filter.add_many(some, &mut out[..some.len()], &mut crew));
    });
    let mut ask = |from: u64, count: u64| {
        let work = || {
            batches(from..from + count, |some| {
                filter.contains_many(some, &mut out[..some.len()], &mut crew);
            });
        };
        timed(count, work)
    };
    let (present, absent) = (ask(0, keys.min(ASKED)), ask(1 << 60, ASKED));
    let one = |from: u64, count: u64| {
        let work = || (from..from + count).map(|key| filter.contains(HASHER.unsigned(key)));
        timed(count, || assert!(work().filter(|found| *found).count() <= count as usize))
    };
    let (one_present, one_absent) = (one(0, keys.min(ASKED)), one(1 << 60, ASKED));
    let again = BloomFilter::new(right(keys)?, HASHER)?;
    let one_add = timed(keys, || {
        (0..keys).for_each(|key| {
            again.add(HASHER.unsigned(key));
        });
    });
    Ok(([add, present, absent, one_add, one_present, one_absent], filter.plan().bytes()))
}

fn scalable(keys: u64) -> Result<(Row, u64, f64)> {
    let plan = ScalablePlan { error_rate: ERROR, ..ScalablePlan::default() };
    let (mut filter, mut out, mut crew) =
        (ScalableBloomFilter::new(plan, HASHER)?, vec![false; BATCH], Crew::new(1));
    let mut failed = Ok(());
    let add = timed(keys, || {
        batches(0..keys, |some| {
            if let Err((_, error)) = filter.add_many(some, &mut out[..some.len()]) {
                failed = Err(error);
            }
        });
    });
    let mut ask = |from: u64, count: u64| {
        let work = || {
            batches(from..from + count, |some| {
                filter.contains_many(some, &mut out[..some.len()], &mut crew);
            });
        };
        timed(count, work)
    };
    let (present, absent) = (ask(0, keys.min(ASKED)), ask(1 << 60, ASKED));
    let one = |from: u64, count: u64| {
        let work = || (from..from + count).map(|key| filter.contains(HASHER.unsigned(key)));
        timed(count, || assert!(work().filter(|found| *found).count() <= count as usize))
    };
    let (one_present, one_absent) = (one(0, keys.min(ASKED)), one(1 << 60, ASKED));
    let mut again = ScalableBloomFilter::new(plan, HASHER)?;
    let (mut worst, mut from) = (0.0f64, 0);
    let mut one_add = 0.0;
    // Memory is looked at between two timed runs of additions.
    while from < keys {
        let end = keys.min(from + (from / 1000).max(1 << 12));
        one_add += timed(keys, || {
            (from..end).for_each(|key| {
                if let Err(error) = again.add(HASHER.unsigned(key)) {
                    failed = Err(error);
                }
            });
        });
        from = end;
        if from > 1_000_000 {
            worst = worst.max(again.bytes() as f64 / right(from)?.bytes() as f64);
        }
    }
    failed?;
    Ok(([add, present, absent, one_add, one_present, one_absent], filter.bytes(), worst))
}

fn main() -> Result<()> {
    const ROWS: [&str; 6] =
        ["add_many", "contains_many, there", "contains_many, not", "add", "in, there", "in, not"];
    for keys in std::env::args().skip(1).filter_map(|keys| keys.parse::<u64>().ok()) {
        let rounds = (200_000_000 / keys).clamp(1, 10);
        let least = |a: Row, b: Row| std::array::from_fn(|i| a[i].min(b[i]));
        let (mut one, mut other) = ([f64::INFINITY; 6], [f64::INFINITY; 6]);
        let (mut bytes, mut worst) = ((0, 0), 0.0);
        for _ in 0..rounds {
            let (row, right) = bloom(keys)?;
            one = least(one, row);
            let (row, grown, ratio) = scalable(keys)?;
            other = least(other, row);
            (bytes, worst) = ((right, grown), ratio);
        }
        println!("{keys} keys                BloomFilter   ScalableBloomFilter");
        for ((name, one), other) in ROWS.iter().zip(one).zip(other) {
            println!("{name:24} {one:8.1} ns {other:12.1} ns {:8.2}x", other / one);
        }
        let ratio = bytes.1 as f64 / bytes.0 as f64;
        println!("{:24} {:8} kB {:12} kB {ratio:8.2}x", "memory", bytes.0 / 1000, bytes.1 / 1000);
        println!("{:24} {worst:39.2}x", "most memory past 1 M");
    }
    Ok(())
}
