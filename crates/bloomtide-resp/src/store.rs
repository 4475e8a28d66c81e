//! Names and what they stand for.
//!
//! # Invariants
//! I1  A name's slot never changes while it is there, so a SCAN sees everything that was there all along.
//! I2  `used` is the sum of what each entry was counted with.
//! I3  The index has an entry for each full slot, reachable from its hash without passing an empty place.

use crate::failure::{Answer, Failure};
use crate::structure::{Kind, Structure};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Counted for each name beside its bytes: the entry and its place in the index.
const EACH: u64 = 256;

#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    hash: u64,
    counted: u64,
    structure: Structure,
}

/// A name's place.
pub type Slot = u32;

/// Names and what they stand for.
#[derive(Debug)]
pub struct Store {
    slots: Vec<Option<Entry>>,
    free: Vec<Slot>,
    /// Slot + 1, or 0 for none; linear probing.
    index: Vec<u32>,
    len: usize,
    seed: u64,
    used: u64,
    limit: Option<u64>,
    most: Option<u64>,
    /// Where the last name was found: in a pipeline the next is mostly the same.
    last: Slot,
    /// Questions about names that were there, and that were not.
    asked: (u64, u64),
}

impl Store {
    /// An empty store; the seed should be unknown to whoever chooses the names.
    pub fn new(seed: u64, limit: Option<u64>) -> Self {
        Store {
            slots: Vec::new(),
            free: Vec::new(),
            index: vec![0; 16],
            len: 0,
            seed,
            used: 0,
            limit,
            most: None,
            last: 0,
            asked: (0, 0),
        }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory in bytes, as counted.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Memory there may be.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Changes the memory there may be. What is there stays.
    pub fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// Names there may be.
    pub fn most(&self) -> Option<u64> {
        self.most
    }

    /// Changes how many names there may be. Those that are there stay.
    pub fn set_most(&mut self, most: Option<u64>) {
        self.most = most;
    }

    /// Questions by `get` about names that were there, and that were not.
    pub fn asked(&self) -> (u64, u64) {
        self.asked
    }

    // ---- finding

    /// Where the name is.
    #[inline]
    pub fn find(&mut self, name: &[u8]) -> Option<Slot> {
        if let Some(Some(entry)) = self.slots.get(self.last as usize)
            && *entry.name == *name
        {
            return Some(self.last);
        }
        let slot = self.look_up(name)?;
        self.last = slot;
        Some(slot)
    }

    fn look_up(&self, name: &[u8]) -> Option<Slot> {
        let hash = xxh3_64_with_seed(name, self.seed);
        let mask = self.index.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = self.index[place].checked_sub(1)?;
            if let Some(Some(entry)) = self.slots.get(slot as usize)
                && entry.hash == hash
                && *entry.name == *name
            {
                return Some(slot);
            }
            place = (place + 1) & mask;
        }
    }

    /// What the name stands for, if it is of that kind.
    #[inline]
    pub fn get<T: Kind>(&mut self, name: &[u8]) -> Result<Option<&T>, Failure> {
        match self.find(name) {
            Some(slot) => {
                self.asked.0 += 1;
                self.at(slot).map(Some)
            }
            None => {
                self.asked.1 += 1;
                Ok(None)
            }
        }
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut<T: Kind>(&mut self, name: &[u8]) -> Result<Option<&mut T>, Failure> {
        match self.find(name) {
            Some(slot) => self.at_mut(slot).map(Some),
            None => Ok(None),
        }
    }

    /// What is at a slot that `find` or `insert` gave.
    #[inline]
    pub fn at<T: Kind>(&self, slot: Slot) -> Result<&T, Failure> {
        self.any(slot).ok_or(Failure::WRONG_TYPE)?.expect()
    }

    /// The same, to be changed.
    #[inline]
    pub fn at_mut<T: Kind>(&mut self, slot: Slot) -> Result<&mut T, Failure> {
        let entry = self.slots.get_mut(slot as usize).and_then(Option::as_mut);
        entry.ok_or(Failure::WRONG_TYPE)?.structure.expect_mut()
    }

    /// What is at a slot, of whatever kind.
    pub fn any(&self, slot: Slot) -> Option<&Structure> {
        self.slots.get(slot as usize)?.as_ref().map(|entry| &entry.structure)
    }

    /// What the name stands for, of whatever kind.
    pub fn get_any(&mut self, name: &[u8]) -> Option<&Structure> {
        let slot = self.find(name)?;
        self.any(slot)
    }

    /// All names with what they stand for, from a slot on, each with its slot.
    pub fn iter_from(&self, slot: usize) -> impl Iterator<Item = (usize, &[u8], &Structure)> {
        self.slots.iter().enumerate().skip(slot).filter_map(|(slot, entry)| {
            entry.as_ref().map(|entry| (slot, &*entry.name, &entry.structure))
        })
    }

    /// All names with what they stand for.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Structure)> {
        self.iter_from(0).map(|(_, name, structure)| (name, structure))
    }

    // ---- limits

    /// Refuses what does not fit, before it is made.
    pub fn admit(&self, bytes: u64) -> Answer {
        match self.limit {
            Some(limit) if self.used.saturating_add(bytes) > limit => Err(Failure::OUT_OF_MEMORY),
            _ => Ok(()),
        }
    }

    /// The same for what a name will stand for, and refuses a new name if there are as many as there may be.
    pub fn admit_as(&self, name: &[u8], bytes: u64) -> Answer {
        if let Some(most) = self.most
            && self.len as u64 >= most
            && self.look_up(name).is_none()
        {
            return Err(Failure::too_many_keys(most));
        }
        self.admit(bytes.saturating_add(EACH + name.len() as u64))
    }

