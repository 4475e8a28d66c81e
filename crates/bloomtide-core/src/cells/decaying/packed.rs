//! The optimized layout where every bit counts: digits of four bits, and packed tables of further ones.
//!
//! For cells of 16 bits that have a fraction. One occurrence then is more than a digit holds, so that a third of
//! the cells has more of them, and a record with room to spare (`optimized`) would take nearly what plain
//! cells take. Here nothing is spare; adding is slower, since tables move when a cell gets its first entry.
//!
//! ```text
//! fixed     128 low digits | 128 bits: which cells have more        80 bytes for each block
//! link      where the block's side table begins, how long it is, digits of an entry   4 bytes
//! pool      the side tables of 32 blocks one after the other, in one piece of memory:
//!           | block 0: an entry for each cell that has more | block 1: ... | ... | a little room
//! ```
//!
//! The entries of a block are as wide as the largest of them needs, and lie in the order of the cells: the
//! entry of a cell is found by counting the bits before its own. A table that grows moves those behind it
//! in its segment, a few hundred bytes. A block all of whose cells are large costs 284 bytes where the
//! basic layout takes 264.
//!
//! # Invariants
//! O1  A bit of the map is set if and only if the cell's value is 16 or more.
//! O2  The tables of a segment follow each other without gaps, and each has the words that its entries need.
//!
//! Readers cannot look while a table moves: who reads holds the gate, as writers do (`TEARS`).

use super::{BlockValues, DECAY_BLOCK, DecayingCells, Fading};
use crate::batch::on_the_best_processor;
use crate::cells::{Words, bytes_for};
use crate::error::{Error, Result};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: usize = DECAY_BLOCK as usize;
/// Words of a block's low digits, then of its map.
const DIGITS: usize = BLOCK * 4 / 64;
const MAP: usize = BLOCK / 64;
const FIXED: usize = DIGITS + MAP;
/// Blocks whose tables lie in one piece of memory.
const SEGMENT: u64 = 32;
/// Words that a segment gets at once, and how many unused ones it keeps at most.
const ROOM: usize = 8;
const IDLE: usize = 4 * ROOM;

/// Cells that have as many digits as they need.
#[derive(Debug)]
pub struct PackedCells {
    fixed: Words,
    links: Words,
    segments: Box<[Segment]>,
    cells: u64,
    /// Words that all segments have, unused ones too.
    held: AtomicU64,
}

#[derive(Debug, Default)]
struct Segment(UnsafeCell<Vec<u64>>);

// SAFETY: reached only by who holds the gate of the filter, reader or writer: see `DecayingCells::TEARS`.
unsafe impl Sync for Segment {}

/// Where a block's table is: `start` and `words` in words of its segment, `digits` of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Link {
    start: usize,
    words: usize,
    digits: u32,
}

impl Link {
    fn pack(self) -> u64 {
        self.start as u64 | (self.words as u64) << 16 | u64::from(self.digits) << 24
    }

    fn unpack(packed: u64) -> Self {
        Link {
            start: (packed & 0xffff) as usize,
            words: (packed >> 16 & 0xff) as usize,
            digits: (packed >> 24 & 0xff) as u32,
        }
    }

    fn bits(self) -> usize {
        self.digits as usize * 4
    }
}

impl PackedCells {
    /// Memory that empty cells take, in bytes.
    pub fn bytes_of(cells: u64) -> u64 {
        let blocks = cells.div_ceil(DECAY_BLOCK);
        bytes_for(blocks.saturating_mul(64 * FIXED as u64))
            .saturating_add(bytes_for(blocks.saturating_mul(32)))
            .saturating_add(blocks.div_ceil(SEGMENT).saturating_mul(size_of::<Segment>() as u64))
    }

    #[inline(always)]
    fn fixed(&self, block: u64) -> &[AtomicU64] {
        let start = block as usize * FIXED;
        &self.fixed.atomics()[start..start + FIXED]
    }

    #[inline(always)]
    fn link(&self, block: u64) -> Link {
        let word = self.links.atomics()[block as usize / 2].load(Ordering::Relaxed);
        Link::unpack(word >> (block % 2 * 32))
    }

    fn set_link(&self, block: u64, link: Link) {
        let word = &self.links.atomics()[block as usize / 2];
        let shift = block % 2 * 32;
        let rest = word.load(Ordering::Relaxed) & !(0xffff_ffff << shift);
        word.store(rest | link.pack() << shift, Ordering::Relaxed);
    }

    /// The memory of a block's segment.
    #[allow(clippy::mut_from_ref, reason = "guarded by the gate")]
    #[inline(always)]
    fn segment(&self, block: u64) -> &mut Vec<u64> {
        // SAFETY: the caller holds the gate (`TEARS`), so no other reference to it is alive.
        unsafe { &mut *self.segments[(block / SEGMENT) as usize].0.get() }
    }

