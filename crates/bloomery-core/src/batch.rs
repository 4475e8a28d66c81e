//! Batches: hash a group of keys, prefetch their cells, then probe the group before.
//!
//! A random probe of a filter larger than the cache waits for memory about as long as hashing ten
//! keys takes. So while the lines of one group are on their way, the next group is hashed: two buffers
//! of `GROUP` digests take turns.
//!
//! Threads. Questions split the batch by rows. Additions must answer as if made one by one in order
//! ("was this key absent before?"), so they split by *cells*: all threads hash their share of a
//! chunk, then each thread goes through the keys in order but changes only the cells it owns. Every
//! cell sees its keys in order, whatever the number of threads.

use crate::hash::{Hasher, KeyHash};
use crate::key::Key;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keys hashed and prefetched together.
pub const GROUP: usize = 32;
/// Keys that threads hash before they apply them: 3 MiB of digests and rows.
const CHUNK: usize = 1 << 17;
/// A thread is not worth starting for fewer keys than this.
const WORTH_A_THREAD: usize = 1 << 13;

/// A batch of keys, hashed by row. Rows are independent, so threads may hash at once.
pub trait KeySource: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// The digest of one row.
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash;

    /// The digests themselves, if the keys were hashed before.
    fn digests(&self) -> Option<&[KeyHash]> {
        None
    }

    /// The key of one row, for the structures that keep keys; None where only digests are left.
    fn key(&self, _row: usize) -> Option<Key<'_>> {
        None
    }

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Keys that were hashed before.
impl KeySource for [KeyHash] {
    fn len(&self) -> usize {
        <[KeyHash]>::len(self)
    }

    #[inline(always)]
    fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
        self[row]
    }

    fn digests(&self) -> Option<&[KeyHash]> {
        Some(self)
    }
}

/// Keys as they are.
impl KeySource for [Key<'_>] {
    fn len(&self) -> usize {
        <[Key<'_>]>::len(self)
    }

    #[inline(always)]
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        self[row].hash(hasher)
    }

    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(self[row])
    }
}

/// How many threads a batch really uses: no more than are worth their start, and no more than the
/// machine has cores, because they wait for each other by spinning.
pub fn useful_threads(rows: usize, asked: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    asked.min(*CORES.get_or_init(cores)).clamp(1, (rows / WORTH_A_THREAD).max(1))
}

/// Runs `probe(first row, digests)` over the rows, each group after the next one was prefetched.
#[inline(always)]
pub(crate) fn pipeline<S: KeySource + ?Sized>(
    keys: &S,
    hasher: &Hasher,
    rows: Range<usize>,
    prefetch: impl Fn(KeyHash),
    probe: impl FnMut(usize, &[KeyHash]),
) {
    if let Some(digests) = keys.digests() {
        return pipeline_hashed(&digests[rows.clone()], rows.start, prefetch, probe);
    }
    let prepare = |hash| {
        prefetch(hash);
        hash
    };
    pipeline_prepared(keys, hasher, rows, prepare, probe);
}

/// The same where more than the digest is worth keeping until the lines arrive: `prepare` turns it into
/// what `probe` needs, and prefetches.
#[inline(always)]
pub(crate) fn pipeline_prepared<S: KeySource + ?Sized, P: Copy + Default>(
    keys: &S,
    hasher: &Hasher,
    rows: Range<usize>,
    prepare: impl Fn(KeyHash) -> P,
    mut probe: impl FnMut(usize, &[P]),
) {
    let mut digests = [KeyHash::default(); GROUP];
    let mut buffers = [[P::default(); GROUP]; 2];
    let (mut waiting, mut current) = (0..0, 0);
    let mut start = rows.start;
    while start < rows.end {
        let group = start..rows.end.min(start + GROUP);
        let digests = &mut digests[..group.len()];
        hash_rows(keys, hasher, start, digests);
        for (slot, digest) in buffers[current].iter_mut().zip(digests) {
            *slot = prepare(*digest);
        }
        if !waiting.is_empty() {
            probe(waiting.start, &buffers[1 - current][..waiting.len()]);
        }
        start = group.end;
        waiting = group;
        current = 1 - current;
    }
    if !waiting.is_empty() {
        probe(waiting.start, &buffers[1 - current][..waiting.len()]);
    }
}

