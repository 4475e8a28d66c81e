//! Keys that come again within a window of a batch: under skew most do.
//!
//! Where additions commute, ten adds of one are one add of ten; and what was asked ten times has one answer. Of
//! the keys of a window the first of each stays. Additions note how often it occurs, questions note for each
//! row where its key occurs first. On a stream of web pages (Zipf 1.2) a fifth of the keys remains.
//!
//! Whether a key came before is as good as random, so there is no branch: every row is written behind the last
//! one kept and only the new ones are counted. Slots may be stale or shared: a key is known by its digest
//! alone, and two that share a slot only miss each other.

use crate::batch::{GROUP, KeySource};
use crate::hash::{Hasher, KeyHash};
use std::ops::Range;

/// Keys gone through at once: with what is noted of them they fit a core's second cache.
const WINDOW: usize = 1 << 15;
/// Keys of the first window, which is to show whether it is worth it.
const FIRST: usize = 1 << 10;

/// Gathers window by window and hands out each, as long as enough keys come again: the rows that are left.
/// A batch of one group has none: room for a window would cost more than its keys.
pub(super) fn in_windows<const COUNTED: bool, E>(
    keys: &dyn KeySource,
    hasher: &Hasher,
    all: Range<usize>,
    mut take: impl FnMut(Range<usize>, &[KeyHash], &Repeated<COUNTED>) -> Result<(), E>,
) -> Result<Range<usize>, E> {
    if all.len() <= GROUP {
        return Ok(all);
    }
    let mut hashed = Vec::new();
    let mut repeated = Repeated::<COUNTED>::of(all.len());
    let mut rows = all.start..all.end.min(all.start + FIRST);
    while !rows.is_empty() {
        let digests = match keys.digests() {
            Some(all) => &all[rows.clone()],
            None => {
                hashed.resize(rows.len(), KeyHash::default());
                keys.fill(hasher, rows.start, &mut hashed);
                &hashed
            }
        };
        repeated.gather(digests);
        take(rows.clone(), digests, &repeated)?;
        let few = repeated.are_few(rows.len());
        rows = rows.end..all.end.min(rows.end + WINDOW);
        if few {
            break;
        }
    }
    Ok(rows.start..all.end)
}

/// The different keys of a window, in the order of their first occurrence.
pub(super) struct Repeated<const COUNTED: bool> {
    /// The rows at which they occur first.
    rows: Vec<u16>,
    kept: usize,
    /// By row, if they are counted: how often the key occurs that occurs first there. Otherwise: where its
    /// key occurs first.
    notes: Vec<u16>,
    /// The row of the last new key with these low bits; twice as many as rows.
    slots: Vec<u16>,
}

impl<const COUNTED: bool> Repeated<COUNTED> {
    /// Room for the windows of so many keys.
    fn of(keys: usize) -> Self {
        let most = keys.min(WINDOW).next_power_of_two();
        let rows = || vec![0; most];
        Repeated { rows: rows(), kept: 0, notes: rows(), slots: vec![0; 2 * most] }
    }

    /// The row of each key.
    pub(super) fn rows(&self) -> &[u16] {
        &self.rows[..self.kept]
    }

    /// Whether so few keys came again that gathering costs more than it saves.
    fn are_few(&self, window: usize) -> bool {
        self.kept * 8 > window * 7
    }

    /// Gathers the keys of a window.
    fn gather(&mut self, window: &[KeyHash]) {
        let mask = self.slots.len() - 1;
        let (rows, notes) = (&mut self.rows[..window.len()], &mut self.notes[..window.len()]);
        let mut kept = 0;
        for (row, digest) in window.iter().enumerate() {
            let slot = &mut self.slots[digest.h1 as usize & mask];
            let known = usize::from(*slot);
            // A stale slot may name this row or one behind it, which is no repetition.
            let before = window[known.min(row)];
            let differs = (before.h1 ^ digest.h1) | (before.h2 ^ digest.h2);
            let again = (known < row) & (differs == 0);
            let at = row ^ ((row ^ known) & usize::from(again).wrapping_neg());
            if COUNTED {
                notes[row] = 0;
                notes[at] += 1;
            } else {
                notes[row] = at as u16;
            }
            *slot = at as u16;
            // Overwritten by the next key unless this one is new.
            rows[kept] = row as u16;
            kept += usize::from(!again);
        }
        self.kept = kept;
    }
}

impl Repeated<true> {
    /// How often the key of a row occurs.
    #[inline(always)]
    pub(super) fn count(&self, row: u16) -> u64 {
        u64::from(self.notes[usize::from(row)])
    }
}

impl Repeated<false> {
    /// Gives every row of the window what the first row of its key has.
    pub(super) fn spread<T: Copy>(&self, window: &mut [T]) {
        for (row, first) in self.notes[..window.len()].iter().enumerate() {
            window[row] = window[usize::from(*first)];
        }
    }
}

/// The keys that were gathered from a window.
pub(super) struct Gathered<'a> {
    pub(super) window: &'a [KeyHash],
    pub(super) rows: &'a [u16],
}

impl KeySource for Gathered<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn hash(&self, _: &Hasher, key: usize) -> KeyHash {
        self.window[usize::from(self.rows[key])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_occurrences_of_all_kept_keys_are_those_of_the_window() {
        let hasher = Hasher::Xxh3 { seed: 3 };
        let (mut repeated, mut asked) = (Repeated::<true>::of(4096), Repeated::<false>::of(4096));
        for (window, different) in [(0usize, 1), (1, 1), (4096, 1), (4096, 40), (777, 5000)] {
            let keys: Vec<KeyHash> = (0..window as u64)
                .map(|i| hasher.unsigned(hasher.unsigned(i).h1 % different))
                .collect();
            repeated.gather(&keys);
            asked.gather(&keys);
            assert_eq!(asked.rows(), repeated.rows());
            assert!(repeated.rows().is_sorted_by(|a, b| a < b));
            let all: u64 = repeated.rows().iter().map(|row| repeated.count(*row)).sum();
            assert_eq!(all, window as u64);
            for key in &keys {
                let same = |row: &&u16| keys[usize::from(**row)] == *key;
                let counted: u64 =
                    repeated.rows().iter().filter(same).map(|row| repeated.count(*row)).sum();
                assert_eq!(counted, keys.iter().filter(|other| *other == key).count() as u64);
            }
            let mut spread: Vec<KeyHash> = vec![KeyHash::default(); window];
            for row in repeated.rows() {
                spread[usize::from(*row)] = keys[usize::from(*row)];
            }
            asked.spread(&mut spread);
            assert_eq!(spread, keys);
        }
    }

    #[test]
    fn a_window_of_one_key_counts_all_its_rows() {
        let mut repeated = Repeated::<true>::of(WINDOW);
        repeated.gather(&vec![KeyHash::default(); WINDOW]);
        assert_eq!((repeated.rows(), repeated.count(0)), (&[0][..], WINDOW as u64));
        assert!(!repeated.are_few(WINDOW) && Repeated::<true>::of(1).slots.len() == 2);
    }
}
