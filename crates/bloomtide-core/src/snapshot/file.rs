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
    fn resolve(&self, path: &Path) -> PathBuf {
        path.to_owned()
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
    fn resolve(&self, path: &Path) -> PathBuf {
        if path.is_symlink() {
            fs::canonicalize(path).unwrap_or(path.to_owned())
        } else {
            path.to_owned()
        }
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
    if path.is_dir() {
        let source = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(Error::storage(path, "write", source));
    }
    let path = &*disk.resolve(path);
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
