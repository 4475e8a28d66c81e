//! All cells of a block at once: fading, and laying a block out in the form that fits its values.

use super::block::{Block, DIGITS, Entry, MAP, SPARSE16, SPARSE32, WIDE16, WIDE32, by_form};
use super::table::{self, Link, Pool};
use super::{BLOCK, Fading};

impl<const ROOM: usize> Block<ROOM> {
    /// Fades every cell. Memory that is no longer needed goes back.
    #[inline(always)]
    pub(super) fn fade(&mut self, fading: &Fading, pool: &Pool) {
        if self.is_zero() {
            return;
        }
        by_form!(
            self,
            E => {
                let mut values = self.values();
                values.iter_mut().for_each(|value| *value = fading.fade(*value));
                self.store::<E>(&values);
                self.fit::<E>(Shape::of(&values), pool);
            },
            V => self.fade_wide::<V>(fading, pool)
        );
    }

    /// Whether every cell is.
    #[inline(always)]
    pub(super) fn is_zero(&self) -> bool {
        self.link.is_null() && self.map == [0; MAP] && self.digits == [0; DIGITS]
    }

    /// Gives a sparse block another form, or less memory: only if it takes much less, or a block would go to
    /// and fro.
    #[inline(always)]
    pub(super) fn fit<E: Entry>(&mut self, shape: Shape, pool: &Pool) {
        if E::BYTES == 4 && shape.largest < 1 << 19 {
            return self.lay_out(&self.values(), pool);
        }
        let (used, now) = (shape.count * E::BYTES, self.capacity());
        let wanted = Self::capacity_for(used);
        if wanted + 32 <= now || used + 8 <= Self::ROOM_BYTES && now > Self::ROOM_BYTES {
            self.resize(used, wanted, pool);
        }
    }

    /// Fades a wide block.
    #[inline(always)]
    pub(super) fn fade_wide<V: Entry>(&mut self, fading: &Fading, pool: &Pool) {
        let mut values = self.values_of_wide::<V>();
        values.iter_mut().for_each(|value| *value = V::of(fading.fade(value.get())));
        let all = values.map(V::get);
        let (shape, wide) = (Shape::of(&all), V::BYTES == 4);
        if shape.bytes() * 2 <= Self::SPARSE[usize::from(wide)] || wide && shape.largest < 1 << 15 {
            return self.lay_out(&all, pool);
        }
        self.store_wide(&values);
    }

    /// Writes all values to a sparse block that has room for their entries.
    #[inline(always)]
    fn store<E: Entry>(&mut self, values: &[u32; BLOCK]) {
        let (mut low, mut more) = ([0u8; BLOCK], [0u8; BLOCK]);
        for (place, value) in values.iter().enumerate() {
            low[place] = (value & 15) as u8;
            more[place] = u8::from(*value > 15);
        }
        for (word, sixteen) in self.digits.iter_mut().zip(low.chunks_exact(16)) {
            *word = digits_of(&sixteen[..8]) | digits_of(&sixteen[8..]) << 32;
        }
        let entries = self.entries::<E>();
        let mut rank = 0;
        for (half, flags) in more.chunks_exact(64).enumerate() {
            let map = (0..).zip(flags.chunks_exact(8)).fold(0, |map, (i, flags)| {
                // Moves the eight flags to the upper byte.
                map | word_of(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i)
            });
            self.map[half] = map;
            let mut left = map;
            while left != 0 {
                let place = half * 64 + left.trailing_zeros() as usize;
                // SAFETY: the caller knows of the room.
                unsafe { entries.add(rank).write(E::of(values[place] >> 4)) };
                rank += 1;
                left &= left - 1;
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
                for (sixteen, word) in values.chunks_exact_mut(16).zip(&self.digits) {
                    for (i, value) in sixteen.iter_mut().enumerate() {
                        *value = (word >> (4 * i)) as u32 & 15;
                    }
                }
                let mut rank = 0;
                for half in 0..MAP {
                    let mut left = self.map[half];
                    while left != 0 {
                        let place = half * 64 + left.trailing_zeros() as usize;
                        values[place] |= self.entry::<E>(rank).get() << 4;
                        rank += 1;
                        left &= left - 1;
                    }
                }
            },
            V => values = self.values_of_wide::<V>().map(V::get)
        );
        values
    }

