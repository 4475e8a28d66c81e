//! Counts with removal, for the COUNT commands: any filter of counters of `bloomtide-core`, with what its commands
//! know of it without a pass over its cells.
//!
//! # Invariants
//! I1  `total` is the sum of what was added less what was removed; `items` the number of keys that were certainly
//!     new, less those of which nothing is left.

use super::{HASHER, expected};
use crate::fields::{put, take};
use crate::structure::{Structure, Summary};
use bloomtide_core::cells::{
    DynamicCells, DynamicShape, GrowingCells, SpectralCells, SpectralShape,
};
use bloomtide_core::filters::{CountFilter, CountGoal, CountPlan, base_bits, design_bits};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::snapshot::{Frozen, Loaded, ShapeRecord, read, write_to};
use bloomtide_core::{
    CountingBloomFilter, CountingPlan, Derivation, Error, Estimate, KeyHash, Placement, Policy,
    Result, epoch,
};
use std::io::{self, Write};

/// What holds the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A dynamic count filter.
    Dynamic,
    /// A spectral Bloom filter.
    Spectral,
    /// A counting Bloom filter, of four bits a counter.
    Counting,
}

/// The words of COUNT.RESERVE, each with its storage and whether that is partitioned.
pub const COUNT_KINDS: [(&str, Storage, bool); 5] = [
    ("PDCF", Storage::Dynamic, true),
    ("DCF", Storage::Dynamic, false),
    ("PSBF", Storage::Spectral, true),
    ("SBF", Storage::Spectral, false),
    ("COUNTING", Storage::Counting, false),
];

/// The sizes of one of the filters.
#[derive(Clone, Copy, Debug)]
pub enum CountsPlan {
    /// Of a dynamic count filter, partitioned or not.
    Dynamic(CountPlan<DynamicShape>),
    /// Of a spectral Bloom filter, partitioned or not.
    Spectral(CountPlan<SpectralShape>),
    /// Of a counting Bloom filter.
    Counting(CountingPlan),
}

/// Shrink hysteresis, slack, and bits of a counting filter's counters: those that the classes have by default.
const SHRINK: f64 = 0.5;
const SLACK: f64 = 0.1;
const COUNTING_BITS: u32 = 4;

/// All occurrences together at most: no count is larger than a reply can tell.
const MOST: u64 = i64::MAX as u64;

#[cold]
fn too_many(count: u64) -> Error {
    let allowed = "so many that all counts together stay below 2^63";
    Error::parameter("count", count, allowed, "COUNT.INFO tells the count of all keys")
}

impl CountsPlan {
    /// Sizes for as many different keys at that chance of a wrong count.
    pub fn for_goal(
        storage: Storage,
        partitioned: bool,
        capacity: u64,
        error_rate: f64,
    ) -> Result<Self> {
        let derivation = Derivation::default();
        let goal = CountGoal {
            capacity: Some(capacity),
            error_rate: Some(error_rate),
            derivation,
            ..CountGoal::default()
        };
        let placement = goal.placement()?;
        let expected = goal.expected(&placement);
        let total = goal.total(expected)?;
        match storage {
            Storage::Dynamic => {
                let width = base_bits(total, expected);
                let shape = DynamicShape { width, shrink: SHRINK };
                planned::<DynamicCells>(&goal, placement, total, partitioned, shape)
                    .map(CountsPlan::Dynamic)
            }
            Storage::Spectral => {
                let design_bits = design_bits(&placement, expected, total);
                let shape = SpectralShape { design_bits, slack: SLACK };
                planned::<SpectralCells>(&goal, placement, total, partitioned, shape)
                    .map(CountsPlan::Spectral)
            }
            Storage::Counting => {
                let (bits, policy) = (COUNTING_BITS, Policy::Plain);
                CountingPlan::for_goal(capacity, error_rate, bits, policy, None, derivation)
                    .map(CountsPlan::Counting)
            }
        }
    }

