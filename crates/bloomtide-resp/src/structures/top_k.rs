//! The top-k list of the TOPK commands: the k keys that came most often, with about how often.
//!
//! Paper    Yang et al., "HeavyKeeper", 2019.
//! Idea     A table of `depth` rows. A cell belongs to one key, by its fingerprint, and counts it; each add of
//!          another key lowers the count with chance decay^count, and takes the cell when nothing is left. So
//!          small keys wear each other out, and large ones stay. The k keys with the largest counts are kept
//!          as they are, in a heap.
//! Prefer   `HotList` of `bloomtide-core`, whose counts have bounds that hold. This one is here because the TOPK
//!          commands promise a width, a depth and a decay.
//! Chance   Comes from a counter that is part of the list, so that equal adds make equal lists, on every
//!          machine and when they are done again from a journal.
//!
//! # Invariants
//! I1  A place of the heap counts at least as much as the one above it. Empty places count zero.
//! I2  A key has one place, and the index finds it there.
//!
//! # Errors in answers
//! A count is too large only where two keys share a fingerprint and a cell; it may be too small.

use super::HASHER;
use super::table::{Rows, check_fits, check_table, mix, too_large, zeros};
use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::batch::prefetch;
use bloomtide_core::history::varint::Reader;
use bloomtide_core::{Error, KeyHash, Result};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, Write};

/// Places are made at once, so there must not be too many.
const MOST_KEYS: u64 = 1 << 24;
/// Chances that are kept ready. What counts more than this is not worn out by chance any more, unless `decay` is
/// almost 1.
const READY: usize = 256;

/// The sizes of a top-k list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopKPlan {
    /// Keys in the list, at most.
    pub k: u64,
    /// Cells of a row.
    pub width: u64,
    /// Rows.
    pub depth: u64,
    /// Chance that a count of one is lowered; of a count of c it is the c-th power.
    pub decay: f64,
}

impl TopKPlan {
    /// The plan, if it can be built.
    pub fn checked(self) -> Result<Self> {
        if !(1..=MOST_KEYS).contains(&self.k) {
            let hint = "give the number of keys that the list is to show";
            return Err(Error::parameter("k", self.k, "between 1 and 2**24", hint));
        }
        check_table(self.width, self.depth)?;
        // NaN is in no range.
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            let hint = "0.9 is usual";
            return Err(Error::parameter("decay", self.decay, "above 0 and at most 1", hint));
        }
        Ok(self)
    }

    fn cells(&self) -> u64 {
        self.width.saturating_mul(self.depth)
    }

    /// Memory in bytes of a list without keys.
    pub fn bytes(&self) -> u64 {
        // The index has at least an eighth of its slots free, and they are a power of two.
        let slots = (self.k.saturating_mul(8) / 7).saturating_add(1).next_power_of_two();
        let each = (size_of::<Place>() + size_of::<u32>()) as u64;
        let slot = (size_of::<(u128, u32)>() + 1) as u64;
        let cells = self.cells().saturating_mul(8);
        cells.saturating_add(self.k.saturating_mul(each)).saturating_add(slots.saturating_mul(slot))
    }
}

/// A key of the list, or room for one.
#[derive(Clone, Debug, Default)]
struct Place {
    item: Option<Box<[u8]>>,
    digest: u128,
    count: u32,
    /// Where it stands in the heap.
    at: u32,
}

/// Digests are spread already.
#[derive(Clone, Copy, Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = mix(self.0 ^ u64::from(*byte)));
    }

    #[inline(always)]
    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A top-k list.
#[derive(Clone, Debug)]
pub struct TopK {
    /// The sizes.
    pub plan: TopKPlan,
    rows: Rows,
    /// A fingerprint above, its count below; zero if nobody's.
    cells: Box<[u64]>,
    /// Chance of lowering, by count.
    chances: Box<[u64]>,
    /// How often chance was asked.
    draws: u64,
    places: Box<[Place]>,
    /// Places, the smallest count first.
    heap: Box<[u32]>,
    index: HashMap<u128, u32, BuildHasherDefault<AsItIs>>,
    item_bytes: u64,
}

impl TopK {
    /// An empty list.
    pub fn new(plan: TopKPlan) -> Result<Self> {
        let plan = plan.checked()?;
        check_fits(plan.bytes())?;
        let refused = |_| too_large(plan.bytes());
        let k = plan.k as u32;
        let (mut places, mut heap, mut index) = (Vec::new(), Vec::new(), HashMap::default());
        places.try_reserve_exact(k as usize).map_err(refused)?;
        heap.try_reserve_exact(k as usize).map_err(refused)?;
        index.try_reserve(k as usize).map_err(refused)?;
        places.extend((0..k).map(|at| Place { at, ..Place::default() }));
        heap.extend(0..k);
        Ok(TopK {
            plan,
            rows: Rows::new(plan.width, plan.depth),
            cells: zeros(plan.cells())?,
            chances: (0..READY as u32).map(|count| chance(plan.decay, count)).collect(),
            draws: 0,
            places: places.into(),
            heap: heap.into(),
            index,
            item_bytes: 0,
        })
    }

