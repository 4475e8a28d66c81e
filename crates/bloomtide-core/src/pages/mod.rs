//! Pages of a Parquet column, unpacked just as far as a hash needs them.
//!
//! A reader for all purposes makes an array of each page: offsets, and a copy of every byte. A filter
//! reads each key once, so here a page is unpacked into memory that is used again, and its keys are
//! read where they lie. Files are opened, and their footers read, by whoever calls; so is every column
//! that is not of this plain sort: `Form` says which are.
//!
//! # Invariants
//! I1  A page that is handed out has exactly the values that its header promises: each lies inside the
//!     page, and they fill it.
//! I2  Bytes may be anything: a page that breaks its promise is an error, never a panic.

mod header;
mod hybrid;
#[cfg(test)]
mod tests;

use crate::batch::KeySource;
use crate::error::{Error, Result};
use crate::key::Key;
use header::{Header, Kind};
use snap::raw::{Decoder, decompress_len};
use std::sync::Arc;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Physical {
    /// Four bytes, signed.
    Int32,
    /// Eight bytes, signed.
    Int64,
    /// Bytes, which are text or not.
    Bytes {
        /// Whether they are UTF-8.
        text: bool,
    },
}

/// How pages are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    Plain,
    /// By Snappy.
    Snappy,
}

/// A column of a file: flat, without nulls, its values plain or in a dictionary.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// What a value is.
    pub physical: Physical,
    /// How pages are packed.
    pub codec: Codec,
    /// Whether pages say which values there are, though all are.
    pub optional: bool,
}

/// The pages of one chunk of a column, one after the other.
#[derive(Debug)]
pub struct Pages {
    form: Form,
    /// Values that are still to come.
    left: u64,
    at: usize,
    dictionary: Option<Arc<Values>>,
    /// The last two pages. Whoever took one has mostly let it go when the next but one is asked for.
    given: [Option<Arc<Page>>; 2],
}

/// The values of a page, as the file has them.
#[derive(Debug)]
struct Values {
    bytes: Vec<u8>,
    /// Where the values of fixed width start.
    first: usize,
    /// Where each value of bytes starts, and four beyond the end of the last one.
    starts: Vec<u32>,
    len: usize,
}

/// Keys of a column.
#[derive(Debug)]
pub struct Page {
    physical: Physical,
    values: Arc<Values>,
    /// The entry of the dictionary that each row is; None if the values are the rows.
    indices: Option<Vec<u32>>,
}

/// Snappy's longest copy makes 64 bytes of three.
const MOST_EXPANSION: usize = 22;

const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;

impl Pages {
    /// The pages of a chunk that has so many values.
    pub fn new(form: Form, values: u64) -> Self {
        Pages { form, left: values, at: 0, dictionary: None, given: [None, None] }
    }

