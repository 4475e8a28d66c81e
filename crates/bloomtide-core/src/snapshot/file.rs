//! Replacing a file so that a crash leaves the old or the new one, nothing else.
//!
//! write an unfinished file beside it -> fsync it -> keep those away who would map the old one -> rename it over the
//! old one -> fsync the directory. `Disk` is the little of a file system this needs, so that tests can fail, shorten
//! and reorder every single step.

use super::lock;
use super::unfinished::Unfinished;
use crate::error::{Error, Result};
use crate::system;
use std::any::Any;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file being written, whose bytes can be made durable.
pub trait DurableWrite: Write {
    /// What it is called until it is done.
    fn path(&self) -> &Path;
    /// Returns when everything written so far survives a crash.
    fn sync(&mut self) -> io::Result<()>;
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DurableWrite for Unfinished {
    fn path(&self) -> &Path {
        &self.path
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// The file operations of an atomic replacement.
pub trait Disk {
    /// Where a path leads: writing through a link must change the file, not replace the link.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// Refuses a file that somebody writes to through a map, and lets nobody begin until the answer is dropped.
    fn hold(&self, path: &Path) -> Result<Box<dyn Any>> {
        let _ = path;
        Ok(Box::new(()))
    }
    /// A new, empty file beside `path`, with its permissions if there is one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DurableWrite>>;
    /// Gives `from` the name `to`, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        target_of(path)
    }

    fn hold(&self, path: &Path) -> Result<Box<dyn Any>> {
        Ok(Box::new(lock::hold(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DurableWrite>> {
        let made = Unfinished::create(path)?;
        if let Ok(old) = fs::metadata(path) {
            made.file.set_permissions(old.permissions())?;
        }
        Ok(Box::new(made))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        system::sync_directory(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// How many links may lead from one to the next, as on Linux.
const LINKS: usize = 40;

/// The file that a path names: what its symbolic links lead to, be it there or not.
pub(super) fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        // An absolute target takes the place of the whole path.
        path = directory_of(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("its symbolic links lead in a circle"))
}

/// Refuses to replace a pipe, a device, a socket or a directory: whoever else uses it would lose it.
fn require_regular(path: &Path) -> Result<()> {
    // What cannot be looked at is not there, or cannot be written beside either.
    let Ok(about) = fs::metadata(path) else { return Ok(()) };
    let refused = match system::special_kind(about.file_type()) {
        _ if about.is_file() => return Ok(()),
        _ if about.is_dir() => io::Error::from(io::ErrorKind::IsADirectory),
        kind => io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, not a file")),
    };
    Err(Error::storage(path, "write", refused))
}

pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes `content` to an unfinished file and puts it in `path`'s place.
pub fn replace(
    disk: &dyn Disk,
    path: &Path,
    content: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    require_regular(path)?;
    let path = &*disk.resolve(path).map_err(|source| Error::storage(path, "write", source))?;
    // Asked for before the work is done, and again when nothing may come between.
    disk.hold(path)?;
    let failed = |operation| move |source| Error::storage(path, operation, source);
    let mut file = disk.create(path).map_err(failed("create a file beside"))?;
    let written = fill(&mut *file, content).map_err(failed("write")).and_then(|()| {
        let _held = disk.hold(path)?;
        disk.rename(file.path(), path).map_err(failed("replace"))
    });
    if written.is_err() {
        // The first error is the one to report; a leftover is only untidy.
        let _ = disk.remove(file.path());
        return written;
    }
    disk.sync_directory(directory_of(path)).map_err(failed("make durable"))
}

fn fill(
    file: &mut dyn DurableWrite,
    content: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 20, &mut *file);
    content(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.sync()
}
