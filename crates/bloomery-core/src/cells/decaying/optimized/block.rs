//! One block of the optimized layout: a record of two lines, and a table elsewhere if that is not enough.
//!
//! ```text
//! sparse   link | map: 128 bits, which cells have more | room for 40 bytes of entries | 128 low digits
//!          An entry is the rest of a cell's value. All of a block have 1, 2 or 4 bytes and lie in the order
//!          of the cells: a cell's entry is found by counting the bits before its own. More than 40
//!          bytes of them are in a table, whose size then stands in the room.
//! wide     link | values of 2 or 4 bytes: the first 120 bytes of them, the others in a table
//! ```
//!
//! Adding mostly changes one digit, or one entry if the weight has no low digit; a carry out of the digit goes
//! to the entry. Only when a cell gets its first entry do others move.

use super::table::{self, Link};
use super::{BLOCK, Fading};
use std::sync::atomic::AtomicU64;

/// Words of the map, of the room and of the digits, which follow each other.
const MAP: usize = BLOCK / 64;
const ROOM: usize = 5;
const DIGITS: usize = BLOCK / 16;
const BODY: usize = MAP + ROOM + DIGITS;
const FIRST_DIGITS: usize = MAP + ROOM;
const BODY_BYTES: usize = BODY * 8;
const ROOM_BYTES: usize = ROOM * 8;
/// Entries beyond so many bytes are worth a wide block, if its values have two bytes or four.
const SPARSE: [usize; 2] = [96, 288];

/// How the values of a block are kept: the three low bits of its link.
const SPARSE8: usize = 0;
const SPARSE16: usize = 1;
const SPARSE32: usize = 2;
const WIDE16: usize = 3;
const WIDE32: usize = 4;

/// 128 cells. All zeroes are an empty block.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Block {
    link: Link,
    body: [u64; BODY],
}

/// An entry, or the value of a wide block.
trait Entry: Copy {
    const BYTES: usize = size_of::<Self>();
    const MOST: u64;
    fn of(value: u32) -> Self;
    fn get(self) -> u32;
}

macro_rules! entries {
    ($($type:ty),*) => {$(
        impl Entry for $type {
            const MOST: u64 = <$type>::MAX as u64;
            #[inline(always)]
            fn of(value: u32) -> Self {
                value as $type
            }
            #[inline(always)]
            fn get(self) -> u32 {
                u32::from(self)
            }
        }
    )*};
}

entries!(u8, u16, u32);

/// Runs one expression for sparse blocks, knowing the type of their entries, and one for wide ones.
macro_rules! by_form {
    ($block:expr, $entry:ident => $sparse:expr, $value:ident => $wide:expr) => {
        match $block.link.form() {
            SPARSE8 => {
                type $entry = u8;
                $sparse
            }
            SPARSE16 => {
                type $entry = u16;
                $sparse
            }
            SPARSE32 => {
                type $entry = u32;
                $sparse
            }
            WIDE16 => {
                type $value = u16;
                $wide
            }
            _ => {
                type $value = u32;
                $wide
            }
        }
    };
}

impl Block {
    // ---- where things are

    #[inline(always)]
    fn has_more(&self, place: usize) -> bool {
        self.body[place / 64] >> (place % 64) & 1 == 1
    }

    /// How many entries lie before that of a cell.
    #[inline(always)]
    fn rank(&self, place: usize) -> usize {
        let below = self.body[place / 64] & ((1 << (place % 64)) - 1);
        let before = if place < 64 { 0 } else { self.body[0].count_ones() };
        (before + below.count_ones()) as usize
    }

    /// The number of entries.
    #[inline(always)]
    fn count(&self) -> usize {
        (self.body[0].count_ones() + self.body[1].count_ones()) as usize
    }

    /// Bytes that there are for entries. Sparse blocks only.
    #[inline(always)]
    fn capacity(&self) -> usize {
        if self.link.is_null() { ROOM_BYTES } else { self.body[MAP] as usize }
    }

    #[inline(always)]
    fn entries<E: Entry>(&mut self) -> *mut E {
        let room = self.body[MAP..FIRST_DIGITS].as_mut_ptr();
        if self.link.is_null() { room.cast() } else { self.link.table().cast() }
    }