    /// Counts a structure again that has grown or shrunk.
    pub fn recount(&mut self, slot: Slot) {
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize) {
            let counted = counted(&entry.name, &entry.structure);
            self.used = self.used - entry.counted + counted;
            entry.counted = counted;
        }
    }

    /// What a name was counted with.
    pub fn counted(&mut self, name: &[u8]) -> Option<u64> {
        let slot = self.find(name)?;
        self.slots.get(slot as usize)?.as_ref().map(|entry| entry.counted)
    }

    // ---- changing

    /// Lets the name stand for this, whatever it stood for before.
    pub fn insert(&mut self, name: &[u8], structure: Structure) -> Slot {
        let bytes = counted(name, &structure);
        if let Some(slot) = self.find(name) {
            if let Some(Some(entry)) = self.slots.get_mut(slot as usize) {
                self.used = self.used - entry.counted + bytes;
                (entry.structure, entry.counted) = (structure, bytes);
            }
            return slot;
        }
        if (self.len + 1) * 2 > self.index.len() {
            self.widen();
        }
        let hash = xxh3_64_with_seed(name, self.seed);
        let entry = Some(Entry { name: name.into(), hash, counted: bytes, structure });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as Slot
            }
        };
        place(&mut self.index, hash, slot);
        self.len += 1;
        self.used += bytes;
        self.last = slot;
        slot
    }

    /// Forgets the name; what it stood for.
    pub fn remove(&mut self, name: &[u8]) -> Option<Structure> {
        let slot = self.find(name)?;
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.unplace(entry.hash, slot);
        self.free.push(slot);
        self.len -= 1;
        self.used -= entry.counted;
        Some(entry.structure)
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        let (most, asked) = (self.most, self.asked);
        *self = Store { most, asked, ..Store::new(self.seed, self.limit) };
    }

    fn widen(&mut self) {
        let mut index = vec![0; self.index.len() * 2];
        for (slot, entry) in self.slots.iter().enumerate() {
            if let Some(entry) = entry {
                place(&mut index, entry.hash, slot as Slot);
            }
        }
        self.index = index;
    }

    /// Takes a slot out of the index, and moves up what had to go past it.
    fn unplace(&mut self, hash: u64, slot: Slot) {
        let mask = self.index.len() - 1;
        let mut hole = hash as usize & mask;
        while self.index[hole] != slot + 1 {
            hole = (hole + 1) & mask;
        }
        let mut next = hole;
        loop {
            self.index[hole] = 0;
            loop {
                next = (next + 1) & mask;
                let Some(slot) = self.index[next].checked_sub(1) else { return };
                let entry = self.slots.get(slot as usize).and_then(Option::as_ref);
                let home = entry.map_or(next, |entry| entry.hash as usize & mask);
                // It may move up if its home is not between the hole and where it is.
                if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                    break;
                }
            }
            self.index[hole] = self.index[next];
            hole = next;
        }
    }
}

fn counted(name: &[u8], structure: &Structure) -> u64 {
    EACH + name.len() as u64 + structure.bytes()
}

fn place(index: &mut [u32], hash: u64, slot: Slot) {
    let mask = index.len() - 1;
    let mut place = hash as usize & mask;
    while index[place] != 0 {
        place = (place + 1) & mask;
    }
    index[place] = slot + 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::Text;
    use std::collections::BTreeMap;

    fn text(value: &str) -> Structure {
        Structure::Text(Text(value.as_bytes().to_vec()))
    }

    #[test]
    fn names_stand_for_what_a_map_would_say() {
        let mut store = Store::new(7, None);
        let mut model = BTreeMap::new();
        let mut random = 1u64;
        for round in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let name = ((random >> 40) % 300).to_string();
            if random >> 63 == 0 {
                let value = round.to_string();
                store.insert(name.as_bytes(), text(&value));
                model.insert(name, value);
            } else {
                assert_eq!(store.remove(name.as_bytes()).is_some(), model.remove(&name).is_some());
            }
        }
        assert_eq!(store.len(), model.len());
        for (name, value) in &model {
            let found = store.get::<Text>(name.as_bytes()).expect("text").expect("there");
            assert_eq!(found.0, value.as_bytes());
        }
        assert_eq!(store.iter().count(), model.len());
        let used: u64 = store.iter().map(|(name, held)| counted(name, held)).sum();
        assert_eq!(store.used(), used);
        for name in 0..300 {
            store.remove(name.to_string().as_bytes());
        }
        assert_eq!((store.len(), store.used()), (0, 0));
        assert!(store.index.iter().all(|slot| *slot == 0));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut store = Store::new(0, Some(1000));
        assert!(store.admit(1000).is_ok());
        assert_eq!(store.admit(1001), Err(Failure::OUT_OF_MEMORY));
        store.insert(b"a", text("x"));
        assert_eq!(store.admit(1000), Err(Failure::OUT_OF_MEMORY));
    }

    #[test]
    fn a_new_name_is_refused_while_there_are_as_many_as_there_may_be() {
        let mut store = Store::new(0, None);
        store.set_most(Some(2));
        store.insert(b"a", text("x"));
        assert_eq!(store.admit_as(b"b", 1), Ok(()));
        store.insert(b"b", text("x"));
        assert_eq!(store.admit_as(b"c", 1), Err(Failure::too_many_keys(2)));
        assert_eq!(store.admit_as(b"a", 1), Ok(()), "the name is there already");
        store.remove(b"a");
        assert_eq!(store.admit_as(b"c", 1), Ok(()));
        store.set_most(Some(0));
        assert_eq!(store.admit_as(b"c", 1), Err(Failure::too_many_keys(0)));
        store.clear();
        assert_eq!(store.admit_as(b"c", 1), Err(Failure::too_many_keys(0)), "the limit stays");
    }
}
