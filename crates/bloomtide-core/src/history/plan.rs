//! How large a segment must be, and how often it errs. Symbols as in the paper: k1, m1 of the gate, k2, m2 of
//! the matrix, n1 keys of a segment, n2 of a row, l rows. Specification section 8.
//!
//! A segment is sized by what it holds. The promise is about a whole range: whichever rows are asked, the sum
//! is exact with a chance of 1 - e. A row errs when all k2 cells of a key are taken in it, so
//!     sum over rows of (1 - exp(-k2 n_r / m2))^k2 <= e.
//! Of all pairs (k2, m2) that keep it, the one that needs the fewest bits is taken. Few columns of more fill
//! are not always cheaper than many of less: a count above one costs its code once in each of its k2 columns.

use super::codes::Costs;
use super::columns::Shape;
use super::mark::MAX_HASHES;
use super::{Contents, Goal, Sizes};
use crate::error::{Error, Result};
use crate::filters::check_error_rate;
use crate::positions::Derivation;
use crate::sizing::{classic_error, classic_fill, classic_plan, compound_error};

/// The smallest matrix and gate: below, the formulas for many cells do not hold.
const LEAST_CELLS: u64 = 64;
/// How near to the fewest columns is near enough to compare two numbers of hashes, and for the one that is taken.
const ROUGH: f64 = 2e-3;
const FINE: f64 = 1e-4;
/// So much larger than the best so far: more hashes only need more bits from here on.
const WORSE: f64 = 1.1;

/// What the size of a segment depends on.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Different numbers of keys in a row, each with how many rows have it.
    rows: Vec<(f64, f64)>,
    /// Different keys.
    pub(super) keys: u64,
    /// What a code costs, on average.
    code_bits: f64,
}

impl Load {
    pub(super) fn of(contents: &Contents) -> Self {
        let mut costs = Costs::default();
        let mut each = vec![0u64; contents.rows.len()];
        for item in &contents.items {
            each[item.row as usize] += 1;
            costs.add(item.count);
        }
        each.sort_unstable();
        let rows = each.chunk_by(|a, b| a == b).map(|same| (same[0] as f64, same.len() as f64));
        // One key in every row at least, so that the error of an empty segment is not zero cells.
        let items = contents.items.len().max(1) as f64;
        Load {
            rows: rows.collect(),
            keys: contents.items.chunk_by(|a, b| a.mark == b.mark).count() as u64,
            // Where every count is one there are no codes.
            code_bits: match contents.items.iter().any(|item| item.count > 1) {
                true => costs.best().1 as f64 / items,
                false => 0.0,
            },
        }
    }

    /// Sum over rows of the chance that all columns of a key are taken.
    fn error(&self, k: u32, m: f64) -> f64 {
        self.rows.iter().map(|(n, rows)| rows * row_error(*n, m, k)).sum()
    }

    /// Columns of which the error is above e, and twice as many, of which it is not. Looked for from `near` on.
    fn bracket(&self, k: u32, e: f64, near: f64) -> (f64, f64) {
        let (least, mut high) = (LEAST_CELLS as f64, near);
        while self.error(k, high) > e && high < 1e15 {
            high *= 2.0;
        }
        while high > least && self.error(k, high / 2.0) <= e {
            high /= 2.0;
        }
        (least.max(high / 2.0), high)
    }

    /// The same nearer to each other, by bisection: `within` is a part of the whole.
    fn narrow(&self, k: u32, e: f64, (mut low, mut high): (f64, f64), within: f64) -> (f64, f64) {
        while high - low > (high * within).max(1.0) {
            let middle = ((low + high) / 2.0).floor();
            if self.error(k, middle) > e { low = middle } else { high = middle }
        }
        (low, high)
    }

    /// Bits of the matrix.
    fn bits(&self, k: u32, m: f64, l: u32) -> f64 {
        let taken: f64 = self.rows.iter().map(|(n, rows)| rows * classic_fill(*n, m, k)).sum();
        m * (Shape::column_bits(l) + taken * self.code_bits)
    }
}

/// A row of n keys errs. The formula is one for many cells; with few the chance is a little larger
/// (specification section 0: 1.07 times for 64, 1.02 for 256).
fn row_error(n: f64, m: f64, k: u32) -> f64 {
    classic_error(n, m, k) * (1.0 + 5.0 / m)
}

/// The sizes for what a segment holds.
pub(super) fn plan(load: &Load, rows: u32, goal: &Goal) -> Result<Sizes> {
    check_error_rate(goal.error_rate)?;
    check_gate_error(goal.gate_error)?;
    let (gate_bits, gate_hashes) = if goal.gate_error < 1.0 {
        classic_plan(load.keys.max(1) as f64, goal.gate_error, Derivation::Enhanced)
    } else {
        (LEAST_CELLS, 1)
    };
    let mut near = LEAST_CELLS as f64;
    let (mut best, mut hashes, mut columns) = (f64::INFINITY, 1, (near, near));
    for k in 1..=MAX_HASHES {
        let bracket = load.bracket(k, goal.error_rate, near);
        near = bracket.1;
        let found = load.narrow(k, goal.error_rate, bracket, ROUGH);
        let bits = load.bits(k, found.1, rows);
        // A column more is a cache miss more: it must be worth two percent.
        if bits < 0.98 * best {
            (best, hashes, columns) = (bits, k, found);
        } else if bits > WORSE * best {
            break;
        }
    }
    let (_, columns) = load.narrow(hashes, goal.error_rate, columns, FINE);
    Ok(Sizes {
        gate_hashes: gate_hashes.min(MAX_HASHES),
        gate_bits: gate_bits.max(LEAST_CELLS),
        hashes,
        columns: columns as u64,
    })
}

fn check_gate_error(gate_error: f64) -> Result<()> {
    if (1e-15..=1.0).contains(&gate_error) {
        return Ok(());
    }
    let hint = "the same as `error_rate` is a good choice; 1 makes every key pass";
    Err(Error::parameter("gate_error", gate_error, "between 1e-15 and 1", hint))
}

/// Chance that some row errs, from how many of its `columns` cells are taken in each row.
pub(super) fn measured_error(taken: &[u64], columns: u64, hashes: u32) -> f64 {
    let row = |taken: &u64| (*taken as f64 / columns as f64).powi(hashes as i32);
    compound_error(taken.iter().map(row)).min(1.0)
}
