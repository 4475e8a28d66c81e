//! Additions by many threads: every thread owns a range of the cells and is the only one to change them.
//!
//! Additions must answer as if made one by one, in order ("was this key absent before?"). So a cell has one
//! owner, who takes what falls on it in the order of the rows. Every thread does two things by turns:
//!
//!   deal    It takes the next piece of the rows, hashes it, and puts each item into a bucket of its owner: whole
//!           digests where all cells of a key have one owner, single cells where they have many.
//!   apply   It goes through its own share of the next piece that was dealt, in order.
//!
//! So a key is hashed once and looked at by its owners alone, whatever the number of threads, and a thread
//! waits for another only if that one is several pieces behind. An owner notes its answers beside its share; who
//! dealt the piece takes them to their rows, since many threads that wrote the answers of neighbouring rows
//! would take the cache line from each other at every key.
//!
//! Two or three threads do not deal: each picks its own items out of all, which costs less as long as they are few,
//! and writes their answers itself.
//!
//! The cost of dealing is in `docs/decisions/0025-one-seam.md`.

use crate::batch::{self, GROUP, KeySource};
use crate::crew::{Hands, wait_a_little};
use crate::hash::{Hasher, KeyHash};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// Items that fall to each owner in a piece, on the average: enough that prefetching ahead pays, and few enough
/// that the pieces of 16 threads stay in their caches.
const SHARE: usize = 1 << 10;
/// The same where items are picked. The memory of a piece should have left the other thread's cache before it is
/// written again.
const SHARE_OF_FEW: usize = 1 << 13;
/// Items that a thread picks from at once: what it picks stays in the nearest cache.
const HAND: usize = 1 << 10;
/// Up to so many threads pick their items out of all instead of dealing them.
const FEW: usize = 3;
/// Places in the bucket of an owner, as a multiple of its average share.
const SPARE: usize = 2;
/// How far ahead of the item that is applied the next ones are asked for.
const FAR: usize = 4 * GROUP;
/// Rows that a thread hashes at once before it deals them.
const HASHED: usize = 8 * GROUP;
/// Pieces of one thread that wait for their owners.
const WAITING: usize = 4;
/// Items that one thread deals before other writers get a turn, some 17 milliseconds: at its end threads wait
/// for each other.
const TURN: usize = 1 << 20;

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

    /// The units of one owner.
    fn units(self, owner: usize) -> Range<u64> {
        let first =
            |owner: usize| ((owner as u128) << 63).div_ceil(u128::from(self.per_unit.max(1)));
        let least = |owner| u64::try_from(first(owner)).unwrap_or(u64::MAX);
        least(owner)..least(owner + 1)
    }
}

/// A piece of the rows. Its dealer fills it, its owners read it, its dealer takes the answers.
struct Piece<T> {
    dealt: RwLock<Dealt<T>>,
    /// Owners who have not applied their share.
    left: AtomicUsize,
}

impl<T> Piece<T> {
    fn read(&self) -> RwLockReadGuard<'_, Dealt<T>> {
        self.dealt.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The digests of a piece, its items by owner, and the answers.
struct Dealt<T> {
    /// Those of all rows where items are picked, else those that are dealt just now.
    digests: Vec<KeyHash>,
    /// The bucket of the first owner, then that of the second, and so on; in each the order of the rows.
    items: Vec<T>,
    /// Where each bucket begins; the last number is the end of all.
    starts: Vec<u32>,
    /// Where the items in each bucket end.
    ends: Vec<u32>,
    /// Where the items of the first row are, then those of the second, and so on. A row with fewer
    /// items than others has `items.len()` for the rest.
    places: Vec<u32>,
    /// Whether an item was new, by its place. The last is nobody's, and false.
    new: Vec<AtomicBool>,
}

impl<T: Copy + Default> Dealt<T> {
    /// Nothing yet: the thread that deals the first time takes the memory, near its own core.
    fn none() -> Self {
        let (digests, items, starts) = (Vec::new(), Vec::new(), Vec::new());
        Dealt { digests, items, starts, ends: Vec::new(), places: Vec::new(), new: Vec::new() }
    }

    /// Room for the items of so many rows.
    fn of(threads: usize, rows: usize, per_key: usize) -> Self {
        let items = if threads <= FEW { 0 } else { SPARE * rows * per_key };
        Dealt {
            digests: vec![KeyHash::default(); if threads <= FEW { rows } else { HASHED }],
            items: vec![T::default(); items],
            starts: (0..=threads).map(|owner| (owner * items / threads) as u32).collect(),
            ends: vec![0; threads],
            places: vec![0; if threads <= FEW { 0 } else { rows * per_key }],
            new: falses(items + 1),
        }
    }

