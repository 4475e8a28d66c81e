//! The body of a segment's file: bytes that are checked when they are first touched.
//!
//! A block that was checked once is marked, so a question pays for a handful of blocks the first time and for
//! nothing later. Opening a segment reads none of them.

use super::bits;
use super::header::{BLOCK, Front};
use crate::error::{Error, Result};
use crate::format::{END, u32_at};
use crate::system::MappedFile;
use crc32c::crc32c;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file's bytes: in memory, or mapped.
#[derive(Debug)]
pub(super) enum Bytes {
    Owned(Vec<u8>),
    /// A part of a file, which has other segments before and behind it.
    Mapped(MappedFile, Range<usize>),
}

impl Bytes {
    /// A part of a file, which is written under another name, then renamed, and never changed again; all from
    /// `offset` on if there is no length.
    pub(super) fn map(path: &Path, offset: u64, length: Option<u64>) -> Result<Self> {
        let map = MappedFile::open(path)?;
        map.read_at_random();
        let there = map.len() as u64;
        let end = length.map_or(Some(there), |length| offset.checked_add(length));
        match end.filter(|end| offset <= *end && *end <= there) {
            Some(end) => Ok(Bytes::Mapped(map, offset as usize..end as usize)),
            None => Err(Error::Truncated { expected: end.unwrap_or(u64::MAX), got: there }),
        }
    }

    pub(super) fn all(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(map, part) => &map[part.clone()],
        }
    }

    fn require_whole(&self) -> Result<()> {
        match self {
            Bytes::Owned(_) => Ok(()),
            Bytes::Mapped(map, _) => map.require_whole(),
        }
    }
}

/// The body, and which of its blocks were checked.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Bytes,
    front: Front,
    checked: Vec<AtomicU64>,
}

impl Body {
    /// The front has been read, so its numbers are those of the bytes.
    pub(super) fn new(bytes: Bytes, front: Front) -> Self {
        let blocks = (bytes.all().len() - END.len() - front.body).div_ceil(BLOCK);
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Body { bytes, front, checked }
    }

    /// The whole file.
    pub(super) fn file(&self) -> &[u8] {
        self.bytes.all()
    }

    /// All before the body.
    pub(super) fn front(&self) -> &[u8] {
        &self.bytes.all()[..self.front.body]
    }

    fn body(&self) -> &[u8] {
        let all = self.bytes.all();
        &all[self.front.body..all.len() - END.len()]
    }

    /// What was answered from the body, unless it may be of zeros in the place of a file that was cut.
    #[inline(always)]
    pub(super) fn sure<T>(&self, answer: Result<T>) -> Result<T> {
        self.bytes.require_whole()?;
        answer
    }

    /// 64 bits from bit `bit` of the part that begins at byte `part`; zeros behind the end.
    #[inline(always)]
    pub(super) fn window(&self, part: u64, bit: u64) -> Result<u64> {
        let byte = (part + (bit >> 3)) as usize;
        self.require(byte, byte.saturating_add(9))?;
        Ok(bits::window(self.body(), part.saturating_mul(8).saturating_add(bit)))
    }

    /// Bytes, checked.
    pub(super) fn slice(&self, from: u64, to: u64) -> Result<&[u8]> {
        let (from, to) = (from as usize, to as usize);
        self.require(from, to)?;
        Ok(self.body().get(from..to).unwrap_or_default())
    }

    /// Checks the blocks of `[from, to)` that were not; what lies behind the end has none.
    #[inline(always)]
    fn require(&self, from: usize, to: usize) -> Result<()> {
        let (first, last) = (from / BLOCK, to.saturating_sub(1) / BLOCK);
        if self.is_checked(first) && (first == last || self.is_checked(last) && last - first == 1) {
            return Ok(());
        }
        self.check_range(first, last)
    }

    /// Whether a block was checked, or is none.
    #[inline(always)]
    fn is_checked(&self, block: usize) -> bool {
        let done = self.checked.get(block / 64);
        done.is_none_or(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
    }

    #[cold]
    fn check_range(&self, first: usize, last: usize) -> Result<()> {
        let blocks = self.body().len().div_ceil(BLOCK);
        let mut range = first..blocks.min(last + 1);
        range.try_for_each(|block| if self.is_checked(block) { Ok(()) } else { self.check(block) })
    }

    fn check(&self, block: usize) -> Result<()> {
        let body = self.body();
        let from = block * BLOCK;
        let Some(bytes) = body.get(from..body.len().min(from + BLOCK)) else { return Ok(()) };
        let expected = u32_at(self.bytes.all(), self.front.checksums + 4 * block);
        let got = crc32c(bytes);
        if expected != got {
            let offset = (self.front.body + from) as u64;
            return Err(Error::Checksum { expected, got, offset });
        }
        self.checked[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }

    /// Checks every block.
    pub(super) fn check_all(&self) -> Result<()> {
        (0..self.body().len().div_ceil(BLOCK)).try_for_each(|block| self.check(block))
    }
}