    /// Which of the block's cells have more than one digit, and how many of them lie before a cell.
    #[inline(always)]
    fn rank(map: &[AtomicU64], cell: usize) -> (bool, usize) {
        let low = map[0].load(Ordering::Relaxed);
        let (word, before) = match cell / 64 {
            0 => (low, 0),
            _ => (map[1].load(Ordering::Relaxed), low.count_ones()),
        };
        let below = word & ((1 << (cell % 64)) - 1);
        (word >> (cell % 64) & 1 == 1, (before + below.count_ones()) as usize)
    }

    /// Every value of a block.
    #[inline(always)]
    fn unpacked(&self, block: u64) -> [u32; BLOCK] {
        let mut values = [0; BLOCK];
        let fixed = self.fixed(block);
        for (sixteen, word) in values.chunks_exact_mut(16).zip(fixed) {
            let word = word.load(Ordering::Relaxed);
            for (i, value) in sixteen.iter_mut().enumerate() {
                *value = (word >> (4 * i)) as u32 & 15;
            }
        }
        let link = self.link(block);
        let table = &self.segment(block)[link.start..link.start + link.words];
        let mut bit = 0;
        for (half, word) in fixed[DIGITS..].iter().enumerate() {
            let mut left = word.load(Ordering::Relaxed);
            while left != 0 {
                let cell = half * 64 + left.trailing_zeros() as usize;
                values[cell] |= field(table, bit, link.bits()) << 4;
                bit += link.bits();
                left &= left - 1;
            }
        }
        values
    }

    /// Lays a block out anew.
    #[inline(always)]
    fn lay_out(&self, block: u64, values: &[u32; BLOCK]) {
        let fixed = self.fixed(block);
        let mut map = [0u64; MAP];
        let mut largest = 0;
        for (i, word) in fixed[..DIGITS].iter().enumerate() {
            let mut digits = 0;
            for (j, value) in values[16 * i..16 * i + 16].iter().enumerate() {
                digits |= u64::from(value & 15) << (4 * j);
                map[i / 4] |= u64::from(*value > 15) << (i % 4 * 16 + j);
                largest = largest.max(value >> 4);
            }
            word.store(digits, Ordering::Relaxed);
        }
        let entries: u32 = map.iter().map(|half| half.count_ones()).sum();
        let digits = (u32::BITS - largest.leading_zeros()).div_ceil(4);
        let words = words_for(entries as usize, digits as usize * 4);
        let link = self.resized(block, words, digits);
        let table = &mut self.segment(block)[link.start..link.start + words];
        table.fill(0);
        let mut bit = 0;
        for (half, word) in map.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                let cell = half * 64 + left.trailing_zeros() as usize;
                set_field(table, bit, link.bits(), values[cell] >> 4);
                bit += link.bits();
                left &= left - 1;
            }
            fixed[DIGITS + half].store(*word, Ordering::Relaxed);
        }
    }

    /// Gives a block's table so many words; those behind it in the segment move.
    fn resized(&self, block: u64, words: usize, digits: u32) -> Link {
        let old = self.link(block);
        let new = Link { start: old.start, words, digits };
        if old.words != words {
            let segment = self.segment(block);
            let before = segment.capacity();
            let (end, len) = (old.start + old.words, segment.len());
            let wanted = len - old.words + words;
            if wanted > len {
                if wanted > segment.capacity() {
                    segment.reserve_exact((wanted - len).next_multiple_of(ROOM));
                }
                segment.resize(wanted, 0);
                segment.copy_within(end..len, old.start + words);
            } else {
                segment.copy_within(end..len, old.start + words);
                segment.truncate(wanted);
                if segment.capacity() - wanted > IDLE {
                    segment.shrink_to(wanted + ROOM);
                }
            }
            let after = segment.capacity() as u64;
            let held = self.held.load(Ordering::Relaxed);
            self.held.store(held - before as u64 + after, Ordering::Relaxed);
            let last = ((block / SEGMENT + 1) * SEGMENT).min(self.cells.div_ceil(DECAY_BLOCK));
            for next in block + 1..last {
                let link = self.link(next);
                self.set_link(next, Link { start: link.start + words - old.words, ..link });
            }
        }
        self.set_link(block, new);
        new
    }

    /// Adds to a cell that mostly has an entry already, wide enough for the sum: it is found once.
    #[inline(always)]
    fn raise_one(&self, cell: u64, weight: u64, max: u32) -> u32 {
        let (block, place) = (cell / DECAY_BLOCK, (cell % DECAY_BLOCK) as usize);
        let fixed = self.fixed(block);
        let (more, rank) = Self::rank(&fixed[DIGITS..], place);
        let (digit, shift) = (&fixed[place / 16], place % 16 * 4);
        let digits = digit.load(Ordering::Relaxed);
        let low = (digits >> shift) as u32 & 15;
        if more {
            let link = self.link(block);
            let (bits, bit) = (link.bits(), rank * link.bits());
            let table = &mut self.segment(block)[link.start..link.start + link.words];
            let old = low | field(table, bit, bits) << 4;
            let new = (u64::from(old) + weight).min(u64::from(max)) as u32;
            if u64::from(new >> 4) >> bits == 0 {
                digit.store(digits ^ u64::from(low ^ new & 15) << shift, Ordering::Relaxed);
                set_field(table, bit, bits, new >> 4);
                return old;
            }
            self.set_anew(block, place, new);
            return old;
        }
        self.set(cell, (u64::from(low) + weight).min(u64::from(max)) as u32);
        low
    }

    #[inline(always)]
    fn fade_block(&self, block: u64, fading: &Fading) {
        let mut values = self.unpacked(block);
        values.iter_mut().for_each(|value| *value = fading.fade(*value));
        self.lay_out(block, &values);
    }

    /// The slow way: everything is laid out anew.
    #[inline(always)]
    fn set_again(&self, block: u64, cell: usize, value: u32) {
        let mut values = self.unpacked(block);
        values[cell] = value;
        self.lay_out(block, &values);
    }

    #[cold]
    fn set_anew(&self, block: u64, cell: usize, value: u32) {
        set_again(self, block, cell, value);
    }
}

