//! The paper's two compressions. Neither needs the items; both cost accuracy, and say how much.
//!
//! 1. Inside a segment, neighbouring rows become one: their cells add. The least of sums is at least the sum
//!    of leasts, so no answer falls; and cells that were taken in either row are taken in both. The paper calls
//!    the error unchanged; that holds only where the rows have the same keys (specification section 8).
//! 2. Two segments become one: a bit of the gate is on if it was in either, and the rows of the later one follow
//!    those of the earlier one.
//!
//! Segments are sized by what they hold, so the two seldom have the same sizes. Positions come by a product
//! (`mark.rs`): where a key lies among T cells says between which of S cells it lies. A cell of the larger size
//! takes the largest of the one or two that it overlaps, which is at least the cell of any of its keys.

use super::build::assemble;
use super::columns::{Cells, Shape};
use super::filled::Filled;
use super::gate::Gate;
use super::header::Header;
use super::plan::measured_error;
use super::{MAX_ROWS, Named, RowRecord, Segment, Sizes};
use crate::error::{Error, Result};
use std::ops::RangeInclusive;

/// A join that would need so many times the memory of both is refused.
const MOST_GROWTH: u64 = 64;

/// Compression 1: each `factor` neighbouring rows become one.
pub fn merge_rows(segment: &Segment, factor: usize, max_error: f64) -> Result<Vec<u8>> {
    if factor < 2 {
        let hint = "2 makes one row of two";
        return Err(Error::parameter("factor", factor, "at least 2", hint));
    }
    let groups = segment.rows().chunks(factor);
    let rows: Vec<RowRecord> = groups.filter_map(united).collect();
    if rows.iter().any(|row| !row.is_sound()) {
        let hint = "a row has at most 2**62 events";
        return Err(Error::parameter("factor", factor, "smaller for so many events", hint));
    }
    let columns = segment.sizes().columns;
    let mut cells = Cells::new(Filled::of(&rows), columns)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for column in 0..columns {
        segment.cells(column, &mut before)?;
        after.clear();
        let sum = |part: &[u64]| part.iter().fold(0u64, |sum, cell| sum.saturating_add(*cell));
        after.extend(before.chunks(factor).map(sum));
        cells.push(column, &after)?;
    }
    let gate = gate_of(&[segment], segment.sizes().gate_bits)?;
    let header = Header { rows, ..segment.header.clone() };
    within(header, &gate, &cells, &segment.names()?.0, max_error)
}

fn united(rows: &[RowRecord]) -> Option<RowRecord> {
    rows.iter().copied().reduce(|whole, next| whole.united(&next))
}

/// Compression 2: the rows of both, one after the other in time.
pub fn join(a: &Segment, b: &Segment, max_error: f64) -> Result<Vec<u8>> {
    a.hasher().require_same(b.hasher())?;
    require_same("policy", a.policy().name(), b.policy().name())?;
    require_same("level", a.level(), b.level())?;
    let (a, b) = if b.span() < a.span() { (b, a) } else { (a, b) };
    let (x, y) = (a.sizes(), b.sizes());
    let sizes = Sizes {
        // The first positions of a key are the same in both.
        gate_hashes: x.gate_hashes.min(y.gate_hashes),
        hashes: x.hashes.min(y.hashes),
        gate_bits: x.gate_bits.max(y.gate_bits),
        columns: x.columns.max(y.columns),
    };
    let rows = [a.rows(), b.rows()].concat();
    if rows.len() > MAX_ROWS {
        let hint = "merge rows first";
        return Err(Error::parameter("rows", rows.len(), "at most 65536 together", hint));
    }
    let filled = Filled::of(&rows);
    let shape = Shape { rows: filled.len() as u32, columns: sizes.columns };
    let bits = |shape: Shape| shape.map_bits().unwrap_or(u64::MAX);
    let own = bits(a.header.shape()).saturating_add(bits(b.header.shape()));
    // The many rows of one times the many columns of the other.
    if bits(shape) / MOST_GROWTH > own {
        return Err(Error::incompatible("columns", x.columns, y.columns));
    }
    let mut cells = Cells::new(filled, sizes.columns)?;
    let mut both = Vec::new();
    for column in 0..sizes.columns {
        both.clear();
        for segment in [a, b] {
            stretched(segment, column, sizes.columns, &mut both)?;
        }
        cells.push(column, &both)?;
    }
    let gate = gate_of(&[a, b], sizes.gate_bits)?;
    let (names, unlisted) = joined_names(a, b)?;
    let (begin, end) = (a.span().0.min(b.span().0), a.span().1.max(b.span().1));
    let (more, less) = (b.load(), a.load());
    let header = Header {
        begin,
        end,
        sizes,
        unlisted,
        keys: less.0.saturating_add(more.0),
        items: less.1.saturating_add(more.1),
        rows,
        ..a.header.clone()
    };
    within(header, &gate, &cells, &names, max_error)
}

