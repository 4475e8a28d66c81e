//! A set of numbers that is small at every size: bins, of which there are twice as many when they are full.
//!
//! A number is cut like this, with b bits for the planes of the first bins and `level` the times that they
//! were split:
//!
//! ```text
//! number      first bin, 0 to `first` - 1 | quotient, 6 bits | b bits
//! after that  first bin | the highest `level` of the b bits    number of the bin
//!             quotient
//!             the other b - `level` bits                       remainder
//! ```
//!
//! So each bin becomes two that are neighbours, by one bit of the remainder, and memory follows the numbers.
//!
//! # Invariants
//! I1  The level is the one that the number of items gives (`Sizes::grown`).
//! I2  Numbers that do not fit into their bin are in the `rest`, a part of its own: none has a smaller quotient
//!     than those in the bin. They are few, and scattered there, as most of them have large quotients.

use super::PLAIN;
use super::bin::{self, HEADS, SLOTS, low};
use crate::batch::prefetch;
use crate::cells::Words;
use crate::error::{Error, Result};

/// How many bins there are, and how a number is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bins before any was split.
    first: u64,
    /// Bits of a remainder in those.
    bits: u32,
    /// How often the bins were split.
    level: u32,
}

impl Sizes {
    /// So many bins with so many planes.
    pub(super) fn new(first: u64, bits: u32) -> Self {
        Sizes { first, bits, level: 0 }
    }

    /// Those that so many items need. Bins are split when they are full on average: what does not fit is few
    /// until then, and bins that are half empty afterwards would cost more.
    pub(super) fn grown(mut self, items: u64) -> Self {
        self.level = 0;
        while self.has_no_room(items) {
            self.level += 1;
        }
        self
    }

    /// Whether so many items need another level. At the last one, a bin takes all of its numbers.
    #[inline(always)]
    fn has_no_room(&self, items: u64) -> bool {
        items > self.bins() * u64::from(SLOTS) && self.level < self.bits
    }

    /// Numbers are below this.
    pub(super) fn universe(&self) -> u64 {
        (self.first * u64::from(SLOTS)) << self.bits
    }

    #[inline(always)]
    fn bins(&self) -> u64 {
        self.first << self.level
    }

    /// Words of a bin.
    #[inline(always)]
    fn stride(&self) -> usize {
        HEADS + (self.bits - self.level) as usize
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.bins() * self.stride() as u64 * 8).next_multiple_of(64)
    }

    /// Where a number belongs.
    #[inline(always)]
    pub(super) fn place(&self, number: u64) -> Place {
        let width = self.bits - self.level;
        let (above, below) = (number >> self.bits, number & low(self.bits));
        Place {
            bin: ((above / u64::from(SLOTS)) << self.level | below >> width) as usize,
            quotient: (above % u64::from(SLOTS)) as u32,
            remainder: below & low(width),
        }
    }

    /// The number that belongs there.
    fn number(&self, Place { bin, quotient, remainder }: Place) -> u64 {
        let (first, path) = (bin as u64 >> self.level, bin as u64 & low(self.level));
        let above = first * u64::from(SLOTS) + u64::from(quotient);
        above << self.bits | path << (self.bits - self.level) | remainder
    }

    /// Those of the rest, with so many items.
    pub(crate) fn rest(&self, items: u64) -> Self {
        let each = self.universe().div_ceil(u64::from(SLOTS)).next_power_of_two();
        Sizes::new(1, each.trailing_zeros()).grown(items)
    }
}

/// Where a number belongs, as long as the sizes stay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    bin: usize,
    quotient: u32,
    remainder: u64,
}

/// A set of numbers.
#[derive(Debug)]
pub(crate) struct Part {
    sizes: Sizes,
    words: Words,
    /// Those of the rest are among them.
    items: u64,
    rest: Option<Box<Part>>,
}

impl Part {
    pub(super) fn new(sizes: Sizes) -> Result<Self> {
        Ok(Part { sizes, words: Words::zeroed(sizes.bytes() * 8)?, items: 0, rest: None })
    }

    /// A part read from a snapshot; `validate` must follow.
    pub(crate) fn over(sizes: Sizes, words: Words, items: u64, rest: Option<Part>) -> Self {
        Part { sizes, words, items, rest: rest.map(Box::new) }
    }

