//! Who may replace a file that others may have mapped.
//!
//! A process that maps a file for writing holds its shared `flock`. If the file were replaced under it, what it adds
//! and flushes would go to a file without a name. So a save takes the exclusive lock before it renames, and refuses
//! while the file is LIVE and locked. A file that is LIVE without a lock was left by a crash, and may be replaced.
//!
//! A program that loads a file to change and save it (`bloomtide add`) holds the exclusive lock all the time. Its own
//! save must not wait for it, so it says which file it is: see `Replacing`.

use super::header::{LIVE, STATE_AT};
use crate::error::{Error, Result};
use crate::system::{self, FileId};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often, and how long each time, a save waits for a process that is just opening, closing or replacing the file.
const PATIENCE: (u32, Duration) = (500, Duration::from_millis(10));

/// Files of which this process holds the exclusive lock.
static OURS: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

/// This process holds the exclusive lock of a file, and its own saves may replace it.
#[derive(Debug)]
pub struct Replacing(FileId);

impl Replacing {
    /// For the holder of the lock of the file that `path` names now.
    pub fn new(path: &Path) -> Result<Self> {
        let id = File::open(path).and_then(|file| system::file_id(&file));
        let id = id.map_err(|source| Error::storage(path, "open", source))?;
        OURS.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        Ok(Replacing(id))
    }
}

impl Drop for Replacing {
    fn drop(&mut self) {
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = ours.iter().position(|id| *id == self.0) {
            ours.swap_remove(at);
        }
    }
}

fn is_ours(file: &File) -> bool {
    let id = system::file_id(file);
    id.is_ok_and(|id| OURS.lock().unwrap_or_else(PoisonError::into_inner).contains(&id))
}

/// An exclusive lock. A child that was forked meanwhile has a copy of it, so it is given back and not just closed.
#[derive(Debug)]
pub(super) struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // Nobody can be told; the system drops the lock with the last copy.
        let _ = self.0.unlock();
    }
}

/// Keeps those away who would map `path`, until the answer is dropped. Refuses a file that is open for writing.
pub(super) fn hold(path: &Path) -> Result<Option<Held>> {
    for _ in 0..PATIENCE.0 {
        // What is not there needs no protection. What cannot be opened, nobody with our rights has mapped.
        let Ok(Some(file)) = system::open_regular(path) else { return Ok(None) };
        match file.try_lock() {
            Ok(()) if system::is_current(&file, path) => return Ok(Some(Held(file))),
            // Replaced meanwhile.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if is_ours(&file) => return Ok(None),
            Err(TryLockError::WouldBlock) if is_live(&file) => {
                return Err(Error::InUse { path: path.to_owned(), mapped: true });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PATIENCE.1),
            // A file system without locks: nothing there is mapped for writing.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
    Err(Error::InUse { path: path.to_owned(), mapped: false })
}

fn is_live(mut file: &File) -> bool {
    let mut state = [0; LIVE.len()];
    let read =
        file.seek(SeekFrom::Start(STATE_AT as u64)).and_then(|_| file.read_exact(&mut state));
    read.is_ok() && state == LIVE
}
