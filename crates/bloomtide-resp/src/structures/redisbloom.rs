//! Filters that RedisBloom dumped, by its hash and in its layout: what it has inside cannot be hashed again.
//!
//! A chain of Bloom filters. A key has two hashes, MurmurHash64A under a fixed seed and under the first hash; its bits
//! in a filter are a + i b modulo the bits. A new key goes into the newest filter. All of it little-endian:
//!
//! ```text
//! dump   = items (8), number of filters (4), options (4), growth (4), then for each filter its link; then all bits
//! link   = bytes (8), bits (8), items (8), error (8, a float), bits for a key (8, a float), hashes (4), capacity (8),
//!          log2 of the bits or 0 (1)
//! ```
//!
//! # Invariants
//! I1  There is at least one filter, and each has at least one bit and one hash.
//! I2  The items of all filters are those of the whole.

use super::bloom::Layer;
use super::table::zeros;
use bloomtide_core::history::varint::Reader;
use bloomtide_core::{Error, Result, sizing};
use std::f64::consts::LN_2;
use std::io::{self, Write};

/// Bytes before the links, and of one link.
const HEAD: usize = 20;
const LINK: usize = 53;
/// Filters of one chain at most: each is at least as large as the one before.
const MOST: usize = 1 << 10;
/// Bits are not rounded up to a power of two.
const NO_ROUND: u32 = 1;
/// Hashes have 64 bits, as of all filters since version 1.1.
const FORCE_64: u32 = 4;
/// It does not grow.
const NO_SCALING: u32 = 8;

/// One filter.
#[derive(Debug)]
struct Link {
    items: u64,
    error: f64,
    capacity: u64,
    hashes: u32,
    /// Bits for a key.
    each: f64,
    /// The logarithm of the number of bits that keys have, or 0 if that is no power of two.
    log2: u8,
    cells: Box<[u8]>,
}

/// A chain of filters.
#[derive(Debug)]
pub(super) struct Chain {
    links: Vec<Link>,
    options: u32,
    growth: u32,
}

/// MurmurHash64A.
pub(super) fn murmur(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mixed = |word: u64| {
        let word = word.wrapping_mul(M);
        (word ^ (word >> 47)).wrapping_mul(M)
    };
    // The length is an `int` there.
    let mut hash = seed ^ (key.len() as i32 as u64).wrapping_mul(M);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash ^ mixed(u64::from_le_bytes(*word))).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(M);
    hash ^ (hash >> 47)
}

/// Both hashes of a key.
fn hashes(key: &[u8]) -> (u64, u64) {
    let first = murmur(key, 0xc6a4_a793_5bd1_e995);
    (first, murmur(key, first))
}

impl Link {
    /// The sizes of a filter of that capacity and error: without its cells, and their bytes.
    fn sized(capacity: u64, error: f64, options: u32) -> Result<(Self, u64)> {
        let each = -error.ln() / (LN_2 * LN_2);
        let wanted = capacity as f64 * each;
        let too_large = || Error::Cells { needed: wanted as u64, limit: 1 << 53 };
        if !(wanted > 0.0 && wanted < 9e15) {
            return Err(too_large());
        }
        let (log2, capacity, bits) = if options & NO_ROUND == 0 {
            let log2 = wanted.log2().floor() as u8 + 1;
            let bits = 1u64 << log2;
            (log2, capacity + ((bits as f64 - wanted) / each) as u64, bits)
        } else {
            (0, capacity, (wanted as u64).max(1))
        };
        let hashes = (LN_2 * each).ceil() as u32;
        let bytes = bits.div_ceil(64).saturating_mul(8);
        let cells = Box::default();
        Ok((Link { items: 0, error, capacity, hashes, each, log2, cells }, bytes))
    }

    /// Bits that keys have.
    fn bits(&self) -> u64 {
        if self.log2 > 0 { 1 << self.log2 } else { self.cells.len() as u64 * 8 }
    }

    fn bytes(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The key's bits: the byte of each, and its place in there.
    fn places(&self, (a, b): (u64, u64)) -> impl Iterator<Item = (usize, u8)> + use<> {
        let bits = self.bits();
        (0..u64::from(self.hashes)).map(move |i| {
            let bit = a.wrapping_add(i.wrapping_mul(b)) % bits;
            ((bit / 8) as usize, 1 << (bit % 8))
        })
    }

    fn contains(&self, key: (u64, u64)) -> bool {
        self.places(key).all(|(byte, bit)| self.cells[byte] & bit != 0)
    }
}

impl Chain {
    /// Whether the key is in one of the filters.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let key = hashes(key);
        self.links.iter().rev().any(|link| link.contains(key))
    }

    /// Adds a key that is not inside.
    pub(super) fn add(&mut self, key: &[u8]) {
        let key = hashes(key);
        if let Some(newest) = self.links.last_mut() {
            newest.places(key).for_each(|(byte, bit)| newest.cells[byte] |= bit);
            newest.items += 1;
        }
    }

    /// The sizes of the next filter: without its cells, and their bytes.
    fn next(&self) -> Result<(Link, u64)> {
        let newest = &self.links[self.links.len() - 1];
        let capacity = newest.capacity.saturating_mul(u64::from(self.growth.max(1)));
        Link::sized(capacity, newest.error / 2.0, self.options)
    }

