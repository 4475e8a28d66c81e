//! The front of a segment's file: what must be known before anything else can be read.
//!
//! ```text
//! fixed       the common header (`format.rs`); what the segment is, how large its parts are
//! rows        their records, each from the one before it
//! checksums   CRC-32C of each block of the body
//! checksum    zeros, then CRC-32C of all that, up to a multiple of 64 bytes
//! body        gate | maps | index | codes | names      (`segment.rs`)
//! ```
//!
//! All of that but the body is the header. It is read and checked when a segment is opened; of the body, no
//! byte is. No length is believed before it agrees with the number of bytes that are there.

use super::columns::{ENTRY, Shape};
use super::filled::Filled;
use super::mark::MAX_HASHES;
use super::varint::{self, Reader};
use super::{CellPolicy, MAX_ROWS, RowRecord, Sizes};
use crate::error::{Error, Result};
use crate::format::{self, Kind};
use crate::hash::Hasher;
use crc32c::crc32c;

/// Bytes covered by one checksum.
pub(super) const BLOCK: usize = 4096;
/// Bytes before the rows, and where the secret and the numbers begin among them.
const FIXED: usize = 184;
const SECRET: usize = 32;
const NUMBERS: usize = 48;

/// What the front says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) level: u8,
    pub(super) policy: CellPolicy,
    /// Of the codes.
    pub(super) order: u32,
    pub(super) hasher: Hasher,
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) sizes: Sizes,
    /// Different keys, and pairs of key and row; an upper bound where segments were joined.
    pub(super) keys: u64,
    pub(super) items: u64,
    pub(super) unlisted: u64,
    pub(super) names: u64,
    pub(super) name_bytes: u64,
    pub(super) code_bits: u64,
    /// What was asked for.
    pub(super) error_rate: f64,
    pub(super) gate_error: f64,
    /// What the cells say.
    pub(super) predicted_error: f64,
    pub(super) predicted_gate_error: f64,
    pub(super) rows: Vec<RowRecord>,
}

/// Where the parts of the body begin, counted from its begin, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) maps: u64,
    pub(super) index: u64,
    pub(super) codes: u64,
    pub(super) names: u64,
    pub(super) end: u64,
}

impl Header {
    /// Which rows have cells.
    pub(super) fn filled(&self) -> Filled {
        Filled::of(&self.rows)
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { rows: self.filled().len() as u32, columns: self.sizes.columns }
    }

    /// None if it could not be in any file.
    pub(super) fn layout(&self) -> Option<Layout> {
        let shape = self.shape();
        let maps = self.sizes.gate_bits.div_ceil(8);
        let index = maps.checked_add(shape.map_bits()?.div_ceil(8))?;
        let codes = index.checked_add(shape.groups().checked_mul(ENTRY)?)?;
        let names = codes.checked_add(self.code_bits.div_ceil(8))?;
        let end = names.checked_add(self.name_bytes)?;
        Some(Layout { maps, index, codes, names, end })
    }

    /// The whole file: the front, then the body.
    pub(super) fn seal(&self, body: &[u8]) -> Vec<u8> {
        let mut rows = Vec::new();
        encode_rows(self.begin, &self.rows, &mut rows);
        let mut added = self.fixed(rows.len() as u64);
        added.extend(rows);
        body.chunks(BLOCK).for_each(|block| added.extend(crc32c(block).to_le_bytes()));
        let len = format::header_len(added.len()).next_multiple_of(64);
        added.resize(len - format::header_len(0), 0);
        let mut out = format::header(Kind::HistorySegment, &added, len as u64 + body.len() as u64);
        out.extend_from_slice(body);
        out
    }

    /// What stands between the common header and the rows.
    fn fixed(&self, row_bytes: u64) -> Vec<u8> {
        let (hash, secret) = match self.hasher {
            Hasher::Xxh3 { .. } => (1, [0; 16]),
            Hasher::Keyed { secret } => (2, secret),
        };
        let Sizes { gate_hashes, gate_bits, hashes, columns } = self.sizes;
        let policy = self.policy as u8 + 1;
        let mut out = Vec::with_capacity(FIXED);
        out.extend([self.level, policy, hash, self.order as u8, gate_hashes as u8, hashes as u8]);
        out.resize(SECRET - format::HEAD, 0);
        out.extend(secret);
        let numbers = [
            self.hasher.seed(),
            self.begin as u64,
            self.end as u64,
            self.rows.len() as u64,
            row_bytes,
            gate_bits,
            columns,
            self.keys,
            self.items,
            self.unlisted,
            self.names,
            self.name_bytes,
            self.code_bits,
            self.error_rate.to_bits(),
            self.gate_error.to_bits(),
            self.predicted_error.to_bits(),
            self.predicted_gate_error.to_bits(),
        ];
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out
    }

