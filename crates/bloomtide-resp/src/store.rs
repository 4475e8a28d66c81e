//! Names and what they stand for.
//!
//! # Invariants
//! I1  A name's slot never changes while it is there, so a SCAN sees everything that was there all along.
//! I2  `used` is the sum of what each entry was counted with: its memory, and what it may take without asking.
//! I3  The index has each name with its slot, and no other.
//! I4  `deadlines` has each name that expires with its time, and no other; `soonest` is the first of them.

use crate::failure::{Answer, Failure};
use crate::structure::Structure;
use crate::structures::Arriving;
use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Counted for each name beside its bytes: the entry and its place in the index.
const EACH: u64 = 256;
/// So many changes may pass before a structure is counted again.
const SOME: usize = 256;

#[derive(Debug)]
struct Entry {
    name: Arc<[u8]>,
    counted: u64,
    structure: Box<dyn Structure>,
    /// The structure's type, which is compared for every command.
    type_id: TypeId,
    /// Changes since it was counted.
    changes: usize,
    /// When it expires, if ever.
    expires: Option<Time>,
    /// When it was last used, in seconds since 1970; 0 if that was before this process.
    used: u32,
    /// The number of its last change.
    changed: u64,
}

impl Entry {
    /// Why the structure cannot be used as one of another kind.
    #[cold]
    fn refusal(&self) -> Failure {
        let arriving = self.type_id == TypeId::of::<Arriving>();
        if arriving { Failure::ARRIVING } else { Failure::WRONG_TYPE }
    }
}

/// A name's place.
pub type Slot = u32;

/// Milliseconds since 1970.
pub type Time = u64;

/// Hashes names by XXH3 under a seed.
#[derive(Clone, Debug)]
struct NameHasher {
    seed: u64,
    hash: u64,
}

impl BuildHasher for NameHasher {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        self.clone()
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, name: &[u8]) {
        self.hash = xxh3_64_with_seed(name, self.seed);
    }

    /// The length comes before the name, which has it anyway.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.hash
    }
}

/// Names and what they stand for.
#[derive(Debug)]
pub struct Store {
    /// Memory there may be. What is there stays.
    pub limit: Option<u64>,
    /// Names there may be. Those that are there stay.
    pub most: Option<u64>,
    /// Questions by `get` about names that were there, and that were not.
    pub asked: (u64, u64),
    /// Names that have expired and were forgotten.
    pub expired: u64,
    /// Seconds since 1970, and when they were first told.
    now: u32,
    begun: u32,
    /// Changes of all names so far: each has its number.
    tick: u64,
    slots: Vec<Option<Entry>>,
    free: Vec<Slot>,
    index: HashMap<Arc<[u8]>, Slot, NameHasher>,
    used: u64,
    /// Where the last name was found: in a pipeline the next is mostly the same.
    last: Slot,
    /// When names expire, the soonest first.
    deadlines: BTreeSet<(Time, Slot)>,
    /// The first of them; the largest time of all if nothing expires.
    soonest: Time,
    /// The sum of all times in `deadlines`.
    sum: u128,
}

impl Store {
    /// An empty store; the seed should be unknown to whoever chooses the names.
    pub fn new(seed: u64, limit: Option<u64>) -> Self {
        Store {
            limit,
            most: None,
            asked: (0, 0),
            expired: 0,
            now: 0,
            begun: 0,
            tick: 0,
            slots: Vec::new(),
            free: Vec::new(),
            index: HashMap::with_hasher(NameHasher { seed, hash: 0 }),
            used: 0,
            last: 0,
            deadlines: BTreeSet::new(),
            soonest: Time::MAX,
            sum: 0,
        }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Memory in bytes, as counted.
    pub fn used(&self) -> u64 {
        self.used
    }

    // ---- finding

    /// Where the name is, which is used now.
    #[inline]
    pub fn find(&mut self, name: &[u8]) -> Option<Slot> {
        let slot = self.look(name)?;
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize) {
            entry.used = self.now;
        }
        Some(slot)
    }

    /// Where the name is, for who only asks about it.
    #[inline]
    pub fn look(&mut self, name: &[u8]) -> Option<Slot> {
        if self.entry(self.last).is_some_and(|entry| *entry.name == *name) {
            return Some(self.last);
        }
        self.last = *self.index.get(name)?;
        Some(self.last)
    }

