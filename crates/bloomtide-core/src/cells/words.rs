//! The words that hold all cells: 64-byte aligned, zeroed, in memory or in a mapped file.
//!
//! # Invariants
//! I1  The base address is a multiple of 64, and the length is a whole number of lines, so that a
//!     block of the blocked layout is one cache line.
//! I2  Words are only ever read and written as relaxed atomics (or by vector moves that the hardware
//!     treats as such), so any thread may read while another writes.
//!
//! From 2 MiB up the memory starts on a huge-page boundary and asks for huge pages: random probes
//! of a large filter are bound by TLB misses otherwise (three to four times slower).

use crate::batch::prefetch;
use crate::error::{Error, Result};
use crate::system::{self, Guarded};
use memmap2::{MmapMut, MmapOptions};
use std::fmt;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in one line.
pub const LINE_BYTES: usize = 64;
/// Words in one line.
pub const LINE_WORDS: usize = LINE_BYTES / 8;
const HUGE_PAGE: usize = 2 << 20;

#[derive(Default)]
#[repr(align(64))]
struct Line(
    #[allow(dead_code, reason = "reached through the base pointer")] [AtomicU64; LINE_WORDS],
);

#[allow(dead_code, reason = "the backing is kept for its Drop")]
enum Backing {
    Lines(Vec<Line>),
    Pages(MmapMut),
    /// Apart, since a partition has several runs of words and hardly any of them is a file.
    File(Box<Guarded>),
}

/// A run of atomic words.
pub struct Words {
    base: NonNull<AtomicU64>,
    len: usize,
    backing: Backing,
}

// SAFETY: the words are atomics; the backing is owned and never handed out.
unsafe impl Send for Words {}
// SAFETY: as above, shared access goes through atomics only.
unsafe impl Sync for Words {}

impl Words {
    /// Zeroed words for at least `bits` bits, rounded up to whole lines.
    pub fn zeroed(bits: u64) -> Result<Self> {
        let bytes = bytes_for(bits);
        let limit = physical_memory();
        let too_large = || Error::Capacity { needed: bytes, limit };
        if bytes > limit {
            return Err(too_large());
        }
        let size = usize::try_from(bytes).map_err(|_| too_large())?;
        if size < HUGE_PAGE {
            let mut lines = Vec::new();
            lines.try_reserve_exact(size / LINE_BYTES).map_err(|_| too_large())?;
            lines.resize_with(size / LINE_BYTES, Line::default);
            let base = NonNull::from(lines.as_mut_slice()).cast();
            return Ok(Words { base, len: size / 8, backing: Backing::Lines(lines) });
        }
        // The spare 2 MiB are address space only: untouched pages cost no memory.
        let mut pages =
            MmapOptions::new().len(size + HUGE_PAGE).map_anon().map_err(|_| too_large())?;
        let skip = pages.as_ptr().align_offset(HUGE_PAGE);
        system::advise_huge_pages(&pages, skip, size);
        let start = &mut pages[skip..skip + size];
        let base = NonNull::from(start).cast();
        Ok(Words { base, len: size / 8, backing: Backing::Pages(pages) })
    }

