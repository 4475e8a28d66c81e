//! The string-array index: where each field of a base array of N bits begins (Cohen and Matias 2003;
//! always with all three levels, as in the partitioned spectral filter, section 3.3).
//!
//! ```text
//! start(j) = CV1[group of j] + CV2[chunk of j] + OV[j]
//! ```
//!
//! A group has ceil(log N) fields, and CV1 holds its absolute start. A chunk has ceil(loglog N) fields
//! of one group, and CV2 holds its start relative to the group; OV holds the start of each field
//! relative to its chunk. Both take 3·ceil(loglog N) bits, which is enough for a group of 64-bit
//! fields; only below 17 bits it is not, and there they are as wide as N.
//!
//! The three vectors are not apart but interleaved: one record per group holds its CV1, its CV2 and its
//! OV. A record is about as long as a cache line, so a lookup misses the cache once or twice, not three
//! times. The index also holds the end of the last field, as the start of one more.
//!
//! The struct is the shape only. The numbers are in the words of the owner, from bit `at` on.

use crate::cells::divisor::Divisor;
use crate::cells::packed::{self, Packer};
use std::sync::atomic::{AtomicU64, Ordering};

/// No group has more chunks.
const CHUNKS: usize = 16;
/// Fields that are given the number of their chunk at once; no chunk has more.
const WIDE: usize = 8;
/// The fields of a group, and those behind the last one.
const SPREAD: usize = 64 + WIDE;

/// Shape and place of an index.
#[derive(Clone, Debug)]
pub(super) struct Index {
    at: u64,
    /// Starts held.
    starts: u64,
    /// Fields per group, fields per chunk.
    group: Divisor,
    chunk: Divisor,
    /// Widths of CV1, and of CV2 and OV.
    absolute: u32,
    relative: u32,
    /// First bit of the OV in a record, and the record's length.
    offsets: u64,
    record: u64,
}

/// Where the parts of one start are.
struct Place {
    cv1: u64,
    cv2: u64,
    ov: u64,
    /// Number of the field in its group, and in its chunk; the head is 0.
    in_group: u64,
    in_chunk: u64,
}

impl Index {
    /// An index from bit `at` on, for `fields` fields in a base array of `bits` bits.
    pub(super) fn new(at: u64, fields: u64, bits: u64) -> Self {
        let group = ceil_log2(bits);
        let chunk = ceil_log2(group);
        let absolute = u64::BITS - bits.leading_zeros();
        let narrow = 3 * chunk as u32;
        let relative = if 64 * group <= 1 << narrow { narrow } else { absolute };
        let chunks = group.div_ceil(chunk);
        let offsets = u64::from(absolute) + chunks * u64::from(relative);
        Index {
            at,
            starts: fields + 1,
            group: Divisor::new(group),
            chunk: Divisor::new(chunk),
            absolute,
            relative,
            offsets,
            record: offsets + group * u64::from(relative),
        }
    }

    /// Length in bits.
    pub(super) fn bits(&self) -> u64 {
        self.starts.div_ceil(self.group.get()).saturating_mul(self.record)
    }

    #[inline(always)]
    fn place(&self, field: u64) -> Place {
        let (group, in_group) = self.group.split(field);
        let (chunk, in_chunk) = self.chunk.split(in_group);
        let cv1 = self.at + group * self.record;
        Place {
            cv1,
            cv2: cv1 + u64::from(self.absolute) + chunk * u64::from(self.relative),
            ov: cv1 + self.offsets + in_group * u64::from(self.relative),
            in_group,
            in_chunk,
        }
    }

    /// The words that `start` reads first and last.
    #[inline(always)]
    pub(super) fn words_of(&self, field: u64) -> (usize, usize) {
        let place = self.place(field);
        ((place.cv1 >> 6) as usize, (place.ov >> 6) as usize)
    }

    /// Where `field` begins; that of the field after the last is where the last one ends.
    #[inline(always)]
    pub(super) fn start(&self, words: &[AtomicU64], field: u64) -> u64 {
        debug_assert!(field < self.starts);
        let place = self.place(field);
        packed::read(words, place.cv1, self.absolute)
            + packed::read(words, place.cv2, self.relative)
            + packed::read(words, place.ov, self.relative)
    }

