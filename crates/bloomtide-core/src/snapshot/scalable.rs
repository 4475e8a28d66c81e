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
use super::record::{RECORD, Record};
use super::write::{Section, Snapshot};
use crate::cells::{Words, bytes_for};
use crate::error::{Error, Result};
use crate::filters::{Cells, Layer, LayerPlan, ScalableBloomFilter, ScalablePlan, Shape};
use crate::hash::Hasher;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

const GOALS: usize = RECORD + 6 * 8;
/// Bytes of a part's two numbers.
const PART: usize = 16;

impl Snapshot for ScalableBloomFilter {
    fn kind(&self) -> Kind {
        Kind::Scalable
    }

    fn parameters(&self) -> Vec<u8> {
        let plan = self.plan();
        let mut out = Vec::new();
        for layer in self.cells() {
            if let Cells::Bloom(filter) = layer.cells() {
                out.extend(Record::of_bloom(filter.plan(), filter.hasher()).encode());
            }
        }
        out.extend(plan.capacity.to_le_bytes());
        out.extend(plan.error_rate.to_le_bytes());
        out.extend(plan.growth.to_le_bytes());
        out.extend(plan.tightening.to_le_bytes());
        out.extend(u64::from(plan.reserve).to_le_bytes());
        for layer in self.cells() {
            match layer.cells() {
                Cells::Bloom(_) => out.extend(layer.items().to_le_bytes()),
                Cells::Sparse(parts) => {
                    for part in parts {
                        out.extend(part.items().to_le_bytes());
                        out.extend((part.rest().len() as u64).to_le_bytes());
                    }
                }
            }
        }
        out
    }

    fn sections(&self) -> Result<Vec<Section<'_>>> {
        let mut sections = Vec::new();
        for layer in self.cells() {
            let parts = match layer.cells() {
                Cells::Bloom(filter) => {
                    sections.push(Section::Cells(filter.words()));
                    continue;
                }
                Cells::Sparse(parts) => parts,
            };
            sections.extend(parts.iter().map(|part| Section::Cells(part.words())));
            let rest: Vec<_> = parts.iter().flat_map(|part| part.rest()).collect();
            let words = Words::zeroed(rest.len() as u64 * 64)?;
            for (word, number) in words.atomics().iter().zip(rest) {
                word.store(*number, Ordering::Relaxed);
            }
            sections.push(Section::Made(words));
        }
        Ok(sections)
    }
}

/// What the parameters of a scalable filter promise.
pub(super) struct PromisedLayers {
    plan: ScalablePlan,
    hasher: Hasher,
    layers: Vec<PromisedLayer>,
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

impl PromisedLayers {
    pub(super) fn of(header: &Header) -> Result<Self> {
        let parameters = &header.parameters;
        let wrong =
            || Error::Field { name: "parameters", got: format!("{} bytes", parameters.len()) };
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
            if let Some((items, rest)) = layer
                .parts
                .iter()
                .find(|(items, rest)| *items > layer.plan.capacity || rest > items)
            {
                return Err(Error::Field { name: "items", got: format!("{items} and {rest}") });
            }
            let items: Vec<_> = layer.parts.iter().map(|(items, _)| *items).collect();
            expected.extend(layer.plan.part_bytes(&items));
            expected.push(bytes_for(layer.rest() * 64));
            layers.push(layer);
        }
        if expected != header.sections {
            let got = format!("{} bytes for other parameters", header.sections.iter().sum::<u64>());
            return Err(Error::Field { name: "sections", got });
        }
        Ok(PromisedLayers { plan, hasher, layers })
    }

    pub(super) fn build(self, sections: Vec<Words>) -> Result<ScalableBloomFilter> {
        let wrong = |got: &str| Error::Field { name: "cells", got: got.to_owned() };
        let mut sections = sections.into_iter();
        let mut layers = Vec::new();
        for promised in self.layers {
            let bins: Vec<_> = sections.by_ref().take(promised.parts.len()).collect();
            if let Shape::Bloom(_) = promised.plan.shape {
                let items = promised.parts.iter().map(|(items, _)| *items);
                let parts = items.zip(bins).map(|(items, words)| (items, words, BTreeSet::new()));
                layers.push(Layer::over(promised.plan, self.hasher, parts.collect()));
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
            layers.push(Layer::over(promised.plan, self.hasher, parts));
        }
        ScalableBloomFilter::over(self.plan, self.hasher, layers)
    }
}
