//! The version of a partition: lets readers look while one writer changes more than one word.
//!
//!   bit 0        a writer is in the middle of a change
//!   bits 1..62   how many changes ended
//!   bit 63       locked: somebody rebuilds the partition, other writers must wait for it
//!
//! A reader looks at the cells between two looks at the version and tries again if it moved (a
//! sequence lock). Changes are a few stores, so a reader repeats itself for nanoseconds; a rebuild is
//! prepared aside and only its last step, exchanging a pointer, is such a change: readers do not
//! wait for rebuilds. Cells are relaxed atomics, so a look that is thrown away is harmless.

use super::gate::pause;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const CHANGING: u64 = 1;
const LOCKED: u64 = 1 << 63;

/// The version of one partition.
#[derive(Debug, Default)]
pub struct Version(AtomicU64);

/// A change under way; dropping it ends the change.
#[derive(Debug)]
pub struct Changing<'a> {
    version: &'a Version,
    before: u64,
}

impl Version {
    /// What `look` sees when no change was going on.
    #[inline(always)]
    pub fn read<T>(&self, look: impl Fn() -> T) -> T {
        loop {
            let before = self.begin();
            let seen = look();
            if self.held(before) {
                return seen;
            }
        }
    }

    /// Begins a look, when no change is going on; `held` ends it.
    #[inline(always)]
    pub fn begin(&self) -> u64 {
        let before = self.0.load(Ordering::Acquire) & !LOCKED;
        if before & CHANGING == 0 { before } else { self.wait() }
    }

    #[cold]
    fn wait(&self) -> u64 {
        let mut spins = 0u32;
        loop {
            let before = self.0.load(Ordering::Acquire) & !LOCKED;
            if before & CHANGING == 0 {
                return before;
            }
            pause(&mut spins);
        }
    }

    /// Whether what was seen since `begin` was whole.
    #[inline(always)]
    pub fn held(&self, before: u64) -> bool {
        // The loads of the look must not move below the second look at the version.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) & !LOCKED == before
    }

    /// Begins a change that readers see whole or not at all. The caller is the only writer.
    #[inline(always)]
    pub fn write(&self) -> Changing<'_> {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before | CHANGING, Ordering::Relaxed);
        // The stores of the change must not move above this one.
        fence(Ordering::Release);
        Changing { version: self, before }
    }

    /// Whether somebody rebuilds the partition.
    #[inline(always)]
    pub fn is_locked(&self) -> bool {
        self.0.load(Ordering::Acquire) & LOCKED != 0
    }

    /// Locks the partition for a rebuild. The caller is the only writer, and found it not locked.
    pub fn lock(&self) {
        self.0.fetch_or(LOCKED, Ordering::Acquire);
    }

    /// Ends the rebuild.
    pub fn unlock(&self) {
        self.0.fetch_and(!LOCKED, Ordering::Release);
    }
}

impl Drop for Changing<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let ended = (self.before & !LOCKED).wrapping_add(2) & !LOCKED;
        self.version.0.store(ended | (self.before & LOCKED), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_never_sees_half_a_change() {
        let version = Version::default();
        let pair = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 1..200_000 {
                    let _changing = version.write();
                    pair.iter().for_each(|half| half.store(i, Ordering::Relaxed));
                }
            });
            for _ in 0..200_000 {
                let [a, b] = version.read(|| [0, 1].map(|i| pair[i].load(Ordering::Relaxed)));
                assert_eq!(a, b);
            }
        });
    }

    #[test]
    fn a_lock_stays_through_changes_and_does_not_stop_readers() {
        let version = Version::default();
        version.lock();
        drop(version.write());
        assert!(version.is_locked());
        assert_eq!(version.read(|| 5), 5);
        version.unlock();
        assert!(!version.is_locked());
    }
}
