//! The whole keyspace in one file. `docs/formats/keyspace.md` is the specification.
//!
//! ```text
//! common header | structures, one after the other | directory | footer | end
//! directory   for each name: its length, its bytes, the kind, when it expires, where the structure is, its length,
//!             its CRC-32C
//! footer      where the directory is, its length, the number of names, CRC-32C of the directory and this
//! ```
//!
//! Structures come first, so that each is written in one pass without knowing its length, and read from where it
//! lies. Nothing is believed before its checksum was seen, and nothing allocated that the file's length does not
//! justify.

use crate::fields::{Sum, put, take};
use crate::store::{Slot, Store};
use crate::structure::{self, Kind};
use bloomtide_core::format::{self, Header};
use bloomtide_core::history::varint::Reader;
use bloomtide_core::snapshot::{RealDisk, replace};
use bloomtide_core::{Error, MappedFile, Result};
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const HEADER: usize = format::header_len(0);
const FOOTER: usize = 8 + 8 + 8 + 4;

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
    let header = format::header(format::Kind::Keyspace, &[], 0);
    out.write_all(&header)?;
    let mut at = HEADER as u64;
    let mut directory = Vec::new();
    for (slot, name, structure) in store.iter_from(0) {
        let sum = structure::write(structure, Sum::of(&mut *out))?;
        directory.extend((name.len() as u32).to_le_bytes());
        directory.extend(name);
        directory.push(Kind::of(structure).tag);
        put(&mut directory, &[expires(store, slot), at, sum.len])?;
        directory.extend(sum.crc.to_le_bytes());
        at += sum.len;
    }
    let len = directory.len() as u64;
    put(&mut directory, &[at, len, store.len() as u64])?;
    let crc = crc32c::crc32c_append(format::checksum_of(&header), &directory);
    directory.extend(crc.to_le_bytes());
    directory.extend(format::END);
    out.write_all(&directory)?;
    Ok(at + directory.len() as u64)
}

/// Reads a file into an empty store. On an error the store is empty again.
pub fn load(store: &mut Store, path: &Path) -> Result<()> {
    if !store.is_empty() {
        let names = store.len();
        return Err(Error::parameter("keyspace", names, "empty", "load into a new keyspace"));
    }
    let map = MappedFile::open(path)?;
    let result = read(store, &map).and_then(|()| map.require_whole());
    if result.is_err() {
        store.clear();
    }
    result
}

/// Reads what `save` wrote.
pub fn read(store: &mut Store, bytes: &[u8]) -> Result<()> {
    let header = Header::read(bytes, Some(format::Kind::Keyspace))?;
    header.fields::<0>()?;
    header.require_length(0)?;
    let len = bytes.len() as u64;
    let short = |expected: u64| Error::Truncated { expected, got: len };
    // Without its end nobody knows how long the file was.
    let bytes = format::require_end(bytes).map_err(|_| short(len + 1))?;
    let least = HEADER + FOOTER;
    let start = bytes.len().checked_sub(FOOTER).filter(|_| bytes.len() >= least);
    let start = start.ok_or_else(|| short(least as u64))?;
    let mut footer = Reader::new(&bytes[start..], "footer");
    let [at, size, count] = take(&mut footer)?;
    let whole = at >= HEADER as u64 && at.checked_add(size) == Some(start as u64);
    let directory = part(bytes, at, size).filter(|_| whole).ok_or_else(|| short(len + 1))?;
    let sum = crc32c::crc32c_append(header.checksum, directory);
    let sum = crc32c::crc32c_append(sum, &bytes[start..start + FOOTER - 4]);
    check(u32::from_le_bytes(footer.fixed()?), sum, at)?;
    let mut directory = Reader::new(directory, "directory");
    for _ in 0..count {
        let length = u32::from_le_bytes(directory.fixed()?);
        let name = directory.bytes(length.into())?;
        let [tag] = directory.fixed()?;
        let [expires, at, len] = take(&mut directory)?;
        let body = part(&bytes[..start], at, len).ok_or_else(|| directory.wrong())?;
        check(u32::from_le_bytes(directory.fixed()?), crc32c::crc32c(body), at)?;
        if store.find(name).is_some() {
            return Err(directory.wrong());
        }
        let slot = store.insert(name, structure::read(tag, body)?);
        store.expire_at(slot, Some(expires).filter(|time| *time > 0));
    }
    directory.end()
}

/// When the name at a slot expires, as files have it: 0 is never.
fn expires(store: &Store, slot: usize) -> u64 {
    store.expires(slot as Slot).unwrap_or(0)
}

fn part(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

/// A digest of all names and contents: the same for keyspaces that answer alike.
pub fn digest(store: &Store) -> io::Result<u128> {
    let mut all: Vec<_> = store.iter_from(0).collect();
    all.sort_unstable_by_key(|(_, name, _)| *name);
    let mut digest = Xxh3::new();
    for (slot, name, structure) in all {
        put(&mut digest, &[name.len() as u64])?;
        digest.write_all(name)?;
        digest.write_all(&[Kind::of(structure).tag])?;
        put(&mut digest, &[expires(store, slot)])?;
        structure::write(structure, &mut digest)?;
    }
    Ok(digest.digest128())
}

fn check(expected: u32, got: u32, offset: u64) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Checksum { expected, got, offset }) }
}
