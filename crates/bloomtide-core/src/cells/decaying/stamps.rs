//! A word for each block of 128 cells: the epoch it was last brought up to, and its state.
//!
//!   bits 0..46    the stamp: the epoch modulo 2^46, which no clock reaches: 200,000 years of tenths of a second
//!   bit 46        full: a cell of the block once reached its largest value, so it may be too small
//!   bit 47        a writer is in the middle of a change
//!   bits 48..64   how many changes ended: a word comes again only after 65,536 changes to one stamp
//!
//! A reader needs the stamp and the cells of one moment, or it would fade what has faded already. It
//! looks at both between two looks at the word, and again if the word moved (a sequence lock, as in
//! `cells/version.rs`). Raising a cell that is one word needs no such change: each cell is right by
//! itself before and after.
//!
//! Files keep 30 bits of a stamp, which say all of it together with the filter's time: a block that is older
//! is written as it is by then (`filters/decaying/level.rs`). So no block needs to be touched in time.

use crate::cells::Words;
use crate::cells::gate::pause;
use crate::error::Result;
use std::sync::atomic::{Ordering, fence};

const STAMP: u64 = (1 << 46) - 1;
const FULL: u64 = 1 << 46;
const CHANGING: u64 = 1 << 47;
const CHANGE: u64 = 1 << 48;
/// What files keep: the low bits of a stamp, and whether the block is full.
const KEPT: u64 = (1 << 30) - 1;
const KEPT_FULL: u32 = 1 << 30;

/// Ages that files can keep reach up to this.
pub const OLDEST: u64 = KEPT;

/// The words of all blocks.
#[derive(Debug)]
pub struct Stamps {
    words: Words,
    blocks: u64,
}

/// A change under way; dropping it ends the change.
#[derive(Debug)]
pub struct Changing<'a> {
    stamps: &'a Stamps,
    block: u64,
    after: u64,
}

impl Stamps {
    /// Stamps of empty blocks.
    pub fn zeroed(blocks: u64) -> Result<Self> {
        Ok(Stamps { words: Words::zeroed(blocks.saturating_mul(64))?, blocks })
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.words.bytes()
    }

    #[inline(always)]
    fn word(&self, block: u64) -> &std::sync::atomic::AtomicU64 {
        debug_assert!(block < self.blocks);
        // SAFETY: there is a word for each block, and callers divide a cell that exists.
        unsafe { self.words.atomics().get_unchecked(block as usize) }
    }

    /// Asks the processor for the block's line.
    #[inline(always)]
    pub fn prefetch(&self, block: u64) {
        self.words.prefetch(block as usize);
    }

    /// How many epochs before `now` the block was brought up to date.
    #[inline(always)]
    pub fn age(&self, block: u64, now: i64) -> u64 {
        age_of(self.word(block).load(Ordering::Relaxed), now)
    }

    /// Whether a cell of the block once was full.
    pub fn is_full(&self, block: u64) -> bool {
        self.word(block).load(Ordering::Relaxed) & FULL != 0
    }

    /// Says that a cell of the block is full. The caller is the only writer.
    #[cold]
    pub fn set_full(&self, block: u64) {
        let word = self.word(block);
        word.store(word.load(Ordering::Relaxed) | FULL, Ordering::Relaxed);
    }