    /// Where the fields from `first` on begin, group by group.
    #[inline(always)]
    pub(super) fn starts(&self, words: &[AtomicU64], first: u64, starts: &mut [u64]) {
        let (mut field, mut left) = (first, starts);
        let (mut heads, mut bases) = ([0; CHUNKS], [0; SPREAD]);
        while !left.is_empty() {
            let place = self.place(field);
            let inside = (self.group.get() - place.in_group) as usize;
            let (now, later) = left.split_at_mut(left.len().min(inside));
            packed::unpack(words, place.ov, self.relative, now);
            let count = (place.in_chunk + now.len() as u64).div_ceil(self.chunk.get()) as usize;
            packed::unpack(words, place.cv2, self.relative, &mut heads[..count]);
            let cv1 = packed::read(words, place.cv1, self.absolute);
            self.spread(heads[..count].iter().map(|head| cv1 + head), &mut bases);
            for (start, base) in now.iter_mut().zip(&bases[place.in_chunk as usize..]) {
                *start += base;
            }
            (field, left) = (field + now.len() as u64, later);
        }
    }

    /// Gives each field of a group what its chunk has.
    #[inline(always)]
    fn spread(&self, chunks: impl Iterator<Item = u64>, fields: &mut [u64; SPREAD]) {
        for (value, first) in chunks.zip((0..SPREAD - WIDE).step_by(self.chunk.get() as usize)) {
            // More than a chunk has: the next one writes over it.
            fields[first..first + WIDE].fill(value);
        }
    }

    /// Where `field` begins and ends. As two times `start`, but shorter: it is what every read begins
    /// with, and most ends are in the record of the start.
    #[inline(always)]
    pub(super) fn span(&self, words: &[AtomicU64], field: u64) -> (u64, u64) {
        let place = self.place(field);
        let relative = u64::from(self.relative);
        let cv1 = packed::read(words, place.cv1, self.absolute);
        let start = cv1
            + packed::read(words, place.cv2, self.relative)
            + packed::read(words, place.ov, self.relative);
        if place.in_group + 1 == self.group.get() {
            return (start, self.start(words, field + 1));
        }
        let next_chunk = u64::from(place.in_chunk + 1 == self.chunk.get());
        let end = cv1
            + packed::read(words, place.cv2 + next_chunk * relative, self.relative)
            + packed::read(words, place.ov + relative, self.relative);
        (start, end)
    }

    /// Enters all starts, one after the other, into the words from its own first one on.
    pub(super) fn entering<'a>(&'a self, words: &'a [AtomicU64]) -> Entering<'a> {
        let words = words.iter();
        Entering {
            index: self,
            words,
            packer: Packer::default(),
            group: [0; 64],
            held: 0,
            entries: [0; CHUNKS + 64],
            heads: [0; SPREAD],
        }
    }

    /// Moves the starts of the fields `first..end` by `by` bits. Few entries change: of a group that
    /// moves as a whole only CV1, of such a chunk only CV2.
    pub(super) fn advance(&self, words: &[AtomicU64], first: u64, end: u64, by: i64) {
        self.advance_rest(words, first, by);
        let group = self.group.get();
        let mut head = first.next_multiple_of(group);
        while head < end {
            add(words, self.place(head).cv1, self.absolute, by);
            head += group;
        }
        self.advance_rest(words, end, -by);
    }

    /// Moves the starts from `field` to the end of its group; none if the field heads the group.
    fn advance_rest(&self, words: &[AtomicU64], field: u64, by: i64) {
        let mut at = field;
        while at < self.starts {
            let place = self.place(at);
            if place.in_group == 0 {
                break;
            }
            if place.in_chunk == 0 {
                add(words, place.cv2, self.relative, by);
                at += self.chunk.get().min(self.group.get() - place.in_group);
            } else {
                add(words, place.ov, self.relative, by);
                at += 1;
            }
        }
    }

    /// Whether the entries of the field are as they were entered: no head has an offset to itself.
    pub(super) fn is_sound(&self, words: &[AtomicU64], field: u64) -> bool {
        let place = self.place(field);
        let cv2 = packed::read(words, place.cv2, self.relative);
        let ov = packed::read(words, place.ov, self.relative);
        (place.in_group != 0 || cv2 == 0) && (place.in_chunk != 0 || ov == 0)
    }
}

/// An index that is being filled, a record at a time.
pub(super) struct Entering<'a> {
    index: &'a Index,
    words: std::slice::Iter<'a, AtomicU64>,
    packer: Packer,
    /// Starts of the group that is open, and how many there are.
    group: [u64; 64],
    held: usize,
    /// What a record is made in: its entries, and for each field the start of its chunk.
    entries: [u64; CHUNKS + 64],
    heads: [u64; SPREAD],
}