fn require_same<T: PartialEq + std::fmt::Display>(name: &'static str, a: T, b: T) -> Result<()> {
    if a == b { Ok(()) } else { Err(Error::incompatible(name, a, b)) }
}

/// The file, unless it would err more often than is allowed.
fn within(
    header: Header,
    gate: &Gate,
    cells: &Cells,
    names: &[Named],
    max_error: f64,
) -> Result<Vec<u8>> {
    let Sizes { gate_hashes, hashes, columns, .. } = header.sizes;
    let counts = measured_error(&cells.used_by_row(), columns, hashes);
    let gate_error = gate.fill().powi(gate_hashes as i32);
    let error = counts.max(gate_error);
    // NaN allows nothing.
    if error <= max_error {
        return assemble(header, gate, cells, names);
    }
    Err(Error::Parameter {
        name: "max_error",
        got: format!("{max_error}, and the error after it would be {error:.3e}"),
        allowed: "at least the error after the compression",
        hint: "allow more, or build the coarser segment from its items instead",
    })
}

/// The cells among `source` in which a key can be whose cell among `target` is this one.
fn overlap(cell: u64, target: u64, source: u64) -> RangeInclusive<u64> {
    let at = |cell: u64| u128::from(cell) * u128::from(source);
    let first = at(cell) / u128::from(target);
    let last = at(cell + 1).div_ceil(u128::from(target)) - 1;
    first as u64..=last as u64
}

/// Appends a column of a matrix of `columns` to `out`, made of those that the segment has.
fn stretched(segment: &Segment, column: u64, columns: u64, out: &mut Vec<u64>) -> Result<()> {
    let start = out.len();
    out.resize(start + segment.rows().len(), 0);
    let mut cells = Vec::new();
    for source in overlap(column, columns, segment.sizes().columns) {
        segment.cells(source, &mut cells)?;
        out[start..].iter_mut().zip(&cells).for_each(|(cell, other)| *cell = (*cell).max(*other));
    }
    Ok(())
}

/// One gate of so many bits, through which the keys of all these pass.
fn gate_of(segments: &[&Segment], bits: u64) -> Result<Gate> {
    let mut gate = Gate::new(bits)?;
    for segment in segments {
        for bit in 0..bits {
            for source in overlap(bit, bits, segment.sizes().gate_bits) {
                if segment.gate_bit(source)? {
                    super::bits::set(&mut gate.words, bit);
                }
            }
        }
    }
    Ok(gate)
}

/// The names whose count is known in both, and the most that any other key has.
fn joined_names(a: &Segment, b: &Segment) -> Result<(Vec<Named>, u64)> {
    let ((ours, least), (theirs, other_least)) = (a.names()?, b.names()?);
    let mut names = Vec::new();
    let mut unlisted = least.saturating_add(other_least);
    let same =
        |x: &Named, y: &Named| x.key.view().hash(a.hasher()) == y.key.view().hash(a.hasher());
    for name in &ours {
        // A key that the other one does not list may still not be in it at all.
        let elsewhere = match theirs.iter().find(|other| same(name, other)) {
            Some(other) => Some(other.count),
            None => absent(b, name)?,
        };
        match elsewhere {
            Some(count) => {
                let count = name.count.saturating_add(count);
                names.push(Named { count, ..name.clone() });
            }
            None => unlisted = unlisted.max(name.count.saturating_add(other_least)),
        }
    }
    for name in theirs.iter().filter(|name| !ours.iter().any(|other| same(name, other))) {
        match absent(a, name)? {
            Some(_) => names.push(name.clone()),
            None => unlisted = unlisted.max(name.count.saturating_add(least)),
        }
    }
    names.sort_by_key(|name| std::cmp::Reverse(name.count));
    Ok((names, unlisted))
}

/// Zero, if the key is certainly not in the segment.
fn absent(segment: &Segment, name: &Named) -> Result<Option<u64>> {
    let mark = name.key.view().hash(segment.hasher()).mark();
    let count = segment.count(mark, 0..segment.rows().len())?;
    Ok((count == 0).then_some(0))
}