    fn share(&self, owner: usize) -> Range<usize> {
        self.starts[owner] as usize..self.ends[owner] as usize
    }

    /// Takes the answers to their rows. A row with several items is new if one of them is.
    fn answer(&self, out: &[AtomicBool], per_key: usize) {
        let mut places = self.places.iter();
        let is_new = |place: &u32| self.new[*place as usize].load(Ordering::Relaxed);
        for slot in out {
            // Whether a key is new is a coin toss to a branch.
            store(
                slot,
                places.by_ref().take(per_key).fold(false, |any, place| any | is_new(place)),
            );
        }
    }
}

/// What falls to one owner in a piece, to be applied.
pub(crate) struct Part<'a, T> {
    items: &'a [T],
    new: &'a [AtomicBool],
}

impl<T: Copy> Part<'_, T> {
    /// Runs `add(items, new)` over groups of items, in order, after their lines were prefetched. It tells of every
    /// item whether it was new.
    #[inline(always)]
    pub(crate) fn add(self, prefetch: impl Fn(T), mut add: impl FnMut(&[T], &mut [bool])) {
        let mut new = [false; GROUP];
        batch::looking_ahead(self.items, prefetch, |start, items| {
            // They are in the cache of the core that dealt them.
            let far = self.items.get(start + FAR..start + FAR + items.len()).unwrap_or_default();
            for line in far.chunks(64 / size_of::<T>()) {
                batch::prefetch(line.as_ptr());
            }
            let new = &mut new[..items.len()];
            add(items, new);
            self.new[start..].iter().zip(new).for_each(|(slot, new)| store(slot, *new));
        });
    }
}

/// What a thread has picked, in the order of the rows.
struct Hand<T> {
    items: Box<[T; HAND]>,
    /// The row of each item, and whether the item was new.
    rows: Box<[u32; HAND]>,
    new: Box<[AtomicBool; HAND]>,
}

impl<T: Copy + Default> Hand<T> {
    fn new() -> Self {
        Hand {
            items: Box::new([T::default(); HAND]),
            rows: Box::new([0; HAND]),
            new: Box::new([const { AtomicBool::new(false) }; HAND]),
        }
    }
}

/// How the keys of a batch are dealt and applied.
pub(crate) struct Dealing<'a, F, A> {
    pub(crate) keys: &'a dyn KeySource,
    pub(crate) hasher: &'a Hasher,
    pub(crate) owners: Owners,
    /// Items of a key, at most.
    pub(crate) per_key: usize,
    /// The items of a row, each with the unit on which it falls.
    pub(crate) items: F,
    pub(crate) apply: A,
}