    /// Begins a change of the block after which its stamp is `now`. The caller is the only writer.
    #[inline(always)]
    pub fn change(&self, block: u64, now: i64) -> Changing<'_> {
        let word = self.word(block);
        let before = word.load(Ordering::Relaxed);
        word.store(before | CHANGING, Ordering::Relaxed);
        // The stores of the change must not move above this one.
        fence(Ordering::Release);
        let after = (before & !STAMP).wrapping_add(CHANGE) | (now as u64 & STAMP);
        Changing { stamps: self, block, after }
    }

    /// What `look` sees of the block in one moment, given its age and the filter's time. That time is
    /// asked after the stamp was seen, so it is never earlier than the stamp.
    #[inline(always)]
    pub fn read<T>(&self, block: u64, now: impl Fn() -> i64, look: impl Fn(u64, i64) -> T) -> T {
        let mut spins = 0u32;
        loop {
            let before = self.word(block).load(Ordering::Acquire);
            if before & CHANGING == 0 {
                let now = now();
                let seen = look(age_of(before, now), now);
                // The loads of `look` must not move below the second look at the word.
                fence(Ordering::Acquire);
                // A cell that became full meanwhile is no other moment.
                if (self.word(block).load(Ordering::Relaxed) ^ before) & !FULL == 0 {
                    return seen;
                }
            }
            pause(&mut spins);
        }
    }

    /// An epoch and whether the block is full, as files keep them: 31 bits.
    pub fn stored(&self, block: u64, epoch: i64) -> u32 {
        let full = if self.is_full(block) { KEPT_FULL } else { 0 };
        (epoch as u64 & KEPT) as u32 | full
    }

    /// Takes over what a file kept, at most `OLDEST` epochs before `now`. Only while nobody else sees the block.
    pub fn restore(&self, block: u64, stored: u32, now: i64) {
        let age = (now as u64).wrapping_sub(u64::from(stored)) & KEPT;
        let full = if stored & KEPT_FULL == 0 { 0 } else { FULL };
        let stamp = (now as u64).wrapping_sub(age) & STAMP;
        self.word(block).store(stamp | full, Ordering::Relaxed);
    }

    /// The same stamps as another's. Only while nobody else sees these.
    pub fn take_over(&self, other: &Stamps) {
        for block in 0..self.blocks {
            let word = other.word(block).load(Ordering::Relaxed);
            self.word(block).store(word & (STAMP | FULL), Ordering::Relaxed);
        }
    }

    /// Forgets stamps and full blocks. The caller is the only writer.
    pub fn clear(&self) {
        for word in self.words.atomics() {
            let before = word.load(Ordering::Relaxed);
            word.store((before & !(STAMP | FULL)).wrapping_add(CHANGE), Ordering::Release);
        }
    }
}

#[inline(always)]
fn age_of(word: u64, now: i64) -> u64 {
    // Two's complement, so that the low bits of a difference are right for negative epochs too.
    (now as u64).wrapping_sub(word) & STAMP
}

impl Drop for Changing<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // What became full during the change stays so.
        let word = self.stamps.word(self.block);
        let full = word.load(Ordering::Relaxed) & FULL;
        word.store(self.after | full, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_the_distance_to_the_stamp_even_across_zero_and_the_wrap() {
        let stamps = Stamps::zeroed(3).unwrap();
        for (then, now, age) in
            [(0, 0, 0), (5, 9, 4), (-3, 4, 7), ((1 << 46) - 1, (1 << 46) + 1, 2), (-1, -1, 0)]
        {
            drop(stamps.change(1, then));
            assert_eq!(stamps.age(1, now), age, "{then} {now}");
            assert_eq!(stamps.read(1, || now, |age, _| age), age);
        }
    }

    #[test]
    fn a_full_block_stays_full_through_changes_until_it_is_cleared() {
        let stamps = Stamps::zeroed(2).unwrap();
        let change = stamps.change(0, 7);
        stamps.set_full(0);
        drop(change);
        drop(stamps.change(0, 8));
        assert!(stamps.is_full(0) && !stamps.is_full(1));
        let other = Stamps::zeroed(2).unwrap();
        for now in [8, 9, 8 + OLDEST as i64] {
            other.restore(0, stamps.stored(0, 8), now);
            assert!(other.is_full(0) && other.age(0, now) == (now - 8) as u64);
        }
        let copy = Stamps::zeroed(2).unwrap();
        copy.take_over(&stamps);
        assert!(copy.is_full(0) && copy.age(0, 9) == 1);
        stamps.clear();
        assert!(!stamps.is_full(0));
    }

    #[test]
    fn a_reader_never_sees_half_a_change() {
        use std::sync::atomic::AtomicU64;
        let stamps = Stamps::zeroed(1).unwrap();
        let cell = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for epoch in 1..200_000 {
                    let _changing = stamps.change(0, epoch);
                    cell.store(epoch as u64, Ordering::Relaxed);
                }
            });
            for _ in 0..200_000 {
                // The cell holds its own stamp, so cell plus age is the epoch asked for.
                let look = |age, _| age + cell.load(Ordering::Relaxed);
                let sum = stamps.read(0, || 1 << 20, look);
                assert_eq!(sum, 1 << 20);
            }
        });
    }
}
