//! One block of the optimized layout: a record of whole lines, and a table elsewhere if that is not enough.
//!
//! ```text
//! sparse   link | map: 128 bits, which cells have more | 128 low digits | room for entries
//!          An entry is the rest of a cell's value. All of a block have 2 or 4 bytes and lie in the order
//!          of the cells: a cell's entry is found by counting the bits before its own. More than fit the
//!          room are in a table, whose size then stands in the room.
//! wide     link | values of 2 or 4 bytes: as many as fit into the record, the others in a table
//! ```
//!
//! Adding mostly changes one digit, or one entry if the weight has no low digit; a carry out of the digit goes
//! to the entry. Only when a cell gets its first entry do others move.

use super::BLOCK;
use super::table::{self, Link, Pool};
use std::hint::select_unpredictable;

/// Words of the map and of the digits, which follow each other: most digits are in the first line.
pub(super) const MAP: usize = BLOCK / 64;
pub(super) const DIGITS: usize = BLOCK / 16;

/// How the values of a block are kept: the three low bits of its link.
pub(super) const SPARSE16: usize = 0;
pub(super) const SPARSE32: usize = 1;
pub(super) const WIDE16: usize = 2;
pub(super) const WIDE32: usize = 3;

/// 128 cells, with so many words of room. All zeroes are an empty block.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Block<const ROOM: usize> {
    pub(super) link: Link,
    pub(super) map: [u64; MAP],
    pub(super) digits: [u64; DIGITS],
    pub(super) room: [u64; ROOM],
}