    /// The entry of that rank, which exists.
    #[inline(always)]
    fn entry<E: Entry>(&self, rank: usize) -> E {
        debug_assert!((rank + 1) * E::BYTES <= self.capacity());
        let room = self.body[MAP..FIRST_DIGITS].as_ptr();
        let entries =
            if self.link.is_null() { room.cast() } else { self.link.table().cast_const() };
        // SAFETY: a set bit of the map has an entry inside the capacity, aligned since room and tables are
        // to 8 bytes.
        unsafe { *entries.cast::<E>().add(rank) }
    }

    #[inline(always)]
    fn entry_mut<E: Entry>(&mut self, rank: usize) -> &mut E {
        debug_assert!((rank + 1) * E::BYTES <= self.capacity());
        // SAFETY: as above, and nobody else reaches the table (O2).
        unsafe { &mut *self.entries::<E>().add(rank) }
    }

    /// A value of a wide block.
    #[inline(always)]
    fn wide<V: Entry>(&self, place: usize) -> V {
        let first = BODY_BYTES / V::BYTES;
        let (body, table) = (self.body.as_ptr().cast::<V>(), self.link.table().cast::<V>());
        debug_assert!(place < BLOCK);
        // SAFETY: places below 128 are in the body or in the table that a wide block has.
        unsafe { if place < first { *body.add(place) } else { *table.add(place - first) } }
    }

    #[inline(always)]
    fn wide_mut<V: Entry>(&mut self, place: usize) -> &mut V {
        let first = BODY_BYTES / V::BYTES;
        let (body, table) = (self.body.as_mut_ptr().cast::<V>(), self.link.table().cast::<V>());
        debug_assert!(place < BLOCK);
        // SAFETY: as above, and nobody else reaches the table (O2).
        unsafe { &mut *if place < first { body.add(place) } else { table.add(place - first) } }
    }

    /// The table, for asking ahead.
    #[inline(always)]
    pub(super) fn table(&self) -> *const u8 {
        self.link.table()
    }

    // ---- one cell

    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> u32 {
        by_form!(self, E => self.get_sparse::<E>(place), V => self.wide::<V>(place).get())
    }

    #[inline(always)]
    fn get_sparse<E: Entry>(&self, place: usize) -> u32 {
        let low = (self.body[FIRST_DIGITS + place / 16] >> (place % 16 * 4)) as u32 & 15;
        if !self.has_more(place) {
            return low;
        }
        low | self.entry::<E>(self.rank(place)).get() << 4
    }

    pub(super) fn set(&mut self, place: usize, value: u32, held: &AtomicU64) {
        let done = by_form!(
            self,
            E => self.set_sparse::<E>(place, value, held),
            V => self.set_wide::<V>(place, value)
        );
        if !done {
            let mut values = self.values();
            values[place] = value;
            self.lay_out(&values, held);
        }
    }

    /// Whether there was a place for it.
    fn set_sparse<E: Entry>(&mut self, place: usize, value: u32, held: &AtomicU64) -> bool {
        let (more, high) = (self.has_more(place), value >> 4);
        if u64::from(high) > E::MOST || more && high == 0 {
            return false;
        }
        if more {
            let rank = self.rank(place);
            *self.entry_mut::<E>(rank) = E::of(high);
        } else if high != 0 && !self.insert::<E>(place, high, held) {
            return false;
        }
        self.set_digit(place, value & 15);
        true
    }

    fn set_wide<V: Entry>(&mut self, place: usize, value: u32) -> bool {
        let fits = u64::from(value) <= V::MOST;
        if fits {
            *self.wide_mut::<V>(place) = V::of(value);
        }
        fits
    }

    #[inline(always)]
    fn set_digit(&mut self, place: usize, digit: u32) {
        let (word, shift) = (&mut self.body[FIRST_DIGITS + place / 16], place % 16 * 4);
        *word = *word & !(15 << shift) | u64::from(digit) << shift;
    }

