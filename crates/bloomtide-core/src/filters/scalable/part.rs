//! A set of numbers that is small at every size: bins in the order of their numbers.
//!
//! Bin b has the numbers from b·`span` on. When there are as many numbers as the bins were made for, they
//! move into a third more bins, from first to last, so that memory follows the numbers closely.
//!
//! # Invariants
//! I1  The sizes are those that the number of items gives (`Sizes::grown`).
//! I2  A bin has the smallest of its numbers. Those that do not fit, about one in fifty, are in the `rest`,
//!     a part of its own.

use super::bin::{BIN_WORDS, Bin, DATA_BITS, Filling, HEAD_BITS, MOST};
use crate::cells::Words;
use crate::cells::divisor::Divisor;
use crate::error::{Error, Result};

/// Numbers that the first bins are made for.
const FIRST: u64 = 64;

/// How many bins there are, and how a number is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Numbers are below this.
    universe: u64,
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
    /// The fewest bins for `room` numbers below `universe`. Bins get a Poisson number each, so they are planned with
    /// two thirds of a standard deviation to spare: more would cost more than the rest does.
    pub(super) fn new(room: u64, universe: u64) -> Self {
        const WIDEST: u32 = 48;
        let cut = |width: u32| {
            let slots = (DATA_BITS / width).min(MOST as u32);
            let usual = slots - slots.isqrt() * 2 / 3 - 1;
            // The heads have no place for more quotients.
            let quotients = HEAD_BITS - slots;
            let bins = room.div_ceil(u64::from(usual)).max(1);
            let span = universe.div_ceil(bins).max(1);
            let fits = span.div_ceil(1 << width) <= u64::from(quotients);
            let bins = if fits { bins } else { universe.div_ceil(u64::from(quotients) << width) };
            let span = Divisor::new(universe.div_ceil(bins).max(1));
            (fits, Sizes { universe, room, bins, span, width, slots })
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

    /// Those of the rest, with so many items.
    pub(crate) fn rest(&self, items: u64) -> Self {
        Sizes::grown(items, self.universe, 0, 1)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bins * (BIN_WORDS as u64 * 8)
    }

    /// Where a number belongs.
    #[inline(always)]
    pub(super) fn place(&self, number: u64) -> Place {
        let (bin, within) = self.span.split(number);
        let (quotient, remainder) = self.cut(within);
        Place { bin: bin as usize, quotient, remainder }
    }

    /// Quotient and remainder of a number within its bin.
    #[inline(always)]
    fn cut(&self, within: u64) -> (u32, u64) {
        ((within >> self.width) as u32, within & ((1 << self.width) - 1))
    }

    /// The number that belongs there.
    fn number(&self, place: Place) -> u64 {
        let within = u64::from(place.quotient) << self.width | place.remainder;
        place.bin as u64 * self.span.get() + within
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
        self.items >= self.sizes.room
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
    pub(super) fn prefetch(&self, place: Place) {
        self.words.prefetch(place.bin * BIN_WORDS);
    }

    #[inline(always)]
    pub(super) fn contains<const BMI2: bool>(&self, place: Place) -> bool {
        let Place { bin, quotient, remainder } = place;
        let (at, found) = self.bins()[bin].find::<BMI2>(quotient, remainder, self.sizes.width);
        found || at == self.sizes.slots && self.rest_contains::<BMI2>(place)
    }

    #[cold]
    fn rest_contains<const BMI2: bool>(&self, place: Place) -> bool {
        let number = self.sizes.number(place);
        self.rest.as_ref().is_some_and(|rest| rest.contains::<BMI2>(rest.sizes.place(number)))
    }

    /// Adds a number if there is none; whether there was none. The caller has seen that there is room. An error
    /// changes nothing.
    #[inline(always)]
    pub(super) fn insert<const BMI2: bool>(&mut self, place: Place) -> Result<bool> {
        let Place { bin: index, quotient, remainder } = place;
        let Sizes { width, slots, .. } = self.sizes;
        let bin = &mut self.bins_mut()[index];
        let (at, found) = bin.find::<BMI2>(quotient, remainder, width);
        if found {
            return Ok(false);
        }
        if bin.len() == slots {
            return self.insert_full::<BMI2>(place, at);
        }
        bin.insert(at, quotient, remainder, width);
        self.items += 1;
        Ok(true)
    }

    /// The same where the bin is full: its largest number goes into the rest.
    #[cold]
    fn insert_full<const BMI2: bool>(&mut self, place: Place, at: u32) -> Result<bool> {
        let Sizes { width, slots, .. } = self.sizes;
        if at == slots {
            let new = self.insert_rest::<BMI2>(self.sizes.number(place))?;
            self.items += u64::from(new);
            return Ok(new);
        }
        if let Some(largest) = self.bins()[place.bin].last(width) {
            self.insert_rest::<BMI2>(place.bin as u64 * self.sizes.span.get() + largest)?;
        }
        let bin = &mut self.bins_mut()[place.bin];
        bin.pop(width);
        bin.insert(at, place.quotient, place.remainder, width);
        self.items += 1;
        Ok(true)
    }

    fn insert_rest<const BMI2: bool>(&mut self, number: u64) -> Result<bool> {
        let rest = match &mut self.rest {
            Some(rest) => rest,
            rest => rest.insert(Box::new(Part::new(self.sizes.rest(0))?)),
        };
        if rest.is_full() && !rest.contains::<BMI2>(rest.sizes.place(number)) {
            **rest = moved(rest, rest.sizes.rest(rest.items + 1))?;
        }
        rest.insert::<BMI2>(rest.sizes.place(number))
    }

    /// All numbers, from the smallest. Only for a rest, which has few.
    fn numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(self.items as usize);
        for (index, bin) in self.bins().iter().enumerate() {
            let first = index as u64 * self.sizes.span.get();
            numbers.extend(bin.numbers(self.sizes.width, &mut [0; MOST]).iter().map(|n| first + n));
        }
        if let Some(rest) = &self.rest {
            numbers.extend(rest.numbers());
            numbers.sort_unstable();
        }
        numbers
    }

    /// The same numbers in bins of other sizes.
    #[inline(always)]
    fn moved_by<const BMI2: bool>(&self, sizes: Sizes) -> Result<Self> {
        let rest = self.rest.as_ref().map_or(Vec::new(), |rest| rest.numbers());
        let (mut rest, mut first) = (rest.into_iter().peekable(), 0);
        let mut filler = Filler::new(sizes)?;
        for bin in self.bins() {
            for number in bin.numbers(self.sizes.width, &mut [0; MOST]) {
                filler.push(first + number);
            }
            first += self.sizes.span.get();
            while let Some(number) = rest.next_if(|number| *number < first) {
                filler.push(number);
            }
        }
        filler.filled(self.items)
    }

    pub(super) fn copy(&self) -> Result<Self> {
        let rest = self.rest.as_ref().map(|rest| rest.copy().map(Box::new)).transpose()?;
        Ok(Part { words: self.words.to_owned()?, rest, ..*self })
    }

    pub(super) fn same_as(&self, other: &Part) -> bool {
        let same = |(a, b): (&Part, &Part)| a.sizes == b.sizes && a.words.same_as(&b.words);
        self.chain().count() == other.chain().count() && self.chain().zip(other.chain()).all(same)
    }

    /// Checks I1 against the sizes it must have, I2, and that its numbers are as many as it says, all below
    /// the universe; then the rest.
    pub(super) fn validate(&self, sizes: Sizes) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        let Sizes { universe, width, slots, span, .. } = sizes;
        if self.sizes != sizes || self.words.bytes() != sizes.bytes() {
            return broken(format!("{} bytes of bins for {:?}", self.words.bytes(), self.sizes));
        }
        let mut items = self.rest.as_ref().map_or(0, |rest| rest.items);
        for (index, bin) in self.bins().iter().enumerate() {
            let mut sorted = bin.len() <= slots && bin.is_clean(width);
            if sorted {
                let numbers = &mut [0; MOST];
                sorted = bin.numbers(width, numbers).is_sorted_by(|a, b| a < b);
            }
            let last = if sorted { bin.last(width) } else { Some(u64::MAX) };
            let end = last.map_or(0, |last| (index as u64 * span.get()).saturating_add(last));
            if last >= Some(span.get()) || end >= universe.max(1) {
                return broken(format!("bin {index} is not a sorted set of its numbers"));
            }
            items += u64::from(bin.len());
        }
        if items != self.items {
            return broken(format!("{items} numbers instead of {}", self.items));
        }
        let Some(rest) = &self.rest else { return Ok(()) };
        if rest.items == 0 {
            return broken("an empty rest".to_owned());
        }
        rest.validate(sizes.rest(rest.items))?;
        let fits = |number: &u64| {
            let (index, within) = span.split(*number);
            let bin = &self.bins()[index as usize];
            bin.len() < slots || bin.last(width) >= Some(within)
        };
        let lost = rest.numbers().into_iter().find(fits);
        lost.map_or(Ok(()), |number| broken(format!("number {number} has a place in its bin")))
    }
}