    /// The `bytes` bytes from `offset` of a mapped file, both multiples of the line.
    pub(crate) fn mapped(map: Guarded, offset: usize, bytes: usize) -> Result<Self> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= map.len());
        if !inside || !offset.is_multiple_of(LINE_BYTES) || !bytes.is_multiple_of(LINE_BYTES) {
            return Err(Error::Truncated {
                expected: (offset as u64).saturating_add(bytes as u64),
                got: map.len() as u64,
            });
        }
        // SAFETY: offset is inside the map, whose address is not null.
        let base = unsafe { NonNull::new_unchecked(map.as_mut_ptr().add(offset)) }.cast();
        Ok(Words { base, len: bytes / 8, backing: Backing::File(Box::new(map)) })
    }

    /// The mapped file behind the words, if it is one.
    pub(crate) fn file_map(&self) -> Option<&Guarded> {
        match &self.backing {
            Backing::File(map) => Some(map),
            _ => None,
        }
    }

    /// Refuses words of a mapped file that was cut before this call: then zeros were read instead of them.
    #[inline(always)]
    pub(crate) fn require_whole(&self) -> Result<()> {
        match &self.backing {
            Backing::File(map) => map.require_whole(),
            _ => Ok(()),
        }
    }

    /// The words as atomics.
    #[inline(always)]
    pub fn atomics(&self) -> &[AtomicU64] {
        // SAFETY: base points to len initialised words that live as long as self.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// The address of the first word, for prefetching and vector moves.
    #[inline(always)]
    pub fn base(&self) -> *mut u64 {
        self.base.as_ptr().cast()
    }

    /// Memory of the words in bytes.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.len as u64 * 8
    }

    /// Asks the processor for the line that holds `word`.
    #[inline(always)]
    pub fn prefetch(&self, word: usize) {
        debug_assert!(word < self.len);
        prefetch(self.base().wrapping_add(word));
    }

    /// Number of set bits.
    pub fn count_ones(&self) -> u64 {
        self.atomics().iter().map(|w| u64::from(w.load(Ordering::Relaxed).count_ones())).sum()
    }

    /// Whether no bit from `bit` on is set.
    pub fn is_zero_from(&self, bit: u64) -> bool {
        let rest = self.atomics().iter().enumerate().skip((bit / 64) as usize);
        rest.into_iter().all(|(i, word)| {
            let inside = bit.saturating_sub(i as u64 * 64);
            word.load(Ordering::Relaxed) >> inside == 0
        })
    }

    /// Copies words `start..start + out.len() / 8` as little-endian bytes.
    pub fn copy_to(&self, start: usize, out: &mut [u8]) {
        let words = &self.atomics()[start..start + out.len() / 8];
        for (word, bytes) in words.iter().zip(out.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
    }

    /// Overwrites words from `start` with little-endian bytes. Only for words nobody else sees yet.
    pub fn copy_from(&self, start: usize, bytes: &[u8]) {
        let words = &self.atomics()[start..start + bytes.len() / 8];
        for (word, chunk) in words.iter().zip(bytes.chunks_exact(8)) {
            let mut value = [0; 8];
            value.copy_from_slice(chunk);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
    }

    /// A private copy in memory.
    pub fn to_owned(&self) -> Result<Self> {
        let copy = Words::zeroed(self.len as u64 * 64)?;
        copy.take_over(self);
        Ok(copy)
    }

    /// The same words as another's of the same length. Only for words nobody else sees yet.
    pub fn take_over(&self, other: &Words) {
        for (to, from) in self.atomics().iter().zip(other.atomics()) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Whether all words are equal now.
    pub fn same_as(&self, other: &Words) -> bool {
        let pairs = self.atomics().iter().zip(other.atomics());
        self.len == other.len
            && pairs
                .into_iter()
                .all(|(a, b)| a.load(Ordering::Relaxed) == b.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({})", self.len)
    }
}

/// Bytes of the whole lines that hold `bits` bits; at least one line.
pub fn bytes_for(bits: u64) -> u64 {
    bits.div_ceil(LINE_BYTES as u64 * 8).max(1).saturating_mul(LINE_BYTES as u64)
}

/// This machine's memory. A filter beyond it would be killed while being filled, not refused.
pub fn physical_memory() -> u64 {
    // Asking the system takes as long as making a small filter.
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| system::physical_memory().unwrap_or(isize::MAX as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_memory_is_aligned_zeroed_and_whole_lines() {
        for bits in [1u64, 511, 512, 513, 8 * HUGE_PAGE as u64, 8 * HUGE_PAGE as u64 * 3 + 1] {
            let words = Words::zeroed(bits).map_err(|e| e.to_string());
            let words = words.unwrap_or_else(|e| unreachable!("{e}"));
            assert_eq!(words.base() as usize % LINE_BYTES, 0);
            assert_eq!(words.bytes() % LINE_BYTES as u64, 0);
            assert!(words.bytes() * 8 >= bits && words.bytes() * 8 < bits + 512);
            assert_eq!(words.count_ones(), 0);
        }
    }

    #[test]
    fn memory_beyond_the_machine_is_refused_before_it_is_touched() {
        assert!(matches!(Words::zeroed(1 << 62), Err(Error::Capacity { .. })));
    }

    #[test]
    fn bytes_survive_a_round_trip() {
        let words = Words::zeroed(1024).unwrap_or_else(|e| unreachable!("{e}"));
        let bytes: Vec<u8> = (0..128).collect();
        words.copy_from(0, &bytes);
        let mut back = vec![0; 128];
        words.copy_to(0, &mut back);
        assert_eq!(bytes, back);
    }
}