    /// Gives a cell an entry, if there is room for it or a small table can be had.
    #[inline(always)]
    fn insert<E: Entry>(&mut self, place: usize, high: u32, held: &AtomicU64) -> bool {
        let (count, rank) = (self.count(), self.rank(place));
        let bytes = (count + 1) * E::BYTES;
        if bytes > self.capacity() {
            if bytes > SPARSE[0] {
                return false;
            }
            self.resize(count * E::BYTES, table::capacity_for(bytes), held);
        }
        // SAFETY: there is room for one more behind the last; entries before and after do not leave it.
        unsafe {
            let entry = self.entries::<E>().add(rank);
            std::ptr::copy(entry, entry.add(1), count - rank);
            entry.write(E::of(high));
        }
        self.body[place / 64] |= 1 << (place % 64);
        true
    }

    /// Moves `bytes` bytes of entries to where there is room for `capacity` of them.
    #[inline(never)]
    fn resize(&mut self, bytes: usize, capacity: usize, held: &AtomicU64) {
        let (old, old_capacity) = (self.link, self.capacity());
        if capacity > ROOM_BYTES {
            let new = table::take(capacity, old.form(), held);
            // SAFETY: both have room for the entries, and they are different memory.
            unsafe { new.table().copy_from_nonoverlapping(self.entries::<u8>(), bytes) };
            self.link = new;
            self.body[MAP] = capacity as u64;
        } else {
            let mut room = [0; ROOM_BYTES];
            // SAFETY: entries of `bytes` bytes, which fit the room since they fit the capacity.
            unsafe { self.entries::<u8>().copy_to_nonoverlapping(room.as_mut_ptr(), bytes) };
            self.link = Link::none(old.form());
            for (word, eight) in self.body[MAP..FIRST_DIGITS].iter_mut().zip(room.chunks_exact(8)) {
                *word = eight.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
        }
        if !old.is_null() {
            table::give_back(old, old_capacity, held);
        }
    }

    // ---- adding

    /// Adds up to `max`: (was it zero before, could it not rise so far).
    #[inline(always)]
    pub(super) fn raise(
        &mut self,
        place: usize,
        weight: u64,
        max: u32,
        held: &AtomicU64,
    ) -> (bool, bool) {
        let done = by_form!(
            self,
            E => self.raise_sparse::<E>(place, weight, max),
            V => self.raise_wide::<V>(place, weight, max)
        );
        match done {
            Some(was_zero) => (was_zero, false),
            None => self.raise_anew(place, weight, max, held),
        }
    }

    /// Whether the cell was zero; None if it must be done another way.
    #[inline(always)]
    fn raise_sparse<E: Entry>(&mut self, place: usize, weight: u64, max: u32) -> Option<bool> {
        let most = E::MOST.min(u64::from(max >> 4));
        // Sums of this size do not overflow.
        if weight & 15 == 0 {
            // The digit stays, and its line need not be there.
            if !self.has_more(place) {
                return None;
            }
            let rank = self.rank(place);
            let entry = self.entry_mut::<E>(rank);
            let high = u64::from(entry.get()) + (weight >> 4);
            *entry = if high <= most { E::of(high as u32) } else { *entry };
            return (high <= most).then_some(false);
        }
        let (word, shift) = (FIRST_DIGITS + place / 16, place % 16 * 4);
        let digits = self.body[word];
        let low = digits >> shift & 15;
        let sum = low + weight;
        if sum <= 15 {
            self.body[word] = digits + (weight << shift);
            return Some(low == 0 && !self.has_more(place));
        }
        if !self.has_more(place) {
            return None;
        }
        let rank = self.rank(place);
        let entry = self.entry_mut::<E>(rank);
        let high = u64::from(entry.get()) + (sum >> 4);
        if high > most {
            return None;
        }
        *entry = E::of(high as u32);
        self.body[word] = digits ^ (low ^ sum & 15) << shift;
        Some(false)
    }

    #[inline(always)]
    fn raise_wide<V: Entry>(&mut self, place: usize, weight: u64, max: u32) -> Option<bool> {
        let value = self.wide_mut::<V>(place);
        let old = u64::from(value.get());
        let new = old + weight;
        if new > V::MOST.min(u64::from(max)) {
            return None;
        }
        *value = V::of(new as u32);
        Some(old == 0)
    }

    #[inline(never)]
    fn raise_anew(
        &mut self,
        place: usize,
        weight: u64,
        max: u32,
        held: &AtomicU64,
    ) -> (bool, bool) {
        let old = self.get(place);
        let new = u64::from(old) + weight;
        self.set(place, new.min(u64::from(max)) as u32, held);
        (old == 0, new > u64::from(max))
    }

    // ---- all cells

    /// Fades every cell. Memory that is no longer needed goes back.
    #[inline(always)]
    pub(super) fn fade(&mut self, fading: &Fading, held: &AtomicU64) {
        by_form!(
            self,
            E => self.fade_sparse::<E>(fading, held),
            V => {
                let mut values = self.values();
                values.iter_mut().for_each(|value| *value = fading.fade(*value));
                let shape = Shape::of(&values);
                if shape.form() == self.link.form() || shape.bytes() * 2 > SPARSE[usize::from(V::BYTES == 4)] {
                    (0..BLOCK).for_each(|place| *self.wide_mut::<V>(place) = V::of(values[place]));
                } else {
                    self.lay_out(&values, held);
                }
            }
        );
    }

    #[inline(always)]
    fn fade_sparse<E: Entry>(&mut self, fading: &Fading, held: &AtomicU64) {
        let mut digits = [0; DIGITS];
        digits.copy_from_slice(&self.body[FIRST_DIGITS..]);
        let before = digits;
        if digits.iter().all(|word| *word == 0) && self.count() == 0 {
            return;
        }
        fade_digits(&mut digits, fading);
        let (entries, mut read, mut kept, mut largest) = (self.entries::<E>(), 0, 0, 0);
        for half in 0..MAP {
            let (mut left, mut stay) = (self.body[half], 0);
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                let (word, shift) = (half * 4 + bit / 16, bit % 16 * 4);
                let low = (before[word] >> shift) as u32 & 15;
                // SAFETY: as many entries as bits; what is kept is not ahead of what was read.
                let value = fading.fade(low | unsafe { entries.add(read).read() }.get() << 4);
                digits[word] = digits[word] & !(15 << shift) | u64::from(value & 15) << shift;
                // SAFETY: as above.
                unsafe { entries.add(kept).write(E::of(value >> 4)) };
                largest = largest.max(value);
                stay |= u64::from(value > 15) << bit;
                (read, kept) = (read + 1, kept + usize::from(value > 15));
                left &= left - 1;
            }
            self.body[half] = stay;
        }
        self.body[FIRST_DIGITS..].copy_from_slice(&digits);
        if self.link.is_null() && E::BYTES == 1 {
            return;
        }
        // Less memory only if it is much less, or a block would go to and fro.
        let narrow = Shape { count: kept, largest };
        if E::BYTES > narrow.entry_bytes() && narrow.bytes() * 2 <= kept.max(1) * E::BYTES {
            let values = self.values();
            self.lay_out(&values, held);
        } else {
            let wanted = table::capacity_for(kept * E::BYTES);
            if wanted + 32 <= self.capacity() || wanted <= ROOM_BYTES && !self.link.is_null() {
                self.resize(kept * E::BYTES, wanted, held);
            }
        }
    }