impl Entering<'_> {
    /// Enters the next starts.
    #[inline(always)]
    pub(super) fn push_all(&mut self, starts: &[u64]) {
        let (mut left, group) = (starts, self.index.group.get() as usize);
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min(group - self.held));
            left = later;
            if now.len() == group {
                self.close(now);
                continue;
            }
            self.group[self.held..self.held + now.len()].copy_from_slice(now);
            self.held += now.len();
            if self.held == group {
                let starts = self.group;
                self.close(&starts[..group]);
                self.held = 0;
            }
        }
    }

    /// Writes the record of a group; places of fields that are not there are zero.
    #[inline(always)]
    fn close(&mut self, starts: &[u64]) {
        let Index { absolute, relative, group, chunk, .. } = self.index;
        let (group, chunk) = (group.get() as usize, chunk.get() as usize);
        // CV2, of which there is one for each chunk, and behind it OV.
        let chunks = group.div_ceil(chunk);
        let (heads, offsets) = self.entries.split_at_mut(chunks);
        if starts.len() < group {
            heads.fill(0);
            offsets.fill(0);
        }
        for (to, head) in heads.iter_mut().zip(starts.iter().step_by(chunk)) {
            *to = head - starts[0];
        }
        self.index.spread(starts.iter().step_by(chunk).copied(), &mut self.heads);
        for ((to, start), head) in offsets.iter_mut().zip(starts).zip(&self.heads) {
            *to = start - head;
        }
        let mut put = |word| {
            self.words.next().into_iter().for_each(|to| to.store(word, Ordering::Relaxed));
        };
        self.packer.push(starts[0], *absolute).map(&mut put);
        self.packer.push_all(&self.entries[..chunks + group], *relative, &mut put);
    }

    /// There are no more.
    pub(super) fn end(mut self) {
        if self.held > 0 {
            let starts = self.group;
            self.close(&starts[..self.held]);
        }
        let (last, used) = self.packer.rest();
        if let (Some(word), 1..) = (self.words.next(), used) {
            word.store(last, Ordering::Relaxed);
        }
    }
}

fn add(words: &[AtomicU64], at: u64, width: u32, by: i64) {
    let old = packed::read(words, at, width);
    // Modulo 2^width: what lies behind `end` goes there and back, and on the way it may not fit.
    packed::write(words, at, width, old.wrapping_add_signed(by) & packed::largest(width));
}

/// The logarithm as sizes are made of it: rounded up, and at least 1.
fn ceil_log2(number: u64) -> u64 {
    u64::from(u64::BITS - (number.max(2) - 1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_the_widest_fields_fits_the_relative_offsets_of_every_size() {
        for bits in (1..5000).chain((13..50).map(|log| 1 << log)) {
            let index = Index::new(0, 1, bits);
            // One field may be 63 bits too wide for a moment, while spare bits pass through it.
            let farthest = (64 * index.group.get() + 63).min(bits);
            assert!(index.group.get().div_ceil(index.chunk.get()) <= CHUNKS as u64);
            assert!(farthest <= packed::largest(index.relative), "{bits}");
        }
    }

    #[test]
    fn the_sizes_are_those_of_the_paper() {
        // N = 10^6: 20 fields per group, 5 per chunk, offsets of 20 and 15 bits: 4m + 15m bits.
        let index = Index::new(0, 999_999, 1_000_000);
        assert_eq!((index.group.get(), index.chunk.get()), (20, 5));
        assert_eq!((index.absolute, index.relative), (20, 15));
        assert_eq!(index.bits(), 19 * 1_000_000);
    }

    #[test]
    fn moved_starts_are_those_of_a_plain_list() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for fields in [1, 2, 7, 8, 40, 300] {
            let bits = fields * 30;
            let index = Index::new(0, fields, bits);
            let words: Vec<AtomicU64> =
                (0..packed::words_for(index.bits())).map(|_| AtomicU64::new(0)).collect();
            let mut plain: Vec<u64> = (0..=fields).map(|j| j * 30).collect();
            let mut entering = index.entering(&words);
            plain.chunks(29).for_each(|starts| entering.push_all(starts));
            entering.end();
            for _ in 0..300 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                // Field 0 and the end stay where they are, as in a base array.
                let (a, b) = (1 + seed % fields, 1 + (seed >> 20) % fields);
                let (first, end) = (a.min(b), a.max(b));
                if first == end {
                    continue;
                }
                let width = |end: u64| plain[end as usize] - plain[end as usize - 1];
                let from =
                    |donor: u64, taker: u64| (width(donor) - 1).min(64 - width(taker)) as i64;
                let upwards = seed & (1 << 50) == 0;
                let by = if upwards { from(end, first) } else { -from(first, end) };
                index.advance(&words, first, end, by);
                for start in &mut plain[first as usize..end as usize] {
                    *start = start.wrapping_add_signed(by);
                }
                for field in 0..=fields {
                    assert_eq!(index.start(&words, field), plain[field as usize]);
                    assert!(index.is_sound(&words, field));
                }
                for field in 0..fields as usize {
                    let expected = (plain[field], plain[field + 1]);
                    assert_eq!(index.span(&words, field as u64), expected);
                }
            }
        }
    }
}