/// Hashes the rows from `first` on.
#[inline(always)]
pub(crate) fn hash_rows<S: KeySource + ?Sized>(
    keys: &S,
    hasher: &Hasher,
    first: usize,
    out: &mut [KeyHash],
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        return unsafe { hash_rows_bmi2(keys, hasher, first, out) };
    }
    hash_rows_plainly(keys, hasher, first, out);
}

#[inline(always)]
fn hash_rows_plainly<S: KeySource + ?Sized>(
    keys: &S,
    hasher: &Hasher,
    first: usize,
    out: &mut [KeyHash],
) {
    for (row, slot) in out.iter_mut().enumerate() {
        *slot = keys.hash(hasher, first + row);
    }
}

/// The same code compiled for processors that multiply without flags: a fifth faster, since XXH3 is
/// mostly 128-bit products.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,avx2")]
unsafe fn hash_rows_bmi2<S: KeySource + ?Sized>(
    keys: &S,
    hasher: &Hasher,
    first: usize,
    out: &mut [KeyHash],
) {
    hash_rows_plainly(keys, hasher, first, out);
}

/// Runs `work`, compiled for processors with newer shifts and products where there is one.
#[inline(always)]
pub(crate) fn at_best<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "bmi1,bmi2,avx2,lzcnt")]
        unsafe fn newer<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        if is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("lzcnt")
        {
            // SAFETY: the processor has the instructions.
            return unsafe { newer(work) };
        }
    }
    work()
}

/// `pipeline` for keys hashed before. Without hashing in between there is less time for a line to
/// arrive, so lines are asked for two groups ahead.
#[inline(always)]
fn pipeline_hashed(
    digests: &[KeyHash],
    first: usize,
    prefetch: impl Fn(KeyHash),
    mut probe: impl FnMut(usize, &[KeyHash]),
) {
    let (now, ahead) = digests.split_at(digests.len().min(2 * GROUP));
    now.iter().for_each(|digest| prefetch(*digest));
    let mut ahead = ahead.chunks(GROUP);
    for (group, digests) in digests.chunks(GROUP).enumerate() {
        ahead.next().unwrap_or_default().iter().for_each(|digest| prefetch(*digest));
        probe(first + group * GROUP, digests);
    }
}

/// Splits rows and answers between threads and runs `part(rows, answers)` on each.
pub(crate) fn split<T: Send>(
    out: &mut [T],
    threads: usize,
    part: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let threads = useful_threads(out.len(), threads);
    if threads == 1 {
        return part(0..out.len(), out);
    }
    let share = out.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let mut parts = out.chunks_mut(share).enumerate();
        let first = parts.next();
        for (i, answers) in parts {
            let part = &part;
            let rows = i * share..i * share + answers.len();
            scope.spawn(move || part(rows, answers));
        }
        if let Some((_, answers)) = first {
            part(0..answers.len(), answers);
        }
    });
}

/// Which thread a key belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Owner<F> {
    /// One thread, given by its number: all cells of a key are that thread's.
    One(F),
    /// Every thread: each has some of the key's cells.
    All,
}

/// The keys of one chunk that one thread hashed for one owner, in order.
#[derive(Default)]
struct Bucket {
    digests: Vec<KeyHash>,
    rows: Vec<usize>,
}

