//! Cuckoo filters that RedisBloom dumped, by its hash and in its layout.
//!
//! A fingerprint of one byte, h % 255 + 1 of the key's MurmurHash64A h, lies in one of two buckets of each table: those
//! of h and of h ^ (fingerprint * 0x5bd1e995), modulo the buckets. Where both are full, fingerprints of the newest
//! table are moved to their other buckets. All of it little-endian:
//!
//! ```text
//! dump = items, buckets of the first table, items deleted, number of tables (8 each), places of a bucket, moves to
//!        try, expansion (2 each); then all tables, each `expansion` times as large as the one before
//! ```

use super::redisbloom::murmur;
use super::table::zeros;
use bloomtide_core::history::varint::Reader;
use bloomtide_core::{Error, Result};
use std::io::{self, Write};

/// Bytes of the first chunk.
pub(super) const HEAD: usize = 38;
/// Tables at most, as of a filter that is made here.
const MOST: u64 = 33;

/// The tables.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) items: u64,
    pub(super) deleted: u64,
    /// Buckets of the first table.
    buckets: u64,
    /// Places of a bucket.
    pub(super) places: u16,
    /// Moves to try before a table is full.
    pub(super) moves: u16,
    pub(super) expansion: u16,
    tables: Vec<Box<[u8]>>,
}

/// Where a key may be.
#[derive(Clone, Copy)]
struct Key {
    hash: u64,
    other: u64,
    print: u8,
}

fn other(print: u8, bucket: u64) -> u64 {
    bucket ^ (u64::from(print) * 0x5bd1_e995)
}

impl Key {
    fn new(key: &[u8]) -> Self {
        let hash = murmur(key, 0);
        let print = (hash % 255 + 1) as u8;
        Key { hash, other: other(print, hash), print }
    }
}

impl Tables {
    /// The places of a bucket in a table.
    fn bucket(&self, table: &[u8], hash: u64) -> std::ops::Range<usize> {
        let places = usize::from(self.places);
        let buckets = (table.len() / places) as u64;
        let start = (hash % buckets) as usize * places;
        start..start + places
    }

    /// How often the key is inside, or a key with its fingerprint and its buckets.
    pub(super) fn count(&self, key: &[u8]) -> u64 {
        let key = Key::new(key);
        let each = |table: &[u8], hash| {
            table[self.bucket(table, hash)].iter().filter(|print| **print == key.print).count()
        };
        let tables = self.tables.iter();
        tables.map(|table| (each(table, key.hash) + each(table, key.other)) as u64).sum()
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let key = Key::new(key);
        self.tables.iter().any(|table| self.find(table, key, key.print).is_some())
    }

    /// The first place of the key's buckets that has this fingerprint.
    fn find(&self, table: &[u8], key: Key, print: u8) -> Option<usize> {
        [key.hash, key.other]
            .into_iter()
            .find_map(|hash| self.bucket(table, hash).find(|place| table[*place] == print))
    }

    /// Adds a key once more; false, and nothing is changed, if there is no place for it.
    pub(super) fn add(&mut self, key: &[u8]) -> bool {
        let key = Key::new(key);
        for at in (0..self.tables.len()).rev() {
            if let Some(place) = self.find(&self.tables[at], key, 0) {
                self.tables[at][place] = key.print;
                self.items += 1;
                return true;
            }
        }
        let added = self.move_others(key);
        self.items += u64::from(added);
        added
    }

    /// Makes a place in the newest table; false, and all is as before, if that takes too many moves.
    fn move_others(&mut self, key: Key) -> bool {
        let Some(mut table) = self.tables.pop() else { return false };
        let buckets = (table.len() / usize::from(self.places)) as u64;
        let (mut bucket, mut print, mut victim) = (key.hash % buckets, key.print, 0);
        let mut moved = Vec::new();
        let mut added = false;
        for _ in 0..self.moves {
            let place = self.bucket(&table, bucket).start + victim;
            moved.push(place);
            std::mem::swap(&mut table[place], &mut print);
            bucket = other(print, bucket) % buckets;
            let free = self.bucket(&table, bucket).find(|place| table[*place] == 0);
            if let Some(place) = free {
                table[place] = print;
                added = true;
                break;
            }
            victim = (victim + 1) % usize::from(self.places);
        }
        if !added {
            for place in moved.into_iter().rev() {
                std::mem::swap(&mut table[place], &mut print);
            }
        }
        self.tables.push(table);
        added
    }