    /// Every value.
    #[inline(always)]
    pub(super) fn values(&self) -> [u32; BLOCK] {
        let mut values = [0; BLOCK];
        by_form!(
            self,
            E => {
                for (sixteen, word) in values.chunks_exact_mut(16).zip(&self.body[FIRST_DIGITS..]) {
                    for (i, value) in sixteen.iter_mut().enumerate() {
                        *value = (word >> (4 * i)) as u32 & 15;
                    }
                }
                let mut rank = 0;
                for half in 0..MAP {
                    let mut left = self.body[half];
                    while left != 0 {
                        let place = half * 64 + left.trailing_zeros() as usize;
                        values[place] |= self.entry::<E>(rank).get() << 4;
                        rank += 1;
                        left &= left - 1;
                    }
                }
            },
            V => (0..BLOCK).for_each(|place| values[place] = self.wide::<V>(place).get())
        );
        values
    }

    /// Holds these values, in the form that fits them.
    #[inline(never)]
    fn lay_out(&mut self, values: &[u32; BLOCK], held: &AtomicU64) {
        let shape = Shape::of(values);
        self.clear(held);
        let form = shape.form();
        let capacity = match form {
            WIDE16 => BLOCK * 2 - BODY_BYTES,
            WIDE32 => BLOCK * 4 - BODY_BYTES,
            _ => table::capacity_for(shape.bytes()),
        };
        self.link = Link::none(form);
        if form >= WIDE16 || capacity > ROOM_BYTES {
            self.link = table::take(capacity, form, held);
        }
        by_form!(
            self,
            E => self.lay_out_sparse::<E>(values, capacity),
            V => (0..BLOCK).for_each(|place| *self.wide_mut::<V>(place) = V::of(values[place]))
        );
    }

