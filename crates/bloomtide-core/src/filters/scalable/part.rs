//! A set of numbers that is small at every size: bins in the order of their numbers.
//!
//! Bin b has the numbers from b·`span` on. When there are as many numbers as the bins were made for, they
//! move into a third more bins, from first to last, so that memory follows the numbers closely.
//!
//! # Invariants
//! I1  The sizes are those that the number of items gives (`Sizes::grown`).
//! I2  A bin has the smallest of its numbers; those that do not fit are in `rest`, about one in a hundred.

use super::bin::{BIN_WORDS, Bin, DATA_BITS, HEAD_BITS};
use crate::cells::Words;
use crate::cells::divisor::Divisor;
use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// Numbers that the first bins are made for.
const FIRST: u64 = 64;
/// Bytes that a number outside of the bins takes, in a tree of sorted nodes that are two thirds full.
const REST_BYTES: u64 = 14;

/// How many bins there are, and how a number is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Numbers the bins are made for.
    room: u64,
    bins: u64,
    span: Divisor,
    /// Bits of a remainder.
    width: u32,
    /// Numbers that a bin takes.
    slots: u32,
}

impl Sizes {
    /// The fewest bins for `room` numbers below `universe`. Bins get a Poisson number each, so they are
    /// planned with a standard deviation to spare.
    pub(super) fn new(room: u64, universe: u64) -> Self {
        const WIDEST: u32 = 48;
        let cut = |width: u32| {
            let slots = (DATA_BITS / width).min(96);
            let usual = slots - slots.isqrt() - 1;
            // The heads have no place for more quotients.
            let quotients = HEAD_BITS - slots;
            let bins = room.div_ceil(u64::from(usual)).max(1);
            let span = universe.div_ceil(bins).max(1);
            let fits = span.div_ceil(1 << width) <= u64::from(quotients);
            let bins = if fits { bins } else { universe.div_ceil(u64::from(quotients) << width) };
            let span = Divisor::new(universe.div_ceil(bins).max(1));
            (fits, Sizes { room, bins, span, width, slots })
        };
        let fitting = (1..WIDEST).map(cut).find(|(fits, _)| *fits);
        fitting.unwrap_or_else(|| cut(WIDEST)).1
    }

    /// The sizes for so many items of part `number` of `parts`. Parts grow at different times, so that
    /// the memory of all of them together has no steps.
    pub(super) fn grown(items: u64, universe: u64, number: u64, parts: u64) -> Self {
        let mut room = FIRST + FIRST / 3 * number / parts;
        while room < items {
            room += room / 3;
        }
        Sizes::new(room, universe)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bins * (BIN_WORDS as u64 * 8)
    }

    /// Bin, quotient and remainder.
    #[inline(always)]
    fn cut(&self, number: u64) -> (usize, u32, u64) {
        let (bin, rest) = self.span.split(number);
        (bin as usize, (rest >> self.width) as u32, rest & ((1 << self.width) - 1))
    }
}

/// A set of numbers.
#[derive(Debug)]
pub(crate) struct Part {
    sizes: Sizes,
    words: Words,
    items: u64,
    rest: BTreeSet<u64>,
}

impl Part {
    pub(super) fn new(sizes: Sizes) -> Result<Self> {
        let words = Words::zeroed(sizes.bytes() * 8)?;
        Ok(Part { sizes, words, items: 0, rest: BTreeSet::new() })
    }

    /// A part read from a snapshot; `validate` must follow.
    pub(super) fn over(sizes: Sizes, words: Words, items: u64, rest: BTreeSet<u64>) -> Self {
        Part { sizes, words, items, rest }
    }