at_best!(pub(super) moved(this: &Part, sizes: Sizes) -> Result<Part>, moved_by);

/// A part that is filled in the order of its numbers.
struct Filler {
    part: Part,
    /// The bin that is being filled, its place, and the first number behind it.
    filling: Filling,
    index: usize,
    end: u64,
    /// Numbers that did not fit.
    spare: Vec<u64>,
}

impl Filler {
    fn new(sizes: Sizes) -> Result<Self> {
        let (part, end) = (Part::new(sizes)?, sizes.span.get());
        Ok(Filler { part, filling: Filling::default(), index: 0, end, spare: Vec::new() })
    }

    #[inline(always)]
    fn push(&mut self, number: u64) {
        let Sizes { span, width, slots, .. } = self.part.sizes;
        // Numbers come in order, so the next bin is found by going on.
        while number >= self.end {
            self.part.bins_mut()[self.index] = self.filling.take();
            self.index += 1;
            self.end += span.get();
        }
        if self.filling.len() == slots {
            return self.spare.push(number);
        }
        let (quotient, remainder) = self.part.sizes.cut(number - (self.end - span.get()));
        self.filling.push(quotient, remainder, width);
    }

    fn filled(mut self, items: u64) -> Result<Part> {
        self.part.bins_mut()[self.index] = self.filling.take();
        self.part.items = items;
        if !self.spare.is_empty() {
            let items = self.spare.len() as u64;
            let mut rest = Filler::new(self.part.sizes.rest(items))?;
            self.spare.into_iter().for_each(|number| rest.push(number));
            self.part.rest = Some(Box::new(rest.filled(items)?));
        }
        Ok(self.part)
    }
}
