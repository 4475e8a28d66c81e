//! One layer of a scalable filter: keys of one size and error, in a Bloom filter or in parts.

use super::part::{self, Part, Place};
use super::plan::{LayerPlan, Shape};
use crate::batch::GROUP;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, Measure};
use crate::hash::{Hasher, KeyHash};
use crate::positions::reduce;

/// Keys of one size and error.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(super) plan: LayerPlan,
    pub(super) cells: Cells,
    /// New keys this layer took.
    pub(super) items: u64,
}

#[derive(Debug)]
pub(crate) enum Cells {
    Bloom(BloomFilter),
    Sparse(Vec<Part>),
}

impl Layer {
    pub(super) fn new(plan: LayerPlan, hasher: Hasher) -> Result<Self> {
        let cells = match &plan.shape {
            Shape::Bloom(bloom) => Cells::Bloom(BloomFilter::new(*bloom, hasher)?),
            Shape::Sparse(sparse) => {
                let parts = (0..plan.parts()).map(|part| Part::new(sparse.sizes(part, 0)));
                Cells::Sparse(parts.collect::<Result<_>>()?)
            }
        };
        Ok(Layer { plan, cells, items: 0 })
    }

    /// A layer read from a snapshot.
    pub(crate) fn over(plan: LayerPlan, cells: Cells, items: u64) -> Self {
        Layer { plan, cells, items }
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.cells {
            Cells::Bloom(filter) => filter.plan().bytes(),
            Cells::Sparse(parts) => parts.iter().map(Part::bytes).sum(),
        }
    }

    /// The key's part and its place in there, if the layer has parts.
    #[inline(always)]
    pub(super) fn place(&self, hash: KeyHash) -> (usize, Place) {
        match (&self.plan.shape, &self.cells) {
            (Shape::Sparse(plan), Cells::Sparse(parts)) => {
                let (part, rest) = plan.part(hash);
                let sizes = parts[part].sizes();
                (part, sizes.place(reduce(rest, sizes.universe())))
            }
            _ => (0, Place::default()),
        }
    }

    /// Asks for the lines of a key whose place is known.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: KeyHash, (part, place): (usize, Place)) {
        match &self.cells {
            Cells::Bloom(filter) => filter.prefetch(hash),
            Cells::Sparse(parts) => parts[part].prefetch(place),
        }
    }

    #[inline(always)]
    pub(super) fn contains<const LEVEL: u8>(
        &self,
        hash: KeyHash,
        (part, place): (usize, Place),
    ) -> bool {
        match &self.cells {
            Cells::Bloom(filter) => filter.contains(hash),
            Cells::Sparse(parts) => parts[part].contains::<LEVEL>(place),
        }
    }

    /// Turns `known` to true for the keys of a group that may be inside.
    #[inline(always)]
    pub(super) fn recognize<const LEVEL: u8>(&self, group: &[KeyHash], known: &mut [bool; GROUP]) {
        let mut found = [false; GROUP];
        if let Cells::Bloom(filter) = &self.cells {
            filter.contains_group(group, &mut found[..group.len()]);
        } else {
            for (hash, found) in group.iter().zip(&mut found) {
                *found = self.contains::<LEVEL>(*hash, self.place(*hash));
            }
        }
        known.iter_mut().zip(found).for_each(|(known, found)| *known |= found);
    }

    /// Adds the key unless it is there. Growing comes first, and is all that can fail; `moves` counts it, since
    /// places that were found before it are wrong.
    #[inline(always)]
    pub(super) fn insert<const LEVEL: u8>(
        &mut self,
        hash: KeyHash,
        (index, mut place): (usize, Place),
        moves: &mut u64,
    ) -> Result<bool> {
        let new = match &mut self.cells {
            // SAFETY: the layer is borrowed alone.
            Cells::Bloom(filter) => unsafe { filter.add_unsynchronised(hash) },
            Cells::Sparse(parts) => {
                if parts[index].is_full() {
                    if parts[index].contains::<LEVEL>(place) {
                        return Ok(false);
                    }
                    parts[index] = part::grown(&parts[index])?;
                    *moves += 1;
                    place = self.place(hash).1;
                }
                let Cells::Sparse(parts) = &mut self.cells else { return Ok(false) };
                parts[index].insert::<LEVEL>(place)?
            }
        };
        self.items += u64::from(new);
        Ok(new)
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.items >= self.plan.capacity
    }

    pub(super) fn measure(&self) -> Measure {
        let items = self.items as f64;
        match &self.cells {
            Cells::Bloom(filter) => Measure { items, ..filter.measure() },
            Cells::Sparse(parts) => {
                let fills =
                    parts.iter().map(|part| part.items() as f64 / part.sizes().universe() as f64);
                let error = fills.sum::<f64>() / parts.len() as f64;
                Measure { items, fill: items / self.plan.cells() as f64, error, saturated: 0 }
            }
        }
    }

    pub(super) fn copy(&self) -> Result<Self> {
        let cells = match &self.cells {
            Cells::Bloom(filter) => Cells::Bloom(filter.copy()?),
            Cells::Sparse(parts) => {
                Cells::Sparse(parts.iter().map(Part::copy).collect::<Result<_>>()?)
            }
        };
        Ok(Layer { plan: self.plan, cells, items: self.items })
    }

    pub(super) fn same_as(&self, other: &Layer) -> bool {
        self.items == other.items
            && match (&self.cells, &other.cells) {
                (Cells::Bloom(a), Cells::Bloom(b)) => a.same_as(b),
                (Cells::Sparse(a), Cells::Sparse(b)) => a.iter().zip(b).all(|(a, b)| a.same_as(b)),
                _ => false,
            }
    }

    pub(super) fn validate(&self, hasher: &Hasher) -> Result<()> {
        let broken = |invariant: String| Err(Error::Invariant { invariant });
        match (&self.cells, &self.plan.shape) {
            (Cells::Bloom(filter), Shape::Bloom(plan)) => {
                if filter.plan() != plan || filter.hasher() != hasher {
                    return broken(format!("the first layer is {:?}", filter.plan()));
                }
                filter.validate()
            }
            (Cells::Sparse(parts), Shape::Sparse(plan)) => {
                let mut all = 0;
                for (number, part) in parts.iter().enumerate() {
                    all += part.items();
                    part.validate(plan.sizes(number, part.items()))?;
                }
                if all != self.items || parts.len() != self.plan.parts() {
                    return broken(format!("a layer has {all} keys and took {}", self.items));
                }
                Ok(())
            }
            _ => broken("a layer of another kind".to_owned()),
        }
    }
}