    fn lay_out_sparse<E: Entry>(&mut self, values: &[u32; BLOCK], capacity: usize) {
        if capacity > ROOM_BYTES {
            self.body[MAP] = capacity as u64;
        }
        let mut rank = 0;
        for (place, value) in values.iter().enumerate() {
            self.body[FIRST_DIGITS + place / 16] |= u64::from(value & 15) << (place % 16 * 4);
            if *value > 15 {
                self.body[place / 64] |= 1 << (place % 64);
                *self.entry_mut::<E>(rank) = E::of(value >> 4);
                rank += 1;
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, held: &AtomicU64) {
        if !self.link.is_null() {
            let capacity = match self.link.form() {
                WIDE16 => BLOCK * 2 - BODY_BYTES,
                WIDE32 => BLOCK * 4 - BODY_BYTES,
                _ => self.capacity(),
            };
            table::give_back(self.link, capacity, held);
        }
        (self.link, self.body) = (Link::none(SPARSE8), [0; BODY]);
    }

    /// Bytes of its table, and what is wrong with it, if something is.
    pub(super) fn check(&self) -> (usize, Option<&'static str>) {
        let values = self.values();
        by_form!(
            self,
            E => {
                let size = if self.link.is_null() { 0 } else { self.capacity() };
                let more = (0..BLOCK).all(|place| self.has_more(place) == (values[place] > 15));
                if !more {
                    return (size, Some("the map of a block does not fit its values"));
                }
                let short = self.count() * E::BYTES > self.capacity();
                (size, short.then_some("a table is too short for its entries"))
            },
            V => (BLOCK * V::BYTES - BODY_BYTES, None)
        )
    }
}

/// What decides the form of a block.
#[derive(Clone, Copy)]
struct Shape {
    /// Cells of 16 and more.
    count: usize,
    largest: u32,
}

impl Shape {
    #[inline(always)]
    fn of(values: &[u32; BLOCK]) -> Self {
        let count = values.iter().map(|value| u32::from(*value > 15)).sum::<u32>() as usize;
        let largest = values.iter().fold(0, |all, value| all | value);
        Shape { count, largest }
    }

    fn entry_bytes(self) -> usize {
        match self.largest >> 4 {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        }
    }

    fn bytes(self) -> usize {
        self.count * self.entry_bytes()
    }

    fn form(self) -> usize {
        let narrow = self.largest <= u32::from(u16::MAX);
        if self.bytes() > SPARSE[usize::from(!narrow)] {
            return if narrow { WIDE16 } else { WIDE32 };
        }
        match self.entry_bytes() {
            1 => SPARSE8,
            2 => SPARSE16,
            _ => SPARSE32,
        }
    }
}

/// Fades 128 digits, two at a time by a table of all pairs.
#[inline(always)]
fn fade_digits(digits: &mut [u64; DIGITS], fading: &Fading) {
    let mut one = [0u8; 16];
    for (digit, faded) in (0..).zip(&mut one) {
        *faded = fading.fade(digit) as u8;
    }
    let mut pairs = [0u8; 256];
    for (high, row) in one.iter().zip(pairs.chunks_exact_mut(16)) {
        for (pair, low) in row.iter_mut().zip(&one) {
            *pair = high << 4 | low;
        }
    }
    for word in digits.iter_mut().filter(|word| **word != 0) {
        *word = u64::from_le_bytes(word.to_le_bytes().map(|pair| pairs[usize::from(pair)]));
    }
}
