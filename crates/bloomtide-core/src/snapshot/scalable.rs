//! Scalable filters as snapshots: the bins of every part of every layer.
//!
//! ```text
//! parameters  record of the first layer (64 bytes) | capacity | error rate | growth | tightening
//!             | 1 if memory is reserved, else 0 | items of the first layer
//!             for each part of each later layer: its numbers | those of them that did not fit their bins
//! sections    the cells of the first layer
//!             for each later layer the bins of each part, then the numbers that did not fit, a word each
//! ```
//!
//! All sizes of later layers follow from the parameters, so a file has no others.

use super::header::{Header, Kind, u64_at};
use super::read::{Build, Loaded, require_sections};
use super::record::{RECORD, Record};
use super::write::{Frozen, Section, Snapshot};
use crate::cells::{Words, bytes_for};
use crate::error::{Error, Result};
use crate::filters::{Cells, Layer, LayerPlan, ScalableBloomFilter, ScalablePlan, Shape};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

const GOALS: usize = RECORD + 6 * 8;
/// Bytes of a part's two numbers.
const PART: usize = 16;

impl Snapshot for ScalableBloomFilter {
    fn freeze(&self) -> Result<Frozen<'_>> {
        let plan = self.plan();
        let goals = [
            plan.capacity,
            plan.error_rate.to_bits(),
            plan.growth.to_bits(),
            plan.tightening.to_bits(),
            u64::from(plan.reserve),
        ];
        let (mut parameters, mut sections) = (Vec::new(), Vec::new());
        for layer in self.cells() {
            let parts = match layer.cells() {
                // There is one, the first.
                Cells::Bloom(filter) => {
                    parameters.extend(Record::of_bloom(filter.plan(), filter.hasher()).encode());
                    parameters.extend(goals.map(u64::to_le_bytes).concat());
                    parameters.extend(layer.items().to_le_bytes());
                    sections.push(Section::Cells(filter.words()));
                    continue;
                }
                Cells::Sparse(parts) => parts,
            };
            for part in parts {
                parameters.extend(part.items().to_le_bytes());
                parameters.extend((part.rest().len() as u64).to_le_bytes());
                sections.push(Section::Cells(part.words()));
            }
            let rest: Vec<_> = parts.iter().flat_map(|part| part.rest()).collect();
            let words = Words::zeroed(rest.len() as u64 * 64)?;
            for (word, number) in words.atomics().iter().zip(rest) {
                word.store(*number, Ordering::Relaxed);
            }
            sections.push(Section::Made(words));
        }
        Ok(Frozen { kind: Kind::Scalable, parameters, sections })
    }
}

struct PromisedLayer {
    plan: LayerPlan,
    /// Of each part, its numbers and those that did not fit.
    parts: Vec<(u64, u64)>,
}

impl PromisedLayer {
    fn rest(&self) -> u64 {
        self.parts.iter().map(|(_, rest)| rest).sum()
    }
}

/// What the parameters promise of the sections.
pub(super) fn promised(header: &Header) -> Result<Build> {
    let parameters = &header.parameters;
    let wrong = || Error::Field { name: "parameters", got: format!("{} bytes", parameters.len()) };
    let (goals, mut parts) = parameters.split_at_checked(GOALS).ok_or_else(wrong)?;
    let (first, hasher) = Record::decode(&goals[..RECORD])?.bloom()?;
    let word = |i: usize| u64_at(goals, RECORD + 8 * i);
    let plan = ScalablePlan {
        capacity: word(0),
        error_rate: f64::from_bits(word(1)),
        growth: f64::from_bits(word(2)),
        tightening: f64::from_bits(word(3)),
        derivation: first.derivation,
        reserve: word(4) == 1,
    };
    if word(4) > 1 {
        return Err(Error::Field { name: "reserve", got: word(4).to_string() });
    }
    let plan = plan.checked()?;
    // The sizes of the first layer are compared with those that the goals give when it is built.
    let bottom = LayerPlan { shape: Shape::Bloom(first), ..plan.layer(0)? };
    let mut expected = vec![first.bytes()];
    let mut layers = vec![PromisedLayer { plan: bottom, parts: vec![(word(5), 0)] }];
    // Each layer has a part at least, so their number is bounded by the parameters' length.
    while !parts.is_empty() {
        let layer = plan.layer(layers.len() as u32)?;
        let bytes = layer.parts() * PART;
        let (own, behind) = parts.split_at_checked(bytes).ok_or_else(wrong)?;
        parts = behind;
        let own = own.chunks_exact(PART).map(|part| (u64_at(part, 0), u64_at(part, 8)));
        let layer = PromisedLayer { plan: layer, parts: own.collect() };
        // No more than a layer takes, before anything is computed from them.
        if let Some((items, rest)) =
            layer.parts.iter().find(|(items, rest)| *items > layer.plan.capacity || rest > items)
        {
            return Err(Error::Field { name: "items", got: format!("{items} and {rest}") });
        }
        let items: Vec<_> = layer.parts.iter().map(|(items, _)| *items).collect();
        expected.extend(layer.plan.part_bytes(&items));
        expected.push(bytes_for(layer.rest() * 64));
        layers.push(layer);
    }
    require_sections(header, &expected)?;
    Ok(Box::new(move |sections| {
        let wrong = |got: &str| Error::Field { name: "cells", got: got.to_owned() };
        let mut sections = sections.into_iter();
        let mut made = Vec::new();
        for promised in layers {
            let bins: Vec<_> = sections.by_ref().take(promised.parts.len()).collect();
            if let Shape::Bloom(_) = promised.plan.shape {
                let items = promised.parts.iter().map(|(items, _)| *items);
                let parts = items.zip(bins).map(|(items, words)| (items, words, BTreeSet::new()));
                made.push(Layer::over(promised.plan, hasher, parts.collect()));
                continue;
            }
            let all = sections.next().ok_or_else(|| wrong("too few sections"))?;
            if !all.is_zero_from(promised.rest() * 64) {
                return Err(wrong("bytes beyond the last number"));
            }
            let mut numbers = all.atomics().iter().map(|word| word.load(Ordering::Relaxed));
            let mut parts = Vec::new();
            for ((items, count), bins) in promised.parts.iter().zip(bins) {
                let own: Vec<_> = numbers.by_ref().take(*count as usize).collect();
                if !own.is_sorted_by(|a, b| a < b) {
                    return Err(wrong("numbers that are not in order"));
                }
                parts.push((*items, bins, BTreeSet::from_iter(own)));
            }
            made.push(Layer::over(promised.plan, hasher, parts));
        }
        ScalableBloomFilter::over(plan, hasher, made).map(Loaded::Scalable)
    }))
}