impl DecayingCells for PackedCells {
    const TEARS: bool = true;

    fn zeroed(cells: u64, _: u32) -> Result<Self> {
        let blocks = cells.div_ceil(DECAY_BLOCK);
        let fixed = Words::zeroed(blocks.saturating_mul(64 * FIXED as u64))?;
        let links = Words::zeroed(blocks.saturating_mul(32))?;
        let segments = (0..blocks.div_ceil(SEGMENT)).map(|_| Segment::default()).collect();
        Ok(PackedCells { fixed, links, segments, cells, held: AtomicU64::new(0) })
    }

    #[inline(always)]
    fn prefetch(&self, cell: u64) {
        let (block, cell) = (cell / DECAY_BLOCK, (cell % DECAY_BLOCK) as usize);
        self.fixed.prefetch(block as usize * FIXED + cell / 16);
        self.fixed.prefetch(block as usize * FIXED + DIGITS);
        self.links.prefetch(block as usize / 2);
    }

    #[inline(always)]
    fn get(&self, cell: u64) -> u32 {
        let (block, cell) = (cell / DECAY_BLOCK, (cell % DECAY_BLOCK) as usize);
        let fixed = self.fixed(block);
        let low = (fixed[cell / 16].load(Ordering::Relaxed) >> (cell % 16 * 4)) as u32 & 15;
        let (more, rank) = Self::rank(&fixed[DIGITS..], cell);
        if !more {
            return low;
        }
        let link = self.link(block);
        let table = &self.segment(block)[link.start..link.start + link.words];
        low | field(table, rank * link.bits(), link.bits()) << 4
    }

    fn values(&self, block: u64) -> BlockValues {
        self.unpacked(block)
    }

    fn hold(&self, block: u64, values: &BlockValues) {
        self.lay_out(block, values);
    }

