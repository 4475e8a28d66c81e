//! The gate: lets one writer at a time change the cells of a filter in memory; readers never wait.
//!
//! Why not an atomic OR per word? An add touches up to eight words of one line, and a locked
//! read-modify-write costs about twenty cycles even without a rival: entering the gate once and then
//! using plain loads and stores is several times cheaper, and a batch enters once per group of keys.
//! What is inside the gate is short (a group is 32 keys, below a microsecond), so waiting spins first.
//! Files shared by processes do not use it: a killed process must not leave a gate shut.

use std::sync::atomic::{AtomicBool, Ordering};

/// A tiny lock around writers.
#[derive(Debug, Default)]
pub struct Gate(AtomicBool);

/// Proof of being the only writer; leaving is dropping it.
#[derive(Debug)]
pub struct Entered<'a>(&'a Gate);

impl Gate {
    /// Waits until no other writer is inside.
    #[inline(always)]
    pub fn enter(&self) -> Entered<'_> {
        if self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        Entered(self)
    }

    #[cold]
    fn wait(&self) {
        let mut spins = 0u32;
        loop {
            while self.0.load(Ordering::Relaxed) {
                pause(&mut spins);
            }
            let won =
                self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if won {
                return;
            }
        }
    }
}

/// Waits for a thread that is about to go on, unless it lost the processor: then it gets this one.
#[inline(always)]
pub(super) fn pause(spins: &mut u32) {
    *spins += 1;
    if spins.is_multiple_of(128) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
