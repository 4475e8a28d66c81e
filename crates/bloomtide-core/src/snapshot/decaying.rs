//! Time-decaying filters as snapshots: values with the stamps of their blocks, whatever holds them.
//!
//! ```text
//! parameters  record (64 bytes) | layout, rounding, fraction bits, has a time (a byte each), 4 zeros
//!             | lambda | epoch | origin | half-life (0: not given) | time, an epoch   (8 bytes each)
//! sections    stamps (4 bytes a block) | directory | fields (`cells/runs.rs`)
//! ```
//!
//! Time goes on while a filter is a file: its stamps are epochs, and it knows where epoch zero was. An
//! empty block has no stamp, so that filters that hold the same are the same bytes.

use super::header::{Header, Kind, u64_at};
use super::read::{Build, Loaded};
use super::record::{RECORD, Record, by_id, id};
use super::write::{Frozen, Section};
use crate::batch::at_best;
use crate::cells::runs::{self, Values};
use crate::cells::{CellValues, DECAY_BLOCK, Rounding, Words, bytes_for, packed};
use crate::error::{Error, Result};
use crate::filters::{
    DecayStorage, DecayingPlan, Fade, FrozenCells, TimeDecayingBloomFilter as Filter,
};
use crate::hash::Hasher;

const PARAMETERS: usize = RECORD + 8 + 5 * 8;

impl Filter {
    /// One moment of the filter, to be written.
    pub fn freeze(&self) -> Result<Frozen<'static>> {
        self.still(|now, kept| {
            let blocks = kept.cells.div_ceil(DECAY_BLOCK);
            let stamps = Words::zeroed(blocks * 32)?;
            for block in 0..blocks {
                let stored = u64::from((kept.stored)(block));
                packed::write(stamps.atomics(), block * 32, 32, stored);
            }
            let (directory, fields) = runs::encode(kept.cells, &Blocks(kept))?;
            let parameters = parameters(self.plan(), self.hasher(), now);
            let sections = [stamps, directory, fields].map(Section::Made).into();
            Ok(Frozen { kind: Kind::Decaying, parameters, sections })
        })
    }
}

/// The values of blocks: a run is one.
struct Blocks<'a>(&'a FrozenCells<'a>);

impl CellValues for Blocks<'_> {
    fn fill(&self, first: u64, values: &mut [u64]) {
        let block = (self.0.values)(first / DECAY_BLOCK);
        values.iter_mut().zip(block).for_each(|(value, units)| *value = u64::from(units));
    }
}

fn parameters(plan: &DecayingPlan, hasher: &Hasher, now: Option<i64>) -> Vec<u8> {
    let goal = (plan.capacity, plan.error_rate);
    let record = Record::of_counters(hasher, &plan.placement, plan.policy, plan.counter_bits, goal);
    let mut out = record.encode().to_vec();
    out.push(id(DecayStorage::ALL, &plan.storage));
    out.push(id(Rounding::ALL, &plan.rounding));
    out.push(plan.fraction_bits as u8);
    out.push(u8::from(now.is_some()));
    out.extend([0; 4]);
    let Fade { decay, epoch, origin, half_life } = plan.fade;
    for number in [decay, epoch, origin, half_life.unwrap_or(0.0)] {
        out.extend(number.to_le_bytes());
    }
    out.extend(now.unwrap_or(0).to_le_bytes());
    out
}

/// What the parameters promise of the sections.
pub(super) fn promised(header: &Header) -> Result<Build> {
    let bytes = &header.parameters;
    let wrong = |name, got: String| Err(Error::Field { name, got });
    if bytes.len() != PARAMETERS {
        return wrong("parameters", format!("{} bytes", bytes.len()));
    }
    let (record, rest) = bytes.split_at(RECORD);
    let number = |i: usize| f64::from_bits(u64_at(rest, 8 + 8 * i));
    let fade = Fade {
        decay: number(0),
        epoch: number(1),
        origin: number(2),
        half_life: Some(number(3)).filter(|half_life| half_life.to_bits() != 0),
    };
    let record = Record::decode(record)?;
    let plan = DecayingPlan {
        placement: record.placement()?,
        storage: by_id(DecayStorage::ALL, rest[0], "storage")?,
        fade,
        rounding: by_id(Rounding::ALL, rest[1], "rounding")?,
        policy: record.policy()?,
        counter_bits: record.counter_bits(),
        fraction_bits: u32::from(rest[2]),
        capacity: record.capacity,
        error_rate: record.error_rate,
    };
    let (plan, hasher) = (plan.checked()?, record.hasher);
    let now = (rest[3] == 1).then(|| u64_at(rest, 40) as i64);
    // Times that no clock shows would overflow where ages are worked out.
    if now.is_some_and(|now| now.unsigned_abs() > 1 << 50) {
        return wrong("time", format!("{now:?}"));
    }
    if parameters(&plan, &hasher, now) != *bytes {
        return wrong("parameters", "unknown fields".to_owned());
    }
    let cells = plan.cells();
    let stamps = bytes_for(cells.div_ceil(DECAY_BLOCK) * 32);
    if header.sections.len() != 3
        || header.sections[..2] != [stamps, Values::directory_bytes(cells)]
    {
        return wrong("sections", format!("{:?}", header.sections));
    }
    Ok(Box::new(move |sections| {
        let wrong = |name, got: &str| Err(Error::Field { name, got: got.to_owned() });
        let Ok([stamps, directory, fields]) = <[Words; 3]>::try_from(sections) else {
            return wrong("sections", "another number of them");
        };
        if !stamps.is_zero_from(cells.div_ceil(DECAY_BLOCK) * 32) {
            return wrong("stamps", "bits beyond the last block");
        }
        let values = Values::new(cells, directory, fields)?;
        if values.widest() > u32::BITS {
            return wrong("cells", "a value of more than 32 bits");
        }
        let kept = FrozenCells {
            cells,
            stored: Box::new(|block| packed::read(stamps.atomics(), block * 32, 32) as u32),
            // A block is a run.
            values: Box::new(|block| at_best(|| values.narrow_run(block))),
        };
        Ok(Loaded::Decaying(Box::new(Filter::restored(plan, hasher, now, &kept)?)))
    }))
}
