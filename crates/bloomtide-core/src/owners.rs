//! Additions by many threads: every thread owns a range of the cells and is the only one to change them.
//!
//! Additions must answer as if made one by one, in order ("was this key absent before?"). So a cell has one
//! owner, who takes what falls on it in the order of the rows. Every thread does two things by turns:
//!
//!   deal    It takes the next piece of the rows, hashes it, and sorts it by owner: whole digests where all
//!           cells of a key have one owner, single cells where they have many.
//!   apply   It goes through its own share of the next piece that was dealt, in order.
//!
//! So a key is hashed once and looked at by its owners alone, whatever the number of threads, and a thread
//! waits for another only if that one is several pieces behind. An owner notes its answers in its share; who dealt
//! the piece takes them to their rows, since threads that wrote the answers of neighbouring rows
//! would take the cache line from each other at every key.
//!
//! The cost of dealing is in `docs/decisions/0025-one-seam.md`.

use crate::batch::{self, GROUP, KeySource};
use crate::crew::{Hands, wait_a_little};
use crate::hash::{Hasher, KeyHash};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Digests or cells of a piece: some hundred for each of 16 owners, so that prefetching ahead pays.
const PIECE: usize = 1 << 13;
/// Pieces of one thread that wait for their owners.
const WAITING: usize = 4;
/// Digests or cells that one thread deals before other writers get a turn, some 15 milliseconds: at its end
/// threads wait for each other.
const TURN: usize = 1 << 19;

/// Who owns what: units from 0 up, in ranges of about the same length. A unit is what must have one writer: a
/// cache line, a block, a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owners {
    /// Owners for each unit, as a fraction of 2^63; at most one.
    per_unit: u64,
}

impl Owners {
    /// At most as many owners as units, and at most 2^54 units.
    pub(crate) fn new(owners: usize, units: u64) -> Self {
        let owners = (owners as u64).min(units).max(1);
        Owners { per_unit: ((u128::from(owners) << 63) / u128::from(units.max(1))) as u64 }
    }

    #[inline(always)]
    fn of(self, unit: u64) -> usize {
        ((u128::from(unit) * u128::from(self.per_unit)) >> 63) as usize
    }
}

/// What falls to one owner in a piece, in order. Items, rows and answers are apart, because an owner needs no rows
/// and a dealer no items: fewer cache lines go from one to the other.
struct Share<T> {
    items: Vec<T>,
    /// The row of each item, counted from the piece's first.
    rows: Vec<u32>,
    /// Whether an item was new.
    new: Vec<bool>,
}

/// A piece of the rows: a share for each owner.
struct Piece<T> {
    shares: Vec<Mutex<Share<T>>>,
    /// Owners who have not applied their share.
    left: AtomicUsize,
}

impl<T> Piece<T> {
    fn new(owners: usize) -> Self {
        // About as much as falls to each, so that shares seldom grow.
        let room = PIECE / owners * 9 / 8;
        let share = |_| {
            let (items, rows) = (Vec::with_capacity(room), Vec::with_capacity(room));
            Mutex::new(Share { items, rows, new: Vec::with_capacity(room) })
        };
        Piece { shares: (0..owners).map(share).collect(), left: AtomicUsize::new(0) }
    }

    /// Takes the answers to their rows. A row with several items is new if one of them is.
    fn answer(&self, out: &[AtomicBool]) {
        for share in &self.shares {
            let share = locked(share);
            for (row, new) in share.rows.iter().zip(&share.new) {
                let slot = &out[*row as usize];
                // Nobody else has these rows now. Whether a key is new is a coin toss to a branch.
                slot.store(slot.load(Ordering::Relaxed) | new, Ordering::Relaxed);
            }
        }
    }
}

/// A piece that is being dealt.
pub(crate) struct Deal<'a, T> {
    owners: Owners,
    shares: Vec<MutexGuard<'a, Share<T>>>,
}

impl<'a, T> Deal<'a, T> {
    fn open(owners: Owners, piece: &'a Piece<T>) -> Self {
        let mut shares: Vec<_> = piece.shares.iter().map(locked).collect();
        for share in &mut shares {
            share.items.clear();
            share.rows.clear();
        }
        Deal { owners, shares }
    }

    /// Gives an item of this row of the piece to the owner of the unit.
    #[inline(always)]
    pub(crate) fn give(&mut self, unit: u64, row: u32, item: T) {
        let share = &mut *self.shares[self.owners.of(unit)];
        share.items.push(item);
        share.rows.push(row);
    }
}

impl<T> Drop for Deal<'_, T> {
    fn drop(&mut self) {
        for share in &mut self.shares {
            let items = share.items.len();
            share.new.resize(items, false);
        }
    }
}

