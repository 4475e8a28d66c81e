//! Saving on a disk that fails, shortens or forgets, at every single step: afterwards there is the old
//! snapshot or the new one, nothing else.
//!
//! `CrashyDisk` keeps two worlds: what programs see, and what would survive a power cut now. Bytes
//! become durable by `sync`, names by `sync_directory`. An un-synced file survives a crash with any
//! prefix of its bytes, and an un-synced rename may have happened or not: all are tried.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy.toml only covers the tests themselves"
)]

use bloomtide_core::snapshot::{Disk, DurableWrite, Loaded, read, save};
use bloomtide_core::{BloomFilter, BloomPlan, Derivation, Hasher};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Default)]
struct World {
    /// Contents by file number: seen, and how many bytes of it are durable.
    files: Vec<(Vec<u8>, usize)>,
    /// Names as programs see them.
    names: BTreeMap<PathBuf, usize>,
    /// Names as the disk has them.
    durable_names: BTreeMap<PathBuf, usize>,
    steps: usize,
    /// The step that fails; a write still writes half.
    fail_at: usize,
}

impl World {
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        if self.steps == self.fail_at {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        // After the failing step the machine is off.
        if self.fail_at != 0 && self.steps > self.fail_at {
            return Err(io::Error::other("off"));
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct CrashyDisk(Rc<RefCell<World>>);

struct CrashyFile(Rc<RefCell<World>>, usize, PathBuf);

impl Write for CrashyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut world = self.0.borrow_mut();
        let result = world.step();
        if result.is_err() && world.steps == world.fail_at {
            let part = &bytes[..bytes.len() / 2];
            world.files[self.1].0.extend_from_slice(part);
        }
        result?;
        // A short write is legal, and callers must go on from it.
        let taken = bytes.len().div_ceil(2);
        world.files[self.1].0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DurableWrite for CrashyFile {
    fn path(&self) -> &Path {
        &self.2
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        world.step()?;
        let (bytes, durable) = &mut world.files[self.1];
        *durable = bytes.len();
        Ok(())
    }
}

impl Disk for CrashyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DurableWrite>> {
        let path = path.with_extension("unfinished");
        let mut world = self.0.borrow_mut();
        world.step()?;
        world.files.push((Vec::new(), 0));
        let number = world.files.len() - 1;
        world.names.insert(path.clone(), number);
        Ok(Box::new(CrashyFile(self.0.clone(), number, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        world.step()?;
        let number = world.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        world.names.insert(to.to_owned(), number);
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        world.step()?;
        world.durable_names = world.names.clone();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        world.step()?;
        world.names.remove(path).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl CrashyDisk {
    /// Everything `path` may hold after a power cut now.
    fn after_crash(&self, path: &Path) -> Vec<Vec<u8>> {
        let world = self.0.borrow();
        let mut outcomes = Vec::new();
        // The directory may have reached the disk by itself, or not.
        for names in [&world.durable_names, &world.names] {
            if let Some(number) = names.get(path) {
                let (bytes, durable) = &world.files[*number];
                for survivor in [*durable, bytes.len(), (*durable + bytes.len()) / 2] {
                    outcomes.push(bytes[..survivor].to_vec());
                }
            }
        }
        outcomes
    }
}

fn filter(keys: u64) -> BloomFilter {
    let plan = BloomPlan::for_goal(1000, 0.01, None, Derivation::Enhanced).unwrap();
    let filter = BloomFilter::new(plan, Hasher::Xxh3 { seed: 1 }).unwrap();
    for key in 0..keys {
        filter.add(filter.hasher().unsigned(key));
    }
    filter
}

fn same(bytes: &[u8], expected: &BloomFilter) -> bool {
    matches!(read(bytes, None), Ok(Loaded::Bloom(found)) if found.same_as(expected))
}

#[test]
fn a_crash_at_any_step_leaves_the_old_or_the_new_snapshot() {
    let (old, new) = (filter(100), filter(800));
    let path = Path::new("store/seen.bloom");
    let count = {
        let disk = CrashyDisk::default();
        save(&old, path, &disk).unwrap();
        let before = disk.0.borrow().steps;
        save(&new, path, &disk).unwrap();
        let after = disk.0.borrow().steps;
        assert!(disk.after_crash(path).iter().all(|bytes| same(bytes, &new)), "not durable");
        before..after
    };
    assert!(count.len() > 5, "the shim saw too few steps");
    for fail_at in count.start + 1..=count.end {
        let disk = CrashyDisk::default();
        save(&old, path, &disk).unwrap();
        disk.0.borrow_mut().fail_at = fail_at;
        assert!(save(&new, path, &disk).is_err(), "step {fail_at} failed silently");
        let outcomes = disk.after_crash(path);
        assert!(!outcomes.is_empty(), "step {fail_at} lost the file");
        for bytes in outcomes {
            assert!(same(&bytes, &old) || same(&bytes, &new), "step {fail_at} left a wreck");
        }
    }
}

#[test]
fn the_shim_would_catch_a_rename_without_sync() {
    // The same check on a careless save: rename before the bytes are durable.
    let disk = CrashyDisk::default();
    let path = Path::new("store/seen.bloom");
    let (old, new) = (filter(100), filter(800));
    save(&old, path, &disk).unwrap();
    let mut file = disk.create(path).unwrap();
    file.write_all(&bloomtide_core::snapshot::to_bytes(&new).unwrap()).unwrap();
    disk.rename(file.path(), path).unwrap();
    let outcomes = disk.after_crash(path);
    assert!(!outcomes.iter().all(|bytes| same(bytes, &old) || same(bytes, &new)));
}