    /// Asks the processor for a key's cells.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        self.rows.cells(hash).for_each(|cell| prefetch(&raw const self.cells[cell]));
    }

    // ---- adding

    /// Adds `count` occurrences of a key whose digest this is; the key that it expelled from the list, if any.
    pub fn add(&mut self, hash: KeyHash, item: &[u8], count: u32) -> Option<Box<[u8]>> {
        if count == 0 {
            return None;
        }
        let counted = self.raise(hash, count);
        let least = self.places[self.heap[0] as usize].count;
        if counted < least || counted == 0 {
            return None;
        }
        match self.index.get(&hash.as_u128()) {
            Some(place) => {
                let place = &mut self.places[*place as usize];
                // Its cells may have been worn since.
                place.count = place.count.max(counted);
                let at = place.at;
                self.sink(at as usize);
                None
            }
            None => self.admit(hash, item, counted),
        }
    }

    /// Raises the key's cells, as far as it has or gets any; its largest count.
    #[inline(always)]
    fn raise(&mut self, hash: KeyHash, more: u32) -> u32 {
        let fingerprint = fingerprint(hash);
        let mut largest = 0;
        for cell in self.rows.cells(hash) {
            let cell = &mut self.cells[cell];
            let count = *cell as u32;
            let counted = if count == 0 {
                more
            } else if (*cell >> 32) as u32 == fingerprint {
                count.saturating_add(more)
            } else {
                let (left, over) =
                    wear(&self.chances, self.plan.decay, &mut self.draws, count, more);
                if left > 0 {
                    *cell = *cell & !u64::from(u32::MAX) | u64::from(left);
                    continue;
                }
                over
            };
            *cell = u64::from(fingerprint) << 32 | u64::from(counted);
            largest = largest.max(counted);
        }
        largest
    }

    /// Takes the place of the smallest.
    fn admit(&mut self, hash: KeyHash, item: &[u8], count: u32) -> Option<Box<[u8]>> {
        let digest = hash.as_u128();
        let number = self.heap[0];
        let place = &mut self.places[number as usize];
        let expelled = place.item.replace(item.into());
        if let Some(expelled) = &expelled {
            self.index.remove(&place.digest);
            self.item_bytes -= expelled.len() as u64;
        }
        (place.digest, place.count) = (digest, count);
        self.item_bytes += item.len() as u64;
        self.index.insert(digest, number);
        self.sink(0);
        expelled
    }

    /// Moves a place down to where it belongs. An equal one below goes up, but only one: which of several equal
    /// keys is expelled next depends on it, and clients know it so.
    fn sink(&mut self, mut at: usize) {
        let number = self.heap[at];
        let count = self.places[number as usize].count;
        let mut limit = count;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                break;
            }
            let count_at = |at: usize| self.places[self.heap[at] as usize].count;
            let child = if right < self.heap.len() && count_at(right) < count_at(left) {
                right
            } else {
                left
            };
            if count_at(child) > limit {
                break;
            }
            limit = count.saturating_sub(1);
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, number);
    }

    fn put(&mut self, at: usize, number: u32) {
        self.heap[at] = number;
        self.places[number as usize].at = at as u32;
    }

    // ---- asking

    /// Whether the key is listed.
    #[inline(always)]
    pub fn contains(&self, hash: KeyHash) -> bool {
        self.index.contains_key(&hash.as_u128())
    }

    /// About how often the key came; zero if nothing is known of it.
    pub fn count(&self, hash: KeyHash) -> u32 {
        if let Some(place) = self.index.get(&hash.as_u128()) {
            return self.places[*place as usize].count;
        }
        let own = |cell: &u64| (*cell >> 32) as u32 == fingerprint(hash);
        let cells = self.rows.cells(hash).map(|cell| self.cells[cell]);
        cells.filter(own).map(|cell| cell as u32).max().unwrap_or(0)
    }

    /// The keys with their counts, the largest first; equal ones as they stand in the heap.
    pub fn list(&self) -> Vec<(&[u8], u32)> {
        let mut list: Vec<_> = self.heap.iter().filter_map(|number| self.named(*number)).collect();
        list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        list
    }

    fn named(&self, number: u32) -> Option<(&[u8], u32)> {
        let place = &self.places[number as usize];
        Some((place.item.as_deref()?, place.count))
    }

    // ---- what was read

    /// Puts a key that was read into its place.
    fn settle(&mut self, number: u32, item: &[u8], count: u32) -> Result<()> {
        if count == 0 && item.is_empty() {
            return Ok(());
        }
        let digest = HASHER.bytes(item).as_u128();
        if count == 0 || self.index.insert(digest, number).is_some() {
            let got = format!("a key that counts {count}, or a second time");
            return Err(Error::Field { name: "item", got });
        }
        self.item_bytes += item.len() as u64;
        let place = &mut self.places[number as usize];
        *place = Place { item: Some(item.into()), digest, count, at: number };
        Ok(())
    }
}

