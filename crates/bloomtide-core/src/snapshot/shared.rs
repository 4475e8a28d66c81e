//! One filter, many processes: a snapshot file mapped into memory.
//!
//! The file is an ordinary snapshot whose cells change in place by atomic ORs, so every process that
//! maps it sees every add at once. While a writer has it, the state word says LIVE and the checksum
//! table is not valid; the last writer to close it writes the checksums and seals it again.
//!
//! Who is last is told by `flock`: every writer holds a shared lock, sealing and unsealing need the
//! exclusive one. The system drops the locks of a killed process, so a
//! crash leaves a LIVE file that opens as before; bits only ever turn on, and a page that reached the
//! disk holds every bit that was in it at that moment, so no key that was flushed can be lost.

use super::checksums::{Running, compare, tail};
use super::file::{directory_of, target_of};
use super::header::{Header, Kind, LIVE, SEALED, STATE_AT};
use super::read::{as_damage, read_header, require_sections};
use super::record::Record;
use super::unfinished::{self, Unfinished};
use super::write::entries_of;
use crate::cells::Words;
use crate::error::{Error, Result};
use crate::filters::{BloomFilter, BloomPlan};
use crate::format::{self, END};
use crate::hash::Hasher;
use crate::system::{self, Guarded};
use memmap2::MmapOptions;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a process may do with a mapped filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Ask only.
    Read,
    /// Ask and add.
    Write,
}

/// The file behind a mapped filter.
#[derive(Debug)]
pub struct SharedFile {
    path: PathBuf,
    /// None once it is closed.
    file: Mutex<Option<File>>,
    access: Access,
    header: Header,
    closed: AtomicBool,
    /// The process that opened it. A forked child has the same lock, not one of its own.
    process: u32,
}

impl SharedFile {
    /// Makes the file for an empty filter, unless there is one. True if this call made it.
    pub fn create(path: &Path, plan: BloomPlan, hasher: Hasher) -> Result<bool> {
        system::require_shared_maps()?;
        let plan = plan.checked()?;
        let header = Header {
            kind: Kind::Bloom,
            sealed: false,
            parameters: Record::of_bloom(&plan, &hasher).encode().to_vec(),
            sections: vec![plan.bytes()],
        };
        let failed = |operation| move |source| Error::storage(path, operation, source);
        let target = &*target_of(path).map_err(failed("create"))?;
        let made = (|| {
            let mut unfinished = Unfinished::create(target)?;
            let made = write_new(&mut unfinished.file, &header).and_then(|()| {
                // A link fails if the name is taken: of two processes that create at once, one wins and
                // the other opens a file that is whole.
                match fs::hard_link(&unfinished.path, target) {
                    Ok(()) => Ok(true),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                    Err(e) => Err(e),
                }
            });
            let _ = fs::remove_file(&unfinished.path);
            made
        })()
        .map_err(failed("create"));
        if matches!(made, Ok(true)) {
            system::sync_directory(directory_of(target))
                .map_err(failed("sync the directory of"))?;
        }
        made
    }

