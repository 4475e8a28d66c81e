//! A sealed segment: the paper's multi-Bloom filter, read from its bytes.
//!
//! A question costs the gate's bits, then one map for each of the key's columns. Where all maps agree that a row
//! may have the key, the answer is the smallest of its counts there; a column without codes has one, and
//! nothing is smaller, so no code need be read then.
//!
//! # Invariants
//! I1  The front was checked when it was opened. A block of the body is checked before a bit of it is used, and that
//!     the file was not cut meanwhile before anything is answered.
//! I2  The index points to the codes of each group's first column, and the codes end where the header says.
//! I3  A column has codes if and only if one of its cells is more than one.
//! I4  Names are sorted by count, the most frequent first.
//!
//! # Errors in answers
//! At least the true count, in every row. `predicted_error` is the chance that it is more, in any of the rows.

use super::bits::low;
use super::body::{Body, Bytes};
use super::codes::Cursor;
use super::columns::{ENTRY, Shape};
use super::filled::Filled;
use super::header::{Header, Layout, wrong};
use super::journal::key;
use super::mark::{MAX_HASHES, Part, Spread};
use super::varint::Reader;
use super::{Mark, Named, RowRecord, Sizes};
use crate::error::{Error, Result};
use crate::key::OwnedKey;
use std::ops::Range;
use std::path::Path;

/// A segment that can be asked.
#[derive(Debug)]
pub struct Segment {
    pub(super) header: Header,
    layout: Layout,
    shape: Shape,
    filled: Filled,
    body: Body,
}

/// One column of a key, and how far its codes were read.
#[derive(Clone, Copy, Debug)]
struct Place {
    column: u64,
    /// Where the code of the first cell from `row` on begins; unknown before the first.
    at: Option<u64>,
    row: u64,
}

impl Segment {
    /// Maps the part of a file that is `length` bytes from `offset` on, or the rest of it. Only its front is read.
    pub fn open(path: &Path, offset: u64, length: Option<u64>) -> Result<Self> {
        Segment::over(Bytes::map(path, offset, length)?)
    }

    /// The same from memory.
    pub fn from_vec(bytes: Vec<u8>) -> Result<Self> {
        Segment::over(Bytes::Owned(bytes))
    }

    fn over(bytes: Bytes) -> Result<Self> {
        let (header, front) = Header::read(bytes.all())?;
        let layout = header.layout().ok_or_else(|| wrong("sizes", "more than any memory"))?;
        let (shape, filled) = (header.shape(), header.filled());
        Ok(Segment { header, layout, shape, filled, body: Body::new(bytes, front) })
    }

    // ---- what it is

    /// What its header says.
    pub fn about(&self) -> &Header {
        &self.header
    }

    /// Its rows.
    pub fn rows(&self) -> &[RowRecord] {
        &self.header.rows
    }

    /// Bytes of the whole file, of the gate, of the maps with their index, of the codes, and of the names.
    pub fn bytes(&self) -> [u64; 5] {
        let Layout { maps, codes, names, end, .. } = self.layout;
        [self.as_bytes().len() as u64, maps, codes - maps, names - codes, end - names]
    }

    /// The whole file.
    pub fn as_bytes(&self) -> &[u8] {
        self.body.file()
    }

    /// All before the body. It has the checksums of the rest, so it tells this file from all others.
    pub fn front(&self) -> &[u8] {
        self.body.front()
    }

    /// (bits of the gate, columns of the matrix) of a mark.
    pub fn positions(&self, mark: Mark) -> (Vec<u64>, Vec<u64>) {
        let Sizes { gate_hashes, gate_bits, hashes, columns } = self.header.sizes;
        let gate = Spread::of(mark, Part::Gate).positions(gate_hashes, gate_bits);
        let matrix = Spread::of(mark, Part::Matrix).positions(hashes, columns);
        (gate.collect(), matrix.collect())
    }

    // ---- asking

    /// Whether the gate lets the key pass. If not, it never came.
    #[inline]
    pub fn contains(&self, mark: Mark) -> Result<bool> {
        self.body.sure(self.passes(mark))
    }