    /// The next page of the chunk, whose bytes are always the same ones; None after the last.
    pub fn next(&mut self, chunk: &[u8]) -> Result<Option<Arc<Page>>> {
        while self.left > 0 {
            let rest = chunk.get(self.at..).unwrap_or_default();
            let (header, size) = Header::parse(rest).ok_or_else(|| self.damaged("header"))?;
            let end = size.checked_add(header.packed).filter(|end| *end <= rest.len());
            let end = end.ok_or_else(|| self.damaged("length"))?;
            let page = self.read(&header, &rest[size..end])?;
            self.at += end;
            if let Some(page) = page {
                let values = header.values as u64;
                self.left = self
                    .left
                    .checked_sub(values)
                    .ok_or_else(|| self.damaged("number of values"))?;
                let page = Arc::new(page);
                self.given.swap(0, 1);
                self.given[1] = Some(Arc::clone(&page));
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    fn read(&mut self, header: &Header, packed: &[u8]) -> Result<Option<Page>> {
        let physical = self.form.physical;
        match (header.kind, header.encoding) {
            (Kind::Other, _) => Ok(None),
            (Kind::Dictionary, PLAIN | PLAIN_DICTIONARY) => {
                let (bytes, _) = self.unpack(header, packed, Vec::new())?;
                self.dictionary =
                    Some(Arc::new(self.plain(bytes, 0, Vec::new(), header.values)?));
                Ok(None)
            }
            (Kind::Data | Kind::DataV2, PLAIN) => {
                let (bytes, starts) = self.spare();
                let (bytes, first) = self.unpack(header, packed, bytes)?;
                let values = Arc::new(self.plain(bytes, first, starts, header.values)?);
                Ok(Some(Page { physical, values, indices: None }))
            }
            (Kind::Data | Kind::DataV2, PLAIN_DICTIONARY | RLE_DICTIONARY) => {
                let (bytes, first) = self.unpack(header, packed, Vec::new())?;
                let values = self.dictionary.clone().ok_or_else(|| self.damaged("dictionary"))?;
                let indices = bytes[first..].split_first().and_then(|(width, rest)| {
                    hybrid::read(rest, u32::from(*width), header.values, values.len)
                });
                let indices = Some(indices.ok_or_else(|| self.damaged("indices"))?);
                Ok(Some(Page { physical, values, indices }))
            }
            _ => Err(self.damaged("encoding")),
        }
    }

    /// Memory of a page that nobody has any more.
    fn spare(&mut self) -> (Vec<u8>, Vec<u32>) {
        let page = self.given[0].take().and_then(Arc::into_inner);
        let values = page.and_then(|page| Arc::into_inner(page.values));
        values.map_or_else(Default::default, |values| (values.bytes, values.starts))
    }

    /// The bytes of a page, and where its values start.
    fn unpack(
        &self,
        header: &Header,
        packed: &[u8],
        mut into: Vec<u8>,
    ) -> Result<(Vec<u8>, usize)> {
        if header.nulls > 0 || header.level_bytes > packed.len().min(header.unpacked) {
            return Err(self.damaged("levels"));
        }
        let (levels, packed) = packed.split_at(header.level_bytes);
        let size = header.unpacked - levels.len();
        let is_packed = self.form.codec == Codec::Snappy && header.is_packed;
        // The block must claim the size that the header claims before memory is reserved for it.
        let claimed = if is_packed { decompress_len(packed).ok() } else { Some(packed.len()) };
        if claimed != Some(size) || size / MOST_EXPANSION > packed.len() {
            return Err(self.damaged("size"));
        }
        into.truncate(size);
        let limit = isize::MAX as u64;
        into.try_reserve_exact(size - into.len())
            .map_err(|_| Error::Capacity { needed: size as u64, limit })?;
        into.resize(size, 0);
        if is_packed {
            let done = Decoder::new().decompress(packed, &mut into);
            done.map_err(|_| self.damaged("packed bytes"))?;
        } else {
            into.copy_from_slice(packed);
        }
        if header.kind != Kind::Data || !self.form.optional {
            return Ok((into, 0));
        }
        // The levels of an older page come first, with their length. They say that nothing is null.
        let len = into.first_chunk().map(|len| u32::from_le_bytes(*len) as usize);
        let first = len.and_then(|len| len.checked_add(4)).filter(|first| *first <= size);
        match first {
            Some(first) if header.levels == RLE => Ok((into, first)),
            _ => Err(self.damaged("levels")),
        }
    }

    /// `len` values that fill the bytes from `first` on.
    fn plain(
        &self,
        bytes: Vec<u8>,
        first: usize,
        mut starts: Vec<u32>,
        len: usize,
    ) -> Result<Values> {
        let end = bytes.len();
        starts.clear();
        let width = match self.form.physical {
            Physical::Int32 => 4,
            Physical::Int64 => 8,
            Physical::Bytes { .. } => {
                let mut at = first;
                // Each has four bytes at least, so a header cannot ask for more than the page is.
                starts.reserve_exact(len.min((end - first) / 4) + 1);
                starts.push(at as u32 + 4);
                for _ in 0..len {
                    let size = bytes.get(at..).and_then(<[u8]>::first_chunk);
                    let size = size.ok_or_else(|| self.damaged("values"))?;
                    let size = u32::from_le_bytes(*size);
                    at += 4 + size as usize;
                    starts.push(at as u32 + 4);
                }
                if at != end {
                    return Err(self.damaged("values"));
                }
                return Ok(Values { bytes, first, starts, len });
            }
        };
        if len.checked_mul(width) != Some(end - first) {
            return Err(self.damaged("values"));
        }
        Ok(Values { bytes, first, starts, len })
    }

    #[cold]
    fn damaged(&self, what: &'static str) -> Error {
        let got = format!("a page with a wrong {what} at byte {}", self.at);
        let hint = "the file is damaged, or was changed while it was read: write it again";
        Error::parameter("data", got, "a chunk of a Parquet column", hint)
    }
}

impl Page {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.indices.as_ref().map_or(self.values.len, Vec::len)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the keys are whole numbers.
    pub fn has_numbers(&self) -> bool {
        !matches!(self.physical, Physical::Bytes { .. })
    }

    /// The rows.
    pub fn rows(&self) -> Box<dyn KeySource + '_> {
        let Values { bytes, first, starts, len } = &*self.values;
        if let Physical::Bytes { text } = self.physical {
            let texts = Texts { bytes, starts, text };
            return match &self.indices {
                None => Box::new(texts),
                Some(indices) => Box::new(Coded { source: texts, indices }),
            };
        }
        let wide = self.physical == Physical::Int64;
        let numbers = Numbers { bytes: &bytes[*first..], len: *len, wide };
        match &self.indices {
            None => Box::new(numbers),
            Some(indices) => Box::new(Coded { source: numbers, indices }),
        }
    }
}

/// Signed whole numbers of eight bytes, or of four.
#[derive(Debug)]
struct Numbers<'a> {
    bytes: &'a [u8],
    len: usize,
    wide: bool,
}

impl Numbers<'_> {
    #[inline(always)]
    fn value(&self, row: usize) -> i64 {
        // Every row is inside, so no default is ever taken.
        if self.wide {
            i64::from_le_bytes(self.bytes[row * 8..].first_chunk().copied().unwrap_or_default())
        } else {
            let bytes = self.bytes[row * 4..].first_chunk().copied().unwrap_or_default();
            i64::from(i32::from_le_bytes(bytes))
        }
    }
}

impl KeySource for Numbers<'_> {
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(self.value(row).into())
    }
}

/// Text or bytes, each after its length.
#[derive(Debug)]
struct Texts<'a> {
    bytes: &'a [u8],
    starts: &'a [u32],
    text: bool,
}

impl Texts<'_> {
    #[inline(always)]
    fn value(&self, row: usize) -> &[u8] {
        &self.bytes[self.starts[row] as usize..self.starts[row + 1] as usize - 4]
    }
}

impl KeySource for Texts<'_> {
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        let bytes = self.value(row);
        Some(if self.text { Key::Text(bytes) } else { Key::Bytes(bytes) })
    }
}

/// Rows that are entries of a dictionary.
#[derive(Debug)]
struct Coded<'a, S> {
    source: S,
    indices: &'a [u32],
}

impl<S: KeySource> KeySource for Coded<'_, S> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        self.source.key(self.indices[row] as usize)
    }
}
