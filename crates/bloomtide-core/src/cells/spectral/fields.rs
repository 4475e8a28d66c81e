//! Fields of different widths in one base array, with the index that finds them.
//!
//! A field runs from its start to the next start. Bits above its value are spare: slack is nothing but
//! spare high bits, so the starts are the whole state. Base array and index share one allocation.
//!
//! # Invariants
//! I1  The widths are 1 to 64 and add up to the N bits of the base array.
//! I2  Every field has the bits of its value: width >= max(1, bit length).
//! I3  `spare` = N - the sum of max(1, bit length) over all fields.
//!
//! Everything changes under one writer; what takes more than one word to change does so under the
//! version. Reading beside the writer may give nonsense but never fails: the caller asks the version.

use super::index::Index;
use crate::batch::on_the_best_processor;
use crate::cells::growing::{CHUNK, CellValues, chunks};
use crate::cells::packed::{self, Packer, largest};
use crate::cells::version::Version;
use crate::cells::words::{Words, bytes_for};
use crate::error::{Error, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The widest field.
pub(super) const WIDEST: u64 = 64;

/// The bits that a value needs.
#[inline(always)]
pub(super) fn needed(value: u64) -> u32 {
    u64::BITS - (value | 1).leading_zeros()
}

/// The fields of one partition.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) words: Words,
    pub(super) index: Index,
    pub(super) len: u64,
    /// N.
    pub(super) bits: u64,
    spare: AtomicU64,
}

impl Fields {
    /// Lays out a field for each of the cells, with the values given. A cell gets `need(cell, value)` bits, no
    /// less than its value takes, and an even share of what is left of `bits(bits that all need)`.
    pub(super) fn lay(
        cells: Range<u64>,
        bits: impl FnOnce(u64) -> u64,
        need: impl Fn(u64, u64) -> u32,
        values: &dyn CellValues,
    ) -> Result<Self> {
        lay(Cells(cells), bits, need, values)
    }

    fn shape(len: u64, bits: u64) -> (u64, Index) {
        let at = packed::words_for(bits).saturating_mul(64);
        (at, Index::new(at, len, bits))
    }

    /// The bytes that `len` fields in `bits` bits take.
    pub(super) fn bytes_of(len: u64, bits: u64) -> u64 {
        Self::bytes_for(len, bits, bits)
    }

    /// The same with an index for `indexed` bits.
    pub(super) fn bytes_for(len: u64, bits: u64, indexed: u64) -> u64 {
        let ((at, _), (_, index)) = (Self::shape(len, bits), Self::shape(len, indexed));
        bytes_for(at.saturating_add(index.bits())).saturating_add(size_of::<Fields>() as u64)
    }

    /// Memory in bytes, this record included.
    pub(super) fn bytes(&self) -> u64 {
        self.words.bytes() + size_of::<Fields>() as u64
    }

    /// Bits that no value needs.
    pub(super) fn spare(&self) -> u64 {
        self.spare.load(Ordering::Relaxed)
    }

    /// Asks the processor for the field's part of the index.
    #[inline(always)]
    pub(super) fn prefetch(&self, field: u64) {
        let (first, last) = self.index.words_of(field);
        self.words.prefetch(first);
        self.words.prefetch(last);
    }

    #[inline(always)]
    pub(super) fn start(&self, field: u64) -> u64 {
        self.index.start(self.words.atomics(), field)
    }

    /// Start and width. While spare bits pass through a field it is wider than 64 for a moment; its
    /// value is in the low ones.
    #[inline(always)]
    pub(super) fn span(&self, field: u64) -> (u64, u32) {
        debug_assert!(field < self.len);
        let (start, end) = self.index.span(self.words.atomics(), field);
        // Beside a writer the two may not go together: then any place will do that can be read.
        let start = start.min(self.bits - 1);
        (start, end.saturating_sub(start).clamp(1, WIDEST) as u32)
    }

    /// The value.
    #[inline(always)]
    pub(super) fn get(&self, field: u64) -> u64 {
        let (start, width) = self.span(field);
        packed::read(self.words.atomics(), start, width)
    }

    /// A copy; no writer is inside meanwhile.
    pub(super) fn copied(&self) -> Result<Self> {
        let spare = AtomicU64::new(self.spare());
        Ok(Fields { words: self.words.to_owned()?, index: self.index.clone(), spare, ..*self })
    }

    /// Replaces the value if it fits; false if it does not. A reader sees the old or the new one.
    #[inline(always)]
    pub(super) fn try_set(&self, field: u64, value: u64, version: &Version) -> bool {
        let (start, width) = self.span(field);
        if value > largest(width) {
            return false;
        }
        let words = self.words.atomics();
        let old = packed::read(words, start, width);
        if packed::crosses(start, width) {
            let _changing = version.write();
            packed::write(words, start, width, value);
        } else {
            packed::write(words, start, width, value);
        }
        let (before, after) = (needed(old), needed(value));
        if before != after {
            let spare = self.spare() + u64::from(before) - u64::from(after);
            self.spare.store(spare, Ordering::Relaxed);
        }
        true
    }

    /// The same values in `bits` bits; `field` gets at least `room` of them.
    pub(super) fn laid_anew(&self, bits: u64, field: u64, room: u32) -> Result<Self> {
        let need = |j, value| needed(value).max(if j == field { room } else { 1 });
        Fields::lay(0..self.len, |_| bits, need, self)
    }