impl Structure for TopK {
    fn kind(&self) -> &'static str {
        "top_k"
    }

    fn bytes(&self) -> u64 {
        self.plan.bytes().saturating_add(self.item_bytes)
    }

    fn summary(&self) -> Summary {
        let items = self.index.len() as f64;
        Summary { items, fill: items / self.plan.k as f64, error: 0.0 }
    }

    /// The sizes and the draws; then the cells, row after row; then the places in the order of the heap.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let TopKPlan { k, width, depth, decay } = self.plan;
        put(out, &[k, width, depth, decay.to_bits(), self.draws])?;
        put(out, &self.cells)?;
        for number in self.heap.iter() {
            // An empty place counts zero, a key never does.
            let (item, count) = self.named(*number).unwrap_or_default();
            out.write_all(&count.to_le_bytes())?;
            put(out, &[item.len() as u64])?;
            out.write_all(item)?;
        }
        Ok(())
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "top_k");
        let [k, width, depth, decay, draws] = take(&mut from)?;
        let plan = TopKPlan { k, width, depth, decay: f64::from_bits(decay) }.checked()?;
        let cells = from.bytes(plan.cells() * 8)?.as_chunks().0;
        // Each place has twelve bytes at least.
        if (from.rest().len() as u64) < k * 12 {
            return Err(from.wrong());
        }
        let mut this = TopK::new(plan)?;
        this.draws = draws;
        for (cell, value) in this.cells.iter_mut().zip(cells) {
            *cell = u64::from_le_bytes(*value);
        }
        for number in 0..k as u32 {
            let count = u32::from_le_bytes(from.fixed()?);
            let [length] = take(&mut from)?;
            this.settle(number, from.bytes(length)?, count)?;
        }
        from.end()?;
        let count = |at: usize| this.places[at].count;
        if (1..this.heap.len()).any(|at| count((at - 1) / 2) > count(at)) {
            let invariant = "a place of the heap counts less than the one above".to_owned();
            return Err(Error::Invariant { invariant });
        }
        Ok(this)
    }
}

#[inline(always)]
fn fingerprint(hash: KeyHash) -> u32 {
    (hash.h1 ^ hash.h2) as u32
}

/// `more` attempts to lower a count: (what is left of it, attempts that remain with the last one).
#[inline(always)]
fn wear(chances: &[u64], decay: f64, draws: &mut u64, count: u32, more: u32) -> (u32, u32) {
    let mut left = count;
    for over in (1..=more).rev() {
        let chance = match chances.get(left as usize) {
            Some(chance) => *chance,
            None => chance(decay, left),
        };
        // Of a large count all attempts are in vain.
        if chance == 0 {
            break;
        }
        *draws = draws.wrapping_add(1);
        left -= u32::from(mix(*draws) < chance);
        if left == 0 {
            return (0, over);
        }
    }
    (left, 0)
}

/// decay^count as a share of 2^64, the same on every machine: multiplications only.
fn chance(decay: f64, count: u32) -> u64 {
    let (mut power, mut square, mut rest) = (1.0, decay, count);
    while rest > 0 {
        if rest & 1 == 1 {
            power *= square;
        }
        square *= square;
        rest >>= 1;
    }
    (power * 2f64.powi(64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_at_a_large_count_are_in_vain_and_cost_nothing() {
        let mut draws = 0;
        let chances: Vec<u64> = (0..READY as u32).map(|count| chance(0.9, count)).collect();
        assert_eq!(wear(&chances, 0.9, &mut draws, 1 << 30, 100_000), (1 << 30, 0));
        assert_eq!(draws, 0);
        // With certainty every attempt lowers the count.
        let certain = vec![chance(1.0, 9); READY];
        assert_eq!(wear(&certain, 1.0, &mut draws, 40, 100), (0, 61));
        assert_eq!((chance(0.5, 1), chance(0.5, 64), chance(0.5, 65)), (1 << 63, 1, 0));
    }

    #[test]
    fn a_count_does_not_go_round() {
        let plan = TopKPlan { k: 1, width: 4, depth: 1, decay: 0.9 };
        let mut top = TopK::new(plan).unwrap();
        top.add(HASHER.bytes(b"a"), b"a", u32::MAX - 1);
        top.add(HASHER.bytes(b"a"), b"a", 5);
        assert_eq!(top.list(), [(&b"a"[..], u32::MAX)]);
    }
}
