//! The count-min sketch: counts that are never too small, in a table of fixed size.
//!
//! Paper    Cormode & Muthukrishnan 2005.
//! Idea     A table of `depth` rows. A key has one cell in each row; an add raises them all, and the smallest is
//!          its count: other keys can only have raised it.
//! Prefer   A count filter of `bloomtide-core`: the same question with smaller errors in less memory, and keys can
//!          be removed. This one is here because the CMS commands promise a width and a depth.
//!
//! # Invariants
//! I1  Each row sums to `total`, as long as none of its cells is full. A full cell stays full.
//! I2  `used` is the number of cells that are not zero.
//!
//! # Errors in answers
//! Never below the true count, unless the cell is full, which the answer says. Above it by more than
//! 2 total / width with chance 2^-depth.

use super::form::{Fields, Form};
use super::table::{Rows, check_table, zeros};
use crate::structure::{Held, Summary};
use bloomtide_core::batch::prefetch;
use bloomtide_core::format::Kind;
use bloomtide_core::{Error, Hasher, KeyHash, Result, sizing};
use std::io::{self, Write};

/// A cell that counts no further.
const FULL: u32 = u32::MAX;

/// The sizes of a count-min sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountMinPlan {
    /// Cells of a row.
    pub width: u64,
    /// Rows.
    pub depth: u64,
}

impl CountMinPlan {
    /// Sizes for counts that are at most `error` times the total too large, but with chance `probability`.
    pub fn for_goal(error: f64, probability: f64) -> Result<Self> {
        for (name, value) in [("error", error), ("probability", probability)] {
            // NaN is in no range.
            if !(value > 0.0 && value < 1.0) {
                let hint = "an error of 0.001 and a probability of 0.01 make 2000 x 7 counters";
                return Err(Error::parameter(name, value, "above 0 and below 1", hint));
            }
        }
        let mut depth = 1u32;
        while 0.5f64.powi(depth as i32) > probability {
            depth += 1;
        }
        CountMinPlan { width: (2.0 / error).ceil() as u64, depth: depth.into() }.checked()
    }

    /// The plan, if it can be built.
    pub fn checked(self) -> Result<Self> {
        check_table(self.width, self.depth).map(|()| self)
    }

    fn cells(&self) -> u64 {
        self.width.saturating_mul(self.depth)
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.cells().saturating_mul(4).saturating_add(self.depth.saturating_mul(8))
    }
}

/// A count with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountMinCount {
    /// The smallest of the key's cells.
    pub value: u32,
    /// It is as large as a cell can be, so the true count may be larger.
    pub full: bool,
}

/// A count-min sketch.
#[derive(Clone, Debug)]
pub struct CountMin {
    plan: CountMinPlan,
    hasher: Hasher,
    rows: Rows,
    cells: Box<[u32]>,
    /// All that was added.
    total: u64,
    /// Cells that are not zero.
    used: u64,
}

impl CountMin {
    /// An empty sketch.
    pub fn new(plan: CountMinPlan, seed: u64) -> Result<Self> {
        let plan = plan.checked()?;
        let cells = zeros(plan.cells())?;
        let rows = Rows::new(plan.width, plan.depth);
        Ok(CountMin { plan, hasher: Hasher::Xxh3 { seed }, rows, cells, total: 0, used: 0 })
    }

    /// The sizes.
    pub fn plan(&self) -> &CountMinPlan {
        &self.plan
    }

