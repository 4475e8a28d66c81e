//! All cells of a block at once: fading, and laying a block out in the form that fits its values.

use super::block::{Block, DIGITS, MAP, SPARSE, Value, WIDE16, WIDE32, by_form};
use super::table::{self, Link, Pool};
use super::{BLOCK, Fading};

impl<const ROOM: usize> Block<ROOM> {
    /// Fades every cell. Memory that is no longer needed goes back.
    #[inline(always)]
    pub(super) fn fade(&mut self, fading: &Fading, pool: &Pool) {
        by_form!(
            self,
            {
                // Values become smaller, so their entries fit.
                let mut values = self.values();
                values.iter_mut().for_each(|value| *value = fading.fade(*value));
                self.store(&values);
            },
            V => self.fade_wide::<V>(fading, pool)
        );
    }

    /// Whether every cell is.
    #[inline(always)]
    pub(super) fn is_zero(&self) -> bool {
        self.link.is_null() && self.map == [0; MAP] && self.digits == [0; DIGITS]
    }

    /// Fades a wide block. It becomes sparse only if half of the room is enough, or a block would go to and fro.
    #[inline(always)]
    fn fade_wide<V: Value>(&mut self, fading: &Fading, pool: &Pool) {
        let mut values = self.values_of_wide::<V>();
        values.iter_mut().for_each(|value| *value = V::of(fading.fade(value.get())));
        let all = values.map(V::get);
        let shape = Shape::of(&all);
        if shape.is_sparse(Self::ENTRIES / 2) || V::BYTES == 4 && shape.largest < 1 << 15 {
            return self.lay_out(&all, pool);
        }
        self.store_wide(&values);
    }

    /// Writes all values to a sparse block that has room for their entries.
    #[inline(always)]
    fn store(&mut self, values: &[u32; BLOCK]) {
        let (mut low, mut more) = ([0u8; BLOCK], [0u8; BLOCK]);
        for (place, value) in values.iter().enumerate() {
            low[place] = (value & 15) as u8;
            more[place] = u8::from(*value > 15);
        }
        for (word, sixteen) in self.digits.iter_mut().zip(low.chunks_exact(16)) {
            *word = digits_of(&sixteen[..8]) | digits_of(&sixteen[8..]) << 32;
        }
        let mut map = [0; MAP];
        let mut entries = self.entries_mut().iter_mut();
        for (half, flags) in more.chunks_exact(64).enumerate() {
            map[half] = (0..).zip(flags.chunks_exact(8)).fold(0, |map, (i, flags)| {
                // Moves the eight flags to the upper byte.
                map | word_of(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i)
            });
            for (place, entry) in places(half, map[half]).zip(&mut entries) {
                *entry = (values[place] >> 4) as u16;
            }
        }
        self.map = map;
    }

    /// Every value.
    #[inline(always)]
    pub(super) fn values(&self) -> [u32; BLOCK] {
        by_form!(
            self,
            {
                let mut values = [0; BLOCK];
                for (sixteen, word) in values.chunks_exact_mut(16).zip(&self.digits) {
                    for (i, value) in sixteen.iter_mut().enumerate() {
                        *value = (word >> (4 * i)) as u32 & 15;
                    }
                }
                let cells = (0..MAP).flat_map(|half| places(half, self.map[half]));
                for (place, entry) in cells.zip(self.entries()) {
                    values[place] |= u32::from(*entry) << 4;
                }
                values
            },
            V => self.values_of_wide::<V>().map(V::get)
        )
    }

    /// Every value of a wide block.
    #[inline(always)]
    fn values_of_wide<V: Value>(&self) -> [V; BLOCK] {
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
    fn store_wide<V: Value>(&mut self, values: &[V; BLOCK]) {
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
        self.clear(pool);
        let shape = Shape::of(values);
        if !shape.is_sparse(Self::ENTRIES) {
            let form = if shape.largest <= u32::from(u16::MAX) { WIDE16 } else { WIDE32 };
            self.link = table::take(Self::table_bytes(form), form, pool);
        }
        by_form!(self, self.store(values), V => self.store_wide(&values.map(V::of)));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, pool: &Pool) {
        if !self.link.is_null() {
            table::give_back(self.link, Self::table_bytes(self.link.form()), pool);
        }
        *self = Block { link: Link::none(), map: [0; MAP], digits: [0; DIGITS], room: [0; ROOM] };
    }

    /// Holds what another block holds, in the same form.
    pub(super) fn take_over(&mut self, other: &Self, pool: &Pool) {
        self.clear(pool);
        (self.map, self.digits, self.room) = (other.map, other.digits, other.room);
        if !other.link.is_null() {
            let size = Self::table_bytes(other.link.form());
            self.link = table::take(size, other.link.form(), pool);
            // SAFETY: both tables have that size, and one of them is new.
            unsafe { self.link.table().copy_from_nonoverlapping(other.link.table(), size) };
        }
    }

    /// Bytes of the table of a block in that form.
    pub(super) fn table_bytes(form: usize) -> usize {
        match form {
            SPARSE => 0,
            WIDE16 => BLOCK * 2 - Self::BODY_BYTES,
            _ => BLOCK * 4 - Self::BODY_BYTES,
        }
    }

    /// Whether O1 holds.
    pub(super) fn is_sound(&self) -> bool {
        let values = self.values();
        self.link.form() != SPARSE
            || self.count() <= Self::ENTRIES
                && (0..BLOCK).all(|place| self.has_more(place) == (values[place] > 15))
    }
}

/// What decides the form of a block.
struct Shape {
    /// Cells of 16 and more.
    count: usize,
    /// A number with as many bits as the largest value.
    largest: u32,
}

impl Shape {
    #[inline(always)]
    fn of(values: &[u32; BLOCK]) -> Self {
        let count = values.iter().map(|value| u32::from(*value > 15)).sum::<u32>() as usize;
        let largest = values.iter().fold(0, |all, value| all | value);
        Shape { count, largest }
    }

    /// Whether room for so many entries is enough.
    #[inline(always)]
    fn is_sparse(&self, room: usize) -> bool {
        self.count <= room && self.largest >> 4 <= u32::from(u16::MAX)
    }
}

/// The places of the set bits of a word of the map.
#[inline(always)]
fn places(half: usize, map: u64) -> impl Iterator<Item = usize> {
    let mut left = map;
    std::iter::from_fn(move || {
        let place = half * 64 + left.trailing_zeros() as usize;
        let found = left != 0;
        left &= left.wrapping_sub(1);
        found.then_some(place)
    })
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