    #[inline(always)]
    fn set(&self, cell: u64, value: u32) {
        let (block, cell) = (cell / DECAY_BLOCK, (cell % DECAY_BLOCK) as usize);
        let fixed = self.fixed(block);
        let (more, rank) = Self::rank(&fixed[DIGITS..], cell);
        let (link, high) = (self.link(block), value >> 4);
        let fits = u64::from(high) >> link.bits() == 0;
        if more != (high != 0) && (more || link.digits == 0 || !fits) || more && !fits {
            return self.set_anew(block, cell, value);
        }
        let word = &fixed[cell / 16];
        let shift = cell % 16 * 4;
        let digits = word.load(Ordering::Relaxed) & !(15 << shift);
        word.store(digits | u64::from(value & 15) << shift, Ordering::Relaxed);
        if more {
            let table = &mut self.segment(block)[link.start..link.start + link.words];
            set_field(table, rank * link.bits(), link.bits(), high);
        } else if high != 0 {
            // Another entry among those that are there.
            let map = &fixed[DIGITS..];
            let entries: u32 =
                map.iter().map(|half| half.load(Ordering::Relaxed).count_ones()).sum();
            let words = words_for(entries as usize + 1, link.bits());
            let link = self.resized(block, words, link.digits);
            let table = &mut self.segment(block)[link.start..link.start + words];
            make_room(table, rank * link.bits(), link.bits());
            set_field(table, rank * link.bits(), link.bits(), high);
            let half = &map[cell / 64];
            half.store(half.load(Ordering::Relaxed) | 1 << (cell % 64), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn raise(&self, cells: &[u64], weight: u64, max: u32, _: bool) -> (bool, u64) {
        let (mut new, mut full) = (false, 0);
        for (i, cell) in cells.iter().enumerate() {
            let old = self.raise_one(*cell, weight, max);
            new |= old == 0;
            full |= u64::from(u64::from(old) + weight > u64::from(max)) << i;
        }
        (new, full)
    }

    fn fade(&self, block: u64, fading: &Fading) {
        if self.fixed(block).iter().all(|word| word.load(Ordering::Relaxed) == 0) {
            return;
        }
        fade_block(self, block, fading);
    }

    /// Word by word: whoever keeps writers out for a copy does so for milliseconds.
    fn take_over(&self, others: &Self, _: u64) {
        self.fixed.take_over(&others.fixed);
        self.links.take_over(&others.links);
        let mut held = 0;
        for block in (0..self.cells.div_ceil(DECAY_BLOCK)).step_by(SEGMENT as usize) {
            let segment = self.segment(block);
            segment.clone_from(others.segment(block));
            held += segment.capacity() as u64;
        }
        self.held.store(held, Ordering::Relaxed);
    }

    fn clear(&self, block: u64) {
        self.lay_out(block, &[0; BLOCK]);
    }

    fn bytes(&self) -> u64 {
        let segments = size_of_val(&*self.segments) as u64;
        self.fixed.bytes() + self.links.bytes() + segments + self.held.load(Ordering::Relaxed) * 8
    }

    fn validate(&self) -> Result<()> {
        let broken = |what: &str| Err(Error::Invariant { invariant: what.to_owned() });
        let blocks = self.cells.div_ceil(DECAY_BLOCK);
        let mut held = 0;
        for block in 0..blocks {
            let (link, map) = (self.link(block), &self.fixed(block)[DIGITS..]);
            if block % SEGMENT == 0 {
                held += self.segment(block).capacity() as u64;
            }
            let start = if block % SEGMENT == 0 {
                0
            } else {
                let before = self.link(block - 1);
                before.start + before.words
            };
            let entries: u32 =
                map.iter().map(|half| half.load(Ordering::Relaxed).count_ones()).sum();
            if link.start != start || link.words != words_for(entries as usize, link.bits()) {
                return broken("a side table is not where its link says");
            }
            let last = block + 1 == blocks || (block + 1) % SEGMENT == 0;
            if last && link.start + link.words != self.segment(block).len() {
                return broken("a segment is longer than its side tables");
            }
            let values = self.values(block);
            let more = |cell: usize| Self::rank(map, cell).0;
            if (0..BLOCK).any(|cell| more(cell) != (values[cell] > 15)) {
                return broken("the map of a block does not fit its values");
            }
        }
        if held != self.held.load(Ordering::Relaxed) {
            return broken("the pool holds another number of words than was counted");
        }
        let beyond = self.cells..blocks * DECAY_BLOCK;
        if beyond.into_iter().any(|cell| self.get(cell) != 0) {
            return broken("a cell beyond the last one is set");
        }
        Ok(())
    }
}

on_the_best_processor!(fade_block(&PackedCells, block: u64, fading: &Fading));
on_the_best_processor!(set_again(&PackedCells, block: u64, cell: usize, value: u32));

fn words_for(entries: usize, bits: usize) -> usize {
    (entries * bits).div_ceil(64)
}

/// `bits` bits from `bit` on, at most 28; zero bits are zero.
#[inline(always)]
fn field(table: &[u64], bit: usize, bits: usize) -> u32 {
    if bits == 0 {
        return 0;
    }
    let (word, shift) = (bit / 64, bit % 64);
    let mut value = table[word] >> shift;
    if shift + bits > 64 {
        value |= table[word + 1] << (64 - shift);
    }
    (value & ((1 << bits) - 1)) as u32
}

#[inline(always)]
fn set_field(table: &mut [u64], bit: usize, bits: usize, value: u32) {
    let (word, shift) = (bit / 64, bit % 64);
    let (mask, value) = ((1u64 << bits) - 1, u64::from(value));
    table[word] = table[word] & !(mask << shift) | value << shift;
    if shift + bits > 64 {
        let done = 64 - shift;
        table[word + 1] = table[word + 1] & !(mask >> done) | value >> done;
    }
}

/// Moves everything from `bit` on up by `bits` bits; what falls off the end is unused.
#[inline(always)]
fn make_room(table: &mut [u64], bit: usize, bits: usize) {
    let (first, shift) = (bit / 64, bit % 64);
    for word in (first + 1..table.len()).rev() {
        table[word] = table[word] << bits | table[word - 1] >> (64 - bits);
    }
    let below = (1u64 << shift) - 1;
    let kept = table[first] & below;
    table[first] = (table[first] & !below) << bits | kept;
}
