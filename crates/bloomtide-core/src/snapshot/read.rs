//! Reading a snapshot: the length first, then checksums, then values, then the filter.

use super::checksums::{Running, compare};
use super::count::Promised;
use super::header::{BLOCK, Header, Kind};
use super::record::Record;
use super::{decaying, hot, scalable, url};
use crate::cells::{Counters, DynamicCells, SpectralCells, Words};
use crate::error::{Error, Result};
use crate::filters::{
    BloomFilter, CountFilter, CountingBloomFilter, CountingPlan, HotList, ScalableBloomFilter,
    TimeDecayingBloomFilter, UrlFilter,
};
use crate::format::{ANY_FILTER, HEAD};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A filter of whatever kind the snapshot held.
#[derive(Debug)]
pub enum Loaded {
    /// A Bloom filter.
    Bloom(BloomFilter),
    /// A scalable Bloom filter.
    Scalable(ScalableBloomFilter),
    /// A counting Bloom filter.
    Counting(CountingBloomFilter),
    /// A dynamic count filter, whole or partitioned.
    Dynamic(CountFilter<DynamicCells>),
    /// A spectral Bloom filter, whole or partitioned.
    Spectral(CountFilter<SpectralCells>),
    /// A time-decaying Bloom filter.
    Decaying(Box<TimeDecayingBloomFilter>),
    /// A hot list.
    Hot(Box<HotList>),
    /// A URL filter.
    Url(Box<UrlFilter>),
}

impl Loaded {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Loaded::Bloom(_) => Kind::Bloom,
            Loaded::Scalable(_) => Kind::Scalable,
            Loaded::Counting(_) => Kind::Counting,
            Loaded::Dynamic(filter) => filter.kind(),
            Loaded::Spectral(filter) => filter.kind(),
            Loaded::Decaying(_) => Kind::Decaying,
            Loaded::Hot(_) => Kind::Hot,
            Loaded::Url(_) => Kind::Url,
        }
    }
}

/// Reads the snapshot in a file, of the `wanted` kind or of any.
pub fn load(path: &Path, wanted: Option<Kind>) -> Result<Loaded> {
    let failed = |source| Error::storage(path, "read", source);
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    read_from(&mut file, about.len(), wanted, &failed)
}

/// Reads a snapshot from a byte string, of the `wanted` kind or of any.
pub fn read(bytes: &[u8], wanted: Option<Kind>) -> Result<Loaded> {
    let mut rest = bytes;
    let short = |_| Error::Truncated { expected: u64::MAX, got: bytes.len() as u64 };
    read_from(&mut rest, bytes.len() as u64, wanted, &short)
}

fn read_from(
    input: &mut dyn Read,
    len: u64,
    wanted: Option<Kind>,
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<Loaded> {
    let header = read_header(input, len, wanted, failed)?;
    if !header.sealed {
        return Err(Error::Unsealed);
    }
    // The parameters come first: they say how many cells there must be.
    let build = promised(&header).map_err(as_damage)?;
    let (mut running, mut entries) = (Running::new(&header), Vec::new());
    let mut sections = Vec::new();
    for bytes in &header.sections {
        let note = |block: &[u8]| entries.push(running.entry(block));
        sections.push(read_cells(input, *bytes, note, failed)?);
    }
    let mut stored = vec![0; header.tail_len() as usize];
    input.read_exact(&mut stored).map_err(failed)?;
    compare(&header, &entries, &stored)?;
    build(sections).map_err(as_damage)
}

/// A value that a constructor or `validate` would refuse: in a file it is the file that is wrong.
pub(super) fn as_damage(error: Error) -> Error {
    match error {
        Error::Parameter { name, got, .. } => Error::Field { name, got },
        Error::Invariant { invariant } => Error::Field { name: "cells", got: invariant },
        other => other,
    }
}

pub(super) fn read_header(
    input: &mut dyn Read,
    len: u64,
    wanted: Option<Kind>,
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<Header> {
    let mut bytes = vec![0; HEAD.min(usize::try_from(len).unwrap_or(HEAD))];
    input.read_exact(&mut bytes).map_err(failed)?;
    let size = Header::measure(&bytes, len)?;
    bytes.resize(size, 0);
    input.read_exact(&mut bytes[HEAD..]).map_err(failed)?;
    Header::decode(&bytes, len, wanted)
}

fn read_cells(
    input: &mut dyn Read,
    bytes: u64,
    mut note: impl FnMut(&[u8]),
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<Words> {
    // The header's lengths were compared with the input's real length, so this allocates no more
    // than what is there.
    let words = Words::zeroed(bytes * 8)?;
    let mut buffer = vec![0; BLOCK];
    for start in (0..bytes as usize).step_by(BLOCK) {
        let block = &mut buffer[..BLOCK.min(bytes as usize - start)];
        input.read_exact(block).map_err(failed)?;
        note(block);
        words.copy_from(start / 8, block);
    }
    Ok(words)
}

/// Makes the filter of its sections.
pub(super) type Build = Box<dyn FnOnce(Vec<Words>) -> Result<Loaded>>;

/// What the parameters promise, checked before the cells are read.
fn promised(header: &Header) -> Result<Build> {
    let record = || Record::decode(&header.parameters);
    match header.kind {
        Kind::Bloom => {
            let (plan, hasher) = record()?.bloom()?;
            require_sections(header, &[plan.bytes()])?;
            Ok(Box::new(move |sections| {
                let filter = BloomFilter::over(plan, hasher, only(sections)?, None);
                filter.validate().map(|()| Loaded::Bloom(filter))
            }))
        }
        Kind::Counting => {
            let record = record()?;
            let plan = CountingPlan {
                placement: record.placement()?,
                counter_bits: record.counter_bits(),
                policy: record.policy()?,
                capacity: record.capacity,
                error_rate: record.error_rate,
            };
            let plan = plan.checked()?;
            require_sections(header, &[plan.bytes()])?;
            Ok(Box::new(move |sections| {
                let counters = Counters::over(only(sections)?, plan.cells(), plan.counter_bits);
                let filter = CountingBloomFilter::over(plan, record.hasher, counters);
                filter.validate().map(|()| Loaded::Counting(filter))
            }))
        }
        Kind::Dynamic | Kind::PartitionedDynamic => {
            let promised = Promised::of(header)?;
            Ok(Box::new(|sections| promised.build(sections).map(Loaded::Dynamic)))
        }
        Kind::Spectral | Kind::PartitionedSpectral => {
            let promised = Promised::of(header)?;
            Ok(Box::new(|sections| promised.build(sections).map(Loaded::Spectral)))
        }
        Kind::Scalable => scalable::promised(header),
        Kind::Decaying => decaying::promised(header),
        Kind::Hot => hot::promised(header),
        Kind::Url => url::promised(header),
        // The header's reader lets only filters through.
        other => Err(Error::Kind { expected: ANY_FILTER, got: other.name().to_owned() }),
    }
}

/// Refuses sections of other lengths than the parameters say.
pub(super) fn require_sections(header: &Header, expected: &[u64]) -> Result<()> {
    if header.sections == expected {
        return Ok(());
    }
    let got = format!("{:?} bytes for parameters of {expected:?}", header.sections);
    Err(Error::Field { name: "sections", got })
}

fn only(sections: Vec<Words>) -> Result<Words> {
    let too_few = Error::Field { name: "sections", got: "too few".to_owned() };
    sections.into_iter().next().ok_or(too_few)
}
