//! What differs between operating systems. No other file of the core names one.
//!
//! Linux is the system that everything is tuned on. macOS has all of it but huge pages and
//! `posix_fallocate`. Windows has filters in memory, files, and maps for reading; a map that several
//! processes write is refused there, since its locks cannot turn from shared to exclusive.

mod guarded;

pub(crate) use guarded::Guarded;
pub use guarded::MappedFile;

use crate::error::{Error, Result};
use memmap2::{MmapMut, MmapRaw};
use std::fs::File;
use std::io;
use std::path::Path;

/// Refuses a map that several processes write, where the system has no `flock`.
pub(crate) fn require_shared_maps() -> Result<()> {
    if HAS_FLOCK { Ok(()) } else { Err(Error::Platform { what: "a filter shared by processes" }) }
}

/// Whether the locks of this system belong to open files and may be shared.
pub(crate) const HAS_FLOCK: bool = cfg!(unix);

/// What tells a file from all others, whatever it is called.
pub(crate) type FileId = (u64, u64);

/// That of an open file.
#[cfg(unix)]
pub(crate) fn file_id(file: &File) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt;
    file.metadata().map(|about| (about.dev(), about.ino()))
}

#[cfg(not(unix))]
pub(crate) fn file_id(_file: &File) -> io::Result<FileId> {
    Err(io::ErrorKind::Unsupported.into())
}

/// An existing file, to be looked at and locked; None if the path leads to something else. Never waits, and
/// follows no link.
#[cfg(unix)]
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    Ok(Some(file.metadata()?.is_file()).filter(|is_file| *is_file).map(|_| file))
}

/// Nothing is locked there.
#[cfg(not(unix))]
pub(crate) fn open_regular(_path: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// What a path leads to that is neither a file nor a directory.
#[cfg(unix)]
pub(crate) fn special_kind(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_fifo() => "a named pipe",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    }
}

#[cfg(not(unix))]
pub(crate) fn special_kind(_kind: std::fs::FileType) -> &'static str {
    "something else"
}

/// Whether the file belongs to this user and has no second name.
#[cfg(unix)]
pub(crate) fn is_own_and_alone(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: only asks who runs this.
    let user = unsafe { libc::geteuid() };
    file.metadata().is_ok_and(|about| about.uid() == user && about.nlink() == 1)
}

#[cfg(not(unix))]
pub(crate) fn is_own_and_alone(_file: &File) -> bool {
    false
}

/// Makes the names in a directory durable. Only Unix lets a directory be opened and synced.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Whether the path still names the open file.
#[cfg(unix)]
pub(crate) fn is_current(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(opened), Ok(named)) => opened.ino() == named.ino() && opened.dev() == named.dev(),
        // A file removed meanwhile: whoever opens it again gets the error.
        _ => false,
    }
}

/// Only asked about shared maps, which this system refuses.
#[cfg(not(unix))]
pub(crate) fn is_current(_file: &File, _path: &Path) -> bool {
    true
}

/// Takes the blocks now: a full disk must be an error here, not a fatal signal at some later add.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: the descriptor is open for writing.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use write_zeros as reserve;

/// Takes the blocks on every system, by writing them. The file must be new and empty.
#[cfg(any(test, not(target_os = "linux")))]
pub(crate) fn write_zeros(file: &File, len: u64) -> io::Result<()> {
    let mut output = file;
    io::copy(&mut io::Read::take(io::repeat(0), len), &mut output)?;
    io::Seek::rewind(&mut output)
}

/// Asks for huge pages. Only advice: a kernel without them refuses, and everything still works.
pub(crate) fn advise_huge_pages(pages: &MmapMut, offset: usize, len: usize) {
    #[cfg(target_os = "linux")]
    let _ = pages.advise_range(memmap2::Advice::HugePage, offset, len);
    #[cfg(not(target_os = "linux"))]
    let _ = (pages, offset, len);
}

/// Says that reading ahead would bring in pages that nobody asks for.
fn advise_random_reads(map: &MmapRaw) {
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Random);
    #[cfg(not(unix))]
    let _ = map;
}

/// This machine's memory in bytes, if the system tells.
#[cfg(unix)]
pub(crate) fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf only reads system constants.
    let [pages, size] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    (pages > 0 && size > 0).then(|| (pages as u64).saturating_mul(size as u64))
}

/// This machine's memory in bytes, if the system tells.
#[cfg(windows)]
pub(crate) fn physical_memory() -> Option<u64> {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut MemoryStatus) -> i32;
    }
    /// `MEMORYSTATUSEX` of the Windows API.
    #[repr(C)]
    struct MemoryStatus {
        length: u32,
        load: u32,
        total: u64,
        others: [u64; 6],
    }
    let length = size_of::<MemoryStatus>() as u32;
    let mut status = MemoryStatus { length, load: 0, total: 0, others: [0; 6] };
    // SAFETY: the status is as large as its length says.
    (unsafe { GlobalMemoryStatusEx(&raw mut status) } != 0).then_some(status.total)
}

/// This machine's memory in bytes, if the system tells.
#[cfg(not(any(unix, windows)))]
pub(crate) fn physical_memory() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_blocks_are_zeros_and_the_next_write_begins_the_file() -> io::Result<()> {
        let path = std::env::temp_dir().join(format!("bloomtide-zeros-{}", std::process::id()));
        for fill in [reserve, write_zeros] {
            let mut file = File::create(&path)?;
            fill(&file, 10_000)?;
            io::Write::write_all(&mut file, b"head")?;
            let content = std::fs::read(&path)?;
            assert_eq!(content.len(), 10_000);
            assert_eq!(&content[..4], b"head");
            assert!(content[4..].iter().all(|&byte| byte == 0));
            std::fs::remove_file(&path)?;
        }
        Ok(())
    }

    #[test]
    fn the_system_tells_how_much_memory_there_is() {
        let bytes = physical_memory().unwrap_or(0);
        assert!(bytes > 64 << 20 && bytes < 1 << 50, "{bytes}");
    }

    #[cfg(not(unix))]
    #[test]
    fn a_shared_map_is_refused_in_one_sentence_and_leaves_no_file() {
        use crate::filters::BloomPlan;
        use crate::hash::Hasher;
        use crate::positions::Derivation;
        use crate::snapshot::{Access, SharedFile};
        let path = std::env::temp_dir().join(format!("bloomtide-shared-{}", std::process::id()));
        let refused = |error: Option<Error>| {
            assert_eq!(
                error.map(|e| e.to_string()).as_deref(),
                Some("a filter shared by processes needs Linux or macOS: this system has no flock")
            );
        };
        let plan = BloomPlan::for_goal(1000, 0.01, None, Derivation::Enhanced)
            .unwrap_or_else(|e| unreachable!("{e}"));
        refused(SharedFile::create(&path, plan, Hasher::Xxh3 { seed: 1 }).err());
        refused(SharedFile::open(&path, Access::Write).err());
        assert!(!path.exists());
    }
}
