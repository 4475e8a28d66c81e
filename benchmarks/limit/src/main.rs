//! The limit that a batch can reach: hash, prefetch and probe one cache line, nothing else.
//!
//! `bare-loop CAPACITY FILL < keys` reads one key a line; the first half goes in, the second half
//! stays out. FILL random digests go in first, untimed, so that a large table is in memory and as
//! full as the filters it is compared with. Prints JSON: nanoseconds a key, best of three passes.
//!
//! The table is what a blocked filter is at best: 64-byte lines, one bit in each of the eight
//! words, 10.5 bits a key, huge pages. It keeps no answers for an insert and counts those of a
//! query; it has no atomics, no errors and no checks.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::io::Read;
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_128;

/// One 64-byte line.
type Line = [u64; 8];
/// Keys hashed before the first of them is probed: enough misses in flight, few enough for L1.
const GROUP: usize = 32;
const HUGE_PAGE: usize = 2 << 20;
const PASSES: usize = 3;

/// The keys, packed as an Arrow string array packs them: one buffer and the end of each key.
struct Packed {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Packed {
    fn new(lines: &[&[u8]]) -> Self {
        let bytes = lines.concat();
        let mut end = 0;
        let ends = std::iter::once(0)
            .chain(lines.iter().map(|line| {
                end += line.len() as u32;
                end
            }))
            .collect();
        Self { bytes, ends }
    }

    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.ends[i] as usize..self.ends[i + 1] as usize]
    }
}

/// Zeroed lines on huge pages, kept until the process ends.
fn table(lines: usize) -> &'static mut [Line] {
    let bytes = (lines * size_of::<Line>()).next_multiple_of(HUGE_PAGE);
    let layout = Layout::from_size_align(bytes, HUGE_PAGE).expect("the table is too large");
    // SAFETY: the layout is not empty; the memory is zeroed, holds `lines` lines and is never freed.
    unsafe {
        let start = alloc_zeroed(layout);
        if start.is_null() {
            handle_alloc_error(layout);
        }
        #[cfg(target_os = "linux")]
        libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
        std::slice::from_raw_parts_mut(start.cast(), lines)
    }
}

fn line_of(digest: u128, lines: usize) -> usize {
    (((digest >> 64) * lines as u128) >> 64) as usize
}

fn prefetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of a reference cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// The bit of word `word` that a digest uses: the next six bits of its lower half.
fn bit(digest: u128, word: usize) -> u64 {
    1 << ((digest as u64 >> (6 * word)) & 63)
}

fn insert(line: &mut Line, digest: u128) {
    for word in 0..8 {
        line[word] |= bit(digest, word);
    }
}

fn contains(line: &Line, digest: u128) -> bool {
    let mut missing = 0;
    for word in 0..8 {
        missing |= !line[word] & bit(digest, word);
    }
    missing == 0
}

/// Hashes and prefetches a group, then hands each digest with its line to `probe`.
fn each(table: &mut [Line], keys: &Packed, mut probe: impl FnMut(&mut Line, u128)) {
    let mut digests = [0; GROUP];
    let mut first = 0;
    while first < keys.len() {
        let group = GROUP.min(keys.len() - first);
        for (i, digest) in digests[..group].iter_mut().enumerate() {
            *digest = xxh3_128(keys.key(first + i));
            prefetch(&table[line_of(*digest, table.len())]);
        }
        for &digest in &digests[..group] {
            let line = line_of(digest, table.len());
            probe(&mut table[line], digest);
        }
        first += group;
    }
}

/// Runs `work` a few times; the shortest time in nanoseconds a key, and the last result.
fn best(keys: usize, mut work: impl FnMut() -> usize) -> (f64, usize) {
    let mut shortest = f64::INFINITY;
    let mut result = 0;
    for _ in 0..PASSES {
        let start = Instant::now();
        result = work();
        shortest = shortest.min(start.elapsed().as_nanos() as f64 / keys as f64);
    }
    (shortest, result)
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (Some(Ok(capacity)), Some(Ok(fill))) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: bare-loop CAPACITY FILL < keys");
        std::process::exit(2);
    };
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).expect("cannot read the keys");
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    let (members, absent) = lines.split_at(lines.len() / 2);
    let (members, absent) = (Packed::new(members), Packed::new(absent));

    let table = table(((capacity as f64 * 10.5 / 512.0).ceil() as usize).max(1));
    for i in 0..fill as u64 {
        let digest = xxh3_128(&i.to_le_bytes());
        insert(&mut table[line_of(digest, table.len())], digest);
    }

    // A bit that is set already costs the same to set, so the passes can share the table.
    let (add, _) = best(members.len(), || {
        each(table, &members, insert);
        0
    });
    let mut query = |keys: &Packed| {
        best(keys.len(), || {
            let mut found = 0;
            each(table, keys, |line, digest| found += usize::from(contains(line, digest)));
            found
        })
    };
    let (present_ns, present) = query(&members);
    let (absent_ns, wrong) = query(&absent);
    println!(
        "{{\"add\": {add:.2}, \"query present\": {present_ns:.2}, \"query absent\": {absent_ns:.2}, \
         \"present\": {present}, \"false_positives\": {wrong}}}"
    );
}