    /// Memory of the next filter.
    pub(super) fn next_bytes(&self) -> Result<u64> {
        Ok(self.next()?.1)
    }

    /// Makes the next filter.
    pub(super) fn grow(&mut self) -> Result<()> {
        let (link, bytes) = self.next()?;
        self.links.push(Link { cells: zeros(bytes)?, ..link });
        Ok(())
    }

    /// The sizes of each filter, and what is in it.
    pub(super) fn layers(&self) -> impl Iterator<Item = Layer> + '_ {
        self.links.iter().map(|link| Layer {
            capacity: link.capacity,
            error_rate: link.error,
            cells: link.bits(),
            hashes: link.hashes,
            items: link.items,
            bytes: link.bytes(),
            error: sizing::classic_error(link.items as f64, link.bits() as f64, link.hashes),
        })
    }

    /// How much larger each filter is than the one before; 0 if there is only one.
    pub(super) fn growth(&self) -> u32 {
        if self.options & NO_SCALING == 0 { self.growth.max(1) } else { 0 }
    }

    /// The length of a dump's first chunk, if these are its first bytes.
    pub(super) fn head_len(bytes: &[u8]) -> Option<usize> {
        let count = u32::from_le_bytes(*bytes.get(8..12)?.first_chunk()?) as usize;
        (1..=MOST).contains(&count).then_some(HEAD + count * LINK)
    }

    /// Bytes of all filters that the first chunk of a dump tells of; None if it is none.
    pub(super) fn announced(head: &[u8]) -> Option<u64> {
        let (chain, bytes) = Chain::parse(head).ok()?;
        (Chain::head_len(head) == Some(head.len()) && !chain.links.is_empty())
            .then(|| bytes.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes)))?
    }

    /// The chain of a first chunk, and how many bytes each of its filters has.
    fn parse(head: &[u8]) -> Result<(Self, Vec<u64>)> {
        let mut from = Reader::new(head, "dump of RedisBloom");
        let items = u64::from_le_bytes(from.fixed()?);
        let [count, options, growth] = [0; 3].map(|_: u32| from.fixed().map(u32::from_le_bytes));
        let (count, options, growth) = (count? as usize, options?, growth?);
        let known = options & FORCE_64 != 0 && options & !(NO_ROUND | FORCE_64 | NO_SCALING) == 0;
        if !known || !(1..=MOST).contains(&count) || growth > 1 << 15 {
            return Err(from.wrong());
        }
        let (mut links, mut sizes, mut sum) = (Vec::with_capacity(count), Vec::new(), 0u64);
        for _ in 0..count {
            let [bytes, bits, items] = [0; 3].map(|_: u32| from.fixed().map(u64::from_le_bytes));
            let (bytes, bits, items) = (bytes?, bits?, items?);
            let [error, each] = [0; 2].map(|_: u32| from.fixed().map(f64::from_le_bytes));
            let (error, each) = (error?, each?);
            let hashes = u32::from_le_bytes(from.fixed()?);
            let capacity = u64::from_le_bytes(from.fixed()?);
            let [log2] = from.fixed()?;
            let right = error > 0.0
                && error < 1.0
                && each > 0.0
                && each < 1500.0
                && hashes == (LN_2 * each).ceil() as u32
                && capacity > 0
                && bits > 0
                && bytes.checked_mul(8) == Some(bits)
                && (log2 == 0 || (log2 < 64 && bits >= 1 << log2));
            sum = sum.checked_add(items).filter(|_| right).ok_or_else(|| from.wrong())?;
            links.push(Link { items, error, capacity, hashes, each, log2, cells: Box::default() });
            sizes.push(bytes);
        }
        if sum != items {
            return Err(from.wrong());
        }
        Ok((Chain { links, options, growth }, sizes))
    }

    /// Reads a whole dump.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let wrong =
            || Error::Field { name: "dump of RedisBloom", got: format!("{} bytes", bytes.len()) };
        let len = Chain::head_len(bytes).ok_or_else(wrong)?;
        let (head, rest) = bytes.split_at_checked(len).ok_or_else(wrong)?;
        let (mut chain, sizes) = Chain::parse(head)?;
        let mut rest = Reader::new(rest, "dump of RedisBloom");
        for (link, size) in chain.links.iter_mut().zip(sizes) {
            link.cells = rest.bytes(size)?.into();
        }
        rest.end()?;
        Ok(chain)
    }

    /// Writes it as a dump, in one piece.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let items: u64 = self.links.iter().map(|link| link.items).sum();
        out.write_all(&items.to_le_bytes())?;
        for number in [self.links.len() as u32, self.options, self.growth] {
            out.write_all(&number.to_le_bytes())?;
        }
        for link in &self.links {
            for number in [link.bytes(), link.bytes() * 8, link.items] {
                out.write_all(&number.to_le_bytes())?;
            }
            out.write_all(&link.error.to_le_bytes())?;
            out.write_all(&link.each.to_le_bytes())?;
            out.write_all(&link.hashes.to_le_bytes())?;
            out.write_all(&link.capacity.to_le_bytes())?;
            out.write_all(&[link.log2])?;
        }
        self.links.iter().try_for_each(|link| out.write_all(&link.cells))
    }
}
