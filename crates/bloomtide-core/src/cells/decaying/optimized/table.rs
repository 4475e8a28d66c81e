//! Tables: pieces of memory that blocks take when they need them and give back. A link is the address of one,
//! with the form of the block in its two low bits.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::sync::atomic::{AtomicU64, Ordering};

const FORM: usize = 3;
/// What an allocator keeps of its own for each piece.
const EACH: usize = 8;

/// Bytes of all tables.
#[derive(Debug, Default)]
pub(super) struct Pool(AtomicU64);

impl Pool {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Only the one writer changes it, so two steps are as good as one.
    fn count(&self, bytes: u64) {
        self.0.store(self.bytes().wrapping_add(bytes), Ordering::Relaxed);
    }
}

/// Where the table of a block is, if it has one, and the block's form.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Link(*mut u8);

impl Link {
    /// No table.
    #[inline(always)]
    pub(super) fn none() -> Self {
        Link(std::ptr::null_mut())
    }

    #[inline(always)]
    pub(super) fn form(self) -> usize {
        self.0.addr() & FORM
    }

    #[inline(always)]
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(super) fn table(self) -> *mut u8 {
        self.0.map_addr(|address| address & !FORM)
    }
}

fn layout(size: usize) -> Layout {
    // SAFETY: 8 is a power of two, and no table is larger than 512 bytes.
    unsafe { Layout::from_size_align_unchecked(size, 8) }
}

/// A new table.
pub(super) fn take(size: usize, form: usize, pool: &Pool) -> Link {
    debug_assert!((1..=512).contains(&size) && form <= FORM);
    // SAFETY: the size is not zero.
    let table = unsafe { alloc(layout(size)) };
    if table.is_null() {
        handle_alloc_error(layout(size));
    }
    pool.count(bytes_of(size));
    Link(table.map_addr(|address| address | form))
}

/// Gives a table back; nothing may lead to it any more.
pub(super) fn give_back(link: Link, size: usize, pool: &Pool) {
    // SAFETY: it came from `take` with the same size.
    unsafe { dealloc(link.table(), layout(size)) };
    pool.count(bytes_of(size).wrapping_neg());
}

/// Memory of tables of that size, in bytes.
pub(super) fn bytes_of(size: usize) -> u64 {
    if size == 0 { 0 } else { (size + EACH) as u64 }
}
