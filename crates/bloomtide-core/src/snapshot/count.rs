//! Filters of growing counters as snapshots: their counters, whatever they were held in.
//!
//! ```text
//! parameters  record (64 bytes) | total | partitions | shape (16 bytes)
//! sections    directory | fields (`cells/runs.rs`)
//! ```
//!
//! A filter is frozen inside its gate, so that what is written is one moment of it.

use super::header::{Header, Kind, u64_at};
use super::record::{RECORD, Record};
use super::write::{Frozen, Section};
use crate::cells::runs::{self, Values};
use crate::cells::{DynamicShape, GrowingCells, SpectralShape, Words};
use crate::error::{Error, Result};
use crate::filters::{CountFilter, CountPlan, check_base_bits, check_shrink};
use crate::hash::Hasher;

const SHAPE: usize = 16;
const PARAMETERS: usize = RECORD + 8 + 8 + SHAPE;

/// What cells are like, as bytes.
pub trait ShapeRecord: Copy + PartialEq {
    /// The kinds of the whole and of the partitioned filter of such cells.
    const KINDS: (Kind, Kind);

    /// Bits of a base counter; zero where there is none.
    fn counter_bits(&self) -> u32;

    /// The rest of it.
    fn encode(&self) -> [u8; SHAPE];

    /// What was encoded, checked as a constructor would.
    fn decode(counter_bits: u32, bytes: &[u8]) -> Result<Self>;
}

impl ShapeRecord for DynamicShape {
    const KINDS: (Kind, Kind) = (Kind::Dynamic, Kind::PartitionedDynamic);

    fn counter_bits(&self) -> u32 {
        self.width
    }

    fn encode(&self) -> [u8; SHAPE] {
        let mut out = [0; SHAPE];
        out[..8].copy_from_slice(&self.shrink.to_le_bytes());
        out
    }

    fn decode(counter_bits: u32, bytes: &[u8]) -> Result<Self> {
        let shrink = f64::from_bits(u64_at(bytes, 0));
        check_shrink(shrink)?;
        check_base_bits(counter_bits)?;
        Ok(DynamicShape { width: counter_bits, shrink })
    }
}

impl ShapeRecord for SpectralShape {
    const KINDS: (Kind, Kind) = (Kind::Spectral, Kind::PartitionedSpectral);

    fn counter_bits(&self) -> u32 {
        0
    }

    fn encode(&self) -> [u8; SHAPE] {
        let mut out = [0; SHAPE];
        out[..8].copy_from_slice(&self.slack.to_le_bytes());
        out[8..].copy_from_slice(&self.design_bits.to_le_bytes());
        out
    }

    fn decode(_: u32, bytes: &[u8]) -> Result<Self> {
        let shape = SpectralShape {
            slack: f64::from_bits(u64_at(bytes, 0)),
            design_bits: f64::from_bits(u64_at(bytes, 8)),
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
        self.still(|plan, cells, guard| {
            let (directory, fields) = runs::encode(cells.len(), &cells.held(guard))?;
            let (bits, goal) = (plan.shape.counter_bits(), (plan.capacity, plan.error_rate));
            let hasher = self.hasher();
            let record = Record::of_counters(hasher, &plan.placement, plan.policy, bits, goal);
            let mut parameters = record.encode().to_vec();
            parameters.extend(plan.total.to_le_bytes());
            parameters.extend(plan.partitions.to_le_bytes());
            parameters.extend(plan.shape.encode());
            let sections = [directory, fields].map(Section::Made).into();
            Ok(Frozen { kind: kind_of(plan), parameters, sections })
        })
    }
}

fn kind_of<S: ShapeRecord>(plan: &CountPlan<S>) -> Kind {
    if plan.partitioned { S::KINDS.1 } else { S::KINDS.0 }
}

/// What the parameters promise.
pub(super) struct Promised<S> {
    plan: CountPlan<S>,
    hasher: Hasher,
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
        // The fields are compared when the directory is read.
        let directory = Values::directory_bytes(plan.cells());
        match header.sections[..] {
            [first, _] if first == directory => Ok(Promised { plan, hasher }),
            _ => Err(Error::Field { name: "sections", got: format!("{:?}", header.sections) }),
        }
    }

    pub(super) fn build<C: GrowingCells<Shape = S>>(
        self,
        sections: Vec<Words>,
    ) -> Result<CountFilter<C>> {
        let Ok([directory, fields]) = <[Words; 2]>::try_from(sections) else {
            return Err(Error::Field { name: "sections", got: "another number".to_owned() });
        };
        let values = Values::new(self.plan.cells(), directory, fields)?;
        CountFilter::with_values(self.plan, self.hasher, values)
    }
}