    #[inline]
    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// What the name stands for, if it is a T.
    #[inline]
    pub fn get<T: Structure>(&mut self, name: &[u8]) -> Result<Option<&T>, Failure> {
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

    /// What is at a slot that `find` or `insert` gave.
    #[inline]
    pub fn at<T: Structure>(&self, slot: Slot) -> Result<&T, Failure> {
        let entry = self.entry(slot).ok_or(Failure::WRONG_TYPE)?;
        if entry.type_id != TypeId::of::<T>() {
            return Err(entry.refusal());
        }
        // SAFETY: the structure is a T, and the entry, which owns it, is borrowed as long as the reference lives.
        Ok(unsafe { &*(&raw const *entry.structure).cast::<T>() })
    }

    /// The same, to be changed.
    #[inline]
    pub fn at_mut<T: Structure>(&mut self, slot: Slot) -> Result<&mut T, Failure> {
        let entry = self.slots.get_mut(slot as usize).and_then(Option::as_mut);
        let entry = entry.ok_or(Failure::WRONG_TYPE)?;
        if entry.type_id != TypeId::of::<T>() {
            return Err(entry.refusal());
        }
        self.tick += 1;
        entry.changed = self.tick;
        // SAFETY: as in `at`, and the entry is borrowed by nobody else.
        Ok(unsafe { &mut *(&raw mut *entry.structure).cast::<T>() })
    }

    /// What the name stands for, of whatever kind.
    pub fn get_any(&mut self, name: &[u8]) -> Option<&dyn Structure> {
        let slot = self.look(name)?;
        self.entry(slot).map(|entry| &*entry.structure)
    }

    /// All names with what they stand for, from a slot on, each with its slot.
    pub fn iter_from(&self, slot: usize) -> impl Iterator<Item = (usize, &[u8], &dyn Structure)> {
        self.slots.iter().enumerate().skip(slot).filter_map(|(slot, entry)| {
            entry.as_ref().map(|entry| (slot, &*entry.name, &*entry.structure))
        })
    }

    /// All names with what they stand for.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &dyn Structure)> {
        self.iter_from(0).map(|(_, name, structure)| (name, structure))
    }

    // ---- time

    /// Tells the time.
    #[inline]
    pub fn tell(&mut self, now: f64) {
        self.now = now as u32;
        if self.begun == 0 {
            self.begun = self.now;
        }
    }

    /// Seconds since a name was last used, or since this process began to count.
    pub fn idle(&mut self, name: &[u8]) -> Option<u32> {
        let slot = self.look(name)?;
        self.entry(slot).map(|entry| self.now.saturating_sub(entry.used.max(self.begun)))
    }

    // ---- changes

    /// The number of a name's last change, which no other change has; 0 if the name is not there or has expired.
    pub fn changed(&mut self, name: &[u8], now: Time) -> u64 {
        let entry = self.look(name).and_then(|slot| self.entry(slot));
        let entry = entry.filter(|entry| entry.expires.is_none_or(|time| time > now));
        entry.map_or(0, |entry| entry.changed)
    }

    // ---- limits
    //
    // One account: whatever makes a structure or lets it grow asks `admit` before, and `used` has it afterwards.

    /// Refuses what does not fit, before it is made.
    pub fn admit(&self, bytes: u64) -> Answer {
        match self.limit {
            Some(limit) if self.used.saturating_add(bytes) > limit => {
                Err(Failure::out_of_memory(bytes, limit.saturating_sub(self.used)))
            }
            _ => Ok(()),
        }
    }

    /// The same for what a name will stand for, and refuses a new name if there are as many as there may be.
    pub fn admit_as(&self, name: &[u8], bytes: u64) -> Answer {
        if let Some(most) = self.most
            && self.len() as u64 >= most
            && !self.index.contains_key(name)
        {
            return Err(Failure::too_many_keys(most));
        }
        self.admit(bytes.saturating_add(EACH + name.len() as u64))
    }

