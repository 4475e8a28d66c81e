//! Where in the list a key is: an open table of tags and places, at most a quarter full, so that most
//! look-ups end at the first entry: fuller, the processor would guess wrong how long they take.
//!
//! A tag is 32 bits of the digest, and the first bits of the tag are the key's home; so the table moves
//! its entries without looking at the list. Removing shifts the entries behind it back, so there are no
//! tombstones, and a list that replaces keys for ever never has to be rebuilt.

use crate::hash::KeyHash;

/// No key.
const EMPTY: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Tag in the upper half, place in the lower.
    table: Vec<u64>,
    /// How far a tag is shifted to be a home.
    drop: u32,
}

fn tag(hash: KeyHash) -> u32 {
    (hash.h1 >> 32) as u32
}

impl Default for Index {
    fn default() -> Self {
        Index { table: vec![EMPTY; 16], drop: 32 - 4 }
    }
}

impl Index {
    /// Entries that fit before the table must grow.
    pub(super) fn room(&self) -> usize {
        self.table.len() / 4
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(self.table.as_slice()) as u64
    }

    #[inline(always)]
    fn home(&self, tag: u32) -> usize {
        (tag >> self.drop) as usize
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.table.len() - 1
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, hash: KeyHash) {
        crate::batch::prefetch(&raw const self.table[self.home(tag(hash))]);
    }

    /// The place whose key `is` the one asked for.
    #[inline(always)]
    pub(super) fn find(&self, hash: KeyHash, is: impl Fn(usize) -> bool) -> Option<usize> {
        let tag = tag(hash);
        let mut at = self.home(tag);
        loop {
            let entry = self.table[at];
            if entry == EMPTY {
                return None;
            }
            if (entry >> 32) as u32 == tag && is(entry as u32 as usize) {
                return Some(entry as u32 as usize);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// Adds a key that is not inside, where there is room.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: KeyHash, place: usize) {
        self.put(u64::from(tag(hash)) << 32 | place as u64);
    }

    #[inline(always)]
    fn put(&mut self, entry: u64) {
        let mut at = self.home((entry >> 32) as u32);
        while self.table[at] != EMPTY {
            at = (at + 1) & self.mask();
        }
        self.table[at] = entry;
    }

    /// Removes a key that is inside.
    #[inline(always)]
    pub(super) fn remove(&mut self, hash: KeyHash, place: usize) {
        let entry = u64::from(tag(hash)) << 32 | place as u64;
        let mut hole = self.home(tag(hash));
        while self.table[hole] != entry {
            hole = (hole + 1) & self.mask();
        }
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask();
            let entry = self.table[at];
            if entry == EMPTY {
                break;
            }
            // An entry may go back as far as its home.
            let home = self.home((entry >> 32) as u32);
            if (at.wrapping_sub(home) & self.mask()) >= (at.wrapping_sub(hole) & self.mask()) {
                self.table[hole] = entry;
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
    }

    /// Twice the room. Fails only for want of memory, and changes nothing then.
    pub(super) fn grow(&mut self) -> Result<(), std::collections::TryReserveError> {
        let mut table = Vec::new();
        table.try_reserve_exact(2 * self.table.len())?;
        table.resize(2 * self.table.len(), EMPTY);
        let old = std::mem::replace(&mut self.table, table);
        self.drop -= 1;
        old.into_iter().filter(|entry| *entry != EMPTY).for_each(|entry| self.put(entry));
        Ok(())
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.table.iter().filter(|entry| **entry != EMPTY).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_table_finds_what_a_map_does_after_many_changes() {
        let mut index = Index::default();
        let mut inside: HashMap<usize, KeyHash> = HashMap::new();
        let mut state = 1u64;
        for step in 0..20_000usize {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let place = (state >> 33) as usize % 300;
            // Few homes, so that runs are long and cross the end of the table.
            let hash = KeyHash {
                h1: (state >> 40) % 7 * 0x2000_0000_0000_0000 + 0x1FFF_FFFF_0000_0000,
                h2: 0,
            };
            if let Some(hash) = inside.remove(&place) {
                index.remove(hash, place);
            } else {
                if inside.len() == index.room() {
                    index.grow().unwrap();
                }
                index.insert(hash, place);
                inside.insert(place, hash);
            }
            if step % 100 == 0 {
                assert_eq!(index.len(), inside.len());
                for (place, hash) in &inside {
                    assert_eq!(index.find(*hash, |found| found == *place), Some(*place));
                }
                let absent = KeyHash { h1: 0x1FFF_FFFF_0000_0000, h2: 0 };
                assert_eq!(index.find(absent, |_| false), None);
            }
        }
    }
}
