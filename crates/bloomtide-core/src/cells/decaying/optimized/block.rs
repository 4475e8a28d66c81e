//! One block of the optimized layout: a record of whole lines, and a table elsewhere if that is not enough.
//!
//! ```text
//! sparse   link | map: 128 bits, which cells have more | 128 low digits | room for entries
//!          An entry is the rest of a cell's value, in 16 bits. Entries lie in the order of the cells: a cell's
//!          entry is found by counting the bits before its own. The link is null.
//! wide     link | values of 2 or 4 bytes: as many as fit into the record, the others in a table
//! ```
//!
//! Adding mostly changes one digit, or one entry if the weight has no low digit; a carry out of the digit goes
//! to the entry. Only when a cell gets its first entry do others move.

use super::BLOCK;
use super::table::{Link, Pool};
use std::hint::select_unpredictable;

/// Words of the map and of the digits, which follow each other: most digits are in the first line.
pub(super) const MAP: usize = BLOCK / 64;
pub(super) const DIGITS: usize = BLOCK / 16;

/// How the values of a block are kept: the low bits of its link.
pub(super) const SPARSE: usize = 0;
pub(super) const WIDE16: usize = 1;
pub(super) const WIDE32: usize = 2;

/// 128 cells, with so many words of room. All zeroes are an empty block.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Block<const ROOM: usize> {
    pub(super) link: Link,
    pub(super) map: [u64; MAP],
    pub(super) digits: [u64; DIGITS],
    pub(super) room: [u64; ROOM],
}

/// The value of a wide block.
pub(super) trait Value: Copy {
    const BYTES: usize = size_of::<Self>();
    const MOST: u64;
    fn of(value: u32) -> Self;
    fn get(self) -> u32;
}