    #[inline(always)]
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.sizes.has_no_room(self.items + 1)
    }

    /// The part, its rest, the rest of that, and so on.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &Part> {
        std::iter::successors(Some(self), |part| part.rest.as_deref())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.chain().map(|part| part.words.bytes()).sum()
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    #[inline(always)]
    pub(super) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    #[inline(always)]
    fn bin(&self, index: usize) -> &[u64] {
        let stride = self.sizes.stride();
        debug_assert!((index as u64) < self.sizes.bins());
        // SAFETY: the words are those of all bins, and a place is in one of them. They are written through
        // `bin_mut` only, which borrows the part alone.
        unsafe { std::slice::from_raw_parts(self.words.base().add(index * stride), stride) }
    }

    #[inline(always)]
    fn bin_mut(&mut self, index: usize) -> &mut [u64] {
        let stride = self.sizes.stride();
        debug_assert!((index as u64) < self.sizes.bins());
        // SAFETY: as above, and the part is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.words.base().add(index * stride), stride) }
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, place: Place) {
        let bin = self.bin(place.bin);
        let last = bin.len() - 1;
        for word in [0, last.min(8), last] {
            prefetch(bin.as_ptr().wrapping_add(word));
        }
    }

    #[inline(always)]
    pub(super) fn contains<const LEVEL: u8>(&self, place: Place) -> bool {
        let Place { bin, quotient, remainder } = place;
        let (found, slot) = bin::find::<LEVEL>(self.bin(bin), quotient, remainder);
        // A full bin without larger quotients: the number may have had no place there.
        found || slot == SLOTS && self.rest_contains::<LEVEL>(place)
    }

    #[cold]
    fn rest_contains<const LEVEL: u8>(&self, place: Place) -> bool {
        let number = self.scattered(self.sizes.number(place));
        self.rest.as_ref().is_some_and(|rest| rest.contains::<LEVEL>(rest.sizes.place(number)))
    }

    /// Adds a number if there is none; whether there was none. The caller has seen that there is room. An error
    /// changes nothing.
    #[inline(always)]
    pub(super) fn insert<const LEVEL: u8>(&mut self, place: Place) -> Result<bool> {
        let Place { bin: index, quotient, remainder } = place;
        let bin = self.bin_mut(index);
        let (found, slot) = bin::find::<LEVEL>(bin, quotient, remainder);
        if found {
            return Ok(false);
        }
        if bin::len(bin) == SLOTS {
            return self.insert_full::<LEVEL>(place, slot);
        }
        bin::insert::<LEVEL>(bin, slot, quotient, remainder);
        self.items += 1;
        Ok(true)
    }

    /// The same where the bin is full: the largest quotient goes into the rest.
    #[cold]
    fn insert_full<const LEVEL: u8>(&mut self, place: Place, slot: u32) -> Result<bool> {
        if slot == SLOTS {
            let new = insert_rest(self, self.sizes.number(place))?;
            self.items += u64::from(new);
            return Ok(new);
        }
        let (quotient, remainder) = bin::last(self.bin(place.bin));
        insert_rest(self, self.sizes.number(Place { quotient, remainder, ..place }))?;
        let bin = self.bin_mut(place.bin);
        bin::pop(bin);
        bin::insert::<LEVEL>(bin, slot, place.quotient, place.remainder);
        self.items += 1;
        Ok(true)
    }

    #[inline(always)]
    fn insert_rest_by<const LEVEL: u8>(&mut self, number: u64) -> Result<bool> {
        let number = self.scattered(number);
        let rest = match &mut self.rest {
            Some(rest) => rest,
            rest => rest.insert(Box::new(Part::new(self.sizes.rest(0))?)),
        };
        if rest.is_full() && !rest.contains::<LEVEL>(rest.sizes.place(number)) {
            **rest = grown(rest)?;
        }
        rest.insert::<LEVEL>(rest.sizes.place(number))
    }

    /// The number in the rest, where numbers of the same size must not be neighbours.
    fn scattered(&self, number: u64) -> u64 {
        number.wrapping_mul(SCATTER) & (self.sizes.rest(0).universe() - 1)
    }

    /// All numbers of the rest.
    fn of_rest(&self) -> impl Iterator<Item = u64> + '_ {
        let below = self.sizes.rest(0).universe() - 1;
        // Boxed, as it is an iterator of its own kind.
        let numbers = self
            .rest
            .iter()
            .map(|rest| -> Box<dyn Iterator<Item = u64>> { Box::new(rest.numbers()) });
        numbers.flatten().map(move |number| number.wrapping_mul(GATHER) & below)
    }

    /// All numbers.
    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let bins = 0..self.sizes.bins() as usize;
        let own = bins.flat_map(move |bin| {
            bin::numbers(self.bin(bin)).map(move |(quotient, remainder)| {
                self.sizes.number(Place { bin, quotient, remainder })
            })
        });
        own.chain(self.of_rest())
    }

    /// The same numbers in twice as many bins.
    #[inline(always)]
    fn grown_by<const LEVEL: u8>(&self) -> Result<Self> {
        let mut part = Part::new(Sizes { level: self.sizes.level + 1, ..self.sizes })?;
        let stride = part.sizes.stride();
        for index in 0..self.sizes.bins() as usize {
            // SAFETY: both halves are neighbours, and nobody else has the part.
            let halves = unsafe {
                let first = part.words.base().add(2 * index * stride);
                std::slice::from_raw_parts_mut(first, 2 * stride)
            };
            bin::split::<LEVEL>(self.bin(index), halves);
        }
        part.items = self.items - self.rest.as_ref().map_or(0, |rest| rest.items);
        for number in self.of_rest() {
            part.insert::<LEVEL>(part.sizes.place(number))?;
        }
        Ok(part)
    }

    pub(super) fn copy(&self) -> Result<Self> {
        let rest = self.rest.as_ref().map(|rest| rest.copy().map(Box::new)).transpose()?;
        Ok(Part { words: self.words.to_owned()?, rest, ..*self })
    }

    /// Whether both have the same numbers. The order in which they came may have left them in other slots.
    pub(super) fn same_as(&self, other: &Part) -> bool {
        self.sizes == other.sizes
            && self.items == other.items
            && self.numbers().all(|number| other.contains::<PLAIN>(other.sizes.place(number)))
    }

    /// Checks I1 against the sizes it must have, I2, and that its numbers are as many as it says; then the rest.
    pub(super) fn validate(&self, sizes: Sizes) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        let used = sizes.bins() * sizes.stride() as u64 * 64;
        if self.sizes != sizes || self.words.bytes() != sizes.bytes() {
            return broken(format!("{} bytes of bins for {:?}", self.words.bytes(), self.sizes));
        }
        if !self.words.is_zero_from(used) {
            return broken("something behind the last bin".to_owned());
        }
        let mut items = self.rest.as_ref().map_or(0, |rest| rest.items);
        for index in 0..sizes.bins() as usize {
            if !bin::is_sound(self.bin(index)) {
                return broken(format!("bin {index} is not a sorted set of its numbers"));
            }
            items += u64::from(bin::len(self.bin(index)));
        }
        if items != self.items {
            return broken(format!("{items} numbers instead of {}", self.items));
        }
        let Some(rest) = &self.rest else { return Ok(()) };
        if rest.items == 0 {
            return broken("an empty rest".to_owned());
        }
        rest.validate(sizes.rest(rest.items))?;
        for number in self.of_rest() {
            let Place { bin, quotient, remainder } = sizes.place(number);
            let in_order = number < sizes.universe() && {
                let bin = self.bin(bin);
                bin::find::<PLAIN>(bin, quotient, remainder) == (false, SLOTS)
            };
            if !in_order {
                return broken(format!("number {number} has a place in its bin, or none"));
            }
        }
        Ok(())
    }
}

at_best!(insert_rest(this: &mut Part, number: u64) -> Result<bool>, insert_rest_by);
at_best!(pub(super) grown(this: &Part) -> Result<Part>, grown_by);

/// An odd number whose multiples are scattered, and the one that takes it back.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;
const GATHER: u64 = 0xF1DE_83E1_9937_733D;
const _: () = assert!(SCATTER.wrapping_mul(GATHER) == 1);
