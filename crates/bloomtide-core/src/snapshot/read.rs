//! Reading a snapshot: the length first, then checksums, then values, then the filter.

use super::count::Promised;
use super::decaying;
use super::header::{BLOCK, Header, Kind};
use super::hot::PromisedList;
use super::record::Record;
use super::scalable::PromisedLayers;
use super::url::PromisedUrls;
use crate::cells::{Counters, DynamicCells, DynamicShape, SpectralCells, SpectralShape, Words};
use crate::error::{Error, Result};
use crate::filters::{
    BloomFilter, CountFilter, CountingBloomFilter, HotList, ScalableBloomFilter,
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
    Hot(HotList),
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
    let expected = Expected::of(&header).map_err(as_damage)?;
    let mut sections = Vec::new();
    let mut checksums = Vec::new();
    for bytes in &header.sections {
        sections.push(read_cells(input, *bytes, header.checksum(), &mut checksums, failed)?);
    }
    let mut stored = vec![0; checksums.len() * 4];
    input.read_exact(&mut stored).map_err(failed)?;
    compare(&header, &checksums, &stored)?;
    expected.build(sections).map_err(as_damage)
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
    seed: u32,
    checksums: &mut Vec<u32>,
    failed: &dyn Fn(io::Error) -> Error,
) -> Result<Words> {
    // The header's lengths were compared with the input's real length, so this allocates no more
    // than what is there.
    let words = Words::zeroed(bytes * 8)?;
    let mut buffer = vec![0; BLOCK];
    for start in (0..bytes as usize).step_by(BLOCK) {
        let block = &mut buffer[..BLOCK.min(bytes as usize - start)];
        input.read_exact(block).map_err(failed)?;
        checksums.push(crc32c::crc32c_append(seed, block));
        words.copy_from(start / 8, block);
    }
    Ok(words)
}

/// Compares computed checksums with the stored table and names the first bad block.
pub(super) fn compare(header: &Header, computed: &[u32], stored: &[u8]) -> Result<()> {
    let mut computed = computed.iter().zip(stored.chunks_exact(4));
    for (offset, bytes) in header.offsets().iter().zip(&header.sections) {
        for block in (0..*bytes).step_by(BLOCK) {
            let Some((got, expected)) = computed.next() else { return Ok(()) };
            let expected = super::header::u32_at(expected, 0);
            if *got != expected {
                return Err(Error::Checksum { expected, got: *got, offset: offset + block });
            }
        }
    }
    Ok(())
}

/// What the parameters promise, checked before the cells are read.
enum Expected {
    Bloom(Record),
    Counting(Record),
    Scalable(PromisedLayers),
    Dynamic(Promised<DynamicShape>),
    Spectral(Promised<SpectralShape>),
    Decaying(decaying::Promised),
    Hot(PromisedList),
    Url(PromisedUrls),
}

impl Expected {
    fn of(header: &Header) -> Result<Self> {
        let expected = match header.kind {
            Kind::Bloom => Expected::Bloom(Record::decode(&header.parameters)?),
            Kind::Counting => Expected::Counting(Record::decode(&header.parameters)?),
            Kind::Scalable => return PromisedLayers::of(header).map(Expected::Scalable),
            Kind::Dynamic | Kind::PartitionedDynamic => {
                return Promised::of(header).map(Expected::Dynamic);
            }
            Kind::Spectral | Kind::PartitionedSpectral => {
                return Promised::of(header).map(Expected::Spectral);
            }
            Kind::Decaying => return decaying::Promised::of(header).map(Expected::Decaying),
            Kind::Hot => return PromisedList::of(header).map(Expected::Hot),
            Kind::Url => return PromisedUrls::of(header).map(Expected::Url),
            // The header's reader lets only filters through.
            other => {
                return Err(Error::Kind { expected: ANY_FILTER, got: other.name().to_owned() });
            }
        };
        let bytes = match &expected {
            Expected::Bloom(record) => vec![record.bloom()?.0.bytes()],
            Expected::Counting(record) => vec![record.counting()?.0.bytes()],
            // Returned above, with sections of lengths that only the cells know.
            Expected::Scalable(_)
            | Expected::Dynamic(_)
            | Expected::Spectral(_)
            | Expected::Decaying(_)
            | Expected::Hot(_)
            | Expected::Url(_) => Vec::new(),
        };
        if bytes != header.sections {
            let got = format!("{:?} bytes for parameters of {bytes:?}", header.sections);
            return Err(Error::Field { name: "sections", got });
        }
        Ok(expected)
    }

    fn build(self, sections: Vec<Words>) -> Result<Loaded> {
        let mut sections = sections.into_iter();
        let mut next =
            || sections.next().ok_or(Error::Field { name: "sections", got: "too few".to_owned() });
        match self {
            Expected::Bloom(record) => {
                let (plan, hasher) = record.bloom()?;
                let filter = BloomFilter::over(plan, hasher, next()?, None);
                filter.validate()?;
                Ok(Loaded::Bloom(filter))
            }
            Expected::Counting(record) => {
                let (plan, hasher) = record.counting()?;
                let counters = Counters::over(next()?, plan.cells(), plan.counter_bits);
                let filter = CountingBloomFilter::over(plan, hasher, counters);
                filter.validate()?;
                Ok(Loaded::Counting(filter))
            }
            Expected::Dynamic(promised) => promised.build(sections.collect()).map(Loaded::Dynamic),
            Expected::Spectral(promised) => {
                promised.build(sections.collect()).map(Loaded::Spectral)
            }
            Expected::Decaying(promised) => {
                let filter = promised.build(sections.collect())?;
                Ok(Loaded::Decaying(Box::new(filter)))
            }
            Expected::Hot(promised) => promised.build(&next()?, &next()?).map(Loaded::Hot),
            Expected::Url(promised) => {
                Ok(Loaded::Url(Box::new(promised.build(sections.collect())?)))
            }
            Expected::Scalable(promised) => {
                promised.build(sections.collect()).map(Loaded::Scalable)
            }
        }
    }
}
