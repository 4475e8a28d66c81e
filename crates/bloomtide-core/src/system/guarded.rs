//! Maps of files that another program may cut short.
//!
//! To touch a page behind the end of a file is a fault, and the system ends the process with SIGBUS. Checking the
//! length before would not help: the file can be cut between the check and the access. So there is a signal handler,
//! as in systemd's journal: it puts zeros in the place of the whole map, and the interrupted instruction goes on.
//! Every file that is mapped ends with `format::END`; whoever used the map looks afterwards whether the end is still
//! there. It is not if the file was cut anywhere, with a fault or, within the last page, without one.
//!
//! The handler passes on every fault that is not in one of our maps. A program that installs a handler of its own
//! after our last map was made takes the signal over; then a cut ends the process as it always did.

use crate::error::{Error, Result};
use crate::format::END;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// A mapped file.
#[derive(Debug)]
pub(crate) struct Guarded {
    // Dropped in this order: the handler must not know a map that is gone.
    _place: handler::Place,
    map: MmapRaw,
    path: PathBuf,
    given_back: AtomicBool,
}

impl Guarded {
    /// A map of a whole file that ends with `END`.
    pub(crate) fn new(map: MmapRaw, path: &Path) -> io::Result<Self> {
        let given_back = AtomicBool::new(false);
        Ok(Guarded { _place: handler::Place::of(&map)?, map, path: path.to_owned(), given_back })
    }

    /// Whether nothing was cut off before this call: what was read from the map is what was in the file.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        // What was read comes before the look at the end.
        fence(Ordering::Acquire);
        let Some(at) = self.map.len().checked_sub(END.len()) else { return false };
        // SAFETY: inside the map.
        unsafe { self.map.as_ptr().add(at).cast::<[u8; END.len()]>().read_volatile() == END }
    }

    /// Refuses a file that was cut while it was mapped.
    #[inline(always)]
    pub(crate) fn require_whole(&self) -> Result<()> {
        if self.is_whole() { Ok(()) } else { Err(self.cut()) }
    }

    /// Gives the file back at once: zeros come in its place, as if it had been cut. So whoever still asks in another
    /// thread touches memory that is there, and finds afterwards that the map is gone.
    pub(crate) fn give_back(&self) {
        self.given_back.store(true, Ordering::Release);
        handler::put_zeros(self.map.as_ptr() as usize, self.map.len());
    }

    #[cold]
    fn cut(&self) -> Error {
        if self.given_back.load(Ordering::Acquire) {
            return Error::Closed { path: self.path.clone() };
        }
        let got = std::fs::metadata(&self.path).map_or(0, |about| about.len());
        Error::Cut { path: self.path.clone(), expected: self.map.len() as u64, got }
    }
}

impl Deref for Guarded {
    type Target = MmapRaw;

    fn deref(&self) -> &MmapRaw {
        &self.map
    }
}

/// The bytes of a file that ends with `END`, mapped to be read. It is one that is replaced and never changed.
#[derive(Debug)]
pub struct MappedFile(Guarded);

impl MappedFile {
    /// Maps a whole file.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |operation| move |source| Error::storage(path, operation, source);
        let file = File::open(path).map_err(failed("open"))?;
        let about = file.metadata().map_err(failed("open"))?;
        if about.is_dir() {
            return Err(failed("open")(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        // No system maps nothing.
        if about.len() == 0 {
            return Err(Error::NotASnapshot);
        }
        let map = MmapOptions::new().map_raw_read_only(&file);
        let map = map.and_then(|map| Guarded::new(map, path)).map_err(failed("map"))?;
        Ok(MappedFile(map))
    }

    /// Says that reading ahead would bring in pages that nobody asks for.
    pub(crate) fn read_at_random(&self) {
        super::advise_random_reads(&self.0);
    }

    /// Refuses a file that was cut before this call: what was read of it may be zeros.
    #[inline(always)]
    pub fn require_whole(&self) -> Result<()> {
        self.0.require_whole()
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are mapped as long as self. They do not change but by a cut, after which nothing that was
        // read of them is believed; they are read as bytes only.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }
}

#[cfg(unix)]
mod handler {
    use libc::{c_int, c_void, siginfo_t};
    use memmap2::MmapRaw;
    use std::io;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// Where one map is. Places are never freed, so that the handler may look at them at any moment.
    struct Slot {
        begin: AtomicUsize,
        /// Zero if no map has the slot.
        end: AtomicUsize,
        next: *const Slot,
    }

    // SAFETY: `next` is written before the slot is shared.
    unsafe impl Sync for Slot {}

    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
    /// Held by who changes which slots are in use, and by who installs the handler.
    static CHANGING: Mutex<()> = Mutex::new(());
    /// What was done with the signal before.
    static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
    static PASSED_ON: AtomicBool = AtomicBool::new(false);

    /// A map that the handler knows.
    #[derive(Debug)]
    pub(super) struct Place(usize);

    impl Place {
        pub(super) fn of(map: &MmapRaw) -> io::Result<Self> {
            let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
            install()?;
            let begin = map.as_ptr() as usize;
            let slot = free_slot();
            slot.begin.store(begin, Ordering::Relaxed);
            slot.end.store(begin + map.len(), Ordering::Release);
            Ok(Place(ptr::from_ref(slot) as usize))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _changing = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: slots are never freed.
            unsafe { &*(self.0 as *const Slot) }.end.store(0, Ordering::Release);
        }
    }

    fn slots() -> impl Iterator<Item = &'static Slot> {
        // SAFETY: slots are never freed, and whole before they are shared.
        let at = |slot: *const Slot| unsafe { slot.as_ref() };
        std::iter::successors(at(SLOTS.load(Ordering::Acquire)), move |slot| at(slot.next))
    }

    fn free_slot() -> &'static Slot {
        if let Some(free) = slots().find(|slot| slot.end.load(Ordering::Relaxed) == 0) {
            return free;
        }
        let next = SLOTS.load(Ordering::Relaxed);
        let slot = Slot { begin: AtomicUsize::new(0), end: AtomicUsize::new(0), next };
        let slot: &'static Slot = Box::leak(Box::new(slot));
        SLOTS.store(ptr::from_ref(slot).cast_mut(), Ordering::Release);
        slot
    }

    /// Makes the signal ours, also if somebody took it meanwhile.
    fn install() -> io::Result<()> {
        // SAFETY: a zeroed sigaction is one, and the pointers are to live ones.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) != 0 {
                return Err(io::Error::last_os_error());
            }
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_fault;
            if now.sa_sigaction == handler as usize {
                return Ok(());
            }
            // The one before may be in use at this moment, so it stays; there are few.
            BEFORE.store(Box::into_raw(Box::new(now)), Ordering::Release);
            PASSED_ON.store(false, Ordering::Relaxed);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = handler as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigemptyset(&raw mut ours.sa_mask);
            if libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Calls nothing but the system, and only what a handler may call.
    extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
        // SAFETY: the system gives the information of the signal.
        let (code, at) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
        // A code above zero says that the system sent it, because of an access.
        if code > 0 && slots().any(|slot| holds(slot, at) && put_zeros_over(slot)) {
            return;
        }
        // Not ours: the one before gets the signal next, or, if that came back to us, the default does.
        // SAFETY: the action is never freed.
        unsafe {
            let before = BEFORE.load(Ordering::Acquire);
            if before.is_null() || PASSED_ON.swap(true, Ordering::Relaxed) {
                libc::signal(signal, libc::SIG_DFL);
            } else {
                libc::sigaction(signal, before, ptr::null_mut());
            }
            // A fault comes again by itself when the instruction is tried again.
            if code <= 0 {
                libc::raise(signal);
            }
        }
    }

