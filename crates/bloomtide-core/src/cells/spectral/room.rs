//! Room for a value that has outgrown its field: spare bits come over from the nearest fields that have
//! some, and what lies between moves aside (specification, section 3.2, operation 3).
//!
//! ```text
//! before   | j full | a | b | c with spare bits |        j takes two bits from c:
//! after    | j          | a | b | c             |        a, b and c move up by two
//! ```
//!
//! All missing bits are looked for at once, on both sides, nearest first. Donors hand over from the
//! outermost inwards and add their own bits to what comes by, so every field moves only once.
//! A long way is made in stages, and after each the fields are whole again (spare bits have come
//! nearer, that is all): a reader never waits for more than one stage.

use super::fields::{Fields, needed};
use super::shift;
use crate::cells::version::Version;

/// Fields that move in one stage: about a microsecond.
const STAGE: u64 = 4096;

/// A field that gives away spare bits.
#[derive(Clone, Copy)]
struct Donor {
    field: u64,
    bits: u32,
}

impl Fields {
    /// Widens `field` by `missing` bits and returns how many fields moved; `None`, and nothing changed,
    /// if the others have not so many to spare.
    pub(super) fn widen(&self, field: u64, missing: u32, version: &Version) -> Option<u64> {
        let (_, width) = self.span(field);
        let own = u64::from(width - needed(self.get(field)));
        if u64::from(missing) > self.spare() - own {
            return None;
        }
        let (left, right) = self.donors(field, missing);
        let mut moved = 0;
        let mut by = 0;
        for (i, donor) in right.iter().enumerate().rev() {
            by += donor.bits;
            let inner = if i == 0 { field } else { right[i - 1].field };
            self.move_up(inner + 1, donor.field, by, version);
            moved += donor.field - inner;
        }
        let mut by = 0;
        for (i, donor) in left.iter().enumerate().rev() {
            by += donor.bits;
            let inner = if i == 0 { field } else { left[i - 1].field };
            self.move_down(donor.field + 1, inner, by, version);
            moved += inner - donor.field;
        }
        Some(moved)
    }

    /// The nearest fields with `missing` spare bits together, on the left and on the right.
    fn donors(&self, field: u64, missing: u32) -> (Vec<Donor>, Vec<Donor>) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut missing = missing;
        let mut ask = |field: u64, side: &mut Vec<Donor>| {
            let (_, width) = self.span(field);
            let bits = (width - needed(self.get(field))).min(missing);
            if bits > 0 {
                side.push(Donor { field, bits });
                missing -= bits;
            }
            missing > 0
        };
        for distance in 1..self.len {
            if field + distance < self.len && !ask(field + distance, &mut right) {
                break;
            }
            if field >= distance && !ask(field - distance, &mut left) {
                break;
            }
        }
        (left, right)
    }

    /// Moves the fields from `first` to `last` up by `by` bits: the last gives them, the one before the
    /// first has them then.
    fn move_up(&self, first: u64, last: u64, by: u32, version: &Version) {
        let mut end = last + 1;
        while end > first {
            let stage = first.max(end.saturating_sub(STAGE));
            let _changing = version.write();
            shift::up(self.words.atomics(), self.start(stage), self.start(end), by);
            self.index.advance(self.words.atomics(), stage, end, i64::from(by));
            end = stage;
        }
    }

    /// Moves the fields from `first` to `last` down by `by` bits: the one before the first gives them,
    /// the last has them then.
    fn move_down(&self, first: u64, last: u64, by: u32, version: &Version) {
        let mut stage = first;
        while stage <= last {
            let end = (last + 1).min(stage + STAGE);
            let _changing = version.write();
            shift::down(
                self.words.atomics(),
                self.start(stage) - u64::from(by),
                self.start(end),
                by,
            );
            self.index.advance(self.words.atomics(), stage, end, -i64::from(by));
            stage = end;
        }
    }
}
