//! Batches: hash a group of keys, prefetch their cells, then probe the group before.
//!
//! A random probe of a filter larger than the cache waits for memory about as long as hashing ten
//! keys takes. So while the lines of one group are on their way, the next group is hashed: two buffers
//! of `GROUP` digests take turns.
//!
//! Threads (`crew.rs`). Questions split the batch by rows, additions by cells (`owners.rs`).

use crate::crew::Crew;
use crate::hash::{Hasher, KeyHash};
use crate::key::Key;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keys hashed and prefetched together.
pub const GROUP: usize = 32;
/// Keys that one thread takes at once.
const PIECE: usize = 1 << 12;

/// A batch of keys of any form: a list, a column, lines of a file. It is the seam between keys and
/// filters: filters are compiled once, for digests, and call `fill` once for a group or more.
/// Rows are independent, so threads may hash at once.
pub trait KeySource: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// The digest of one row. A source without keys has digests, and says so here.
    #[inline(always)]
    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        // A closure would not be compiled for the newer processor of `hash_rows`.
        match self.key(row) {
            Some(key) => key.hash(hasher),
            None => KeyHash::default(),
        }
    }

    /// The digests of the rows from `first` on.
    fn fill(&self, hasher: &Hasher, first: usize, out: &mut [KeyHash]) {
        hash_rows(self, hasher, first, out);
    }

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
impl KeySource for &[KeyHash] {
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
impl KeySource for &[Key<'_>] {
    fn len(&self) -> usize {
        <[Key<'_>]>::len(self)
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(self[row])
    }
}

/// Asks the processor for the cache line of an address, which may be any.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(address.cast(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Runs `probe(first row, digests)` over the rows, each group after the next one was prefetched.
#[inline(always)]
pub(crate) fn pipeline(
    keys: &dyn KeySource,
    hasher: &Hasher,
    rows: Range<usize>,
    prefetch: impl Fn(KeyHash),
    mut probe: impl FnMut(usize, &[KeyHash]),
) {
    if let Some(digests) = keys.digests() {
        let first = rows.start;
        return looking_ahead(&digests[rows], prefetch, |at, group| probe(first + at, group));
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
pub(crate) fn pipeline_prepared<P: Copy + Default>(
    keys: &dyn KeySource,
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
        keys.fill(hasher, start, digests);
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

/// Hashes row by row, with the best instructions of this processor.
fn hash_rows<S: KeySource + ?Sized>(keys: &S, hasher: &Hasher, first: usize, out: &mut [KeyHash]) {
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
        #[target_feature(enable = "bmi1,bmi2,avx2,lzcnt,popcnt")]
        unsafe fn newer<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        if is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the processor has the instructions.
            return unsafe { newer(work) };
        }
    }
    work()
}

/// Compiles a method three times and calls the best one. Unlike a closure given to `batch::at_best`, which
/// stays a function of its own when it is large, a method that is always inlined is compiled anew.
macro_rules! on_the_best_processor {
    ($name:ident($group:ty $(, $argument:ident: $kind:ty)*) $(-> $answer:ty)?) => {
        fn $name(group: $group $(, $argument: $kind)*) $(-> $answer)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512cd,avx2,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn avx512(group: $group $(, $argument: $kind)*) $(-> $answer)? {
                    group.$name($($argument),*)
                }
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn avx2(group: $group $(, $argument: $kind)*) $(-> $answer)? {
                    group.$name($($argument),*)
                }
                let bmi2 = is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt");
                let wide = is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd");
                if bmi2 && wide {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx512(group $(, $argument)*) };
                }
                if bmi2 {
                    // SAFETY: the processor has the instructions.
                    return unsafe { avx2(group $(, $argument)*) };
                }
            }
            group.$name($($argument),*)
        }
    };
}

pub(crate) use on_the_best_processor;

/// Runs `probe(first, group)` over groups of what was hashed before. Without hashing in between there is less
/// time for a line to arrive, so lines are asked for two groups ahead.
#[inline(always)]
pub(crate) fn looking_ahead<T: Copy>(
    items: &[T],
    prefetch: impl Fn(T),
    mut probe: impl FnMut(usize, &[T]),
) {
    let (now, ahead) = items.split_at(items.len().min(2 * GROUP));
    now.iter().for_each(|item| prefetch(*item));
    let mut ahead = ahead.chunks(GROUP);
    for (group, items) in items.chunks(GROUP).enumerate() {
        ahead.next().unwrap_or_default().iter().for_each(|item| prefetch(*item));
        probe(group * GROUP, items);
    }
}

/// Splits rows and answers between the threads of a crew and runs `part(rows, answers)` on pieces of
/// them. Who is done with a piece takes the next one, so nobody waits for a thread that was held up.
pub fn split<T: Send>(
    out: &mut [T],
    crew: &mut Crew,
    part: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let hands = crew.muster(out.len());
    if hands.count() == 1 {
        return part(0..out.len(), out);
    }
    let pieces = Mutex::new(out.chunks_mut(PIECE).enumerate());
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    hands.run(|_| {
        while let Some((piece, answers)) = next() {
            part(piece * PIECE..piece * PIECE + answers.len(), answers);
        }
    });
}

// The barrier already separates writing from reading; a lock only says so to the compiler, and a
// poisoned one would mean a panic, which the barrier could not survive anyway.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// The same memory as atomics, for answers that more than one thread may turn to true.
pub(crate) fn atomic_bools(out: &mut [bool]) -> &[AtomicBool] {
    // SAFETY: AtomicBool has the layout of bool, and the exclusive borrow lasts as long as the result.
    unsafe { &*(std::ptr::from_mut(out) as *const [AtomicBool]) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn split_covers_every_row_once() {
        let mut out = vec![0u64; 100_000];
        split(&mut out, &mut Crew::of(4), |rows, part| {
            for (row, slot) in rows.zip(part) {
                *slot += row as u64 + 1;
            }
        });
        assert!(out.iter().enumerate().all(|(row, value)| *value == row as u64 + 1));
    }
}
