//! Replacing a file so that a crash leaves the old or the new one, nothing else.
//!
//! write a temporary file beside it -> fsync it -> rename it over the old one -> fsync the directory.
//! `Disk` is the little of a file system this needs, so that tests can fail, shorten and reorder
//! every single step.

use crate::error::{Error, Result};
use crate::system;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file being written, whose bytes can be made durable.
pub trait DurableWrite: Write {
    /// Returns when everything written so far survives a crash.
    fn sync(&mut self) -> io::Result<()>;
}

impl DurableWrite for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// The file operations of an atomic replacement.
pub trait Disk {
    /// Where a path leads: writing through a link must change the file, not replace the link.
    fn resolve(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
    /// A new, empty file, with the permissions of `like` if that exists; fails if there is one of
    /// that name.
    fn create(&self, path: &Path, like: &Path) -> io::Result<Box<dyn DurableWrite>>;
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

    fn create(&self, path: &Path, like: &Path) -> io::Result<Box<dyn DurableWrite>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        if let Ok(old) = fs::metadata(like) {
            file.set_permissions(old.permissions())?;
        }
        Ok(Box::new(file))
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

/// A name beside `path` that no other save of this or another process uses.
pub(super) fn temporary_beside(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()))
}

pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes `content` to a temporary file and puts it in `path`'s place.
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
    let temporary = temporary_beside(path);
    let failed = |operation| move |source| Error::storage(path, operation, source);
    let file = disk.create(&temporary, path).map_err(failed("create a file beside"))?;
    let written = fill(file, content)
        .map_err(failed("write"))
        .and_then(|()| disk.rename(&temporary, path).map_err(failed("replace")));
    if written.is_err() {
        // The first error is the one to report; a leftover is only untidy.
        let _ = disk.remove(&temporary);
        return written;
    }
    disk.sync_directory(directory_of(path)).map_err(failed("make durable"))
}

fn fill(
    file: Box<dyn DurableWrite>,
    content: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 20, file);
    content(&mut buffered)?;
    let mut file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync()
}
