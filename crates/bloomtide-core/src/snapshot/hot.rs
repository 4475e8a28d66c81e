//! Hot lists as snapshots: their keys and weights, in the order of their places.
//!
//! ```text
//! parameters  record (64 bytes, k as its cells) | half-life | epoch (0: no steps) | origin | longest jump
//!             | shift | time | total
//!             | late | clock jumps | ahead | keys | events set aside | first events | votes
//!             | bytes of all keys together
//! sections    three words a key: its weight's lower and upper bound, its kind and length in bytes; then the same of
//!             events set aside and first events (`event_time`), with instant and count instead of bounds; then
//!             votes, with the instant alone
//!             the keys themselves, one after the other
//! ```
//!
//! Digests are not written: they come from the keys again, so a key that was changed is not found under its
//! old digest. Neither is the heap, since equal weights are ordered by place.

use super::header::{Header, Kind, u64_at};
use super::read::{Build, Loaded};
use super::record::{RECORD, Record};
use super::write::{Frozen, Section, Snapshot};
use crate::cells::{Words, bytes_for};
use crate::error::{Error, Result};
use crate::event_time::{Event, EventTime, Kept, MOST_ASIDE, Oddities};
use crate::filters::{HotList, HotOccurrence as Occurrence, HotPlan, HotState, Steps};
use crate::key::{Key, OwnedKey};
use std::sync::atomic::Ordering;

const PARAMETERS: usize = RECORD + 15 * 8;
/// Bytes of a row.
const ROW: usize = 24;

impl Snapshot for HotList {
    fn freeze(&self) -> Result<Frozen<'_>> {
        let HotState { shift, total } = *self.state();
        let Kept { now, odd, aside, first, votes } = self.event_time().kept();
        let Oddities { late, clock_jumps, ahead } = odd;
        let mut parameters = Record::of_hasher(self.hasher(), self.plan().k).encode().to_vec();
        let steps = self.plan().steps.unwrap_or(Steps { epoch: 0.0, origin: 0.0 });
        let numbers = [
            self.plan().half_life.unwrap_or(0.0).to_bits(),
            steps.epoch.to_bits(),
            steps.origin.to_bits(),
            self.plan().max_jump.unwrap_or(0.0).to_bits(),
            shift as u64,
            now.unwrap_or(f64::NEG_INFINITY).to_bits(),
            total.to_bits(),
            late,
            clock_jumps,
            ahead,
            self.len() as u64,
            aside.len() as u64,
            first.len() as u64,
            votes.len() as u64,
            self.key_bytes(),
        ];
        parameters.extend(numbers.map(u64::to_le_bytes).concat());
        let refuse = |_| Error::Capacity { needed: self.key_bytes(), limit: isize::MAX as u64 };
        let (mut rows, mut keys) = (Vec::new(), Vec::new());
        rows.try_reserve_exact((self.len() + aside.len()) * ROW).map_err(refuse)?;
        keys.try_reserve_exact(self.key_bytes() as usize).map_err(refuse)?;
        let mut row = |first: u64, second: u64, key: &OwnedKey| {
            let before = keys.len();
            let kind = key.encode(&mut keys);
            rows.extend(first.to_le_bytes());
            rows.extend(second.to_le_bytes());
            rows.extend((u64::from(kind) | ((keys.len() - before) as u64) << 8).to_le_bytes());
        };
        self.rows().for_each(|(low, high, key)| row(low.to_bits(), high.to_bits(), key));
        aside.iter().chain(&first).for_each(|event| {
            row(event.at.to_bits(), event.what.count, &event.what.key);
        });
        rows.extend(votes.iter().flat_map(|at| [at.to_bits(), 0, 0]).flat_map(u64::to_le_bytes));
        let sections = vec![Section::Made(words(&rows)?), Section::Made(words(&keys)?)];
        Ok(Frozen { kind: Kind::Hot, parameters, sections })
    }
}

impl HotList {
    /// Bytes of all keys together, as they are written.
    fn key_bytes(&self) -> u64 {
        let Kept { aside, first, .. } = self.event_time().kept();
        let waiting = aside.iter().chain(&first).map(|event| &event.what.key);
        let listed = self.rows().map(|(_, _, key)| key);
        listed.chain(waiting).map(|key| key.encoded_len() as u64).sum()
    }
}