macro_rules! values {
    ($($type:ty),*) => {$(
        impl Value for $type {
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

values!(u16, u32);

/// Runs one expression for sparse blocks, and one for wide ones, knowing the type of their values.
macro_rules! by_form {
    ($block:expr, $sparse:expr, $value:ident => $wide:expr) => {
        match $block.link.form() {
            SPARSE => $sparse,
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
    /// Entries that the room is enough for.
    pub(super) const ENTRIES: usize = ROOM * 4;
    /// Bytes of everything behind the link.
    pub(super) const BODY_BYTES: usize = (MAP + DIGITS + ROOM) * 8;

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

    /// The room as entries.
    #[inline(always)]
    pub(super) fn entries(&self) -> &[u16] {
        // SAFETY: four of them are as long as a word, and need less alignment.
        unsafe { std::slice::from_raw_parts(self.room.as_ptr().cast(), Self::ENTRIES) }
    }

    #[inline(always)]
    pub(super) fn entries_mut(&mut self) -> &mut [u16] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.room.as_mut_ptr().cast(), Self::ENTRIES) }
    }

    /// The entry of a cell that has one.
    #[inline(always)]
    fn entry_mut(&mut self, place: usize) -> &mut u16 {
        let rank = self.rank(place);
        debug_assert!(rank < Self::ENTRIES);
        // SAFETY: a set bit of the map has an entry, and a sparse block has no more than fit the room (O1).
        unsafe { self.entries_mut().get_unchecked_mut(rank) }
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
    fn wide<V: Value>(&self, place: usize) -> V {
        // SAFETY: places below 128 are in the body or in the table that a wide block has.
        unsafe { *Self::wide_at(self.body().cast::<V>().cast_mut(), self.link, place) }
    }

    #[inline(always)]
    fn wide_mut<V: Value>(&mut self, place: usize) -> &mut V {
        let body = self.body_mut().cast::<V>();
        // SAFETY: as above, and nobody else reaches the table (O2).
        unsafe { &mut *Self::wide_at(body, self.link, place) }
    }

    /// Where a value of a wide block is. No branch: half of the places are in the table.
    #[inline(always)]
    fn wide_at<V: Value>(body: *mut V, link: Link, place: usize) -> *mut V {
        debug_assert!(place < BLOCK);
        let first = Self::BODY_BYTES / V::BYTES;
        let table = link.table().cast::<V>().wrapping_sub(first);
        select_unpredictable(place < first, body, table).wrapping_add(place)
    }

    // ---- one cell

    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> u32 {
        by_form!(self, self.get_sparse(place), V => self.wide::<V>(place).get())
    }

    #[inline(always)]
    fn get_sparse(&self, place: usize) -> u32 {
        let low = (self.digits[place / 16] >> (place % 16 * 4)) as u32 & 15;
        if !self.has_more(place) {
            return low;
        }
        // SAFETY: as in `entry_mut`.
        low | u32::from(unsafe { *self.entries().get_unchecked(self.rank(place)) }) << 4
    }

    pub(super) fn set(&mut self, place: usize, value: u32, pool: &Pool) {
        let done = by_form!(
            self,
            self.set_sparse(place, value),
            V => {
                let fits = u64::from(value) <= V::MOST;
                if fits {
                    *self.wide_mut::<V>(place) = V::of(value);
                }
                fits
            }
        );
        if !done {
            let mut values = self.values();
            values[place] = value;
            self.lay_out(&values, pool);
        }
    }

    /// Whether there was a place for it.
    fn set_sparse(&mut self, place: usize, value: u32) -> bool {
        let (more, high) = (self.has_more(place), value >> 4);
        let Ok(high) = u16::try_from(high) else { return false };
        match (more, high) {
            (false, 0) => {}
            (true, 0) => return false,
            (true, _) => *self.entry_mut(place) = high,
            (false, _) if self.count() == Self::ENTRIES => return false,
            (false, _) => self.insert(place, high),
        }
        self.set_digit(place, value & 15);
        true
    }

    #[inline(always)]
    fn set_digit(&mut self, place: usize, digit: u32) {
        let (word, shift) = (&mut self.digits[place / 16], place % 16 * 4);
        *word = *word & !(15 << shift) | u64::from(digit) << shift;
    }

    /// Gives a cell its entry, where there is room for one more. Word by word, for all of the room: how many entries
    /// move is hard to foresee.
    #[inline(always)]
    fn insert(&mut self, place: usize, high: u16) {
        let rank = self.rank(place);
        let (at, shift) = (rank / 4, rank % 4 * 16);
        for i in (1..ROOM).rev() {
            let moved = self.room[i] << 16 | self.room[i - 1] >> 48;
            self.room[i] = select_unpredictable(i > at, moved, self.room[i]);
        }
        let (word, below) = (self.room[at], (1 << shift) - 1);
        self.room[at] = word & below | u64::from(high) << shift | (word & !below) << 16;
        self.map[place / 64] |= 1 << (place % 64);
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
            self.raise_sparse(place, weight, max),
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
            for (i, place) in places { note(i, self.raise_sparse(place, weight, max)) },
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
    fn raise_sparse(&mut self, place: usize, weight: u64, max: u32) -> Option<bool> {
        let most = u16::MOST.min(u64::from(max >> 4));
        // Sums of this size do not overflow.
        if weight & 15 == 0 {
            // The digit stays, and its line need not be there.
            if !self.has_more(place) {
                return None;
            }
            let entry = self.entry_mut(place);
            let high = u64::from(*entry) + (weight >> 4);
            *entry = if high <= most { high as u16 } else { *entry };
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
        let entry = self.entry_mut(place);
        let high = u64::from(*entry) + (sum >> 4);
        if high > most {
            return None;
        }
        *entry = high as u16;
        self.digits[word] = digits ^ (low ^ sum & 15) << shift;
        Some(false)
    }

    #[inline(always)]
    fn raise_wide<V: Value>(&mut self, place: usize, weight: u64, max: u32) -> Option<bool> {
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
        let fits = self.link.form() == SPARSE && self.count() < Self::ENTRIES;
        if !small || !fits || self.has_more(place) {
            return self.raise_slowly(place, weight, max, pool);
        }
        self.insert(place, high as u16);
        self.set_digit(place, (sum & 15) as u32);
        (low == 0, false)
    }

    #[inline(never)]
    fn raise_slowly(&mut self, place: usize, weight: u64, max: u32, pool: &Pool) -> (bool, bool) {
        let old = self.get(place);
        let new = u64::from(old) + weight;
        self.set(place, new.min(u64::from(max)) as u32, pool);
        (old == 0, new > u64::from(max))
    }
}