    /// Recounts the invariants.
    pub(super) fn validate(&self) -> Result<()> {
        let broken = |what: String| Err(Error::Invariant { invariant: what });
        let mut content = 0;
        let mut start = self.start(0);
        if start != 0 {
            return broken(format!("the first field starts at bit {start}"));
        }
        for field in 0..self.len {
            let end = self.start(field + 1);
            if end <= start || end - start > WIDEST {
                return broken(format!("field {field} runs from bit {start} to bit {end}"));
            }
            if !self.index.is_sound(self.words.atomics(), field) {
                return broken(format!("the index entries of field {field} do not add up"));
            }
            content += u64::from(needed(self.get(field)));
            start = end;
        }
        if start != self.bits {
            return broken(format!("the fields have {start} of {} bits", self.bits));
        }
        if content + self.spare() != self.bits {
            return broken(format!(
                "the values need {content} bits, {} are spare, of {}",
                self.spare(),
                self.bits
            ));
        }
        Ok(())
    }
}

impl CellValues for Fields {
    fn fill(&self, first: u64, values: &mut [u64]) {
        read_some(self, first, values);
    }
}

on_the_best_processor!(read_some(&Fields, first: u64, values: &mut [u64]));

impl Fields {
    #[inline(always)]
    fn read_some(&self, first: u64, values: &mut [u64]) {
        let words = self.words.atomics();
        for (i, some) in (0..).zip(values.chunks_mut(CHUNK)) {
            let mut starts = [0; CHUNK + 1];
            self.index.starts(words, first + i * CHUNK as u64, &mut starts[..=some.len()]);
            let mut wrong = 0;
            for (end, start) in starts[1..=some.len()].iter().zip(&starts) {
                wrong |= end.wrapping_sub(*start).wrapping_sub(1) / WIDEST;
            }
            if wrong == 0 && starts[some.len()] <= self.bits {
                // SAFETY: the words hold all bits, and the fields follow each other.
                unsafe { packed::unpack_fields(words, &starts, some) };
                continue;
            }
            for (value, field) in some.iter_mut().zip(first + i * CHUNK as u64..) {
                *value = self.get(field);
            }
        }
    }
}

/// Cells that fields are laid out for.
struct Cells(Range<u64>);

on_the_best_processor!(lay(
    Cells,
    bits: impl FnOnce(u64) -> u64,
    need: impl Fn(u64, u64) -> u32,
    values: &dyn CellValues
) -> Result<Fields>);

impl Cells {
    #[inline(always)]
    fn lay(
        self,
        bits: impl FnOnce(u64) -> u64,
        need: impl Fn(u64, u64) -> u32,
        values: &dyn CellValues,
    ) -> Result<Fields> {
        let Cells(cells) = self;
        let len = cells.end - cells.start;
        let (mut held, mut content) = ([0; CHUNK], 0);
        for some in chunks(cells.clone()) {
            let held = &mut held[..(some.end - some.start) as usize];
            values.fill(some.start, held);
            for (cell, value) in some.zip(held) {
                content += u64::from(need(cell, *value));
            }
        }
        let bits = bits(content).clamp(content, len.saturating_mul(WIDEST));
        let (at, index) = Fields::shape(len, bits);
        let words = Words::zeroed(at.saturating_add(index.bits()))?;
        let mut share = Share::new(bits - content, len);
        let (base, rest) = words.atomics().split_at((at >> 6) as usize);
        let (mut base, mut packer) = (base.iter(), Packer::default());
        let mut put =
            |word| base.next().into_iter().for_each(|to| to.store(word, Ordering::Relaxed));
        let mut starts = index.entering(rest);
        let (mut end, mut used, mut ends) = (0, 0, [0; CHUNK + 1]);
        for some in chunks(cells) {
            let held = &mut held[..(some.end - some.start) as usize];
            values.fill(some.start, held);
            for ((cell, value), start) in some.zip(&*held).zip(&mut ends) {
                *start = end;
                end += u64::from(share.widen(need(cell, *value)));
                used += u64::from(needed(*value));
            }
            ends[held.len()] = end;
            starts.push_all(&ends[..held.len()]);
            packer.push_fields(held, &ends, &mut put);
        }
        starts.push_all(&[end]);
        starts.end();
        let (last, filled) = packer.rest();
        if filled > 0 {
            put(last);
        }
        // The last fields may be as wide as fields get: then some bits found no taker.
        Ok(Fields { words, index, len, bits: end, spare: AtomicU64::new(end - used) })
    }
}

/// Deals out spare bits evenly, field after field.
struct Share {
    /// Bits for each field, and for every field this part of `len` of one more.
    each: u64,
    rest: u64,
    len: u64,
    owed: u64,
    /// Dealt, but for a field that was as wide as fields get: the next one has them.
    held: u64,
}

impl Share {
    fn new(bits: u64, len: u64) -> Self {
        let fields = len.max(1);
        Share { each: bits / fields, rest: bits % fields, len: fields, owed: 0, held: 0 }
    }

    /// The width of the next field, which needs `need` bits.
    #[inline(always)]
    fn widen(&mut self, need: u32) -> u32 {
        let owed = self.owed + self.rest;
        // Below zero, which is a large number, while not a whole bit is owed.
        self.owed = owed.min(owed.wrapping_sub(self.len));
        let more = self.held + self.each + u64::from(self.owed != owed);
        let width = (u64::from(need) + more).min(WIDEST);
        self.held = u64::from(need) + more - width;
        width as u32
    }
}
