//! Filters of growing counters as snapshots: their counters, whatever they were held in.
//!
//! ```text
//! parameters  record (64 bytes) | total | partitions | shape (24 bytes) | stuck | stuck again | marks
//! sections    directory | fields | stuck cells            of the counters (`values.rs`)
//!             directory | fields | stuck cells | marks    of the second ones, under recurring minimum
//! ```
//!
//! A stuck cell is a number, a mark is a digest of two words. A filter is frozen inside its gate, so that
//! what is written is one moment of it.

use super::header::{Header, Kind, u64_at};
use super::record::{RECORD, Record};
use super::write::{Frozen, Section};
use crate::cells::runs::{self, Values};
use crate::cells::{DynamicShape, GrowingCells, OnFull, SpectralShape, Words, bytes_for};
use crate::error::{Error, Result};
use crate::filters::{
    CountFilter, CountPlan, Policy, check_base_bits, check_shrink, second_placement,
};
use crate::hash::Hasher;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

const SHAPE: usize = 24;
const PARAMETERS: usize = RECORD + 8 + 8 + SHAPE + 3 * 8;

/// What cells are like, as bytes.
pub trait ShapeRecord: Copy + PartialEq {
    /// The kinds of the whole and of the partitioned filter of such cells.
    const KINDS: (Kind, Kind);

    /// What such a filter can do with counters.
    const POLICIES: &'static [Policy];

    /// Bits of a base counter; zero where there is none.
    fn counter_bits(&self) -> u32;

    /// The rest of it.
    fn encode(&self) -> [u8; SHAPE];

    /// What was encoded, checked as a constructor would.
    fn decode(counter_bits: u32, bytes: &[u8]) -> Result<Self>;
}

impl ShapeRecord for DynamicShape {
    const KINDS: (Kind, Kind) = (Kind::Dynamic, Kind::PartitionedDynamic);
    const POLICIES: &'static [Policy] = &Policy::USUAL;

    fn counter_bits(&self) -> u32 {
        self.width
    }

    fn encode(&self) -> [u8; SHAPE] {
        let mut out = [0; SHAPE];
        out[..8].copy_from_slice(&self.shrink.to_le_bytes());
        out[8] = u8::from(self.adaptive);
        out
    }

    fn decode(counter_bits: u32, bytes: &[u8]) -> Result<Self> {
        let shrink = f64::from_bits(u64_at(bytes, 0));
        check_shrink(shrink)?;
        check_base_bits(counter_bits)?;
        Ok(DynamicShape { width: counter_bits, shrink, adaptive: bytes[8] == 1 })
    }
}

impl ShapeRecord for SpectralShape {
    const KINDS: (Kind, Kind) = (Kind::Spectral, Kind::PartitionedSpectral);
    const POLICIES: &'static [Policy] = &Policy::SPECTRAL;

    fn counter_bits(&self) -> u32 {
        0
    }

    fn encode(&self) -> [u8; SHAPE] {
        let mut out = [0; SHAPE];
        out[..8].copy_from_slice(&self.slack.to_le_bytes());
        out[8..16].copy_from_slice(&self.design_bits.to_le_bytes());
        out[16] = u8::from(self.on_full == OnFull::Grow);
        out
    }

    fn decode(_: u32, bytes: &[u8]) -> Result<Self> {
        let shape = SpectralShape {
            slack: f64::from_bits(u64_at(bytes, 0)),
            design_bits: f64::from_bits(u64_at(bytes, 8)),
            on_full: if bytes[16] == 1 { OnFull::Grow } else { OnFull::Saturate },
        };
        shape.check()?;
        Ok(shape)
    }
}

impl<C: GrowingCells<Shape: ShapeRecord>> CountFilter<C> {
    /// What this filter is called in files.
    pub fn kind(&self) -> Kind {
        kind_of(&self.plan())
    }

