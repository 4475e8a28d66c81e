//! Rows for batches that keep keys, not only digests: copies of Python objects, and chosen rows.

use bloomtide_core::{Hasher, Key, KeyHash, KeySource};
use std::ops::Range;

/// Copies of keys that may be gone or changed when the interpreter is let go. One run of bytes for all.
#[derive(Default)]
pub(super) struct Copies {
    bytes: Vec<u8>,
    rows: Vec<Copied>,
}

enum Copied {
    Text(Range<usize>),
    Bytes(Range<usize>),
    Integer(Key<'static>),
}

impl Copies {
    #[inline(always)]
    pub(super) fn push(&mut self, key: Key<'_>) {
        let start = self.bytes.len();
        let row = match key {
            Key::Text(bytes) => {
                self.bytes.extend_from_slice(bytes);
                Copied::Text(start..self.bytes.len())
            }
            Key::Bytes(bytes) => {
                self.bytes.extend_from_slice(bytes);
                Copied::Bytes(start..self.bytes.len())
            }
            Key::Unsigned(value) => Copied::Integer(Key::Unsigned(value)),
            Key::Negative(value) => Copied::Integer(Key::Negative(value)),
        };
        self.rows.push(row);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }
}

impl KeySource for Copies {
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(match &self.rows[row] {
            Copied::Text(range) => Key::Text(&self.bytes[range.clone()]),
            Copied::Bytes(range) => Key::Bytes(&self.bytes[range.clone()]),
            Copied::Integer(key) => *key,
        })
    }
}

/// Keys that were hashed before, with their copies.
pub(super) struct Hashed<'a> {
    pub(super) digests: &'a [KeyHash],
    pub(super) copies: &'a Copies,
}

impl KeySource for Hashed<'_> {
    fn len(&self) -> usize {
        self.digests.len()
    }

    #[inline(always)]
    fn hash(&self, _: &Hasher, row: usize) -> KeyHash {
        self.digests[row]
    }

    fn digests(&self) -> Option<&[KeyHash]> {
        Some(self.digests)
    }

    fn key(&self, row: usize) -> Option<Key<'_>> {
        self.copies.key(row)
    }
}

/// Some rows of others, in any order: those that are not null, or the entries of a dictionary.
pub(super) struct Chosen<'a> {
    pub(super) source: &'a dyn KeySource,
    pub(super) rows: &'a [usize],
}

impl KeySource for Chosen<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn hash(&self, hasher: &Hasher, row: usize) -> KeyHash {
        self.source.hash(hasher, self.rows[row])
    }

    fn fill(&self, hasher: &Hasher, first: usize, out: &mut [KeyHash]) {
        let rows = self.rows[first..].iter().zip(out);
        match self.source.digests() {
            Some(digests) => rows.for_each(|(row, slot)| *slot = digests[*row]),
            None => rows.for_each(|(row, slot)| *slot = self.source.hash(hasher, *row)),
        }
    }

    fn key(&self, row: usize) -> Option<Key<'_>> {
        self.source.key(self.rows[row])
    }
}