    /// Memory in bytes before any counter outgrows its bits.
    pub fn bytes(&self) -> u64 {
        match self {
            CountsPlan::Dynamic(plan) => DynamicCells::bytes_of(&plan.cut(), plan.shape.width),
            CountsPlan::Spectral(plan) => SpectralCells::bytes_of(&plan.cut(), &plan.shape),
            CountsPlan::Counting(plan) => plan.bytes(),
        }
    }
}

fn planned<C: GrowingCells>(
    goal: &CountGoal,
    placement: Placement,
    total: u64,
    partitioned: bool,
    shape: C::Shape,
) -> Result<CountPlan<C::Shape>> {
    let usual = C::usual_partitions(placement.cells, &shape);
    CountPlan {
        placement,
        policy: Policy::Plain,
        shape,
        partitioned,
        partitions: if partitioned { usual } else { 1 },
        total,
        capacity: goal.capacity,
        error_rate: goal.error_rate,
    }
    .checked()
}

/// The filter.
#[derive(Debug)]
enum Filter {
    Dynamic(CountFilter<DynamicCells>),
    Spectral(CountFilter<SpectralCells>),
    Counting(CountingBloomFilter),
}

/// Counts of keys, which can be removed again.
#[derive(Debug)]
pub struct Counts {
    filter: Filter,
    /// Different keys inside, as far as they were certainly new.
    pub items: u64,
    /// Occurrences of all keys.
    pub total: u64,
}

/// Runs an expression on whichever filter it is.
macro_rules! each {
    ($filter:expr, $name:ident => $work:expr) => {
        match $filter {
            Filter::Dynamic($name) => $work,
            Filter::Spectral($name) => $work,
            Filter::Counting($name) => $work,
        }
    };
}

impl Counts {
    /// No counts yet.
    pub fn new(plan: CountsPlan) -> Result<Self> {
        let filter = match plan {
            CountsPlan::Dynamic(plan) => Filter::Dynamic(CountFilter::new(plan, HASHER)?),
            CountsPlan::Spectral(plan) => Filter::Spectral(CountFilter::new(plan, HASHER)?),
            CountsPlan::Counting(plan) => Filter::Counting(CountingBloomFilter::new(plan, HASHER)?),
        };
        Ok(Counts { filter, items: 0, total: 0 })
    }

    /// Keys and error that it was made for.
    pub fn goal(&self) -> (u64, f64) {
        let (capacity, error_rate) =
            each!(&self.filter, filter => (filter.plan().capacity, filter.plan().error_rate));
        (capacity.unwrap_or(0), error_rate.unwrap_or(0.0))
    }

    /// Which counters a key has.
    pub fn placement(&self) -> Placement {
        each!(&self.filter, filter => filter.plan().placement)
    }

    // ---- changing

    /// Adds `count` occurrences; true iff the key was certainly absent before.
    #[inline(always)]
    pub fn add(&mut self, hash: KeyHash, count: u64) -> Result<bool> {
        if count == 0 {
            return Ok(self.count(hash) == 0);
        }
        let total = self.total.checked_add(count).filter(|total| *total <= MOST);
        let total = total.ok_or_else(|| too_many(count))?;
        // SAFETY: `&mut self`: nobody else has the filter.
        let new = unsafe {
            match &self.filter {
                Filter::Dynamic(filter) => filter.add_unsynchronised(hash, count)?,
                Filter::Spectral(filter) => filter.add_unsynchronised(hash, count)?,
                Filter::Counting(filter) => filter.add_unsynchronised(hash, count),
            }
        };
        self.items += u64::from(new);
        self.total = total;
        Ok(new)
    }

    /// Takes `count` occurrences away again, all or none; what is left.
    pub fn remove(&mut self, hash: KeyHash, count: u64) -> Result<u64> {
        let before = self.count(hash);
        each!(&self.filter, filter => filter.remove(hash, count))?;
        let left = self.count(hash);
        self.items = self.items.saturating_sub(u64::from(before > 0 && left == 0));
        self.total = self.total.saturating_sub(count);
        Ok(left)
    }