    /// Every value of a wide block.
    #[inline(always)]
    fn values_of_wide<V: Entry>(&self) -> [V; BLOCK] {
        let mut values = [V::of(0); BLOCK];
        let (first, others) = values.split_at_mut(Self::BODY_BYTES / V::BYTES);
        // SAFETY: a wide block's record and its table hold just these.
        unsafe {
            self.body().cast::<V>().copy_to_nonoverlapping(first.as_mut_ptr(), first.len());
            let table = self.link.table().cast::<V>();
            table.copy_to_nonoverlapping(others.as_mut_ptr(), others.len());
        }
        values
    }

    #[inline(always)]
    fn store_wide<V: Entry>(&mut self, values: &[V; BLOCK]) {
        let (first, others) = values.split_at(Self::BODY_BYTES / V::BYTES);
        // SAFETY: as above, and nobody else reaches the table (O2).
        unsafe {
            self.body_mut().cast::<V>().copy_from_nonoverlapping(first.as_ptr(), first.len());
            let table = self.link.table().cast::<V>();
            table.copy_from_nonoverlapping(others.as_ptr(), others.len());
        }
    }

    /// Holds these values, in the form that fits them.
    #[inline(never)]
    pub(super) fn lay_out(&mut self, values: &[u32; BLOCK], pool: &Pool) {
        let shape = Shape::of(values);
        self.clear(pool);
        let form = shape.form(Self::SPARSE);
        let capacity = match form {
            WIDE16 => BLOCK * 2 - Self::BODY_BYTES,
            WIDE32 => BLOCK * 4 - Self::BODY_BYTES,
            _ => Self::capacity_for(shape.bytes()),
        };
        self.link = Link::none(form);
        if form >= WIDE16 || capacity > Self::ROOM_BYTES {
            self.link = table::take(capacity, form, pool);
        }
        by_form!(
            self,
            E => {
                if capacity > Self::ROOM_BYTES {
                    self.room[0] = capacity as u64;
                }
                self.store::<E>(values);
            },
            V => self.store_wide(&values.map(V::of))
        );
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, pool: &Pool) {
        if !self.link.is_null() {
            table::give_back(self.link, self.table_bytes(), pool);
        }
        *self = Block {
            link: Link::none(SPARSE16),
            map: [0; MAP],
            digits: [0; DIGITS],
            room: [0; ROOM],
        };
    }

    /// Holds what another block holds, in the same form.
    pub(super) fn take_over(&mut self, other: &Self, pool: &Pool) {
        self.clear(pool);
        (self.map, self.digits, self.room) = (other.map, other.digits, other.room);
        self.link = other.link;
        if !other.link.is_null() {
            let size = other.table_bytes();
            self.link = table::take(size, other.link.form(), pool);
            // SAFETY: both tables have that size, and one of them is new.
            unsafe { self.link.table().copy_from_nonoverlapping(other.link.table(), size) };
        }
    }

    /// Bytes of its table, which it has.
    fn table_bytes(&self) -> usize {
        match self.link.form() {
            WIDE16 => BLOCK * 2 - Self::BODY_BYTES,
            WIDE32 => BLOCK * 4 - Self::BODY_BYTES,
            _ => self.capacity(),
        }
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
            V => (BLOCK * V::BYTES - Self::BODY_BYTES, None)
        )
    }
}

/// What decides the form of a block.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Cells of 16 and more.
    pub(super) count: usize,
    /// A number with as many bits as the largest value.
    pub(super) largest: u32,
}

impl Shape {
    #[inline(always)]
    fn of(values: &[u32; BLOCK]) -> Self {
        let count = values.iter().map(|value| u32::from(*value > 15)).sum::<u32>() as usize;
        let largest = values.iter().fold(0, |all, value| all | value);
        Shape { count, largest }
    }

    fn entry_bytes(self) -> usize {
        if self.largest >> 4 <= u32::from(u16::MAX) { 2 } else { 4 }
    }

    fn bytes(self) -> usize {
        self.count * self.entry_bytes()
    }

    fn form(self, sparse: [usize; 2]) -> usize {
        let narrow = self.largest <= u32::from(u16::MAX);
        if self.bytes() > sparse[usize::from(!narrow)] {
            return if narrow { WIDE16 } else { WIDE32 };
        }
        if self.entry_bytes() == 2 { SPARSE16 } else { SPARSE32 }
    }
}

#[inline(always)]
fn word_of(eight: &[u8]) -> u64 {
    eight.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Eight digits, a byte each, as 32 bits.
#[inline(always)]
fn digits_of(eight: &[u8]) -> u64 {
    let pairs = word_of(eight);
    let pairs = (pairs | pairs >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (fours | fours >> 16) & 0xffff_ffff
}