    /// One moment of the filter, to be written.
    pub fn freeze(&self) -> Result<Frozen<'static>> {
        self.still(|plan, first, second| {
            let (mut sections, stuck) = counters(first)?;
            let (mut stuck_again, mut marked_keys) = (0, 0);
            if let Some((cells, marked)) = second {
                let (more, stuck) = counters(cells)?;
                sections.extend(more);
                // Sorted, so that equal filters are equal bytes.
                let mut marks: Vec<u128> = marked.iter().copied().collect();
                marks.sort_unstable();
                let halves = marks.iter().flat_map(|mark| [*mark as u64, (mark >> 64) as u64]);
                sections.push(list(halves)?);
                (stuck_again, marked_keys) = (stuck, marked.len() as u64);
            }
            let (bits, goal) = (plan.shape.counter_bits(), (plan.capacity, plan.error_rate));
            let hasher = self.hasher();
            let record = Record::of_counters(hasher, &plan.placement, plan.policy, bits, goal);
            let mut parameters = record.encode().to_vec();
            parameters.extend(plan.total.to_le_bytes());
            parameters.extend(plan.partitions.to_le_bytes());
            parameters.extend(plan.shape.encode());
            parameters.extend([stuck, stuck_again, marked_keys].map(u64::to_le_bytes).concat());
            let sections = sections.into_iter().map(Section::Made).collect();
            Ok(Frozen { kind: kind_of(plan), parameters, sections })
        })
    }
}

fn kind_of<S: ShapeRecord>(plan: &CountPlan<S>) -> Kind {
    if plan.partitioned { S::KINDS.1 } else { S::KINDS.0 }
}

/// The sections of counters, and how many of them are stuck.
fn counters<C: GrowingCells>(cells: &C) -> Result<(Vec<Words>, u64)> {
    let guard = &crossbeam_epoch::pin();
    let (directory, fields) = runs::encode(cells.len(), &cells.held(guard))?;
    let mut stuck = runs::largest(cells.len(), &directory, &fields);
    stuck.extend(cells.flagged(guard));
    stuck.sort_unstable();
    Ok((vec![directory, fields, list(stuck.iter().copied())?], stuck.len() as u64))
}

/// Numbers, one a word.
fn list(numbers: impl Iterator<Item = u64> + Clone) -> Result<Words> {
    let words = Words::zeroed(numbers.clone().count() as u64 * 64)?;
    for (word, number) in words.atomics().iter().zip(numbers) {
        word.store(number, Ordering::Relaxed);
    }
    Ok(words)
}

/// The numbers of a list, which go up and stay below `end`.
fn listed(words: &Words, count: u64, end: u64) -> Result<Vec<u64>> {
    let numbers: Vec<u64> = (words.atomics().iter())
        .take(count as usize)
        .map(|word| word.load(Ordering::Relaxed))
        .collect();
    let sorted = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    if !sorted || numbers.last().is_some_and(|last| *last >= end) || !words.is_zero_from(count * 64)
    {
        return Err(Error::Field { name: "stuck", got: "no list of cells".to_owned() });
    }
    Ok(numbers)
}

/// A counter at the largest number has lost count, so it must be in the list.
fn require_listed(values: &Values, stuck: &[u64]) -> Result<()> {
    if values.largest().iter().all(|cell| stuck.binary_search(cell).is_ok()) {
        return Ok(());
    }
    Err(Error::Field { name: "stuck", got: "too few cells".to_owned() })
}

/// What the parameters promise.
pub(super) struct Promised<S> {
    plan: CountPlan<S>,
    hasher: Hasher,
    stuck: u64,
    stuck_again: u64,
    marks: u64,
}

