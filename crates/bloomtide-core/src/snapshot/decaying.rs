//! Time-decaying filters as snapshots: values with the stamps of their blocks, whatever holds them.
//!
//! ```text
//! parameters  record (64 bytes) | layout, rounding, fraction bits, has a time (a byte each), 4 zeros
//!             | lambda | epoch | origin | half-life | longest jump (0: not given) | time, an epoch
//!             | late | clock jumps | ahead | units that counts may miss | since which epoch
//!             | events set aside | first events | votes   (8 bytes each)
//! sections    stamps (4 bytes a block) | directory | fields (`cells/runs.rs`)
//!             | what is known of the time: events set aside, first events and votes (`event_time`), each with its
//!             epoch, digest (16 bytes) and count
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
use crate::event_time::{Event, Kept, MOST_ASIDE, Oddities};
use crate::filters::{
    DecayStorage, DecayingPlan, Drift, Fade, FrozenCells, KeptArrivals, Occurrence,
    TimeDecayingBloomFilter as Filter,
};
use crate::hash::{Hasher, KeyHash};
use std::sync::atomic::Ordering;

const PARAMETERS: usize = RECORD + 8 + 15 * 8;
/// Words of an event.
const EVENT: usize = 4;

impl Filter {
    /// One moment of the filter, to be written.
    pub fn freeze(&self) -> Result<Frozen<'static>> {
        self.still(|now, kept, arrivals| {
            let blocks = kept.cells.div_ceil(DECAY_BLOCK);
            let stamps = Words::zeroed(blocks * 32)?;
            for block in 0..blocks {
                let stored = u64::from((kept.stored)(block));
                packed::write(stamps.atomics(), block * 32, 32, stored);
            }
            let (directory, fields) = runs::encode(kept.cells, &Blocks(kept))?;
            let events = events(&arrivals.time)?;
            let parameters = parameters(self.plan(), self.hasher(), now, &Known::of(&arrivals));
            let sections = [stamps, directory, fields, events].map(Section::Made).into();
            Ok(Frozen { kind: Kind::Decaying, parameters, sections })
        })
    }
}

/// What the parameters say of the times of events.
struct Known {
    odd: Oddities,
    drift: Drift,
    /// Events set aside, first events, votes.
    events: [u64; 3],
}

impl Known {
    fn of(arrivals: &KeptArrivals) -> Self {
        let KeptArrivals { time, drift } = arrivals;
        let events = [time.aside.len(), time.first.len(), time.votes.len()].map(|n| n as u64);
        Known { odd: time.odd, drift: *drift, events }
    }
}

fn events(time: &Kept<Occurrence>) -> Result<Words> {
    let vote = |at: &f64| Event { at: *at, what: (KeyHash::default(), 0) };
    let votes = time.votes.iter().map(vote);
    let events: Vec<_> = time.aside.iter().chain(&time.first).copied().chain(votes).collect();
    let out = Words::zeroed((events.len() * EVENT * 64) as u64)?;
    let words = events.iter().flat_map(|Event { at, what: (hash, count) }| {
        [*at as i64 as u64, hash.h1, hash.h2, *count]
    });
    for (word, value) in out.atomics().iter().zip(words) {
        word.store(value, Ordering::Relaxed);
    }
    Ok(out)
}

/// The values of blocks: a run is one.
struct Blocks<'a>(&'a FrozenCells<'a>);

impl CellValues for Blocks<'_> {
    fn fill(&self, first: u64, values: &mut [u64]) {
        let block = (self.0.values)(first / DECAY_BLOCK);
        values.iter_mut().zip(block).for_each(|(value, units)| *value = u64::from(units));
    }
}

