//! The front of a segment's file: what must be known before anything else can be read.
//!
//! ```text
//! fixed       the common header (`format.rs`); what the segment is, how large its parts are
//! rows        their records, each from the one before it
//! checksums   CRC-32C of each block of the body
//! checksum    zeros, then CRC-32C of all that, up to a multiple of 64 bytes
//! body        gate | maps | index | codes | names      (`segment.rs`)
//! end         `format::END`
//! ```
//!
//! All of that but the body is the header. It is read and checked when a segment is opened; of the body, no
//! byte is. No length is believed before it agrees with the number of bytes that are there.

use super::columns::{ENTRY, Shape};
use super::filled::Filled;
use super::mark::MAX_HASHES;
use super::varint::{self, Reader};
use super::{MAX_ROWS, RowRecord, Seen, Sizes};
use crate::error::{Error, Result};
use crate::format::{self, END, Kind};
use crate::hash::Hasher;
use crc32c::crc32c;
use std::sync::Arc;

/// Bytes covered by one checksum.
pub(super) const BLOCK: usize = 4096;

/// What the front says.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Its level in the ladder of windows; 0 is the finest.
    pub level: u8,
    /// Of the codes.
    pub(super) order: u32,
    /// What made the marks.
    pub hasher: Hasher,
    /// Where its time begins.
    pub begin: i64,
    /// Where it ends; not part of it.
    pub end: i64,
    /// The sizes of its parts.
    pub sizes: Sizes,
    /// Different keys.
    pub keys: u64,
    /// Different pairs of key and row.
    pub items: u64,
    /// The most that a key has that is not among the names.
    pub unlisted: u64,
    pub(super) names: u64,
    pub(super) name_bytes: u64,
    pub(super) code_bits: u64,
    /// The error of a count that was asked for.
    pub error_rate: f64,
    /// The error of the gate that was asked for.
    pub gate_error: f64,
    /// Chance that a count is too high in any of its rows, by the cells that are taken.
    pub predicted_error: f64,
    /// Chance that the gate lets an absent key pass, by its bits that are on.
    pub predicted_gate_error: f64,
    /// Its rows.
    pub rows: Arc<[RowRecord]>,
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
        let length = len + body.len() + END.len();
        let mut out = format::header(Kind::HistorySegment, &added, length as u64);
        out.extend_from_slice(body);
        out.extend(END);
        out
    }

    /// What stands between the common header and the rows.
    fn fixed(&self, row_bytes: u64) -> Vec<u8> {
        let (hash, seed, secret) = self.hasher.parts();
        let Sizes { gate_hashes, gate_bits, hashes, columns } = self.sizes;
        let small = [self.level, hash, self.order as u8, gate_hashes as u8, hashes as u8, 0, 0, 0];
        let numbers = [
            seed,
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
        [&small, &secret[..], &numbers.map(u64::to_le_bytes).concat()].concat()
    }

    /// The header, and where the parts of the front lie, if it is what `seal` wrote for so many bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, Front)> {
        let common = format::Header::read_whole(bytes, Some(Kind::HistorySegment))?;
        let body = format::require_end(&bytes[common.len..])?.len();
        let mut reader = Reader::new(common.added, "header");
        let [level, hash, order, gate_hashes, hashes, ..] = reader.fixed::<8>()?;
        let secret = reader.fixed()?;
        let mut word = || reader.fixed().map(u64::from_le_bytes);
        let hasher = Hasher::from_parts(hash, word()?, secret)?;
        let (begin, end) = (word()? as i64, word()? as i64);
        let (row_count, row_bytes) = (word()?, word()?);
        let (gate_hashes, hashes) = (gate_hashes.into(), hashes.into());
        let sizes = Sizes { gate_hashes, gate_bits: word()?, hashes, columns: word()? };
        let mut header = Header {
            level,
            order: order.into(),
            hasher,
            begin,
            end,
            sizes,
            keys: word()?,
            items: word()?,
            unlisted: word()?,
            names: word()?,
            name_bytes: word()?,
            code_bits: word()?,
            error_rate: f64::from_bits(word()?),
            gate_error: f64::from_bits(word()?),
            predicted_error: f64::from_bits(word()?),
            predicted_gate_error: f64::from_bits(word()?),
            rows: Arc::default(),
        };
        let few = |hashes: u32| (1..=MAX_HASHES).contains(&hashes);
        if !few(gate_hashes) || !few(hashes) || sizes.columns == 0 || sizes.gate_bits == 0 {
            return Err(wrong("sizes", format!("{sizes:?}")));
        }
        if begin > end || usize::from(order) >= super::codes::ORDERS {
            return Err(wrong("header", format!("begin {begin}, end {end}, order {order}")));
        }
        header.rows = decode_rows(begin, row_count, reader.bytes(row_bytes)?)?.into();
        let checksums = common.len - format::SUM - reader.rest().len();
        reader.bytes(body.div_ceil(BLOCK) as u64 * 4)?;
        let padding = reader.rest();
        if padding.len() >= 64 || padding.iter().any(|byte| *byte != 0) {
            return Err(wrong("padding", format!("{} bytes", padding.len())));
        }
        // The same encoder wrote it, so every byte must come out again.
        if header.layout().is_none_or(|layout| layout.end != body as u64)
            || !common.added.starts_with(&header.fixed(row_bytes))
        {
            return Err(wrong("sizes", format!("{sizes:?} for {body} bytes")));
        }
        Ok((header, Front { checksums, body: common.len }))
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
        varint::put(row.seen.events, out);
        varint::put(row.windows.into(), out);
        if row.seen.events > 0 {
            varint::put(row.seen.first.wrapping_sub(row.begin) as u64, out);
            varint::put(row.seen.last.wrapping_sub(row.seen.first) as u64, out);
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
        let (mut row, events) = (RowRecord::empty(begin, end), reader.number()?);
        row.windows = u32::try_from(reader.number()?).map_err(|_| reader.wrong())?;
        if events > 0 {
            let first = begin.wrapping_add(reader.number()? as i64);
            let last = first.wrapping_add(reader.number()? as i64);
            row.seen = Seen { first, last, events };
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