/// An entry, or the value of a wide block.
pub(super) trait Entry: Copy {
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

entries!(u16, u32);

/// Runs one expression for sparse blocks, knowing the type of their entries, and one for wide ones.
macro_rules! by_form {
    ($block:expr, $entry:ident => $sparse:expr, $value:ident => $wide:expr) => {
        match $block.link.form() {
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

pub(super) use by_form;

impl<const ROOM: usize> Block<ROOM> {
    /// Bytes of room, and of everything behind the link.
    pub(super) const ROOM_BYTES: usize = ROOM * 8;
    pub(super) const BODY_BYTES: usize = (MAP + DIGITS + ROOM) * 8;
    /// Entries beyond so many bytes are worth a wide block, if its values have two bytes or four. For two a
    /// table would be smaller up to 120, but slower than plain values, and so are blocks of both forms in turn.
    pub(super) const SPARSE: [usize; 2] = [Self::ROOM_BYTES, 288];

    // ---- where things are

    #[inline(always)]
    pub(super) fn has_more(&self, place: usize) -> bool {
        self.map[place / 64] >> (place % 64) & 1 == 1
    }

    /// How many entries lie before that of a cell.
    #[inline(always)]
    fn rank(&self, place: usize) -> usize {
        let below = self.map[place / 64] & ((1 << (place % 64)) - 1);
        // No branch: half of the places are in the second word.
        let before = self.map[0].count_ones() & (place as u32 / 64).wrapping_neg();
        (before + below.count_ones()) as usize
    }

    /// The number of entries.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        (self.map[0].count_ones() + self.map[1].count_ones()) as usize
    }

    /// Bytes that there are for entries. Sparse blocks only.
    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        if self.link.is_null() { Self::ROOM_BYTES } else { self.room[0] as usize }
    }

    /// The room, or the size of a table for so many bytes.
    #[inline(always)]
    pub(super) fn capacity_for(bytes: usize) -> usize {
        if bytes <= Self::ROOM_BYTES { Self::ROOM_BYTES } else { table::size_for(bytes) }
    }

    #[inline(always)]
    pub(super) fn entries<E: Entry>(&mut self) -> *mut E {
        let room = self.room.as_mut_ptr();
        if self.link.is_null() { room.cast() } else { self.link.table().cast() }
    }

    /// The entry of that rank, which exists.
    #[inline(always)]
    pub(super) fn entry<E: Entry>(&self, rank: usize) -> E {
        debug_assert!((rank + 1) * E::BYTES <= self.capacity());
        let room = self.room.as_ptr();
        let entries =
            if self.link.is_null() { room.cast() } else { self.link.table().cast_const() };
        // SAFETY: a set bit of the map has an entry inside the capacity, aligned since room and tables are
        // to 8 bytes.
        unsafe { *entries.cast::<E>().add(rank) }
    }

    #[inline(always)]
    pub(super) fn entry_mut<E: Entry>(&mut self, rank: usize) -> &mut E {
        debug_assert!((rank + 1) * E::BYTES <= self.capacity());
        // SAFETY: as above, and nobody else reaches the table (O2).
        unsafe { &mut *self.entries::<E>().add(rank) }
    }

    /// Where the values of a wide block begin: behind the link.
    #[inline(always)]
    pub(super) fn body(&self) -> *const u8 {
        std::ptr::from_ref(self).cast::<u8>().wrapping_add(size_of::<Link>())
    }

    #[inline(always)]
    pub(super) fn body_mut(&mut self) -> *mut u8 {
        std::ptr::from_mut(self).cast::<u8>().wrapping_add(size_of::<Link>())
    }

    /// A value of a wide block.
    #[inline(always)]
    pub(super) fn wide<V: Entry>(&self, place: usize) -> V {
        // SAFETY: places below 128 are in the body or in the table that a wide block has.
        unsafe { *Self::wide_at(self.body().cast::<V>().cast_mut(), self.link, place) }
    }

    #[inline(always)]
    pub(super) fn wide_mut<V: Entry>(&mut self, place: usize) -> &mut V {
        let body = self.body_mut().cast::<V>();
        // SAFETY: as above, and nobody else reaches the table (O2).
        unsafe { &mut *Self::wide_at(body, self.link, place) }
    }

    /// Where a value of a wide block is. No branch: half of the places are in the table.
    #[inline(always)]
    fn wide_at<V: Entry>(body: *mut V, link: Link, place: usize) -> *mut V {
        debug_assert!(place < BLOCK);
        let first = Self::BODY_BYTES / V::BYTES;
        let table = link.table().cast::<V>().wrapping_sub(first);
        select_unpredictable(place < first, body, table).wrapping_add(place)
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
        let low = (self.digits[place / 16] >> (place % 16 * 4)) as u32 & 15;
        if !self.has_more(place) {
            return low;
        }
        low | self.entry::<E>(self.rank(place)).get() << 4
    }

    pub(super) fn set(&mut self, place: usize, value: u32, pool: &Pool) {
        let done = by_form!(
            self,
            E => self.set_sparse::<E>(place, value, pool),
            V => self.set_wide::<V>(place, value)
        );
        if !done {
            let mut values = self.values();
            values[place] = value;
            self.lay_out(&values, pool);
        }
    }

    /// Whether there was a place for it.
    fn set_sparse<E: Entry>(&mut self, place: usize, value: u32, pool: &Pool) -> bool {
        let (more, high) = (self.has_more(place), value >> 4);
        if u64::from(high) > E::MOST || more && high == 0 {
            return false;
        }
        if more {
            let rank = self.rank(place);
            *self.entry_mut::<E>(rank) = E::of(high);
        } else if high != 0 && !self.insert::<E>(place, high, pool) {
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
        let (word, shift) = (&mut self.digits[place / 16], place % 16 * 4);
        *word = *word & !(15 << shift) | u64::from(digit) << shift;
    }

    /// Gives a cell an entry, if there is room for it or a small table can be had.
    #[inline(always)]
    fn insert<E: Entry>(&mut self, place: usize, high: u32, pool: &Pool) -> bool {
        let (count, rank) = (self.count(), self.rank(place));
        let bytes = (count + 1) * E::BYTES;
        if bytes > self.capacity() {
            if bytes > Self::SPARSE[0] {
                return false;
            }
            self.resize(count * E::BYTES, Self::capacity_for(bytes), pool);
        }
        // SAFETY: there is room for one more behind the last; entries before and after do not leave it.
        unsafe {
            let entry = self.entries::<E>().add(rank);
            std::ptr::copy(entry, entry.add(1), count - rank);
            entry.write(E::of(high));
        }
        self.map[place / 64] |= 1 << (place % 64);
        true
    }

    /// Moves `bytes` bytes of entries to where there is room for `capacity` of them.
    #[inline(never)]
    pub(super) fn resize(&mut self, bytes: usize, capacity: usize, pool: &Pool) {
        let (old, old_capacity) = (self.link, self.capacity());
        if capacity > Self::ROOM_BYTES {
            let new = table::take(capacity, old.form(), pool);
            // SAFETY: both have room for the entries, and they are different memory.
            unsafe {
                new.table().copy_from_nonoverlapping(self.entries::<u16>().cast::<u8>(), bytes)
            };
            self.link = new;
            self.room[0] = capacity as u64;
        } else {
            // SAFETY: entries of `bytes` bytes, which fit the room since they fit the capacity; the table they
            // are in, if they move, is other memory.
            unsafe {
                let entries = self.entries::<u16>().cast::<u8>();
                entries.copy_to(self.room.as_mut_ptr().cast(), bytes);
            }
            self.link = Link::none(old.form());
        }
        if !old.is_null() {
            table::give_back(old, old_capacity, pool);
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
        pool: &Pool,
    ) -> (bool, bool) {
        let done = by_form!(
            self,
            E => self.raise_sparse::<E>(place, weight, max),
            V => self.raise_wide::<V>(place, weight, max)
        );
        match done {
            Some(was_zero) => (was_zero, false),
            None => self.raise_anew(place, weight, max, pool),
        }
    }

    /// The same for several cells of the block: (was one zero, a bit for each that could not rise so far).
    #[inline(always)]
    pub(super) fn raise_all(
        &mut self,
        cells: &[u64],
        weight: u64,
        max: u32,
        pool: &Pool,
    ) -> (bool, u64) {
        let (mut new, mut left, mut full) = (false, 0u64, 0);
        let mut note = |i: usize, done: Option<bool>| match done {
            Some(was_zero) => new |= was_zero,
            None => left |= 1 << i,
        };
        let places = cells.iter().map(|cell| *cell as usize % BLOCK).enumerate();
        by_form!(
            self,
            E => for (i, place) in places { note(i, self.raise_sparse::<E>(place, weight, max)) },
            V => for (i, place) in places { note(i, self.raise_wide::<V>(place, weight, max)) }
        );
        while left != 0 {
            let i = left.trailing_zeros() as usize;
            let (zero, stopped) = self.raise_anew(cells[i] as usize % BLOCK, weight, max, pool);
            new |= zero;
            full |= u64::from(stopped) << i;
            left &= left - 1;
        }
        (new, full)
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
        let (word, shift) = (place / 16, place % 16 * 4);
        let digits = self.digits[word];
        let low = digits >> shift & 15;
        let sum = low + weight;
        // Mostly a digit changes, and nothing else.
        if sum <= 15 {
            self.digits[word] = digits + (weight << shift);
            // Not `&&`: whether a digit is zero is hard to foresee.
            return Some((low == 0) & !self.has_more(place));
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
        self.digits[word] = digits ^ (low ^ sum & 15) << shift;
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

    /// The same where a cell gets its first entry, mostly.
    #[inline(always)]
    fn raise_anew(&mut self, place: usize, weight: u64, max: u32, pool: &Pool) -> (bool, bool) {
        let low = self.digits[place / 16] >> (place % 16 * 4) & 15;
        let sum = low + weight;
        let high = sum >> 4;
        let small = high != 0 && high <= u16::MOST.min(u64::from(max >> 4));
        let fits = self.link.is_null()
            && self.link.form() == SPARSE16
            && self.count() < Self::ROOM_BYTES / 2;
        if !small || !fits || self.has_more(place) {
            return self.raise_slowly(place, weight, max, pool);
        }
        self.insert_in_room(place, high);
        self.set_digit(place, (sum & 15) as u32);
        (low == 0, false)
    }

    /// Gives a cell an entry of two bytes in the room, where there is one left. Word by word, for all of the room:
    /// how many entries move is hard to foresee.
    #[inline(always)]
    fn insert_in_room(&mut self, place: usize, high: u64) {
        let rank = self.rank(place);
        let (at, shift) = (rank / 4, rank % 4 * 16);
        for i in (1..ROOM).rev() {
            let moved = self.room[i] << 16 | self.room[i - 1] >> 48;
            self.room[i] = select_unpredictable(i > at, moved, self.room[i]);
        }
        let (word, below) = (self.room[at], (1 << shift) - 1);
        self.room[at] = word & below | high << shift | (word & !below) << 16;
        self.map[place / 64] |= 1 << (place % 64);
    }

    #[inline(never)]
    fn raise_slowly(&mut self, place: usize, weight: u64, max: u32, pool: &Pool) -> (bool, bool) {
        let old = self.get(place);
        let new = u64::from(old) + weight;
        self.set(place, new.min(u64::from(max)) as u32, pool);
        (old == 0, new > u64::from(max))
    }
}