fn parameters(plan: &DecayingPlan, hasher: &Hasher, now: Option<i64>, known: &Known) -> Vec<u8> {
    let goal = (plan.capacity, plan.error_rate);
    let record = Record::of_counters(hasher, &plan.placement, plan.policy, plan.counter_bits, goal);
    let mut out = record.encode().to_vec();
    out.push(id(DecayStorage::ALL, &plan.storage));
    out.push(id(Rounding::ALL, &plan.rounding));
    out.push(plan.fraction_bits as u8);
    out.push(u8::from(now.is_some()));
    out.extend([0; 4]);
    let Fade { decay, epoch, origin, half_life, max_jump } = plan.fade;
    for number in [decay, epoch, origin, half_life.unwrap_or(0.0), max_jump.unwrap_or(0.0)] {
        out.extend(number.to_le_bytes());
    }
    out.extend(now.unwrap_or(0).to_le_bytes());
    let Known { odd: Oddities { late, clock_jumps, ahead }, drift, events } = *known;
    let numbers = [late, clock_jumps, ahead, drift.low, drift.high, drift.since as u64];
    numbers.into_iter().chain(events).for_each(|number| out.extend(number.to_le_bytes()));
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
        max_jump: Some(number(4)).filter(|max_jump| max_jump.to_bits() != 0),
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
    let now = (rest[3] == 1).then(|| u64_at(rest, 48) as i64);
    // Times that no clock shows would overflow where ages are worked out.
    let in_range = |at: i64| at.unsigned_abs() <= 1 << 50;
    if !now.is_none_or(in_range) {
        return wrong("time", format!("{now:?}"));
    }
    let word = |i: usize| u64_at(rest, 56 + 8 * i);
    let odd = Oddities { late: word(0), clock_jumps: word(1), ahead: word(2) };
    let drift = Drift { low: word(3), high: word(4), since: word(5) as i64 };
    let known = Known { odd, drift, events: [word(6), word(7), word(8)] };
    if parameters(&plan, &hasher, now, &known) != *bytes {
        return wrong("parameters", "unknown fields".to_owned());
    }
    if known.events.iter().any(|events| *events > MOST_ASIDE as u64) {
        return wrong("events", format!("{:?}", known.events));
    }
    let events_bits = known.events.iter().sum::<u64>() * EVENT as u64 * 64;
    let cells = plan.cells();
    let stamps = bytes_for(cells.div_ceil(DECAY_BLOCK) * 32);
    if header.sections.len() != 4
        || header.sections[..2] != [stamps, Values::directory_bytes(cells)]
        || header.sections[3] != bytes_for(events_bits)
    {
        return wrong("sections", format!("{:?}", header.sections));
    }
    Ok(Box::new(move |sections| {
        let wrong = |name, got: &str| Err(Error::Field { name, got: got.to_owned() });
        let Ok([stamps, directory, fields, events]) = <[Words; 4]>::try_from(sections) else {
            return wrong("sections", "another number of them");
        };
        if !stamps.is_zero_from(cells.div_ceil(DECAY_BLOCK) * 32) {
            return wrong("stamps", "bits beyond the last block");
        }
        if !events.is_zero_from(events_bits) {
            return wrong("events", "bits beyond the last one");
        }
        let time = time_of(&known, now, &events);
        // The drift begins with the first event; `strict` takes nothing too much.
        let since = (known.drift != Drift::NONE).then_some(known.drift.since as f64);
        let begins = since.is_some() == now.is_some()
            && since <= time.now
            && (now.is_none() || in_range(known.drift.since))
            && (plan.rounding == Rounding::Expiring || known.drift.low == 0);
        if !begins || !time.is_sound(|at| at.abs() <= (1u64 << 50) as f64) {
            return wrong("events", "times that cannot have been");
        }
        let arrivals = KeptArrivals { time, drift: known.drift };
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
        Ok(Loaded::Decaying(Box::new(Filter::restored(plan, hasher, &kept, arrivals)?)))
    }))
}

/// What is known of the time, from the section with the events.
fn time_of(known: &Known, now: Option<i64>, events: &Words) -> Kept<Occurrence> {
    let words: Vec<u64> = events.atomics().iter().map(|w| w.load(Ordering::Relaxed)).collect();
    let event = |row: &[u64]| Event {
        at: row[0] as i64 as f64,
        what: (KeyHash { h1: row[1], h2: row[2] }, row[3]),
    };
    let mut rows = words.chunks_exact(EVENT).map(event);
    let [aside, first, votes] = known.events.map(|number| number as usize);
    Kept {
        now: now.map(|now| now as f64),
        odd: known.odd,
        aside: rows.by_ref().take(aside).collect(),
        first: rows.by_ref().take(first).collect(),
        votes: rows.take(votes).map(|vote| vote.at).collect(),
    }
}
