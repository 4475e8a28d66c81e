//! The whole keyspace in one file. `docs/formats/keyspace.md` is the specification.
//!
//! ```text
//! common header | structures, one after the other | directory | footer
//! directory   for each name: its length, its bytes, the kind, where the structure is, its length, its CRC-32C
//! footer      where the directory is, its length, the number of names, CRC-32C of the directory and this
//! ```
//!
//! Structures come first, so that each is written in one pass without knowing its length, and read from where it
//! lies. Nothing is believed before its checksum was seen, and nothing allocated that the file's length does not
//! justify.

use crate::store::Store;
use crate::structure::Structure;
use bloomtide_core::format::{self, Header, Kind};
use bloomtide_core::snapshot::{RealDisk, replace};
use bloomtide_core::{Error, Result};
use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const HEADER: usize = format::header_len(0);
const FOOTER: usize = 8 + 8 + 8 + 4;

/// Counts and sums what goes through it.
struct Through<'a> {
    out: &'a mut dyn Write,
    len: u64,
    crc: u32,
}

impl Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.len += written as u64;
        self.crc = crc32c::crc32c_append(self.crc, &bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes everything to a new file in `path`'s place, atomically and durably; the bytes it has.
pub fn save(store: &Store, path: &Path) -> Result<u64> {
    let mut len = 0;
    replace(&RealDisk, path, &mut |out| {
        len = write(store, out)?;
        Ok(())
    })?;
    Ok(len)
}

/// Writes everything; the bytes it has.
pub fn write(store: &Store, out: &mut dyn Write) -> io::Result<u64> {
    // How long it will be only the end knows, which says so.
    let header = format::header(Kind::Keyspace, &[], 0);
    out.write_all(&header)?;
    let mut at = HEADER as u64;
    let mut directory = Vec::new();
    for (name, structure) in store.iter() {
        let mut through = Through { out, len: 0, crc: 0 };
        structure.write(&mut through)?;
        let (len, crc) = (through.len, through.crc);
        directory.extend((name.len() as u32).to_le_bytes());
        directory.extend(name);
        directory.push(structure.tag());
        directory.extend(at.to_le_bytes());
        directory.extend(len.to_le_bytes());
        directory.extend(crc.to_le_bytes());
        at += len;
    }
    let mut footer = Vec::with_capacity(FOOTER);
    footer.extend(at.to_le_bytes());
    footer.extend((directory.len() as u64).to_le_bytes());
    footer.extend((store.len() as u64).to_le_bytes());
    let crc = end_checksum(format::checksum_of(&header), &directory, &footer);
    footer.extend(crc.to_le_bytes());
    out.write_all(&directory)?;
    out.write_all(&footer)?;
    Ok(at + (directory.len() + FOOTER) as u64)
}

/// Reads a file into an empty store. On an error the store is empty again.
pub fn load(store: &mut Store, path: &Path) -> Result<()> {
    if !store.is_empty() {
        let names = store.len();
        return Err(Error::parameter("keyspace", names, "empty", "load into a new keyspace"));
    }
    let failed = |source| Error::storage(path, "read", source);
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    if about.len() == 0 {
        // An empty file cannot be mapped.
        return Err(Error::NotASnapshot);
    }
    // SAFETY: the map is private and read-only. Whoever cuts the file meanwhile takes the process down, as with
    // every mapped file; files in a data directory are replaced, never cut.
    let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
    let result = read(store, &map);
    if result.is_err() {
        store.clear();
    }
    result
}

/// Reads what `save` wrote.
pub fn read(store: &mut Store, bytes: &[u8]) -> Result<()> {
    let header = Header::read(bytes, Some(Kind::Keyspace))?;
    header.fields::<0>()?;
    header.require_length(0)?;
    let len = bytes.len() as u64;
    let short = |expected: u64| Error::Truncated { expected, got: len };
    let least = HEADER + FOOTER;
    let start = bytes.len().checked_sub(FOOTER).filter(|_| bytes.len() >= least);
    let start = start.ok_or_else(|| short(least as u64))?;
    let footer = &bytes[start..];
    let [at, size, count] = [0, 8, 16].map(|place| u64_at(footer, place));
    let directory = slice(&bytes[..start], at, size).filter(|found| {
        at.checked_add(found.len() as u64) == Some(start as u64) && at >= HEADER as u64
    });
    // Without its end nobody knows how long the file was.
    let directory = directory.ok_or_else(|| short(len + 1))?;
    let got = end_checksum(header.checksum, directory, &footer[..24]);
    check(u32_at(footer, 24), got, at)?;
    let mut rest = directory;
    for _ in 0..count {
        let name = take(&mut rest, 4).map(|bytes| u32_at(bytes, 0) as usize);
        let name = name.and_then(|len| take(&mut rest, len)).ok_or_else(damaged)?;
        let about = take(&mut rest, 21).ok_or_else(damaged)?;
        let (at, len) = (u64_at(about, 1), u64_at(about, 9));
        let body = slice(&bytes[..start], at, len).ok_or_else(damaged)?;
        check(u32_at(about, 17), crc32c::crc32c(body), at)?;
        if store.find(name).is_some() {
            return Err(damaged());
        }
        store.insert(name, Structure::read(about[0], body)?);
    }
    if rest.is_empty() { Ok(()) } else { Err(damaged()) }
}

/// The checksum at the end: of the directory and what the footer says, going on from the header's.
fn end_checksum(header: u32, directory: &[u8], footer: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(header, directory), footer)
}