    /// Counts a structure again that has grown or shrunk.
    pub fn recount(&mut self, slot: Slot) {
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize) {
            let counted = counted(&entry.name, &*entry.structure);
            self.used = self.used - entry.counted + counted;
            entry.counted = counted;
        }
    }

    /// Notes changes, and counts the structure again after some of them, for that may take long.
    #[inline]
    pub fn recount_sometimes(&mut self, slot: Slot, changes: usize) {
        if let Some(Some(entry)) = self.slots.get_mut(slot as usize) {
            entry.changes += changes;
            if entry.changes >= SOME {
                entry.changes = 0;
                self.recount(slot);
            }
        }
    }

    /// What a name was counted with.
    pub fn counted(&mut self, name: &[u8]) -> Option<u64> {
        let slot = self.look(name)?;
        self.entry(slot).map(|entry| entry.counted)
    }

    // ---- changing

    /// Lets the name stand for this, whatever it stood for before. It does not expire.
    pub fn insert(&mut self, name: &[u8], structure: Box<dyn Structure>) -> Slot {
        let counted = counted(name, &*structure);
        let type_id = (*structure).type_id();
        self.used += counted;
        let slot = self.find(name).or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as Slot
        });
        let name: Arc<[u8]> = name.into();
        self.index.insert(name.clone(), slot);
        let (expires, used, changes) = (None, self.now, 0);
        self.tick += 1;
        let changed = self.tick;
        let entry = Entry { name, counted, structure, type_id, changes, expires, used, changed };
        self.expire_at(slot, None);
        let before = self.slots[slot as usize].replace(entry);
        self.used -= before.map_or(0, |entry| entry.counted);
        self.last = slot;
        slot
    }

    /// Forgets the name; what it stood for.
    pub fn remove(&mut self, name: &[u8]) -> Option<Box<dyn Structure>> {
        self.take(name).map(|(structure, _)| structure)
    }

    /// Forgets the name; what it stood for, and when it would have expired.
    pub fn take(&mut self, name: &[u8]) -> Option<(Box<dyn Structure>, Option<Time>)> {
        let slot = self.index.remove(name)?;
        let expires = self.expires(slot);
        self.expire_at(slot, None);
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.used -= entry.counted;
        Some((entry.structure, expires))
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        let Store { most, asked, expired, now, begun, tick, .. } = *self;
        let empty = Store::new(self.index.hasher().seed, self.limit);
        *self = Store { most, asked, expired, now, begun, tick, ..empty };
    }

    // ---- what expires

    /// When the name at a slot expires.
    pub fn expires(&self, slot: Slot) -> Option<Time> {
        self.entry(slot)?.expires
    }

    /// Lets the name at a slot expire then, or never.
    pub fn expire_at(&mut self, slot: Slot, time: Option<Time>) {
        let Some(Some(entry)) = self.slots.get_mut(slot as usize) else { return };
        if entry.expires == time {
            return;
        }
        self.tick += 1;
        entry.changed = self.tick;
        if let Some(before) = std::mem::replace(&mut entry.expires, time) {
            self.deadlines.remove(&(before, slot));
            self.sum -= u128::from(before);
        }
        if let Some(time) = time {
            self.deadlines.insert((time, slot));
            self.sum += u128::from(time);
        }
        self.soonest = self.deadlines.first().map_or(Time::MAX, |(time, _)| *time);
    }

    /// Whether anything has expired and is still there.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.soonest <= now
    }

    /// A name that has expired, the first of all; None if there is none.
    pub fn due(&self, now: Time) -> Option<&[u8]> {
        let (time, slot) = self.deadlines.first()?;
        if *time > now { None } else { self.entry(*slot).map(|entry| &*entry.name) }
    }

    /// How many names expire, and the mean of their times.
    pub fn expiring(&self) -> (u64, Time) {
        let count = self.deadlines.len() as u64;
        (count, (self.sum / u128::from(count.max(1))) as Time)
    }
}

fn counted(name: &[u8], structure: &dyn Structure) -> u64 {
    EACH + name.len() as u64 + structure.admitted()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::Text;
    use std::collections::BTreeMap;

    fn text(value: &str) -> Box<dyn Structure> {
        Box::new(Text(value.as_bytes().to_vec()))
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
    }
}