    /// (header, where the body begins), if the front of these bytes is what `seal` wrote, and they are as
    /// many as it says. The checksums of the body stand in `checksums`.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, Front)> {
        let common = format::Header::read_whole(bytes, Some(Kind::HistorySegment))?;
        let body = bytes.len() - common.len;
        let fixed = common.added.get(..FIXED - format::HEAD);
        let fixed = fixed.ok_or_else(|| wrong("header length", common.len))?;
        let word = |i: usize| {
            let at = NUMBERS - format::HEAD + 8 * i;
            fixed
                .get(at..at + 8)
                .and_then(|eight| eight.try_into().ok())
                .map_or(0, u64::from_le_bytes)
        };
        let (rows, row_bytes) = (word(3), word(4));
        let sums = body.div_ceil(BLOCK) * 4;
        let tables = usize::try_from(row_bytes).ok().and_then(|rows| rows.checked_add(FIXED));
        let fits = |tables: &usize| {
            let end = tables.checked_add(sums + format::SUM);
            end.and_then(|end| end.checked_next_multiple_of(64)) == Some(common.len)
        };
        let tables = tables.filter(fits).ok_or_else(|| wrong("row bytes", row_bytes))?;
        if bytes[tables + sums..common.len - format::SUM].iter().any(|byte| *byte != 0) {
            return Err(wrong("padding", "bytes that are not zero"));
        }
        let mut header = Header::of_fixed(fixed, word)?;
        header.rows = decode_rows(header.begin, rows, &bytes[FIXED..tables])?;
        let said = header.layout().map(|layout| layout.end);
        if said != Some(body as u64) || header.fixed(row_bytes) != fixed {
            return Err(wrong("sizes", format!("{said:?} bytes, not {body}")));
        }
        Ok((header, Front { checksums: tables, body: common.len }))
    }

    fn of_fixed(fixed: &[u8], word: impl Fn(usize) -> u64) -> Result<Self> {
        let [level, policy, hash, order, gate_hashes, hashes] =
            [0, 1, 2, 3, 4, 5].map(|i| fixed[i]);
        let mut secret = [0; 16];
        secret.copy_from_slice(&fixed[SECRET - format::HEAD..NUMBERS - format::HEAD]);
        let hasher = match hash {
            1 => Hasher::Xxh3 { seed: word(0) },
            2 => Hasher::Keyed { secret },
            _ => return Err(wrong("hash", hash)),
        };
        let policy = usize::from(policy).checked_sub(1).and_then(|i| CellPolicy::ALL.get(i));
        let sizes = Sizes {
            gate_hashes: gate_hashes.into(),
            gate_bits: word(5),
            hashes: hashes.into(),
            columns: word(6),
        };
        let (most, float) = (MAX_HASHES, |i| f64::from_bits(word(i)));
        if !(1..=most).contains(&sizes.hashes) || !(1..=most).contains(&sizes.gate_hashes) {
            return Err(wrong("hashes", format!("{} and {}", sizes.gate_hashes, sizes.hashes)));
        }
        if sizes.columns == 0
            || sizes.gate_bits == 0
            || u32::from(order) >= super::codes::ORDERS as u32
        {
            return Err(wrong("sizes", format!("{sizes:?}")));
        }
        let header = Header {
            level,
            policy: policy.ok_or_else(|| wrong("policy", fixed[1]))?.0,
            order: order.into(),
            hasher,
            begin: word(1) as i64,
            end: word(2) as i64,
            sizes,
            keys: word(7),
            items: word(8),
            unlisted: word(9),
            names: word(10),
            name_bytes: word(11),
            code_bits: word(12),
            error_rate: float(13),
            gate_error: float(14),
            predicted_error: float(15),
            predicted_gate_error: float(16),
            rows: Vec::new(),
        };
        if header.begin > header.end {
            return Err(wrong("begin", header.begin));
        }
        Ok(header)
    }
}

/// Where the front's parts lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    pub(super) checksums: usize,
    pub(super) body: usize,
}

pub(super) fn wrong(name: &'static str, got: impl std::fmt::Display) -> Error {
    Error::Field { name, got: got.to_string() }
}

fn encode_rows(begin: i64, rows: &[RowRecord], out: &mut Vec<u8>) {
    let mut before = begin;
    for row in rows {
        // Windows follow each other, and their events lie inside: all differences are small.
        varint::put_signed(row.begin.wrapping_sub(before), out);
        varint::put(row.end.wrapping_sub(row.begin) as u64, out);
        varint::put(row.events, out);
        varint::put(row.windows.into(), out);
        if row.events > 0 {
            varint::put(row.first.wrapping_sub(row.begin) as u64, out);
            varint::put(row.last.wrapping_sub(row.first) as u64, out);
        }
        before = row.end;
    }
}

fn decode_rows(begin: i64, rows: u64, bytes: &[u8]) -> Result<Vec<RowRecord>> {
    if rows == 0 || rows > MAX_ROWS as u64 || rows > bytes.len() as u64 {
        return Err(wrong("rows", rows));
    }
    let mut reader = Reader::new(bytes, "rows");
    let mut out = Vec::with_capacity(rows as usize);
    let mut before = begin;
    for _ in 0..rows {
        let begin = before.wrapping_add(reader.signed()?);
        let end = begin.wrapping_add(reader.number()? as i64);
        let mut row = RowRecord { events: reader.number()?, ..RowRecord::empty(begin, end) };
        row.windows = u32::try_from(reader.number()?).map_err(|_| reader.wrong())?;
        if row.events > 0 {
            row.first = begin.wrapping_add(reader.number()? as i64);
            row.last = row.first.wrapping_add(reader.number()? as i64);
        }
        if !row.is_sound() {
            return Err(wrong("rows", format!("{row:?}")));
        }
        before = end;
        out.push(row);
    }
    reader.end()?;
    Ok(out)
}
