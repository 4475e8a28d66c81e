//! A key as itself, for the structures that hand keys back. Everything else sees only its digest.

use crate::hash::{Hasher, KeyHash};

/// A key, borrowed from whoever has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// Text: UTF-8, if its producer keeps its word.
    Text(&'a [u8]),
    /// Bytes. The same key as the text of these bytes, only spelled differently.
    Bytes(&'a [u8]),
    /// An integer from zero up.
    Unsigned(u64),
    /// An integer below zero.
    Negative(i64),
}

impl From<i64> for Key<'_> {
    #[inline(always)]
    fn from(value: i64) -> Self {
        if value < 0 { Key::Negative(value) } else { Key::Unsigned(value as u64) }
    }
}

impl Key<'_> {
    /// The digest.
    #[inline(always)]
    pub fn hash(&self, hasher: &Hasher) -> KeyHash {
        match *self {
            Key::Text(bytes) | Key::Bytes(bytes) => hasher.bytes(bytes),
            Key::Unsigned(value) => hasher.unsigned(value),
            Key::Negative(value) => hasher.signed(value),
        }
    }
}

/// A key that is kept. Its memory is used again for the next key of its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedKey {
    kind: Kind,
    number: u64,
    bytes: Vec<u8>,
}

/// The numbers are those of the snapshot format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text = 1,
    Bytes = 2,
    Unsigned = 3,
    Negative = 4,
}

/// Room that a place may keep for its next key, whatever its last one needed.
const SPARE: usize = 256;

impl OwnedKey {
    /// The key, copied.
    pub fn of(key: Key<'_>) -> crate::Result<Self> {
        let mut this = OwnedKey::default();
        let refused = |_| crate::Error::Capacity { needed: u64::MAX, limit: isize::MAX as u64 };
        this.set(key).map_err(refused)?;
        Ok(this)
    }

    /// Takes another key's place. Fails only for want of memory, and changes nothing then.
    #[inline]
    pub(crate) fn set(&mut self, key: Key<'_>) -> Result<(), std::collections::TryReserveError> {
        let (kind, number, bytes): (_, _, &[u8]) = match key {
            Key::Text(bytes) => (Kind::Text, 0, bytes),
            Key::Bytes(bytes) => (Kind::Bytes, 0, bytes),
            Key::Unsigned(value) => (Kind::Unsigned, value, &[]),
            Key::Negative(value) => (Kind::Negative, value as u64, &[]),
        };
        if bytes.len() > self.bytes.capacity() {
            let mut room = Vec::new();
            room.try_reserve_exact(bytes.len())?;
            self.bytes = room;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        // One huge key must not be paid for by all that follow it.
        if self.bytes.capacity() > SPARE && self.bytes.capacity() / 4 > bytes.len() {
            self.bytes.shrink_to(SPARE);
        }
        (self.kind, self.number) = (kind, number);
        Ok(())
    }

    /// The key again.
    pub fn view(&self) -> Key<'_> {
        match self.kind {
            Kind::Text => Key::Text(&self.bytes),
            Kind::Bytes => Key::Bytes(&self.bytes),
            Kind::Unsigned => Key::Unsigned(self.number),
            Kind::Negative => Key::Negative(self.number as i64),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }

    /// Bytes that `encode` writes.
    pub(crate) fn encoded_len(&self) -> usize {
        match self.kind {
            Kind::Text | Kind::Bytes => self.bytes.len(),
            Kind::Unsigned | Kind::Negative => 8,
        }
    }

    /// The kind as a number, and the key as bytes; integers little-endian.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> u8 {
        match self.kind {
            Kind::Text | Kind::Bytes => out.extend_from_slice(&self.bytes),
            Kind::Unsigned | Kind::Negative => out.extend(self.number.to_le_bytes()),
        }
        self.kind as u8
    }
}

impl<'a> Key<'a> {
    /// What was encoded; None for what never is.
    pub(crate) fn decode(kind: u8, bytes: &'a [u8]) -> Option<Self> {
        let number = || Some(u64::from_le_bytes(bytes.try_into().ok()?));
        match kind {
            1 => Some(Key::Text(bytes)),
            2 => Some(Key::Bytes(bytes)),
            3 => number().map(Key::Unsigned),
            4 => number().map(|value| value as i64).filter(|value| *value < 0).map(Key::Negative),
            _ => None,
        }
    }
}