    /// Takes a key away once; false if it is certainly absent.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let key = Key::new(key);
        for at in (0..self.tables.len()).rev() {
            if let Some(place) = self.find(&self.tables[at], key, key.print) {
                self.tables[at][place] = 0;
                self.items = self.items.saturating_sub(1);
                self.deleted += 1;
                return true;
            }
        }
        false
    }

    /// Number of tables.
    pub(super) fn len(&self) -> usize {
        self.tables.len()
    }

    /// Bytes of all tables: one for each place.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.len() as u64).sum()
    }

    /// Places of the first table.
    pub(super) fn capacity(&self) -> u64 {
        self.buckets * u64::from(self.places)
    }

    /// Bytes of table i; None if they are more than a number can tell.
    fn size(&self, i: usize) -> Option<u64> {
        let times = u64::from(self.expansion.max(1)).checked_pow(u32::try_from(i).ok()?)?;
        self.buckets.checked_mul(times)?.checked_mul(u64::from(self.places))
    }

    /// Bytes of the next table; None if there is never one.
    pub(super) fn next_bytes(&self) -> Option<u64> {
        let more = self.expansion > 0 && (self.tables.len() as u64) < MOST;
        self.size(self.tables.len()).filter(|_| more)
    }

    /// Makes the next table.
    pub(super) fn grow(&mut self) -> Result<()> {
        let bytes = self.next_bytes().unwrap_or(u64::MAX);
        self.tables.push(zeros(bytes)?);
        Ok(())
    }

    /// Bytes of all tables that the first chunk of a dump tells of; None if it is none.
    pub(super) fn announced(head: &[u8]) -> Option<u64> {
        let (tables, count) = Tables::parse(head).ok()?;
        (0..count as usize).try_fold(0u64, |sum, i| sum.checked_add(tables.size(i)?))
    }

    /// The first chunk: no tables yet, and how many will come.
    fn parse(head: &[u8]) -> Result<(Self, u64)> {
        let mut from = Reader::new(head, "dump of RedisBloom");
        let [items, buckets, deleted, count] = crate::fields::take(&mut from)?;
        let places = u16::from_le_bytes(from.fixed()?);
        let moves = u16::from_le_bytes(from.fixed()?);
        let expansion = u16::from_le_bytes(from.fixed()?);
        from.end()?;
        let right = buckets.is_power_of_two()
            && (1..=MOST).contains(&count)
            && (1..=255).contains(&places)
            && moves > 0
            && (expansion == 0 || expansion.is_power_of_two())
            && (expansion > 0 || count == 1);
        let tables =
            Tables { items, deleted, buckets, places, moves, expansion, tables: Vec::new() };
        if right { Ok((tables, count)) } else { Err(from.wrong()) }
    }

    /// Reads a whole dump.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let wrong =
            || Error::Field { name: "dump of RedisBloom", got: format!("{} bytes", bytes.len()) };
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or_else(wrong)?;
        let (mut this, count) = Tables::parse(head)?;
        let mut rest = Reader::new(rest, "dump of RedisBloom");
        let mut inside = 0;
        for i in 0..count as usize {
            let table: Box<[u8]> = rest.bytes(this.size(i).ok_or_else(wrong)?)?.into();
            inside += table.iter().filter(|print| **print != 0).count() as u64;
            this.tables.push(table);
        }
        rest.end()?;
        // Each item has a place: what a dump lost on its way is mostly seen here.
        if inside == this.items { Ok(this) } else { Err(wrong()) }
    }

    /// Writes it as a dump, in one piece.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let count = self.tables.len() as u64;
        crate::fields::put(out, &[self.items, self.buckets, self.deleted, count])?;
        for number in [self.places, self.moves, self.expansion] {
            out.write_all(&number.to_le_bytes())?;
        }
        self.tables.iter().try_for_each(|table| out.write_all(table))
    }
}
