//! Whether anybody writes to a filter without holding the interpreter.
//!
//! With a global interpreter lock, one `add` call cannot meet another one: the lock orders them. It
//! can only meet a batch that let the lock go. Batches register here while they still hold it, so
//! an `add` that sees nobody registered is alone and need not pass the filter's gate. Without a global
//! lock everybody passes the gate.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A batch that may write while others hold the interpreter.
pub(crate) struct Registered<'a>(&'a AtomicUsize);

impl<'a> Registered<'a> {
    pub(crate) fn new(writers: &'a AtomicUsize) -> Self {
        writers.fetch_add(1, Ordering::SeqCst);
        Registered(writers)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// True if the caller, who holds the interpreter, is the only writer until it lets go.
#[inline(always)]
pub(crate) fn alone(writers: &AtomicUsize) -> bool {
    cfg!(not(Py_GIL_DISABLED)) && writers.load(Ordering::Acquire) == 0
}