/// A digest of all names and contents: the same for keyspaces that answer alike.
pub fn digest(store: &Store) -> io::Result<u128> {
    let mut all: Vec<_> = store.iter().collect();
    all.sort_unstable_by_key(|(name, _)| *name);
    let mut sum = Summing(Xxh3::new());
    for (name, structure) in all {
        sum.0.update(&(name.len() as u64).to_le_bytes());
        sum.0.update(name);
        sum.0.update(&[structure.tag()]);
        structure.write(&mut sum)?;
    }
    Ok(sum.0.digest128())
}

struct Summing(Xxh3);

impl Write for Summing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn damaged() -> Error {
    Error::Field { name: "directory", got: "an entry that does not fit the file".to_owned() }
}

fn check(expected: u32, got: u32, offset: u64) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Checksum { expected, got, offset }) }
}

fn slice(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keyspace;

    fn filled() -> Keyspace {
        let mut keyspace = Keyspace::new(1, None, 1 << 20, &[]);
        let mut session = keyspace.session(1);
        for key in 0..300 {
            let line = format!("BF.ADD a{} k{key}\nSET t{} {key}\n", key % 3, key % 7);
            keyspace.execute(&mut session, line.as_bytes(), 5.0);
        }
        keyspace
    }

    fn written(store: &Store) -> Vec<u8> {
        let mut bytes = Vec::new();
        let len = write(store, &mut bytes).expect("memory");
        assert_eq!(len, bytes.len() as u64);
        bytes
    }

    #[test]
    fn what_is_saved_is_loaded_with_the_same_digest() {
        let keyspace = filled();
        let bytes = written(&keyspace.store);
        let mut back = Store::new(99, None);
        read(&mut back, &bytes).expect("our own");
        assert_eq!(digest(&back).expect("memory"), digest(&keyspace.store).expect("memory"));
        assert_eq!(back.used(), keyspace.store.used());
        back.remove(b"t0");
        assert_ne!(digest(&back).expect("memory"), digest(&keyspace.store).expect("memory"));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_seen() {
        let bytes = written(&filled().store);
        for cut in (0..bytes.len()).step_by(17) {
            assert!(read(&mut Store::new(0, None), &bytes[..cut]).is_err(), "{cut}");
        }
        for place in (0..bytes.len()).step_by(13) {
            let mut bytes = bytes.clone();
            bytes[place] ^= 1;
            assert!(read(&mut Store::new(0, None), &bytes).is_err(), "{place}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_loads_into_an_empty_store_only() {
        let directory = std::env::temp_dir().join(format!("bloomtide-resp-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("keyspace");
        let keyspace = filled();
        let len = save(&keyspace.store, &path).expect("saved");
        assert_eq!(len, std::fs::metadata(&path).expect("there").len());
        let mut back = Store::new(0, None);
        load(&mut back, &path).expect("our own");
        assert_eq!(back.len(), keyspace.store.len());
        assert!(load(&mut back, &path).is_err());
        assert!(load(&mut Store::new(0, None), &directory).is_err());
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