    /// These counts and all the others together. Refused where one was made otherwise.
    pub fn merged(&self, others: &[&Counts]) -> Result<Self> {
        macro_rules! merge {
            ($kind:ident, $filter:ident) => {{
                let copy = $filter.copy()?;
                for other in others {
                    let Filter::$kind(other) = &other.filter else {
                        return Err(Error::incompatible("kind", self.kind(), other.kind()));
                    };
                    copy.merge(other)?;
                }
                let items = copy.measure().items;
                (Filter::$kind(copy), items)
            }};
        }
        let (filter, items) = match &self.filter {
            Filter::Dynamic(filter) => merge!(Dynamic, filter),
            Filter::Spectral(filter) => merge!(Spectral, filter),
            Filter::Counting(filter) => merge!(Counting, filter),
        };
        let total = others.iter().try_fold(self.total, |sum, other| {
            let sum = sum.checked_add(other.total).filter(|sum| *sum <= MOST);
            sum.ok_or_else(|| too_many(other.total))
        })?;
        // A full filter says infinity, which is the largest number here.
        Ok(Counts { filter, items: items.round() as u64, total })
    }

    // ---- asking

    /// The key's count.
    #[inline(always)]
    pub fn count(&self, hash: KeyHash) -> u64 {
        // SAFETY: every change needs `&mut self`, so nobody replaces cells meanwhile.
        let guard = unsafe { epoch::unprotected() };
        match &self.filter {
            Filter::Dynamic(filter) => filter.count(hash, guard),
            Filter::Spectral(filter) => filter.count(hash, guard),
            Filter::Counting(filter) => filter.count(hash),
        }
    }

    /// The count with a lower bound that holds with `confidence`.
    pub fn estimate(&self, hash: KeyHash, confidence: f64) -> Estimate {
        each!(&self.filter, filter => filter.estimate(hash, confidence))
    }
}

impl Structure for Counts {
    fn kind(&self) -> &'static str {
        match &self.filter {
            Filter::Dynamic(filter) if filter.plan().partitioned => "partitioned_dynamic",
            Filter::Dynamic(_) => "dynamic",
            Filter::Spectral(filter) if filter.plan().partitioned => "partitioned_spectral",
            Filter::Spectral(_) => "spectral",
            Filter::Counting(_) => "counting",
        }
    }

    fn bytes(&self) -> u64 {
        match &self.filter {
            Filter::Dynamic(filter) => filter.bytes(),
            Filter::Spectral(filter) => filter.bytes(),
            Filter::Counting(filter) => filter.plan().bytes(),
        }
    }

    fn summary(&self) -> Summary {
        let placement = self.placement();
        let (cells, hashes) = (placement.cells, placement.hashes);
        expected(self.items, cells, hashes, |items| placement.error_at(items))
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        put(out, &[self.items, self.total])?;
        match &self.filter {
            Filter::Dynamic(filter) => write_to(&frozen(filter)?, out),
            Filter::Spectral(filter) => write_to(&frozen(filter)?, out),
            Filter::Counting(filter) => write_to(filter, out),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes, "counts");
        let [items, total] = take(&mut from)?;
        let filter = match read(from.rest(), None)? {
            Loaded::Dynamic(filter) => Filter::Dynamic(filter),
            Loaded::Spectral(filter) => Filter::Spectral(filter),
            Loaded::Counting(filter) => Filter::Counting(filter),
            other => {
                let got = other.kind().name().to_owned();
                return Err(Error::Kind { expected: "a filter of counters", got });
            }
        };
        HASHER.require_same(each!(&filter, filter => filter.hasher()))?;
        Ok(Counts { filter, items, total })
    }
}

fn frozen<C: GrowingCells<Shape: ShapeRecord>>(filter: &CountFilter<C>) -> io::Result<Frozen<'_>> {
    filter.freeze().map_err(io::Error::other)
}
