//! What a URL costs: `UrlFilter` beside `BloomFilter` on the same URLs, and the steps between them.
//!
//!     cargo run --release -p bloomtide-core --example urls -- ROUNDS [FILE...]
//!
//! A file has one URL a line, as the last field of the line if that has tabs; lines that are no URLs are left
//! out. Without a file, a million generated URLs. One thread; the best of all rounds, in nanoseconds a URL.

#![allow(clippy::print_stdout, reason = "a table is what it is for")]

use bloomtide_core::filters::{Bind, LayerSizes};
use bloomtide_core::url::{Canon, Cutter, canonical};
use bloomtide_core::{
    BloomFilter, BloomPlan, Crew, Derivation, Hasher, Key, KeySource, Result, UrlFilter, UrlPlan,
};
use std::hint::black_box;
use std::time::Instant;

const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

/// URLs one after the other in memory, as a column of a table has them.
struct Urls {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Urls {
    fn of<'a>(urls: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut this = Urls { bytes: Vec::new(), ends: vec![0] };
        for url in urls {
            this.bytes.extend(url);
            this.ends.push(this.bytes.len());
        }
        this
    }

    fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.ends[row]..self.ends[row + 1]]
    }

    fn rows(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }
}

impl KeySource for Urls {
    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Text(self.get(row)))
    }
}

/// The URLs of `benchmarks/workload.py`.
fn generated(count: u64) -> Urls {
    const HOSTS: [&str; 8] = ["shop", "news", "static", "blog", "forum", "images", "api", "www-eu"];
    const PATHS: [&str; 6] =
        ["item", "category/shoes", "user", "article/2026", "search", "basket/view"];
    let url = |number: u64| {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (host, path) = (HOSTS[(mixed >> 61) as usize], PATHS[(mixed >> 32) as usize % 6]);
        format!("https://{host}.example.com/{path}/{mixed:016x}?pg={}", mixed % 97)
    };
    let all: Vec<String> = (0..count).map(url).collect();
    Urls::of(all.iter().map(|url| url.as_bytes()))
}

/// The URLs of a file, and how many of them are in canonical form already.
fn read(file: &str) -> std::io::Result<(Urls, usize)> {
    let text = std::fs::read(file)?;
    let last = |line| <[u8]>::rsplit(line, |byte| *byte == b'\t').next().unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').map(last);
    let (mut buffer, mut same) = (Vec::new(), 0);
    let is_url = |url: &&[u8]| match canonical(url, &Canon::default(), &mut buffer) {
        Ok(form) => {
            same += usize::from(form == *url);
            true
        }
        Err(_) => false,
    };
    let urls = Urls::of(lines.filter(is_url));
    Ok((urls, same))
}

fn table(name: &str, urls: &Urls, rounds: usize) -> Result<()> {
    let count = urls.len();
    let capacity = count as u64;
    let plan = BloomPlan::for_goal(capacity, 0.01, None, Derivation::Enhanced)?;
    let url_plan = UrlPlan {
        capacity,
        error_rate: 0.01,
        max_layers: 8,
        bind: Bind::SaltedXor,
        layer_sizes: LayerSizes::default(),
    };
    let mut best = [f64::INFINITY; 9];
    let mut memory = (0, 0);
    for _ in 0..rounds {
        let (flat, mut layered) =
            (BloomFilter::new(plan, HASHER)?, UrlFilter::new(url_plan.clone(), HASHER)?);
        let mut crew = Crew::new(1);
        let mut out = vec![false; count];
        let mut at = 0;
        let mut time = |work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            best[at] = best[at].min(start.elapsed().as_secs_f64() * 1e9 / count as f64);
            at += 1;
        };
        time(&mut || flat.add_many(urls, &mut out, &mut crew));
        time(&mut || flat.contains_many(urls, &mut out, &mut crew));
        time(&mut || drop(black_box(UrlFilter::check_many(urls, &mut crew))));
        time(&mut || drop(black_box(layered.add_many(urls, &mut out, &mut crew))));
        time(&mut || drop(black_box(layered.contains_many(urls, &mut out, &mut crew))));
        assert!(out.iter().all(|found| *found), "a URL that was added is not found");
        let (mut buffer, mut cutter) = (Vec::new(), Cutter::default());
        time(&mut || {
            for url in urls.rows() {
                let _ = black_box(canonical(url, &Canon::default(), &mut buffer));
            }
        });
        time(&mut || {
            for url in urls.rows() {
                if let Ok(cut) = cutter.cut(url, 8) {
                    cut.segments(0).for_each(|segment| _ = black_box(HASHER.bytes(segment)));
                }
            }
        });
        time(&mut || urls.rows().for_each(|url| drop(black_box(layered.add(url)))));
        time(&mut || urls.rows().for_each(|url| drop(black_box(layered.contains(url)))));
        memory = (flat.plan().bytes(), layered.bytes());
    }
    let [add, ask, check, add_url, ask_url, form, segments, one, one_ask] = best;
    println!(
        "| {name} | {count} | {add:.1} | {:.1} | {:.1}x | {ask:.1} | {ask_url:.1} | {:.1}x | {check:.1} | {form:.1} | {segments:.1} | {one:.1} | {one_ask:.1} | {:.1} | {:.1} |",
        check + add_url,
        (check + add_url) / add,
        ask_url / ask,
        memory.0 as f64 * 8.0 / count as f64,
        memory.1 as f64 * 8.0 / count as f64,
    );
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    println!(
        "| URLs | | flat add | add | | flat contains | contains | | check | canonical | segments | add one | contains one | flat, bits | bits |"
    );
    println!("|---|{}", "---:|".repeat(14));
    let files: Vec<String> = arguments.collect();
    for file in &files {
        let (urls, same) = read(file)?;
        let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
        table(&format!("{name}, {same} canonical"), &urls, rounds)?;
    }
    if files.is_empty() {
        table("generated", &generated(1_000_000), rounds)?;
    }
    Ok(())
}