/// What falls to one owner in a piece, to be applied.
pub(crate) struct Part<'a, T> {
    /// The piece's first row.
    first: usize,
    share: &'a mut Share<T>,
}

impl<T: Copy> Part<'_, T> {
    /// Runs `add(items, new)` over groups of items, in order, after their lines were prefetched.
    #[inline(always)]
    pub(crate) fn add(self, prefetch: impl Fn(T), mut add: impl FnMut(&[T], &mut [bool])) {
        self.add_rows(prefetch, |items, _, new| add(items, new));
    }

    /// The same with the rows of the batch: `add(items, row of an item, new)`.
    #[inline(always)]
    pub(crate) fn add_rows(
        self,
        prefetch: impl Fn(T),
        mut add: impl FnMut(&[T], &dyn Fn(usize) -> usize, &mut [bool]),
    ) {
        let Share { items, rows, new } = self.share;
        batch::looking_ahead(items, prefetch, |start, items| {
            let row = |at: usize| self.first + rows[start + at] as usize;
            add(items, &row, &mut new[start..start + items.len()]);
        });
    }
}

/// How the keys of a batch are dealt.
pub(crate) struct Dealing<'a> {
    pub(crate) keys: &'a dyn KeySource,
    pub(crate) hasher: &'a Hasher,
    pub(crate) owners: Owners,
    /// Items of a key, at most.
    pub(crate) per_key: usize,
}