    #[inline(always)]
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.items >= self.sizes.room
    }

    pub(super) fn bytes(&self) -> u64 {
        self.words.bytes() + self.rest.len() as u64 * REST_BYTES
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// What did not fit its bin.
    pub(crate) fn rest(&self) -> &BTreeSet<u64> {
        &self.rest
    }

    #[inline(always)]
    fn bins(&self) -> &[Bin] {
        let bins = self.words.bytes() as usize / size_of::<Bin>();
        // SAFETY: a bin is a line of words, and the words are whole lines. They are written through
        // `bins_mut` only, which borrows the part alone.
        unsafe { std::slice::from_raw_parts(self.words.base().cast(), bins) }
    }

    #[inline(always)]
    fn bins_mut(&mut self) -> &mut [Bin] {
        let bins = self.words.bytes() as usize / size_of::<Bin>();
        // SAFETY: as above, and the part is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.words.base().cast(), bins) }
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, number: u64) {
        self.words.prefetch(self.sizes.cut(number).0 * BIN_WORDS);
    }

    #[inline(always)]
    pub(super) fn contains<const BMI2: bool>(&self, number: u64) -> bool {
        let (bin, quotient, remainder) = self.sizes.cut(number);
        let bin = &self.bins()[bin];
        let (place, found) = bin.find::<BMI2>(quotient, remainder, self.sizes.width);
        found || place == self.sizes.slots && self.rest.contains(&number)
    }

    /// Adds a number if there is none; whether there was none. The caller has seen that there is room.
    #[inline(always)]
    pub(super) fn insert<const BMI2: bool>(&mut self, number: u64) -> bool {
        let Sizes { width, slots, span, .. } = self.sizes;
        let (index, quotient, remainder) = self.sizes.cut(number);
        let bin = &mut self.bins_mut()[index];
        let (place, found) = bin.find::<BMI2>(quotient, remainder, width);
        if found {
            return false;
        }
        let mut out = None;
        if bin.len() == slots {
            if place == slots {
                let new = self.rest.insert(number);
                self.items += u64::from(new);
                return new;
            }
            out = bin.last(width);
            bin.pop(width);
        }
        bin.insert(place, quotient, remainder, width);
        if let Some(largest) = out {
            self.rest.insert(index as u64 * span.get() + largest);
        }
        self.items += 1;
        true
    }

    /// The same numbers in bins of other sizes.
    pub(super) fn moved(&self, sizes: Sizes) -> Result<Self> {
        let mut moved = Part::new(sizes)?;
        let (mut index, mut start, mut len) = (0, 0, 0);
        let mut rest = self.rest.iter().copied().peekable();
        let mut bins = moved.bins_mut().iter_mut();
        let mut filling = bins.next();
        let mut spare = Vec::new();
        let (span, width) = (self.sizes.span.get(), self.sizes.width);
        let mut push = |number: u64| {
            // Numbers come in order, so the next bin is found by going on.
            while number - start >= sizes.span.get() {
                start += sizes.span.get();
                (len, filling) = (0, bins.next());
            }
            match &mut filling {
                Some(bin) if len < sizes.slots => {
                    let within = number - start;
                    let remainder = within & ((1 << sizes.width) - 1);
                    bin.push(len, (within >> sizes.width) as u32, remainder, sizes.width);
                    len += 1;
                }
                _ => spare.push(number),
            }
        };
        for bin in self.bins() {
            bin.numbers(width).for_each(|number| push(index + number));
            index += span;
            while let Some(number) = rest.next_if(|number| *number < index) {
                push(number);
            }
        }
        moved.rest = BTreeSet::from_iter(spare);
        moved.items = self.items;
        Ok(moved)
    }

    pub(super) fn copy(&self) -> Result<Self> {
        Ok(Part { words: self.words.to_owned()?, rest: self.rest.clone(), ..*self })
    }

    pub(super) fn same_as(&self, other: &Part) -> bool {
        self.sizes == other.sizes && self.rest == other.rest && self.words.same_as(&other.words)
    }

    /// Checks I1 against the sizes it must have, I2, and that its numbers are as many as it says, all below
    /// `universe`.
    pub(super) fn validate(&self, sizes: Sizes, universe: u64) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        let Sizes { width, slots, span, .. } = self.sizes;
        if self.sizes != sizes || self.words.bytes() != sizes.bytes() {
            return broken(format!("{} bytes of bins for {:?}", self.words.bytes(), self.sizes));
        }
        let mut items = self.rest.len() as u64;
        for (index, bin) in self.bins().iter().enumerate() {
            let mut numbers = bin.numbers(width);
            let sorted = bin.len() <= slots && bin.is_clean(width) && {
                let mut before = numbers.next();
                numbers.all(|number| before.replace(number).is_none_or(|before| before < number))
            };
            let first = index as u64 * span.get();
            let last = bin.last(width).map_or(0, |last| first.saturating_add(last));
            if !sorted || last - first.min(last) >= span.get() || last >= universe.max(1) {
                return broken(format!("bin {index} is not a sorted set of its numbers"));
            }
            items += u64::from(bin.len());
        }
        for number in &self.rest {
            let index = self.sizes.cut(*number).0;
            let bin = self.bins().get(index).filter(|_| *number < universe);
            let smaller = |bin: &Bin| {
                let last = bin.last(width).map(|last| index as u64 * span.get() + last);
                bin.len() == slots && last < Some(*number)
            };
            if !bin.is_some_and(smaller) {
                return broken(format!("number {number} has a place in its bin"));
            }
        }
        if items != self.items {
            return broken(format!("{items} numbers instead of {}", self.items));
        }
        Ok(())
    }
}