/// The bytes as words, with zeros to the end of the last line.
fn words(bytes: &[u8]) -> Result<Words> {
    let words = Words::zeroed(bytes.len() as u64 * 8)?;
    let whole = bytes.len() / 8 * 8;
    words.copy_from(0, &bytes[..whole]);
    if whole < bytes.len() {
        let mut last = [0; 8];
        last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
        words.atomics()[whole / 8].store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
    Ok(words)
}

/// The first `len` bytes of words whose others are zero.
fn bytes(words: &Words, len: u64) -> Result<Vec<u8>> {
    if !words.is_zero_from(len * 8) {
        return Err(Error::Field { name: "cells", got: "bytes beyond the last key".to_owned() });
    }
    // The words are there already, so as many bytes are no more than the input's length.
    let mut out = vec![0; words.bytes() as usize];
    words.copy_to(0, &mut out);
    out.truncate(len as usize);
    Ok(out)
}

/// What the parameters promise of the two sections.
pub(super) fn promised(header: &Header) -> Result<Build> {
    let wrong = |name, got: String| Err(Error::Field { name, got });
    let parameters = &header.parameters;
    if parameters.len() != PARAMETERS {
        return wrong("parameters", format!("{} bytes", parameters.len()));
    }
    let word = |i: usize| u64_at(parameters, RECORD + 8 * i);
    let (k, hasher) = Record::decode(&parameters[..RECORD])?.hasher_alone()?;
    let some = |number: u64| Some(number).filter(|bits| *bits != 0).map(f64::from_bits);
    let steps = some(word(1)).map(|epoch| Steps { epoch, origin: f64::from_bits(word(2)) });
    let plan = HotPlan { k, half_life: some(word(0)), steps, max_jump: some(word(3)) }.checked()?;
    let state = HotState { shift: word(4) as i64, total: f64::from_bits(word(6)) };
    // No time divided by a half-life is larger.
    if state.shift.unsigned_abs() > 1 << 50 || (steps.is_none() && word(2) != 0) {
        return wrong("shift", state.shift.to_string());
    }
    let now = Some(f64::from_bits(word(5))).filter(|now| *now != f64::NEG_INFINITY);
    let odd = Oddities { late: word(7), clock_jumps: word(8), ahead: word(9) };
    let [count, aside, first, votes, key_bytes] = [10, 11, 12, 13, 14].map(word);
    if [aside, first, votes].iter().any(|events| *events > MOST_ASIDE as u64) {
        return wrong("events", format!("{aside}, {first}, {votes}"));
    }
    let all = count.saturating_add(aside + first + votes);
    let room = |bytes: u64| bytes.checked_mul(8).map(bytes_for);
    let expected = [all.checked_mul(ROW as u64).and_then(room), room(key_bytes)];
    if !header.sections.iter().copied().map(Some).eq(expected) {
        let got = format!("{:?} bytes for {all} keys of {key_bytes}", header.sections);
        return wrong("sections", got);
    }
    Ok(Box::new(move |sections| {
        let wrong =
            || Error::Field { name: "cells", got: "a key that is never written".to_owned() };
        let [rows, keys] = <[Words; 2]>::try_from(sections).map_err(|_| wrong())?;
        let rows = bytes(&rows, all * ROW as u64)?;
        let keys = bytes(&keys, key_bytes)?;
        let mut rest = &keys[..];
        let (rows, voters) = rows.split_at(rows.len() - votes as usize * ROW);
        let mut rows = rows.chunks_exact(ROW).map(|row| {
            let about = u64_at(row, 16);
            let len = usize::try_from(about >> 8).map_err(|_| wrong())?;
            let (key, behind) = rest.split_at_checked(len).ok_or_else(wrong)?;
            rest = behind;
            let key = Key::decode(about as u8, key).ok_or_else(wrong)?;
            Ok((f64::from_bits(u64_at(row, 0)), u64_at(row, 8), key))
        });
        let places: Vec<_> = rows.by_ref().take(count as usize).collect();
        let event = |row: Result<(f64, u64, Key<'_>)>| {
            let (at, count, key) = row?;
            let what = Occurrence { hash: key.hash(&hasher), key: OwnedKey::of(key)?, count };
            Ok(Event { at, what })
        };
        let aside = rows.by_ref().take(aside as usize).map(event).collect::<Result<_>>()?;
        let first = rows.map(event).collect::<Result<_>>()?;
        let votes = voters.chunks_exact(ROW).map(|row| f64::from_bits(u64_at(row, 0))).collect();
        let kept = Kept { now, odd, aside, first, votes };
        let bare = voters.chunks_exact(ROW).all(|row| row[8..].iter().all(|byte| *byte == 0));
        if !bare || !kept.is_sound(f64::is_finite) {
            let got = "times that cannot have been".to_owned();
            return Err(Error::Field { name: "events", got });
        }
        let time = EventTime::restored(plan.far(), kept);
        let places = places
            .into_iter()
            .map(|row| row.map(|(low, high, key)| (low, f64::from_bits(high), key)));
        let list = HotList::over(plan, hasher, state, time, places)?;
        if list.key_bytes() != key_bytes {
            return Err(wrong());
        }
        Ok(Loaded::Hot(Box::new(list)))
    }))
}