/// Hashes chunk after chunk with all threads, each into a bucket per owner; then every thread takes the
/// buckets made for it, in the order of the rows: `apply(thread, digests, rows)`. `alone` is entered by
/// one thread around that second half.
pub(crate) fn in_chunks<S: KeySource + ?Sized, G>(
    keys: &S,
    hasher: &Hasher,
    threads: usize,
    alone: impl Fn() -> G + Sync,
    owner: Owner<impl Fn(KeyHash) -> usize + Sync>,
    apply: impl Fn(usize, &[KeyHash], &[usize]) + Sync,
) {
    let owners = if matches!(owner, Owner::All) { 1 } else { threads };
    let buckets: Vec<RwLock<Vec<Bucket>>> = (0..threads)
        .map(|_| RwLock::new((0..owners).map(|_| Bucket::default()).collect()))
        .collect();
    let barrier = Barrier::new(threads);
    let worker = |thread: usize| {
        for start in (0..keys.len()).step_by(CHUNK) {
            let rows = CHUNK.min(keys.len() - start);
            let share = rows.div_ceil(threads);
            let mine = (thread * share).min(rows)..((thread + 1) * share).min(rows);
            {
                let mut mine_by_owner = write(&buckets[thread]);
                for bucket in mine_by_owner.iter_mut() {
                    bucket.digests.clear();
                    bucket.rows.clear();
                }
                let mut digests = [KeyHash::default(); GROUP];
                for first in mine.clone().step_by(GROUP) {
                    let digests = &mut digests[..GROUP.min(mine.end - first)];
                    hash_rows(keys, hasher, start + first, digests);
                    for (row, digest) in digests.iter().enumerate() {
                        let to = if let Owner::One(owner) = &owner { owner(*digest) } else { 0 };
                        let bucket = &mut mine_by_owner[to];
                        bucket.digests.push(*digest);
                        bucket.rows.push(start + first + row);
                    }
                }
            }
            let guard = (thread == 0).then(&alone);
            barrier.wait();
            for hashed in &buckets {
                let bucket = &read(hashed)[if owners == 1 { 0 } else { thread }];
                apply(thread, &bucket.digests, &bucket.rows);
            }
            barrier.wait();
            drop(guard);
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let worker = &worker;
            scope.spawn(move || worker(thread));
        }
        worker(0);
    });
}

// The barrier already separates writing from reading; a lock only says so to the compiler, and a
// poisoned one would mean a panic, which the barrier could not survive anyway.
fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Lets threads wait for each other. They arrive within microseconds of each other, so they spin; the
/// standard barrier would put them to sleep, which costs more than a chunk's share of work.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
}

impl Barrier {
    fn new(threads: usize) -> Self {
        Barrier { threads, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0) }
    }

    fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0u32;
        while self.round.load(Ordering::Acquire) == round {
            spins += 1;
            if spins.is_multiple_of(256) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// The same memory as atomics, for answers that more than one thread may turn to true.
pub(crate) fn atomic_bools(out: &mut [bool]) -> &[AtomicBool] {
    // SAFETY: AtomicBool has the layout of bool, and the exclusive borrow lasts as long as the result.
    unsafe { &*(std::ptr::from_mut(out) as *const [AtomicBool]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Numbers(usize);
    impl KeySource for Numbers {
        fn len(&self) -> usize {
            self.0
        }
        fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
            KeyHash { h1: row as u64, h2: 0 }
        }
    }
    const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

    #[test]
    fn a_pipeline_probes_every_row_once_and_in_order() {
        for rows in [0, 1, 31, 32, 33, 64, 1000] {
            let mut seen = Vec::new();
            pipeline(
                &Numbers(rows),
                &HASHER,
                0..rows,
                |_| (),
                |first, digests| {
                    assert_eq!(first, seen.len());
                    seen.extend(digests.iter().map(|d| d.h1));
                },
            );
            assert_eq!(seen, (0..rows as u64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn chunks_reach_their_owners_in_order() {
        let rows = 2 * CHUNK + 77;
        let by_three = |digest: KeyHash| digest.h1 as usize % 3;
        let collect = |owner: Owner<fn(KeyHash) -> usize>| {
            let seen = [const { Mutex::new(Vec::new()) }; 3];
            let apply = |thread: usize, digests: &[KeyHash], rows: &[usize]| {
                assert!(digests.iter().zip(rows).all(|(digest, row)| digest.h1 == *row as u64));
                seen[thread].lock().unwrap().extend_from_slice(rows);
            };
            in_chunks(&Numbers(rows), &HASHER, 3, || (), owner, apply);
            seen.map(|rows| rows.into_inner().unwrap())
        };
        for rows_seen in collect(Owner::All) {
            assert_eq!(rows_seen, (0..rows).collect::<Vec<_>>());
        }
        for (thread, rows_seen) in collect(Owner::One(by_three)).into_iter().enumerate() {
            assert_eq!(rows_seen, (thread..rows).step_by(3).collect::<Vec<_>>());
        }
    }

    #[test]
    fn split_covers_every_row_once() {
        let mut out = vec![0u64; 100_000];
        split(&mut out, 4, |rows, part| {
            for (row, slot) in rows.zip(part) {
                *slot += row as u64 + 1;
            }
        });
        assert!(out.iter().enumerate().all(|(row, value)| *value == row as u64 + 1));
    }
}