impl<T, I, F, A> Dealing<'_, F, A>
where
    T: Copy + Default + Send + Sync,
    I: Iterator<Item = (u64, T)>,
    F: Fn(usize, KeyHash) -> I + Sync,
    A: Fn(Part<'_, T>) + Sync,
{
    /// Deals and applies every row, as the head of this file says; `out[row]` tells whether an item of the row was
    /// new. `alone` is entered for some milliseconds at a time.
    pub(crate) fn run<G>(&self, out: &mut [bool], hands: &Hands<'_>, alone: impl Fn() -> G) {
        let threads = hands.count();
        if threads <= FEW {
            out.fill(false); // who deals writes every answer, who picks those of what was picked
        }
        let per_turn = (TURN / self.per_key).max(GROUP) * threads;
        let piece = |_| Piece { dealt: RwLock::new(Dealt::none()), left: AtomicUsize::new(0) };
        let pieces: Vec<Vec<_>> = (0..threads).map(|_| (0..WAITING).map(piece).collect()).collect();
        for (turn, out) in out.chunks_mut(per_turn).enumerate() {
            let _entered = alone();
            self.turn(turn * per_turn, atomics(out), &pieces, hands);
        }
    }

    fn rows_of_a_piece(&self, threads: usize) -> usize {
        let share = if threads <= FEW { SHARE_OF_FEW } else { SHARE };
        (share * threads / self.per_key).max(GROUP)
    }

    /// The rows of `out`, of which `first` is the first.
    fn turn(&self, first: usize, out: &[AtomicBool], pieces: &[Vec<Piece<T>>], hands: &Hands<'_>) {
        let (threads, rows) = (hands.count(), self.rows_of_a_piece(hands.count()));
        if threads <= FEW
            && let Some(digests) = self.keys.digests()
        {
            // Nothing to deal: each thread picks its own out of all.
            let digests = &digests[first..first + out.len()];
            return hands.run(|thread| {
                let mut hand = Hand::new();
                self.pick(first, thread, digests, &mut hand, out);
            });
        }
        let dealt: Vec<OnceLock<&Piece<T>>> =
            (0..out.len().div_ceil(rows)).map(|_| OnceLock::new()).collect();
        let taken = AtomicUsize::new(0);
        let answers = |number: usize| &out[number * rows..out.len().min((number + 1) * rows)];
        hands.run(|thread| {
            let own = &pieces[thread];
            let mut hand = Hand::new();
            // The numbers of the pieces that this thread dealt and whose answers it has not taken.
            let mut numbers = [None; WAITING];
            let (mut next, mut spins) = (0, 0);
            loop {
                let is_applied = |at: &usize| {
                    numbers[*at].is_some() && own[*at].left.load(Ordering::Acquire) == 0
                };
                if let Some(piece) = dealt.get(next).and_then(OnceLock::get) {
                    let dealt = piece.read();
                    if threads <= FEW {
                        let out = answers(next);
                        let digests = &dealt.digests[..out.len()];
                        self.pick(first + next * rows, thread, digests, &mut hand, out);
                    } else {
                        let own = dealt.share(thread);
                        let (items, new) = (&dealt.items[own.clone()], &dealt.new[own]);
                        (self.apply)(Part { items, new });
                    }
                    piece.left.fetch_sub(1, Ordering::Release);
                    next += 1;
                } else if let Some(at) = (0..WAITING).find(is_applied) {
                    let number = numbers[at].take().unwrap_or(0);
                    if threads > FEW {
                        own[at].read().answer(answers(number), self.per_key);
                    }
                } else if let Some(at) = numbers.iter().position(Option::is_none)
                    && let number = taken.fetch_add(1, Ordering::Relaxed)
                    && number < dealt.len()
                {
                    let mut piece = own[at].dealt.write().unwrap_or_else(PoisonError::into_inner);
                    let start = first + number * rows;
                    let mine = start..start + answers(number).len();
                    if piece.starts.is_empty() {
                        *piece = Dealt::of(threads, rows, self.per_key);
                    }
                    if threads > FEW {
                        self.deal(mine, &mut piece);
                    } else {
                        self.keys.fill(self.hasher, start, &mut piece.digests[..mine.len()]);
                    }
                    drop(piece);
                    own[at].left.store(threads, Ordering::Relaxed);
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

    /// Puts the items of a piece, which has these rows, into the buckets of their owners.
    fn deal(&self, rows: Range<usize>, piece: &mut Dealt<T>) {
        let threads = piece.ends.len();
        for (owner, start) in piece.starts.iter_mut().enumerate() {
            *start = (owner * piece.items.len() / threads) as u32;
        }
        self.fill_buckets(rows.clone(), piece);
        if piece.ends.iter().zip(&piece.starts[1..]).any(|(end, limit)| end > limit) {
            // Many rows of one key. Now each bucket gets the size that it needs.
            let mut first = 0;
            for (start, end) in piece.starts.iter_mut().zip(&piece.ends) {
                first += end - std::mem::replace(start, first);
            }
            piece.starts[threads] = first;
            self.fill_buckets(rows, piece);
        }
    }

    /// The same with the buckets as they are. One that is too small loses items and ends where it should.
    #[inline(always)]
    fn fill_buckets(&self, rows: Range<usize>, piece: &mut Dealt<T>) {
        let Dealt { digests, items, starts, ends, places, .. } = piece;
        let (starts, limits) = (&starts[..ends.len()], &starts[1..]);
        ends.copy_from_slice(starts);
        let nobody = items.len() as u32;
        let mut places = places.chunks_exact_mut(self.per_key);
        for first in rows.clone().step_by(HASHED) {
            let rows = first..rows.end.min(first + HASHED);
            let digests = match self.keys.digests() {
                Some(all) => &all[rows.clone()],
                None => {
                    self.keys.fill(self.hasher, first, &mut digests[..rows.len()]);
                    &digests[..rows.len()]
                }
            };
            for ((row, digest), places) in rows.zip(digests).zip(&mut places) {
                let mut row_items = (self.items)(row, *digest);
                for place in places {
                    *place = nobody;
                    if let Some((unit, item)) = row_items.next() {
                        let owner = self.owners.of(unit);
                        *place = ends[owner];
                        ends[owner] += 1;
                        if *place < limits[owner] {
                            items[*place as usize] = item;
                        }
                    }
                }
            }
        }
    }

    /// Picks the thread's own items of a piece, which begins with the row `start`, applies them and answers.
    fn pick(
        &self,
        start: usize,
        thread: usize,
        digests: &[KeyHash],
        hand: &mut Hand<T>,
        out: &[AtomicBool],
    ) {
        let units = self.owners.units(thread);
        let more = units.end - units.start;
        let rows = (HAND / self.per_key).max(1);
        for (window, (digests, out)) in digests.chunks(rows).zip(out.chunks(rows)).enumerate() {
            let first = start + window * rows;
            let mut own = 0;
            for (at, digest) in digests.iter().enumerate() {
                for (unit, item) in (self.items)(first + at, *digest) {
                    // Overwritten by the next item unless it is our own, which is a coin toss to a branch.
                    hand.items[own & (HAND - 1)] = item;
                    hand.rows[own & (HAND - 1)] = at as u32;
                    own += usize::from(unit.wrapping_sub(units.start) < more);
                }
            }
            (self.apply)(Part { items: &hand.items[..own], new: &hand.new[..] });
            for (row, new) in hand.rows[..own].iter().zip(&hand.new[..]) {
                let new = new.load(Ordering::Relaxed);
                // Other items of the row may have other owners: nobody takes back that it is new.
                if self.per_key == 1 || new {
                    store(&out[*row as usize], new);
                }
            }
        }
    }
}

fn falses(count: usize) -> Vec<AtomicBool> {
    (0..count).map(|_| AtomicBool::new(false)).collect()
}

#[inline(always)]
fn store(slot: &AtomicBool, value: bool) {
    slot.store(value, Ordering::Relaxed);
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

    /// So many rows of so many keys, in turns.
    struct Numbers(usize, usize);
    impl KeySource for Numbers {
        fn len(&self) -> usize {
            self.0
        }
        fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
            KeyHash {
                h1: ((row % self.1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15),
                h2: row as u64,
            }
        }
    }

    /// Rows whose digests end in other digits have other numbers of items, and none where it is zero.
    fn items(hash: KeyHash, per_key: u64) -> impl Iterator<Item = u64> {
        (0..hash.h1 % (per_key + 1)).map(move |i| (hash.h1 >> 32).rotate_left(i as u32) % 1000)
    }

    #[test]
    fn an_owner_has_the_units_that_are_its_own() {
        for (owners, units) in [(1, 1), (2, 3), (3, 1000), (16, 17), (1024, 1 << 54)] {
            let all = Owners::new(owners, units);
            let mut next = 0;
            for owner in 0..owners {
                let own = all.units(owner);
                assert_eq!(own.start, next);
                next = own.end;
                let last = own.end.min(units) - 1;
                assert_eq!((all.of(own.start), all.of(last)), (owner, owner), "{own:?} of {units}");
            }
            assert!(next >= units);
        }
    }

    #[test]
    fn owners_see_their_items_once_in_order_and_every_row_gets_its_answer() {
        let hasher = Hasher::Xxh3 { seed: 0 };
        for (rows, distinct, per_key, threads, hashed) in [
            (0, 1, 1, 2, false),
            (1, 1, 1, 2, true),
            (1000, 1000, 3, 4, false),
            (100_000, 100_000, 1, 3, false),
            (90_001, 90_001, 1, 3, true),
            (70_001, 70_001, 5, 3, false),
            (50_000, 50_000, 2, 4, true),
            (50_000, 50_000, 1, 5, false),
            // So few keys that a bucket is too small.
            (50_000, 3, 3, 8, false),
            (50_000, 2, 1, 5, true),
        ] {
            let numbers = Numbers(rows, distinct);
            let digests: Vec<_> = (0..rows).map(|row| numbers.hash(&hasher, row)).collect();
            let digests = digests.as_slice();
            let keys: &dyn KeySource = if hashed { &digests } else { &numbers };
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
            let items = |row, hash| items(hash, per_key).map(move |item| (item, (item, row)));
            let apply = |part: Part<'_, (u64, usize)>| {
                part.add(
                    |_| (),
                    |items, new| {
                        for ((item, row), new) in items.iter().zip(new) {
                            let mut last = seen[*item as usize].lock().unwrap();
                            assert!(row + 1 >= *last, "rows come in order");
                            *new = *last == 0;
                            *last = row + 1;
                        }
                    },
                );
            };
            let mut crew = Crew::of(threads);
            let dealing =
                Dealing { keys, hasher: &hasher, owners, per_key: per_key as usize, items, apply };
            dealing.run(&mut out, &crew.muster(usize::MAX), || ());
            assert_eq!(out, expected, "{rows} rows, {distinct} keys, {threads} threads");
        }
    }
}
