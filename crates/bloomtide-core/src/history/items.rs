//! The exact contents of a sealed segment, kept beside it until the segment above has taken them: every key's
//! mark and count, without rows. So that one is built from what was, and not from what the smaller ones
//! answer.
//!
//! ```text
//! common header (`format.rs`) with the hash's fingerprint u64
//! numbers (seven bits a byte): level, begin, end, first, last, events, windows, names, keys
//! names: kind u8, length, key
//! keys by mark: distance from the mark before, if the count is one; else 0, count, distance
//! CRC-32C u32, going on from the header's
//! ```
//!
//! Most keys of a long tail come once, and no two marks are equal: only the first distance can be 0, and then
//! it is written in the long form.

use super::journal::{key, put_key};
use super::open::Seen;
use super::recover::fingerprint;
use super::varint::{self, Reader};
use super::{Contents, Mark};
use crate::error::{Error, Result};
use crate::format::{self, Kind};
use crate::hash::Hasher;
use crate::key::Key;

/// Bytes before the numbers.
const HEAD: usize = format::header_len(8);

/// The items file of a segment with these contents.
pub fn encode_items(contents: &Contents, hasher: &Hasher) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let keys = contents.items.chunk_by(|a, b| a.mark == b.mark);
    // Marks of many keys are near each other, and most counts are small.
    let expected = HEAD + 100 + contents.items.len() * 9;
    let refuse = |_| Error::Capacity { needed: expected as u64, limit: isize::MAX as u64 };
    out.try_reserve(expected).map_err(refuse)?;
    out.extend([0; HEAD]);
    let all = contents.rows.iter().fold(Seen::NOTHING, |all, row| all.with(row.seen));
    let windows = contents.rows.iter().fold(0u32, |sum, row| sum.saturating_add(row.windows));
    varint::put(u64::from(contents.level), &mut out);
    let times =
        if all.events == 0 { (contents.begin, contents.begin) } else { (all.first, all.last) };
    for time in [contents.begin, contents.end, times.0, times.1] {
        varint::put_signed(time, &mut out);
    }
    varint::put(all.events, &mut out);
    varint::put(u64::from(windows), &mut out);
    varint::put(contents.names.len() as u64, &mut out);
    varint::put(keys.clone().count() as u64, &mut out);
    contents.names.iter().for_each(|named| put_key(&mut out, &named.key));
    let mut before: Mark = 0;
    for rows in keys {
        let count = rows.iter().fold(0u64, |sum, item| sum.saturating_add(item.count));
        let distance = rows[0].mark - before;
        if count != 1 || distance == 0 {
            varint::put(0, &mut out);
            varint::put(count, &mut out);
        }
        varint::put(distance, &mut out);
        before = rows[0].mark;
    }
    let length = (out.len() + format::SUM) as u64;
    let header = format::header(Kind::HistoryItems, &fingerprint(hasher).to_le_bytes(), length);
    out[..HEAD].copy_from_slice(&header);
    format::seal(&mut out, HEAD);
    Ok(out)
}

/// An items file that was opened.
#[derive(Debug)]
pub struct Items<'a> {
    /// The segment's level.
    pub level: u8,
    /// Where its time begins.
    pub begin: i64,
    /// Where it ends.
    pub end: i64,
    /// What it has seen.
    pub seen: Seen,
    /// How many windows it is made of.
    pub windows: u32,
    /// Keys by name.
    pub names: Vec<Key<'a>>,
    keys: u64,
    pairs: Reader<'a>,
    last: Mark,
}

impl<'a> Items<'a> {
    /// Opens a file that was written with that hash.
    pub fn open(data: &'a [u8], hasher: &Hasher) -> Result<Self> {
        let (header, rest) = format::unseal(data, Kind::HistoryItems)?;
        if u64::from_le_bytes(*header.fields()?) != fingerprint(hasher) {
            return Err(Error::incompatible("hash", "one seed or secret", "another"));
        }
        let mut reader = Reader::new(rest, "items");
        let level = u8::try_from(reader.number()?).map_err(|_| reader.wrong())?;
        let (begin, end) = (reader.signed()?, reader.signed()?);
        let (first, last, events) = (reader.signed()?, reader.signed()?, reader.number()?);
        let windows = u32::try_from(reader.number()?).map_err(|_| reader.wrong())?;
        let (names, keys) = (reader.number()?, reader.number()?);
        let inside = begin <= first && first <= last && (last < end || events == 0);
        if begin > end || !inside || (events == 0) != (keys == 0) || windows == 0 {
            return Err(reader.wrong());
        }
        let names = (0..names).map(|_| key(&mut reader)).collect::<Result<Vec<_>>>()?;
        let seen = if events == 0 { Seen::NOTHING } else { Seen { first, last, events } };
        Ok(Items { level, begin, end, seen, windows, names, keys, pairs: reader, last: 0 })
    }

    /// The next key's mark and count, by mark.
    #[inline]
    pub fn next_pair(&mut self) -> Result<Option<(Mark, u64)>> {
        if self.keys == 0 {
            return self.pairs.end().map(|()| None);
        }
        self.keys -= 1;
        let (distance, count) = match self.pairs.number()? {
            0 => {
                let (count, distance) = (self.pairs.number()?, self.pairs.number()?);
                // A second spelling.
                if count == 1 && distance != 0 {
                    return Err(self.pairs.wrong());
                }
                (distance, count)
            }
            distance => (distance, 1),
        };
        match self.last.checked_add(distance) {
            // Only the first may be zero.
            Some(mark) if count > 0 && (distance > 0 || self.last == 0) => {
                self.last = mark;
                Ok(Some((mark, count)))
            }
            _ => Err(self.pairs.wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{RowOf, RowRecord, roll_up};

    const HASHER: Hasher = Hasher::Xxh3 { seed: 3 };

    #[test]
    fn a_segment_that_begins_where_the_rows_end_is_refused() {
        let rows = vec![RowRecord::empty(100, 100)];
        let empty = Contents { begin: 100, end: 100, rows, ..Contents::default() };
        let bytes = encode_items(&empty, &HASHER).unwrap();
        assert!(roll_up(&[&bytes], 1, (0, 100), RowOf::Time(10), 0, &HASHER).is_err());
        assert!(roll_up(&[&bytes], 1, (0, 110), RowOf::Time(10), 0, &HASHER).is_ok());
    }
}