    /// Maps the filter in `path`. A sealed file is checked against its checksums first.
    pub fn open(path: &Path, access: Access) -> Result<BloomFilter> {
        if access == Access::Write {
            system::require_shared_maps()?;
        }
        let failed = |source| Error::storage(path, "open", source);
        if access == Access::Write {
            unfinished::remove_leftovers(&target_of(path).map_err(failed)?);
        }
        loop {
            let mut options = OpenOptions::new();
            let file =
                options.read(true).write(access == Access::Write).open(path).map_err(failed)?;
            if file.metadata().map_err(failed)?.is_dir() {
                return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
            }
            if access == Access::Read {
                return open_for_reading(path, file);
            }
            // Waits for nobody but a process that is just sealing, unsealing or replacing it.
            file.lock_shared().map_err(failed)?;
            // While we waited, somebody may have put a new file in its place, and what went into the
            // old one would be lost.
            if !system::is_current(&file, path) {
                continue;
            }
            let (header, words) = map(path, &file, access)?;
            if !header.sealed {
                return build(path, file, access, header, words);
            }
            // Only who is alone may unseal. Of two that try, the other sees a LIVE file next time.
            match file.try_lock() {
                Ok(()) => unseal(path, &file)?,
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the filter may be added to.
    pub fn writable(&self) -> bool {
        self.access == Access::Write && !self.is_closed()
    }

    /// Whether `close` was called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns when every add made before the call survives a crash.
    pub(crate) fn flush(&self, words: &Words) -> Result<()> {
        let failed = |source| Error::storage(&self.path, "flush", source);
        match words.file_map() {
            Some(map) if self.access == Access::Write => {
                map.flush().map_err(failed)?;
                map.require_whole()
            }
            _ => Ok(()),
        }
    }

    /// Flushes, seals if this is the last writer, and gives locks, map and file back. A second call does nothing.
    pub(crate) fn close(&self, words: &Words) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A child's close must neither seal what its parent still writes nor drop the parent's lock.
        let is_writer = self.access == Access::Write && self.process == std::process::id();
        let written = match &file {
            Some(file) if is_writer => self.finish(words, file),
            _ => Ok(()),
        };
        if let Some(map) = words.file_map() {
            map.give_back();
        }
        written
    }

    /// Flushes, seals if this is the last writer, and gives the lock back.
    fn finish(&self, words: &Words, file: &File) -> Result<()> {
        let failed = |source| Error::storage(&self.path, "close", source);
        let sealed = self.flush(words).and_then(|()| match file.try_lock() {
            Ok(()) => self.seal(words),
            // Another writer goes on; it will seal.
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        });
        let unlocked = file.unlock().map_err(failed);
        sealed.and(unlocked)
    }

    /// Writes the checksums, and only when they are durable says that they are valid.
    fn seal(&self, words: &Words) -> Result<()> {
        let failed = |source| Error::storage(&self.path, "seal", source);
        let entries = entries_of(words, Running::new(&self.header));
        let map = words.file_map().ok_or(Error::Unsealed)?;
        // Checksums of zeros in the place of lost cells would be right.
        map.require_whole()?;
        write_at(map, tail_at(&self.header) as usize, &tail(&entries));
        map.flush().map_err(failed)?;
        map.require_whole()?;
        set_state(words, SEALED)?;
        map.flush().map_err(failed)
    }
}

impl BloomFilter {
    /// Returns when every add made before the call survives a crash. Nothing to do in memory.
    pub fn flush(&self) -> Result<()> {
        self.file().map_or(Ok(()), |file| file.flush(self.words()))
    }

    /// Refuses a mapped file that was cut before this call. Until then answers may rest on zeros that were read
    /// instead of cells, so whoever asks a mapped filter calls this afterwards. Nothing to do in memory.
    #[inline(always)]
    pub fn require_whole(&self) -> Result<()> {
        self.words().require_whole()
    }

    /// Gives a mapped file back; see `SharedFile`. Nothing to do in memory.
    pub fn close(&self) -> Result<()> {
        self.file().map_or(Ok(()), |file| file.close(self.words()))
    }
}

impl Drop for BloomFilter {
    fn drop(&mut self) {
        // A destructor cannot report; whoever wants to know calls `close`.
        let _ = self.close();
    }
}

/// An empty filter: its header, cells without bits, and the end.
fn write_new(file: &mut File, header: &Header) -> io::Result<()> {
    system::reserve(file, header.file_len())?;
    file.write_all(&header.encode())?;
    file.seek(SeekFrom::End(-(END.len() as i64)))?;
    file.write_all(&END)?;
    file.sync_all()
}

/// A reader holds no lock. If a writer comes between looking and checking, the checksums stop being
/// valid under us: then the state says LIVE, and there is nothing to check.
fn open_for_reading(path: &Path, file: File) -> Result<BloomFilter> {
    loop {
        let (header, words) = map(path, &file, Access::Read)?;
        let checked = if header.sealed { verify(&file, &header, &words, path) } else { Ok(()) };
        if checked.is_ok() || (state(&words)? == SEALED && header.sealed) {
            checked?;
            return build(path, file, Access::Read, header, words);
        }
    }
}

/// Checks a sealed file and marks it LIVE. The caller holds the exclusive lock, but another process may
/// have had it since the caller looked.
fn unseal(path: &Path, file: &File) -> Result<()> {
    let (header, words) = map(path, file, Access::Write)?;
    if header.sealed {
        verify(file, &header, &words, path)?;
        set_state(&words, LIVE)?;
        // Durable before the first add: new cells under a SEALED mark would be refused as damage.
        let map = words.file_map().ok_or(Error::Unsealed)?;
        map.flush_range(0, header.len()).map_err(|e| Error::storage(path, "open", e))?;
    }
    Ok(())
}

fn map(path: &Path, file: &File, access: Access) -> Result<(Header, Words)> {
    let failed = |source| Error::storage(path, "map", source);
    let len = file.metadata().map_err(failed)?.len();
    let mut input = file;
    input.seek(SeekFrom::Start(0)).map_err(failed)?;
    let header = read_header(&mut input, len, Some(Kind::Bloom), &failed)?;
    let (plan, _) = Record::decode(&header.parameters)?.bloom().map_err(as_damage)?;
    require_sections(&header, &[plan.bytes()])?;
    let mut end = [0; END.len()];
    input.seek(SeekFrom::End(-(END.len() as i64))).map_err(failed)?;
    input.read_exact(&mut end).map_err(failed)?;
    format::require_end(&end)?;
    let mut options = MmapOptions::new();
    options.len(len as usize);
    let map = match access {
        Access::Write => options.map_raw(file),
        Access::Read => options.map_raw_read_only(file),
    };
    let map = map.and_then(|map| Guarded::new(map, path)).map_err(failed)?;
    let words = Words::mapped(map, header.len(), plan.bytes() as usize)?;
    Ok((header, words))
}

fn build(
    path: &Path,
    file: File,
    access: Access,
    header: Header,
    words: Words,
) -> Result<BloomFilter> {
    let (plan, hasher) = Record::decode(&header.parameters)?.bloom()?;
    let shared = SharedFile {
        path: path.to_owned(),
        file: Mutex::new(Some(file)),
        access,
        header,
        closed: AtomicBool::new(false),
        process: std::process::id(),
    };
    let filter = BloomFilter::over(plan, hasher, words, Some(Box::new(shared)));
    filter.validate().map_err(as_damage)?;
    Ok(filter)
}

fn verify(file: &File, header: &Header, words: &Words, path: &Path) -> Result<()> {
    let failed = |source| Error::storage(path, "read", source);
    let mut stored = vec![0; header.tail_len() as usize];
    let mut input = file;
    input.seek(SeekFrom::Start(tail_at(header))).map_err(failed)?;
    input.read_exact(&mut stored).map_err(failed)?;
    compare(header, &entries_of(words, Running::new(header)), &stored)
}

/// Where the checksum table starts.
fn tail_at(header: &Header) -> u64 {
    header.file_len() - header.tail_len()
}

fn state_word(words: &Words) -> Result<&AtomicU64> {
    let map = words.file_map().ok_or(Error::Unsealed)?;
    // SAFETY: the header is mapped and longer than this, and the word is eight-byte aligned.
    Ok(unsafe { &*map.as_mut_ptr().add(STATE_AT).cast::<AtomicU64>() })
}

fn state(words: &Words) -> Result<[u8; 8]> {
    Ok(state_word(words)?.load(Ordering::Acquire).to_ne_bytes())
}

fn set_state(words: &Words, state: [u8; 8]) -> Result<()> {
    state_word(words)?.store(u64::from_ne_bytes(state), Ordering::Release);
    Ok(())
}

fn write_at(map: &Guarded, at: usize, bytes: &[u8]) {
    debug_assert!(at + bytes.len() <= map.len());
    // SAFETY: the table lies inside the map, and only the holder of the exclusive lock writes it.
    unsafe { map.as_mut_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}