    fn holds(slot: &Slot, at: usize) -> bool {
        let end = slot.end.load(Ordering::Acquire);
        slot.begin.load(Ordering::Relaxed) <= at && at < end
    }

    fn put_zeros_over(slot: &Slot) -> bool {
        let begin = slot.begin.load(Ordering::Relaxed);
        put_zeros(begin, slot.end.load(Ordering::Relaxed).saturating_sub(begin))
    }

    /// Memory of this process alone in the place of a map: zeros, which may be written.
    pub(super) fn put_zeros(begin: usize, len: usize) -> bool {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is that of a live map, whose user finds its end gone.
        let put = unsafe { libc::mmap(begin as *mut c_void, len, rights, flags, -1, 0) };
        len > 0 && put != libc::MAP_FAILED
    }
}

/// Windows refuses to cut a file that is mapped.
#[cfg(not(unix))]
mod handler {
    #[derive(Debug)]
    pub(super) struct Place;

    impl Place {
        pub(super) fn of(_map: &memmap2::MmapRaw) -> std::io::Result<Self> {
            Ok(Place)
        }
    }

    /// The map goes when it is dropped.
    pub(super) fn put_zeros(_begin: usize, _len: usize) -> bool {
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    #[allow(clippy::unwrap_used, reason = "a helper of tests; clippy.toml only covers the tests")]
    fn mapped(name: &str, len: usize) -> (PathBuf, File, Guarded) {
        let path = std::env::temp_dir().join(format!("bloomtide-{name}-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = options.open(&path).unwrap();
        file.write_all(&vec![7; len - END.len()]).unwrap();
        file.write_all(&END).unwrap();
        let map = MmapOptions::new().map_raw(&file).unwrap();
        let map = Guarded::new(map, &path).unwrap();
        (path, file, map)
    }

    fn byte(map: &Guarded, at: usize) -> u8 {
        assert!(at < map.len());
        // SAFETY: inside the map.
        unsafe { map.as_ptr().add(at).read_volatile() }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_has_lost_its_end_and_the_process_goes_on() {
        for cut in [0, 1, 4096, 8192, 70_000, 99_992, 99_996, 99_999] {
            let (path, file, map) = mapped(&format!("cut-{cut}"), 100_000);
            assert!(map.is_whole() && byte(&map, 50_000) == 7);
            file.set_len(cut).unwrap();
            let _ = byte(&map, 50_000);
            assert!(!map.is_whole(), "cut to {cut}");
            let error = map.require_whole().unwrap_err();
            assert!(matches!(error, Error::Cut { expected: 100_000, got, .. } if got == cut));
            // Also what grew again is another file.
            file.set_len(100_000).unwrap();
            assert!(!map.is_whole());
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_cut_map_leaves_the_others_as_they_are_and_its_place_is_used_again() {
        let (one, file, cut) = mapped("one", 20_000);
        let (two, _kept, whole) = mapped("two", 20_000);
        file.set_len(0).unwrap();
        assert_eq!(byte(&cut, 9000), 0);
        assert!(!cut.is_whole() && whole.is_whole() && byte(&whole, 9000) == 7);
        drop(cut);
        let (three, file, again) = mapped("three", 20_000);
        file.set_len(5000).unwrap();
        assert_eq!(byte(&again, 9000), 0);
        assert!(whole.is_whole());
        for path in [one, two, three] {
            std::fs::remove_file(path).unwrap();
        }
    }
}