impl Dealing<'_> {
    /// Runs `deal` for every row and `apply` for every share, as the head of this file says; `out[row]` tells
    /// whether an item of the row was new. `alone` is entered for some milliseconds at a time.
    pub(crate) fn run<T: Copy + Send, G>(
        &self,
        out: &mut [bool],
        hands: &Hands<'_>,
        alone: impl Fn() -> G,
        deal: impl Fn(&mut Deal<'_, T>, u32, KeyHash) + Sync,
        apply: impl Fn(Part<'_, T>) + Sync,
    ) {
        out.fill(false);
        let threads = hands.count();
        let per_turn = (TURN / self.per_key).max(GROUP) * threads;
        let pieces: Vec<Vec<_>> =
            (0..threads).map(|_| (0..WAITING).map(|_| Piece::new(threads)).collect()).collect();
        for (turn, out) in out.chunks_mut(per_turn).enumerate() {
            let _entered = alone();
            self.turn(turn * per_turn, atomics(out), &pieces, hands, &deal, &apply);
        }
    }

    /// The rows of `out`, of which `first` is the first.
    fn turn<T: Copy + Send>(
        &self,
        first: usize,
        out: &[AtomicBool],
        pieces: &[Vec<Piece<T>>],
        hands: &Hands<'_>,
        deal: impl Fn(&mut Deal<'_, T>, u32, KeyHash) + Sync,
        apply: impl Fn(Part<'_, T>) + Sync,
    ) {
        let rows = (PIECE / self.per_key).max(GROUP);
        let dealt: Vec<OnceLock<&Piece<T>>> =
            (0..out.len().div_ceil(rows)).map(|_| OnceLock::new()).collect();
        let taken = AtomicUsize::new(0);
        hands.run(|thread| {
            let own = &pieces[thread];
            // The numbers of the pieces that this thread dealt and whose answers it has not taken.
            let mut numbers = [None; WAITING];
            let (mut next, mut spins) = (0, 0);
            loop {
                let is_applied = |at: &usize| {
                    numbers[*at].is_some() && own[*at].left.load(Ordering::Acquire) == 0
                };
                if let Some(piece) = dealt.get(next).and_then(OnceLock::get) {
                    apply(Part {
                        first: first + next * rows,
                        share: &mut locked(&piece.shares[thread]),
                    });
                    piece.left.fetch_sub(1, Ordering::Release);
                    next += 1;
                } else if let Some(at) = (0..WAITING).find(is_applied) {
                    let number = numbers[at].take().unwrap_or(0);
                    own[at].answer(&out[number * rows..]);
                } else if let Some(at) = numbers.iter().position(Option::is_none)
                    && let number = taken.fetch_add(1, Ordering::Relaxed)
                    && number < dealt.len()
                {
                    let mine = number * rows..out.len().min((number + 1) * rows);
                    let mut open = Deal::open(self.owners, &own[at]);
                    self.deal(first + mine.start..first + mine.end, &mut open, &deal);
                    drop(open);
                    own[at].left.store(hands.count(), Ordering::Relaxed);
                    numbers[at] = Some(number);
                    // Nobody else has this number.
                    let _ = dealt[number].set(&own[at]);
                } else if next == dealt.len() && numbers == [None; WAITING] {
                    return;
                } else {
                    wait_a_little(&mut spins);
                }
            }
        });
    }

    /// Hashes rows and deals them.
    fn deal<T>(
        &self,
        rows: Range<usize>,
        dealt: &mut Deal<'_, T>,
        deal: impl Fn(&mut Deal<'_, T>, u32, KeyHash),
    ) {
        let mut hashed = [KeyHash::default(); GROUP];
        for start in rows.clone().step_by(GROUP) {
            let group = start..rows.end.min(start + GROUP);
            let digests = match self.keys.digests() {
                Some(all) => &all[group],
                None => {
                    let hashed = &mut hashed[..group.len()];
                    self.keys.fill(self.hasher, start, hashed);
                    hashed
                }
            };
            for (row, digest) in ((start - rows.start) as u32..).zip(digests) {
                deal(dealt, row, *digest);
            }
        }
    }
}

/// Nobody waits here: a share is its dealer's or its owner's by turns.
fn locked<T>(share: &Mutex<T>) -> MutexGuard<'_, T> {
    share.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same memory as atomics, for answers that more than one thread writes.
fn atomics(out: &mut [bool]) -> &[AtomicBool] {
    // SAFETY: AtomicBool has the layout of bool, and the exclusive borrow lasts as long as the result.
    unsafe { &*(std::ptr::from_mut(out) as *const [AtomicBool]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::Crew;
    use std::collections::HashSet;
    use std::sync::Mutex;

    #[test]
    fn every_unit_has_one_owner_and_owners_have_about_as_many_units() {
        for (threads, units) in
            [(1, 1), (2, 2), (7, 7), (3, 2), (16, 1000), (5, 97), (16, 1 << 54), (1024, 1 << 54)]
        {
            let owners = Owners::new(threads, units);
            let used = threads.min(units as usize);
            assert_eq!((owners.of(0), owners.of(units - 1)), (0, used - 1), "{threads} {units}");
            if units > 1000 {
                continue;
            }
            let all: Vec<usize> = (0..units).map(|unit| owners.of(unit)).collect();
            assert!(all.is_sorted());
            for owner in 0..used {
                let own = all.iter().filter(|of| **of == owner).count();
                assert!(own.abs_diff(units as usize / used) <= 1, "{threads} {units}");
            }
        }
    }

    struct Numbers(usize);
    impl KeySource for Numbers {
        fn len(&self) -> usize {
            self.0
        }
        fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
            KeyHash { h1: (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15), h2: row as u64 }
        }
    }

    /// Rows whose digests end in other digits have other numbers of items, and none where it is zero.
    fn items(hash: KeyHash, per_key: u64) -> impl Iterator<Item = u64> {
        (0..hash.h1 % (per_key + 1)).map(move |i| (hash.h1 >> 32).rotate_left(i as u32) % 1000)
    }

    #[test]
    fn owners_see_their_items_once_in_order_and_every_row_gets_its_answer() {
        for (rows, per_key, threads) in
            [(0, 1, 2), (1, 1, 2), (1000, 3, 4), (100_000, 1, 3), (70_001, 5, 3), (50_000, 2, 4)]
        {
            let (keys, hasher) = (Numbers(rows), Hasher::Xxh3 { seed: 0 });
            let mut seen = HashSet::new();
            let expected: Vec<bool> = (0..rows)
                .map(|row| {
                    let new = |item| seen.insert(item);
                    items(keys.hash(&hasher, row), per_key).map(new).fold(false, |a, b| a | b)
                })
                .collect();
            // Each item is a unit of its own: whoever owns it has seen all that came before.
            let seen: Vec<_> = (0..1000).map(|_| Mutex::new(0usize)).collect();
            let mut out = vec![true; rows];
            let owners = Owners::new(threads, 1000);
            let dealing = Dealing { keys: &keys, hasher: &hasher, owners, per_key: 5 };
            let deal = |deal: &mut Deal<'_, u64>, row, hash| {
                items(hash, per_key).for_each(|item| deal.give(item, row, item));
            };
            let apply = |part: Part<'_, u64>| {
                part.add_rows(
                    |_| (),
                    |items, row, new| {
                        for (at, item) in items.iter().enumerate() {
                            let mut last = seen[*item as usize].lock().unwrap();
                            assert!(row(at) + 1 >= *last, "rows come in order");
                            new[at] = *last == 0;
                            *last = row(at) + 1;
                        }
                    },
                );
            };
            let mut crew = Crew::of(threads);
            dealing.run(&mut out, &crew.muster(usize::MAX), || (), deal, apply);
            assert_eq!(out, expected, "{rows} rows, {per_key} items, {threads} threads");
        }
    }
}
