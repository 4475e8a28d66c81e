//! Scalable filters as snapshots: the bins of every part of every layer.
//!
//! ```text
//! parameters  record of the first layer (64 bytes) | capacity | error rate | growth | tightening
//!             | 1 if memory is reserved, else 0 | items of the first layer
//!             for each part of each later layer: how many sections it has | the items of the part | of its rest, ...
//! sections    the cells of the first layer
//!             for each part of each later layer the bins of the part, of its rest, and so on
//! ```
//!
//! All sizes of later layers follow from the parameters, so a file has no others.

use super::header::{Header, Kind, u64_at};
use super::read::{Build, Loaded, require_sections};
use super::record::{RECORD, Record};
use super::write::{Frozen, Section, Snapshot};
use crate::error::{Error, Result};
use crate::filters::{
    BloomFilter, Cells, Layer, LayerPlan, Part, ScalableBloomFilter, ScalablePlan, Shape,
};

const GOALS: usize = RECORD + 6 * 8;

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
                parameters.extend((part.chain().count() as u64).to_le_bytes());
                for link in part.chain() {
                    parameters.extend(link.items().to_le_bytes());
                    sections.push(Section::Cells(link.words()));
                }
            }
        }
        Ok(Frozen { kind: Kind::Scalable, parameters, sections })
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
    let bottom_items = word(5);
    let mut expected = vec![first.bytes()];
    // Of each later layer, of each part: the items of the part, of its rest, and so on, with their sizes.
    let mut layers = Vec::new();
    // Each layer has a part at least, so their number is bounded by the parameters' length.
    while !parts.is_empty() {
        let layer = plan.layer(layers.len() as u32 + 1)?;
        let Shape::Sparse(shape) = layer.shape else { return Err(wrong()) };
        let mut next = || {
            let (word, behind) = parts.split_at_checked(8).ok_or_else(wrong)?;
            parts = behind;
            Ok::<_, Error>(u64_at(word, 0))
        };
        let mut chains = Vec::new();
        for part in 0..layer.parts() {
            let mut chain = Vec::new();
            // No more than a layer takes, and a rest has less, before anything is computed from it.
            let mut most = layer.capacity;
            for link in 0..next()? {
                let items = next()?;
                if items > most {
                    return Err(Error::Field { name: "items", got: items.to_string() });
                }
                most = items.saturating_sub(1);
                let whole = shape.sizes(part, items);
                let sizes = if link == 0 { whole } else { whole.rest(items) };
                expected.push(sizes.bytes());
                chain.push((items, sizes));
            }
            chains.push(chain);
        }
        layers.push((layer, chains));
    }
    require_sections(header, &expected)?;
    Ok(Box::new(move |sections| {
        let few = || Error::Field { name: "cells", got: "too few sections".to_owned() };
        let mut sections = sections.into_iter();
        let words = sections.next().ok_or_else(few)?;
        let filter = Cells::Bloom(BloomFilter::over(first, hasher, words, None));
        let mut made = vec![Layer::over(bottom, filter, bottom_items)];
        for (layer, chains) in layers {
            let mut parts = Vec::new();
            let mut all = 0u64;
            for chain in chains {
                all = all.saturating_add(chain.first().map_or(0, |(items, _)| *items));
                let own: Vec<_> = sections.by_ref().take(chain.len()).collect();
                let links = chain.into_iter().zip(own).rev();
                let part = links.fold(None, |rest, ((items, sizes), words)| {
                    Some(Part::over(sizes, words, items, rest))
                });
                parts.push(part.ok_or_else(few)?);
            }
            made.push(Layer::over(layer, Cells::Sparse(parts), all));
        }
        ScalableBloomFilter::over(plan, hasher, made).map(Loaded::Scalable)
    }))
}