impl<S: ShapeRecord> Promised<S> {
    pub(super) fn of(header: &Header) -> Result<Self> {
        let bytes = &header.parameters;
        if bytes.len() != PARAMETERS {
            return Err(Error::Field { name: "parameters", got: format!("{} bytes", bytes.len()) });
        }
        let record = Record::decode(&bytes[..RECORD])?;
        let shape = &bytes[RECORD + 16..RECORD + 16 + SHAPE];
        let decoded = S::decode(record.counter_bits(), shape)?;
        if decoded.encode() != shape {
            return Err(Error::Field { name: "shape", got: "unknown fields".to_owned() });
        }
        if decoded.counter_bits() != record.counter_bits() {
            let got = record.counter_bits().to_string();
            return Err(Error::Field { name: "counter_bits", got });
        }
        let (total, partitions) = (u64_at(bytes, RECORD), u64_at(bytes, RECORD + 8));
        let partitioned = header.kind == S::KINDS.1;
        let plan = CountPlan {
            placement: record.placement()?,
            policy: record.policy()?,
            shape: decoded,
            partitioned,
            partitions,
            total,
            capacity: record.capacity,
            error_rate: record.error_rate,
        };
        let (plan, hasher) = (plan.checked()?, record.hasher);
        if plan.partitions != partitions {
            return Err(Error::Field { name: "partitions", got: partitions.to_string() });
        }
        if !S::POLICIES.contains(&plan.policy) {
            return Err(Error::Field { name: "policy", got: plan.policy.name().to_owned() });
        }
        let rest = RECORD + 16 + SHAPE;
        let promised = Promised {
            plan,
            hasher,
            stuck: u64_at(bytes, rest),
            stuck_again: u64_at(bytes, rest + 8),
            marks: u64_at(bytes, rest + 16),
        };
        promised.compare(&header.sections)?;
        Ok(promised)
    }

    /// The lists have the lengths that were promised; the fields are compared when the directory is read.
    fn compare(&self, sections: &[u64]) -> Result<()> {
        let words = |count: u64| bytes_for(count.saturating_mul(64));
        let fits = match (sections, second_placement(&self.plan)) {
            ([directory, _, stuck], None) => {
                *directory == Values::directory_bytes(self.plan.cells())
                    && *stuck == words(self.stuck)
                    && (self.stuck_again, self.marks) == (0, 0)
            }
            ([directory, _, stuck, again, _, stuck_again, marks], Some(second)) => {
                *directory == Values::directory_bytes(self.plan.cells())
                    && *stuck == words(self.stuck)
                    && *again == Values::directory_bytes(second.cells)
                    && *stuck_again == words(self.stuck_again)
                    && *marks == words(self.marks.saturating_mul(2))
            }
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err(Error::Field { name: "sections", got: format!("{sections:?}") })
        }
    }

    pub(super) fn build<C: GrowingCells<Shape = S>>(
        self,
        sections: Vec<Words>,
    ) -> Result<CountFilter<C>> {
        let mut sections = sections.into_iter();
        let mut next =
            || sections.next().ok_or(Error::Field { name: "sections", got: "too few".to_owned() });
        let values = Values::new(self.plan.cells(), next()?, next()?)?;
        let stuck = listed(&next()?, self.stuck, self.plan.cells())?;
        require_listed(&values, &stuck)?;
        let filter = CountFilter::with_values(self.plan, self.hasher, values, &stuck)?;
        if !filter.look(|cells: &C, guard| stuck.iter().all(|cell| cells.is_stuck(*cell, guard))) {
            return Err(Error::Field { name: "stuck", got: "other cells".to_owned() });
        }
        if let Some(placement) = second_placement(&self.plan) {
            let values = Values::new(placement.cells, next()?, next()?)?;
            let stuck = listed(&next()?, self.stuck_again, placement.cells)?;
            let words = next()?;
            let marks: Vec<u128> = (words.atomics().chunks_exact(2))
                .take(self.marks as usize)
                .map(|pair| {
                    let [low, high] = [0, 1].map(|i: usize| pair[i].load(Ordering::Relaxed));
                    u128::from(high) << 64 | u128::from(low)
                })
                .collect();
            let sorted = marks.windows(2).all(|pair| pair[0] < pair[1]);
            if marks.len() as u64 != self.marks || !sorted || !words.is_zero_from(self.marks * 128)
            {
                return Err(Error::Field { name: "marks", got: "no list of digests".to_owned() });
            }
            require_listed(&values, &stuck)?;
            filter.resume(values, &stuck, HashSet::from_iter(marks))?;
        }
        // What was laid out by its values is sound.
        Ok(filter)
    }
}
