//! Files that are being written: how they are called, and how one that a killed process left is told from one in use.
//!
//! While `seen.bloom` is written, it is `.seen.bloom.0.unfinished` beside it, or has the next number if that is taken.
//! Its writer holds the exclusive `flock` of it until it has its real name. The system drops the lock of a process
//! that dies, so an unfinished file without one is a leftover, whoever else runs; whoever writes or opens the same
//! path next removes it. Where there is no `flock`, and where all numbers are taken, a file has a name of its own, and
//! stays if its writer is killed.

use crate::system;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many may write one path at once under names that are known.
const NUMBERS: u64 = 4;

/// An unfinished file and its lock.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A child that was forked meanwhile has a copy of the lock.
        let _ = self.file.unlock();
    }
}

fn name(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{number}.unfinished"))
}

impl Unfinished {
    /// A new, empty file beside `path`. Leftovers are removed.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        remove_leftovers(path);
        for number in 0..NUMBERS {
            match Self::take(name(path, number)) {
                Ok(Some(made)) => return Ok(made),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => break,
                Err(error) => return Err(error),
            }
        }
        Self::unique(path)
    }

    /// The file of that name, unless there is one; `Unsupported` if it cannot be locked.
    fn take(path: PathBuf) -> io::Result<Option<Self>> {
        if !system::HAS_FLOCK {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            // Before we had the lock, the file looked like a leftover.
            Ok(()) if system::is_current(&file, &path) => Ok(Some(Unfinished { path, file })),
            Ok(()) | Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(_)) => {
                let _ = fs::remove_file(&path);
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    /// A file that no other process ever names.
    fn unique(path: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = name(path, u64::from(std::process::id()) << 32 | number);
        let file = OpenOptions::new().write(true).create_new(true).open(&name)?;
        Ok(Unfinished { path: name, file })
    }
}

/// Removes what killed processes left of `path`, and nothing that is in use or not ours.
pub(super) fn remove_leftovers(path: &Path) {
    for number in 0..NUMBERS {
        let name = name(path, number);
        let Ok(Some(file)) = system::open_regular(&name) else { continue };
        // A new shared file has both names for a moment; then the other one is enough.
        let is_done = system::is_current(&file, path);
        let is_left = system::is_own_and_alone(&file) && file.try_lock().is_ok();
        if (is_done || is_left) && system::is_current(&file, &name) {
            // Only untidy if it stays.
            let _ = fs::remove_file(&name);
        }
    }
}