    #[inline]
    fn passes(&self, mark: Mark) -> Result<bool> {
        let Sizes { gate_hashes, gate_bits, .. } = self.header.sizes;
        for bit in Spread::of(mark, Part::Gate).positions(gate_hashes, gate_bits) {
            if self.body.window(0, bit)? & 1 == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// At least how often the key came in these rows, and the chance that it is more than the key has: none if the
    /// gate did not let it pass. Rows that are not there have no count.
    pub fn ask(&self, mark: Mark, rows: Range<usize>) -> Result<(u64, f64)> {
        let mut total = 0u64;
        let visited = self.visit(mark, rows, |_, count| total = total.saturating_add(count));
        let error = |passed| if passed { self.header.predicted_error } else { 0.0 };
        self.body.sure(visited.map(|passed| (total, error(passed))))
    }

    /// At least how often the key came in each of these rows, of those in which it may be.
    pub fn counts(&self, mark: Mark, rows: Range<usize>) -> Result<Vec<(usize, u64)>> {
        let mut counts = Vec::new();
        let visited = self.visit(mark, rows, |row, count| counts.push((row, count)));
        self.body.sure(visited.map(|_| counts))
    }

    /// Calls `then` with each of the rows in which the key may be, and its count there. Whether the gate let it
    /// pass.
    fn visit(
        &self,
        mark: Mark,
        rows: Range<usize>,
        mut then: impl FnMut(usize, u64),
    ) -> Result<bool> {
        let (first, last) =
            (self.filled.before(rows.start) as u64, self.filled.before(rows.end) as u64);
        if first >= last || !self.passes(mark)? {
            return Ok(false);
        }
        let shape = self.shape;
        let spread = Spread::of(mark, Part::Matrix);
        let hashes = self.header.sizes.hashes;
        let mut places = [Place { column: 0, at: None, row: 0 }; MAX_HASHES as usize];
        let places = &mut places[..hashes as usize];
        for (place, column) in places.iter_mut().zip(spread.positions(hashes, shape.columns)) {
            place.column = column;
        }
        for start in (first..last).step_by(64) {
            let mut both = low(last - start);
            for place in places.iter() {
                both &= self.map(place.column, start)?;
                if both == 0 {
                    break;
                }
            }
            if both == 0 {
                continue;
            }
            let mut least = [u64::MAX; 64];
            for place in places.iter_mut() {
                if !self.has_codes(place.column)? {
                    least = [1; 64];
                    break;
                }
                self.lower(place, start, both, &mut least)?;
            }
            while both != 0 {
                let row = both.trailing_zeros() as usize;
                then(self.filled.number(start as usize + row), least[row]);
                both &= both - 1;
            }
        }
        Ok(true)
    }

    /// The map of a column from the place of a row on, up to 64 rows; what follows the column is cut off.
    #[inline(always)]
    fn map(&self, column: u64, row: u64) -> Result<u64> {
        let shape = self.shape;
        let bits = self.body.window(self.layout.maps, column * shape.stride() + 1 + row)?;
        Ok(bits & low(u64::from(shape.rows) - row))
    }

    #[inline(always)]
    fn has_codes(&self, column: u64) -> Result<bool> {
        let bit = column * self.shape.stride();
        Ok(self.body.window(self.layout.maps, bit)? & 1 == 1)
    }

    /// How many cells of a column are not zero, in rows `[from, to)`.
    fn used(&self, column: u64, from: u64, to: u64) -> Result<u64> {
        let mut total = 0;
        for row in (from..to).step_by(64) {
            total += u64::from((self.map(column, row)? & low(to - row)).count_ones());
        }
        Ok(total)
    }

    /// Where a column's codes begin.
    fn first_code(&self, column: u64) -> Result<u64> {
        let shape = self.shape;
        let group = column / shape.group();
        let mut before = 0;
        for other in group * shape.group()..column {
            if self.has_codes(other)? {
                before += self.used(other, 0, shape.rows.into())?;
            }
        }
        let mut cursor = self.cursor(self.index(group)?);
        if !cursor.skip(before)? {
            return Err(wrong("codes", "bits that are no code"));
        }
        Ok(cursor.at())
    }

    fn index(&self, group: u64) -> Result<u64> {
        Ok(self.body.window(self.layout.index, group * 8 * ENTRY)? & low(8 * ENTRY))
    }

    fn cursor(&self, at: u64) -> Cursor<impl FnMut(u64) -> Result<u64>> {
        Cursor::new(move |bit| self.body.window(self.layout.codes, bit), at, self.header.order)
    }

    /// Lowers `least[i]` to the column's count in row `start + i`, for the rows that are on in `wanted`.
    fn lower(
        &self,
        place: &mut Place,
        start: u64,
        wanted: u64,
        least: &mut [u64; 64],
    ) -> Result<()> {
        let no_code = || wrong("codes", "bits that are no code");
        let own = self.map(place.column, start)?;
        let at = match place.at {
            Some(at) => at,
            None => self.first_code(place.column)?,
        };
        let mut cursor = self.cursor(at);
        // Codes of rows before the first one, then those between two that are wanted.
        let mut passed = self.used(place.column, place.row, start)?;
        let (mut rest, mut behind) = (wanted, 0);
        while rest != 0 {
            let row = rest.trailing_zeros();
            passed += u64::from((own & low(u64::from(row)) & !low(behind)).count_ones());
            if !cursor.skip(passed)? {
                return Err(no_code());
            }
            let count = cursor.next()?.ok_or_else(no_code)?;
            least[row as usize] = least[row as usize].min(count);
            (passed, behind) = (0, u64::from(row) + 1);
            rest &= rest - 1;
        }
        (place.at, place.row) = (Some(cursor.at()), start + behind);
        Ok(())
    }

    // ---- whole segments

    /// Its most frequent keys, the most frequent first, and the most that any other key has.
    pub fn names(&self) -> Result<(Vec<Named>, u64)> {
        self.body.sure(self.read_names())
    }

    fn read_names(&self) -> Result<(Vec<Named>, u64)> {
        let bytes = self.body.slice(self.layout.names, self.layout.end)?;
        let mut reader = Reader::new(bytes, "names");
        let mut names: Vec<Named> = Vec::new();
        for _ in 0..self.header.names {
            let key = OwnedKey::of(key(&mut reader)?)?;
            names.push(Named { key, count: reader.number()? });
        }
        reader.end()?;
        Ok((names, self.header.unlisted))
    }

    /// The cells of a column in the rows that have any; `at` is where its codes begin if it has some. Where they
    /// end.
    fn cells_at(&self, column: u64, at: Option<u64>, out: &mut Vec<u64>) -> Result<u64> {
        let rows = u64::from(self.shape.rows);
        let mut cursor = self.cursor(at.unwrap_or(0));
        out.clear();
        for row in 0..rows {
            let used = self.map(column, row)? & 1 == 1;
            out.push(match (used, at) {
                (false, _) => 0,
                (true, None) => 1,
                (true, Some(_)) => {
                    cursor.next()?.ok_or_else(|| wrong("codes", "bits that are no code"))?
                }
            });
        }
        Ok(cursor.at())
    }

    /// Checks every byte and every invariant.
    pub fn validate(&self) -> Result<()> {
        self.body.sure(self.check())
    }

    fn check(&self) -> Result<()> {
        self.body.check_all()?;
        let broken = |what: &str| Err(Error::Invariant { invariant: what.to_owned() });
        let shape = self.shape;
        let mut at = 0;
        let mut cells = Vec::new();
        for column in 0..shape.columns {
            if column.is_multiple_of(shape.group()) && self.index(column / shape.group())? != at {
                return broken("I2: the index points to the codes of each group's first column");
            }
            let coded = self.has_codes(column)?;
            let end = self.cells_at(column, coded.then_some(at), &mut cells)?;
            if coded != cells.iter().any(|cell| *cell > 1) {
                return broken("I3: a column has codes if one of its cells is more than one");
            }
            at = if coded { end } else { at };
        }
        if at != self.header.code_bits {
            return broken("I2: the codes end where the header says");
        }
        if !self.names()?.0.is_sorted_by(|a, b| a.count >= b.count) {
            return broken("I4: names are sorted by count, the most frequent first");
        }
        Ok(())
    }
}