    /// The hash function with its seed.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// The sum of all that was added.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Asks the processor for a key's cells.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        self.rows.cells(hash).for_each(|cell| prefetch(&raw const self.cells[cell]));
    }

    /// Adds `count` occurrences, and says the new count.
    #[inline(always)]
    pub fn add(&mut self, hash: KeyHash, count: u64) -> CountMinCount {
        let more = u32::try_from(count).unwrap_or(FULL);
        let mut least = FULL;
        for cell in self.rows.cells(hash) {
            let cell = &mut self.cells[cell];
            self.used += u64::from(*cell == 0 && more > 0);
            *cell = cell.saturating_add(more);
            least = least.min(*cell);
        }
        self.total = self.total.saturating_add(count);
        CountMinCount { value: least, full: least == FULL }
    }

    /// The key's count.
    #[inline(always)]
    pub fn count(&self, hash: KeyHash) -> CountMinCount {
        let least = self.rows.cells(hash).map(|cell| self.cells[cell]).min().unwrap_or(0);
        CountMinCount { value: least, full: least == FULL }
    }

    /// The sketch of all these sketches together, each `weight` times. Refused where sizes differ, where a cell
    /// is full, or would be below zero or beyond what it can hold.
    pub fn merged(sources: &[(&CountMin, i64)]) -> Result<Self> {
        let Some((first, _)) = sources.first() else {
            let hint = "name the sketches to be merged";
            return Err(Error::parameter("sources", 0, "at least one", hint));
        };
        for (source, _) in sources {
            first.require_compatible(source)?;
        }
        let mut merged = CountMin::new(first.plan, first.hasher.seed())?;
        let sources: Vec<_> = sources.iter().filter(|(_, weight)| *weight != 0).collect();
        let totals =
            sources.iter().map(|(source, weight)| i128::from(source.total) * i128::from(*weight));
        merged.total = u64::try_from(totals.sum::<i128>()).map_err(|_| overflow())?;
        for (at, cell) in merged.cells.iter_mut().enumerate() {
            let mut sum = 0i128;
            for (source, weight) in &sources {
                // What a full cell would have counted to is not known.
                let value = Some(source.cells[at]).filter(|value| *value != FULL);
                sum += i128::from(value.ok_or_else(overflow)?) * i128::from(*weight);
            }
            *cell = u32::try_from(sum).ok().filter(|sum| *sum != FULL).ok_or_else(overflow)?;
        }
        merged.used = merged.count_used();
        Ok(merged)
    }

    fn count_used(&self) -> u64 {
        self.cells.iter().filter(|cell| **cell != 0).count() as u64
    }

    /// Refuses to go on when `other` has other sizes or another hash.
    pub fn require_compatible(&self, other: &CountMin) -> Result<()> {
        if self.plan.width != other.plan.width {
            return Err(Error::incompatible("width", self.plan.width, other.plan.width));
        }
        if self.plan.depth != other.plan.depth {
            return Err(Error::incompatible("depth", self.plan.depth, other.plan.depth));
        }
        self.hasher.require_same(&other.hasher)
    }

    /// The sketch of these bytes; refuses any that were not written so.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::open(bytes, Kind::CountMin)?;
        let seed = fields.u64()?;
        let plan = CountMinPlan { width: fields.u64()?, depth: fields.u64()? }.checked()?;
        let total = fields.u64()?;
        let values = fields.cells::<4>(plan.cells())?;
        fields.end()?;
        let mut this = CountMin::new(plan, seed)?;
        this.total = total;
        for (cell, value) in this.cells.iter_mut().zip(values) {
            *cell = u32::from_le_bytes(*value);
        }
        this.used = this.count_used();
        this.validate()?;
        Ok(this)
    }

    /// Checks I1 and I2.
    pub fn validate(&self) -> Result<()> {
        let used = self.count_used();
        if used != self.used {
            let invariant = format!("{used} cells are in use, {} counted", self.used);
            return Err(Error::Invariant { invariant });
        }
        for (number, row) in self.cells.chunks(self.plan.width as usize).enumerate() {
            let sum: u64 = row.iter().map(|cell| u64::from(*cell)).sum();
            if sum > self.total || (sum < self.total && !row.contains(&FULL)) {
                let total = self.total;
                let invariant = format!("row {number} sums to {sum}, total is {total}");
                return Err(Error::Invariant { invariant });
            }
        }
        Ok(())
    }
}

impl Held for CountMin {
    const TYPE: &'static str = "CMSk-TYPE";

    fn kind(&self) -> &'static str {
        "count_min"
    }

    fn bytes(&self) -> u64 {
        self.plan.bytes()
    }

    fn summary(&self) -> Summary {
        let fill = self.used as f64 / self.plan.cells() as f64;
        Summary {
            // A row alone is a filter of one hash.
            items: sizing::keys_from_fill(fill, self.plan.width as f64, 1.0),
            fill,
            error: fill.powf(self.plan.depth as f64),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut form = Form::new(out, Kind::CountMin, 32 + self.plan.cells() * 4)?;
        form.u64(self.hasher.seed())?;
        form.u64(self.plan.width)?;
        form.u64(self.plan.depth)?;
        form.u64(self.total)?;
        self.cells.iter().try_for_each(|cell| form.u32(*cell))?;
        form.seal()
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        CountMin::from_bytes(bytes)
    }
}

#[cold]
fn overflow() -> Error {
    let hint = "use smaller weights";
    Error::parameter("weights", "a count out of range", "such that counts stay below 2**32", hint)
}

#[cfg(test)]
mod tests {
    use super::super::form::{forged, is_refused_when_damaged, written};
    use super::*;
    use std::collections::HashMap;

    fn sketch(width: u64, depth: u64) -> CountMin {
        CountMin::new(CountMinPlan { width, depth }, 0).unwrap()
    }

    /// A stream in which key i comes about 1/i as often as the first.
    fn stream(events: u64) -> impl Iterator<Item = u64> {
        (0..events).map(|event| 2000 / (crate::structures::table::mix(event) % 2000 + 1))
    }

    fn filled(width: u64, depth: u64, events: u64) -> (CountMin, HashMap<u64, u64>) {
        let mut sketch = sketch(width, depth);
        let mut exact = HashMap::new();
        for key in stream(events) {
            sketch.add(sketch.hasher.unsigned(key), 1);
            *exact.entry(key).or_default() += 1;
        }
        (sketch, exact)
    }

