//! How batches scale with threads: time and speedup of additions and questions, answers compared.
//!
//!     cargo run --release -p bloomtide-core --example scaling -- 50000000 100000000 2 4 8 16
//!
//! Arguments: keys, capacity, numbers of threads. Each number adds the same keys to an empty filter; answers and
//! filter must be those of one thread.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use bloomtide_core::{
    BloomFilter, BloomPlan, CountingBloomFilter, CountingPlan, Crew, Derivation, Hasher, Key,
    KeySource, Layout, Policy, Result,
};
use std::time::Instant;

/// URLs one after the other in memory, as a column of a table has them.
struct Urls {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Urls {
    fn new(count: usize) -> Self {
        let mut urls = Urls { bytes: Vec::new(), ends: vec![0] };
        for i in 0..count {
            let url = format!("https://example.org/{}/page/{i}", i % 1009);
            urls.bytes.extend(url.bytes());
            urls.ends.push(urls.bytes.len());
        }
        urls
    }
}

impl KeySource for Urls {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Text(&self.bytes[self.ends[row]..self.ends[row + 1]]))
    }
}

/// Whole numbers without a pattern.
struct Numbers(usize);

impl KeySource for Numbers {
    fn len(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Unsigned((row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }
}

/// What is measured of a structure.
trait Filter: Sized {
    fn add(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew);
    fn ask(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew);
    fn equals(&self, other: &Self) -> bool;
}

impl Filter for BloomFilter {
    fn add(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        self.add_many(keys, out, crew);
    }
    fn ask(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        self.contains_many(keys, out, crew);
    }
    fn equals(&self, other: &Self) -> bool {
        self.same_as(other)
    }
}

impl Filter for CountingBloomFilter {
    fn add(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        self.add_many(keys, None, out, crew);
    }
    fn ask(&self, keys: &dyn KeySource, out: &mut [bool], crew: &mut Crew) {
        self.contains_many(keys, out, crew);
    }
    fn equals(&self, other: &Self) -> bool {
        self.same_as(other)
    }
}

/// Each figure is the best of so many rounds.
const ROUNDS: usize = 3;

/// What one number of threads made of the keys.
struct Measured<F> {
    filter: F,
    new: Vec<bool>,
    add: f64,
    ask: f64,
}

fn measure<F: Filter>(
    keys: &dyn KeySource,
    threads: usize,
    make: impl Fn() -> Result<F>,
) -> Result<Measured<F>> {
    let mut crew = Crew::new(threads);
    let nanoseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64;
    let mut best = Measured { filter: make()?, new: Vec::new(), add: f64::MAX, ask: f64::MAX };
    for _ in 0..ROUNDS {
        best.filter = make()?;
        best.new = vec![true; keys.len()];
        let start = Instant::now();
        best.filter.add(keys, &mut best.new, &mut crew);
        best.add = best.add.min(nanoseconds(start));
        let mut found = vec![false; keys.len()];
        let start = Instant::now();
        best.filter.ask(keys, &mut found, &mut crew);
        best.ask = best.ask.min(nanoseconds(start));
        assert!(found.iter().all(|found| *found), "a key that was added is not found");
    }
    Ok(best)
}

fn rows<F: Filter>(
    name: &str,
    keys: &dyn KeySource,
    threads: &[usize],
    make: impl Fn() -> Result<F>,
) -> Result<()> {
    let one = measure(keys, 1, &make)?;
    println!("| {name} | 1 | {:.2} | | {:.2} | |", one.add, one.ask);
    for &count in threads {
        let many = measure(keys, count, &make)?;
        assert!(many.new == one.new, "the answers of {count} threads differ from those of one");
        assert!(many.filter.equals(&one.filter), "the filter of {count} threads differs");
        let (add, ask) = (many.add, many.ask);
        let (adds, asks) = (one.add / add, one.ask / ask);
        println!("| {name} | {count} | {add:.2} | {adds:.1}x | {ask:.2} | {asks:.1}x |");
    }
    Ok(())
}

fn main() -> Result<()> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [keys, capacity, threads @ ..] = numbers.as_slice() else {
        println!("usage: scaling KEYS CAPACITY THREADS...");
        return Ok(());
    };
    let (urls, numbers) = (Urls::new(*keys), Numbers(*keys));
    let capacity = *capacity as u64;
    let hasher = Hasher::Xxh3 { seed: 0 };
    let bloom = |layout: Layout| {
        let plan = BloomPlan::for_goal(capacity, 0.01, Some(layout), Derivation::Enhanced)?;
        BloomFilter::new(plan, hasher)
    };
    let counting = || {
        let layout = Some(Layout::Blocked);
        let plan =
            CountingPlan::for_goal(capacity, 0.01, 4, Policy::Plain, layout, Derivation::Enhanced)?;
        CountingBloomFilter::new(plan, hasher)
    };
    println!("{keys} keys, filters for {capacity} at 1 %");
    println!("| | threads | add, ns a key | | contains, ns a key | |\n|---|---|---|---|---|---|");
    rows("`BloomFilter`, URLs", &urls, threads, || bloom(Layout::Blocked))?;
    rows("`BloomFilter`, numbers", &numbers, threads, || bloom(Layout::Blocked))?;
    rows("`BloomFilter` classic, URLs", &urls, threads, || bloom(Layout::Classic))?;
    rows("`CountingBloomFilter`, URLs", &urls, threads, counting)
}
