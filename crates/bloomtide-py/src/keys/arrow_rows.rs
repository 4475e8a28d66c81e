//! The rows of Arrow's types for text and bytes, read in place.

use super::arrow::Chunk;
use bloomtide_core::{Key, KeySource};

/// Text or binary with offsets of 32 or 64 bits.
pub(super) struct Offsets<T> {
    offsets: *const T,
    data: *const u8,
    rows: usize,
    text: bool,
}

// SAFETY: only read, while the array keeps its buffers.
unsafe impl<T> Sync for Offsets<T> {}

impl<T: Copy + TryInto<usize>> Offsets<T> {
    pub(super) unsafe fn new(chunk: &Chunk<'_>, text: bool) -> Self {
        // SAFETY: validity, offsets, data, by the specification.
        unsafe {
            let offsets = chunk.buffer(1).cast::<T>().add(chunk.first);
            Offsets { offsets, data: chunk.buffer(2), rows: chunk.rows, text }
        }
    }

    #[inline(always)]
    fn bytes(&self, row: usize) -> &[u8] {
        // SAFETY: there are rows + 1 offsets, which do not fall and lie inside the data.
        unsafe {
            let start = self.offsets.add(row).read_unaligned().try_into().unwrap_or(0);
            let end = self.offsets.add(row + 1).read_unaligned().try_into().unwrap_or(0);
            std::slice::from_raw_parts(self.data.add(start), end.saturating_sub(start))
        }
    }
}

impl<T: Copy + TryInto<usize>> KeySource for Offsets<T> {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(text_or_bytes(self.bytes(row), self.text))
    }
}

fn text_or_bytes(bytes: &[u8], text: bool) -> Key<'_> {
    if text { Key::Text(bytes) } else { Key::Bytes(bytes) }
}

/// Text or binary views: short values inline, long ones in one of several buffers.
pub(super) struct Views {
    views: *const u8,
    buffers: *const *const u8,
    rows: usize,
    text: bool,
}

// SAFETY: only read, while the array keeps its buffers.
unsafe impl Sync for Views {}

impl Views {
    pub(super) unsafe fn new(chunk: &Chunk<'_>, text: bool) -> Self {
        // SAFETY: validity, views, then the data buffers, by the specification.
        unsafe {
            let buffers = chunk.array.buffers.add(2).cast::<*const u8>().cast_const();
            Views { views: chunk.buffer(1).add(chunk.first * 16), buffers, rows: chunk.rows, text }
        }
    }

    #[inline(always)]
    fn bytes(&self, row: usize) -> &[u8] {
        // SAFETY: a view is length, then 12 bytes, or prefix, buffer and offset.
        unsafe {
            let view = self.views.add(row * 16);
            let field = |i: usize| view.add(4 * i).cast::<u32>().read_unaligned() as usize;
            let len = field(0);
            let data =
                if len <= 12 { view.add(4) } else { (*self.buffers.add(field(2))).add(field(3)) };
            std::slice::from_raw_parts(data, len)
        }
    }
}

impl KeySource for Views {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(text_or_bytes(self.bytes(row), self.text))
    }
}

/// Binary of one width.
pub(super) struct Fixed {
    data: *const u8,
    width: usize,
    rows: usize,
}

// SAFETY: only read, while the array keeps its buffers.
unsafe impl Sync for Fixed {}

impl Fixed {
    pub(super) unsafe fn new(chunk: &Chunk<'_>, width: usize) -> Self {
        // SAFETY: validity, then data, by the specification.
        unsafe { Fixed { data: chunk.buffer(1).add(chunk.first * width), width, rows: chunk.rows } }
    }

    #[inline(always)]
    fn bytes(&self, row: usize) -> &[u8] {
        // SAFETY: row is inside, and a value has `width` bytes.
        unsafe { std::slice::from_raw_parts(self.data.add(row * self.width), self.width) }
    }
}

impl KeySource for Fixed {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<Key<'_>> {
        Some(Key::Bytes(self.bytes(row)))
    }
}