    #[test]
    fn a_count_is_never_too_small_and_seldom_much_too_large() {
        let (sketch, exact) = filled(200, 5, 20_000);
        let bound = 2 * sketch.total() / 200;
        let excess = |key: &u64| {
            u64::from(sketch.count(sketch.hasher.unsigned(*key)).value).checked_sub(exact[key])
        };
        assert!(exact.keys().all(|key| excess(key).is_some()));
        let wrong = exact.keys().filter(|key| excess(key) > Some(bound)).count();
        assert!(wrong * 32 <= exact.len(), "{wrong} of {}", exact.len());
        sketch.validate().unwrap();
    }

    #[test]
    fn goals_become_the_sizes_that_are_known_for_them() {
        let plan = |error, probability| CountMinPlan::for_goal(error, probability).unwrap();
        assert_eq!(plan(0.001, 0.01), CountMinPlan { width: 2000, depth: 7 });
        assert_eq!(plan(0.5, 0.5), CountMinPlan { width: 4, depth: 1 });
        assert_eq!(plan(0.3, 0.26).depth, 2);
        for wrong in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(CountMinPlan::for_goal(wrong, 0.5).is_err());
            assert!(CountMinPlan::for_goal(0.5, wrong).is_err());
        }
        assert!(CountMinPlan::for_goal(1e-300, 1e-300).is_err());
        for (width, depth) in [(0, 1), (1, 0), (1 << 40, 1 << 40)] {
            assert!(CountMinPlan { width, depth }.checked().is_err());
        }
    }

    #[test]
    fn a_full_cell_stays_full_and_says_so() {
        let mut sketch = sketch(10, 2);
        let key = sketch.hasher.bytes(b"a");
        assert_eq!(sketch.add(key, u64::from(FULL) - 1).value, FULL - 1);
        assert!(!sketch.count(key).full);
        assert!(sketch.add(key, 1).full);
        assert_eq!(sketch.add(key, u64::MAX), CountMinCount { value: FULL, full: true });
        assert_eq!(sketch.total(), u64::MAX);
        sketch.validate().unwrap();
    }

    #[test]
    fn a_merge_is_the_weighted_sum_of_its_sources() {
        let (mut a, mut b) = (sketch(64, 3), sketch(64, 3));
        for key in 0..500u64 {
            a.add(a.hasher.unsigned(key), key);
            b.add(b.hasher.unsigned(key), 2 * key + 1);
        }
        let mut expected = sketch(64, 3);
        for key in 0..500u64 {
            expected.add(a.hasher.unsigned(key), 2 * key + 3 * (2 * key + 1));
        }
        let merged = CountMin::merged(&[(&a, 2), (&b, 3)]).unwrap();
        assert!(written(&merged) == written(&expected));
        let back = CountMin::merged(&[(&merged, 1), (&b, -3), (&a, -1)]).unwrap();
        assert!(written(&back) == written(&a));
    }

    #[test]
    fn a_merge_that_does_not_fit_is_refused() {
        let mut a = sketch(64, 3);
        a.add(a.hasher.bytes(b"a"), 1 << 31);
        assert!(CountMin::merged(&[(&a, 2)]).is_err());
        assert!(CountMin::merged(&[(&a, i64::MAX), (&a, i64::MAX)]).is_err());
        assert!(CountMin::merged(&[(&a, -1)]).is_err());
        assert!(CountMin::merged(&[]).is_err());
        let mut full = sketch(64, 3);
        full.add(full.hasher.bytes(b"a"), u64::MAX);
        assert!(CountMin::merged(&[(&a, 1), (&full, 1)]).is_err());
        assert!(CountMin::merged(&[(&a, 1), (&full, 0)]).is_ok());
        for other in [sketch(65, 3), sketch(64, 4)] {
            assert!(matches!(
                CountMin::merged(&[(&a, 1), (&other, 1)]),
                Err(Error::Incompatible { .. })
            ));
        }
    }

    #[test]
    fn bytes_give_the_same_sketch_and_damage_is_refused() {
        let (sketch, _) = filled(20, 3, 500);
        let bytes = written(&sketch);
        assert_eq!(written(&CountMin::from_bytes(&bytes).unwrap()), bytes);
        is_refused_when_damaged(&bytes, CountMin::from_bytes);
    }

    #[test]
    fn bytes_with_a_right_checksum_and_wrong_sizes_are_refused() {
        let (sketch, _) = filled(20, 3, 500);
        let bytes = written(&sketch);
        // Width, depth and total follow the seed.
        for (field, value) in [(36, u64::MAX), (36, 0), (36, 21), (44, 1 << 40), (44, 2), (52, 499)]
        {
            let forged = forged(&bytes, |body| {
                body[field..field + 8].copy_from_slice(&u64::to_le_bytes(value));
            });
            assert!(CountMin::from_bytes(&forged).is_err(), "{field} {value}");
        }
    }
}
