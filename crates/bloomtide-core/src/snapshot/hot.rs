//! Hot lists as snapshots: their keys and weights, in the order of their places.
//!
//! ```text
//! parameters  record (64 bytes, k as its cells) | half-life | shift | time | total | late | clock jumps
//!             | keys | bytes of all keys together
//! sections    three words a key: its weight's lower and upper bound, its kind and length in bytes
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
use crate::filters::{HotList, HotPlan, HotState};
use crate::key::Key;
use std::sync::atomic::Ordering;

const PARAMETERS: usize = RECORD + 8 * 8;
/// Bytes of a key's row.
const ROW: usize = 24;

impl Snapshot for HotList {
    fn freeze(&self) -> Result<Frozen<'_>> {
        let HotState { shift, time, total, late, clock_jumps } = *self.state();
        let mut parameters = Record::of_hasher(self.hasher(), self.plan().k).encode().to_vec();
        let numbers = [
            self.plan().half_life.unwrap_or(0.0).to_bits(),
            shift as u64,
            time.to_bits(),
            total.to_bits(),
            late,
            clock_jumps,
            self.len() as u64,
            self.key_bytes(),
        ];
        parameters.extend(numbers.map(u64::to_le_bytes).concat());
        let refuse = |_| Error::Capacity { needed: self.key_bytes(), limit: isize::MAX as u64 };
        let (mut rows, mut keys) = (Vec::new(), Vec::new());
        rows.try_reserve_exact(self.len() * ROW).map_err(refuse)?;
        keys.try_reserve_exact(self.key_bytes() as usize).map_err(refuse)?;
        for (low, high, key) in self.rows() {
            let before = keys.len();
            let kind = key.encode(&mut keys);
            rows.extend(low.to_le_bytes());
            rows.extend(high.to_le_bytes());
            rows.extend((u64::from(kind) | ((keys.len() - before) as u64) << 8).to_le_bytes());
        }
        let sections = vec![Section::Made(words(&rows)?), Section::Made(words(&keys)?)];
        Ok(Frozen { kind: Kind::Hot, parameters, sections })
    }
}

impl HotList {
    /// Bytes of all keys together, as they are written.
    fn key_bytes(&self) -> u64 {
        self.rows().map(|(_, _, key)| key.encoded_len() as u64).sum()
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
    let half_life = Some(word(0)).filter(|bits| *bits != 0).map(f64::from_bits);
    let state = HotState {
        shift: word(1) as i64,
        time: f64::from_bits(word(2)),
        total: f64::from_bits(word(3)),
        late: word(4),
        clock_jumps: word(5),
    };
    // No time divided by a half-life is larger.
    if state.shift.unsigned_abs() > 1 << 50 {
        return wrong("shift", state.shift.to_string());
    }
    let plan = HotPlan { k, half_life }.checked()?;
    let (count, key_bytes) = (word(6), word(7));
    let room = |bytes: u64| bytes.checked_mul(8).map(bytes_for);
    let expected = [count.checked_mul(ROW as u64).and_then(room), room(key_bytes)];
    if !header.sections.iter().copied().map(Some).eq(expected) {
        let got = format!("{:?} bytes for {count} keys of {key_bytes}", header.sections);
        return wrong("sections", got);
    }
    Ok(Box::new(move |sections| {
        let wrong =
            || Error::Field { name: "cells", got: "a key that is never written".to_owned() };
        let [rows, keys] = <[Words; 2]>::try_from(sections).map_err(|_| wrong())?;
        let rows = bytes(&rows, count * ROW as u64)?;
        let keys = bytes(&keys, key_bytes)?;
        let mut rest = &keys[..];
        let rows = rows.chunks_exact(ROW).map(|row| {
            let about = u64_at(row, 16);
            let len = usize::try_from(about >> 8).map_err(|_| wrong())?;
            let (key, behind) = rest.split_at_checked(len).ok_or_else(wrong)?;
            rest = behind;
            let key = Key::decode(about as u8, key).ok_or_else(wrong)?;
            Ok((f64::from_bits(u64_at(row, 0)), f64::from_bits(u64_at(row, 8)), key))
        });
        let list = HotList::over(plan, hasher, state, rows)?;
        if list.key_bytes() != key_bytes {
            return Err(wrong());
        }
        Ok(Loaded::Hot(list))
    }))
}
