//! The header that every file and every blob of bytes begins with. `docs/formats/index.md` is the
//! specification.
//!
//! ```text
//!  0  8 bytes  magic          BLOOMTID
//!  8  u16      kind           what this is: one list of numbers for the whole project
//! 10  u16      version        of that kind's format
//! 12  u32      header length  H: up to the body, the checksum included
//! 16  u64      length         of everything; 0 if the header is written before that is known
//! 24  ...      what the kind adds, H - 28 bytes
//!     u32      checksum       the last four bytes of the header: CRC-32C of all before them
//! ```
//!
//! Rules
//! R1  Magic, header length and checksum are read before anything else is believed. They are the same
//!     in every version of every kind, so damage is told from a newer format.
//! R2  Filters have a state word behind the length, at byte 24, that changes in one store while a file
//!     is mapped. The checksum counts it as zero; it has two values, and any other is damage.
//! R3  A checksum of a body goes on from that of its header: a body belongs to one header.
//! R4  Nothing is allocated because a header claims a length.

use crate::error::{Error, Result};

/// The newest version of each kind that this code reads, and the one it writes.
pub const VERSION: u16 = 1;
/// What everything begins with.
pub const MAGIC: [u8; 8] = *b"BLOOMTID";
/// What a file ends with that may be mapped: if it is cut, the end is gone.
pub const END: [u8; 4] = *b"ENDS";
/// Bytes before what the kind adds.
pub const HEAD: usize = 24;
/// Bytes of a checksum.
pub const SUM: usize = 4;
/// Kinds below this are filters: snapshots with a state word.
const FILTERS: u16 = 20;
/// Where the state word of a filter stands; eight-byte aligned, so one store changes it.
pub(crate) const STATE_AT: usize = HEAD;

/// What is wanted where any filter will do.
pub(crate) const ANY_FILTER: &str = "a filter that `load` reads";

macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $code:literal, $name:literal, $reader:literal;)+) => {
        /// What a file or a blob is. The numbers are for ever.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($(#[$doc])+ $kind = $code),+ }

        impl Kind {
            /// Every kind there is, by its number.
            pub const ALL: &[Kind] = &[$(Kind::$kind),+];

            /// The name users know it by.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),+ }
            }

            /// What reads it.
            pub fn reader(self) -> &'static str {
                match self { $(Kind::$kind => $reader),+ }
            }
        }
    };
}

kinds! {
    /// A `BloomFilter`.
    Bloom = 1, "bloom", "bloomtide.load";
    /// A `ScalableBloomFilter`.
    Scalable = 2, "scalable", "bloomtide.load";
    /// A `CountingBloomFilter`.
    Counting = 3, "counting", "bloomtide.load";
    /// A `SpectralBloomFilter`.
    Spectral = 4, "sbf", "bloomtide.load";
    /// A `DynamicCountFilter`.
    Dynamic = 5, "dcf", "bloomtide.load";
    /// A `PartitionedSpectralBloomFilter`.
    PartitionedSpectral = 6, "psbf", "bloomtide.load";
    /// A `PartitionedDynamicCountFilter`.
    PartitionedDynamic = 7, "pdcf", "bloomtide.load";
    /// A `TimeDecayingBloomFilter`.
    Decaying = 8, "tbf", "bloomtide.load";
    /// A `HotList`.
    Hot = 9, "hot", "bloomtide.load";
    /// A `UrlFilter`.
    Url = 10, "url", "bloomtide.load";
    /// A sealed segment of a history.
    HistorySegment = 20, "history segment", "the HistoryStore of its directory";
    /// The exact contents of a segment that was just sealed.
    HistoryItems = 21, "history items", "the HistoryStore of its directory";
    /// What a history has not sealed yet.
    HistoryJournal = 22, "history journal", "the HistoryStore of its directory";
    /// All structures of a server.
    Keyspace = 30, "keyspace", "bloomtide serve";
    /// The first chunk of a structure.
    Chunk = 36, "first chunk", "BF.LOADCHUNK or CF.LOADCHUNK";
    /// What one task of a distributed build hands on.
    Partial = 40, "partial", "bloomtide.distributed.merge";
    /// A `RecentFilter`.
    Recent = 41, "recent", "RecentFilter.load";
    /// What a ledger was given since its last snapshot.
    LedgerJournal = 43, "ledger journal", "the Ledger of its directory";
    /// A filter that decays and its hot list.
    HotFilter = 44, "hot filter", "HotFilter.load";
}

impl Kind {
    /// The number in the header.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The kind of that number.
    pub fn from_code(code: u16) -> Option<Self> {
        Kind::ALL.iter().copied().find(|kind| kind.code() == code)
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether it is a snapshot of a filter.
    pub fn is_filter(self) -> bool {
        self.code() < FILTERS
    }
}

/// What a kind is in a sentence.
pub(crate) fn noun(name: &str) -> String {
    match Kind::from_name(name) {
        Some(Kind::Hot) => "a `hot` list".to_owned(),
        Some(kind) if kind.is_filter() || kind == Kind::Recent => format!("a `{name}` filter"),
        Some(_) => format!("a {name}"),
        None => name.to_owned(),
    }
}

/// Bytes of a header whose kind adds that many.
pub const fn header_len(added: usize) -> usize {
    HEAD + added + SUM
}

/// A whole header. `length` counts everything, the header too.
pub fn header(kind: Kind, added: &[u8], length: u64) -> Vec<u8> {
    let len = header_len(added.len());
    let mut out = Vec::with_capacity(len);
    out.extend(MAGIC);
    out.extend(kind.code().to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend((len as u32).to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(added);
    let sum = checksum(&out);
    out.extend(sum.to_le_bytes());
    out
}

/// CRC-32C of bytes, going on from the checksum of what came before them.
pub fn append(checksum: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(checksum, bytes)
}

/// The checksum of a whole header.
pub fn checksum_of(header: &[u8]) -> u32 {
    u32_at(header, header.len().saturating_sub(SUM))
}

/// Ends with the checksum of a body that stands behind its header in `out`.
pub fn seal(out: &mut Vec<u8>, header_len: usize) {
    let sum = crc32c::crc32c_append(checksum_of(&out[..header_len]), &out[header_len..]);
    out.extend(sum.to_le_bytes());
}

/// CRC-32C of a header up to its checksum; the state word of a filter counts as zero.
fn checksum(header: &[u8]) -> u32 {
    let before = crc32c::crc32c(&header[..HEAD]);
    let code = u16::from_le_bytes([header[8], header[9]]);
    if code >= FILTERS || header.len() < STATE_AT + 8 {
        return crc32c::crc32c_append(before, &header[HEAD..]);
    }
    let state = crc32c::crc32c_append(before, &[0; 8]);
    crc32c::crc32c_append(state, &header[STATE_AT + 8..])
}

/// How long the header is, from the first `HEAD` bytes of an input that has `available` bytes.
pub fn measure(head: &[u8], available: u64) -> Result<usize> {
    let known = head.len().min(MAGIC.len());
    if head.is_empty() || head[..known] != MAGIC[..known] {
        return Err(Error::NotASnapshot);
    }
    let least = header_len(0) as u64;
    if head.len() < HEAD || available < least {
        return Err(Error::Truncated { expected: least, got: available });
    }
    let len = u32_at(head, 12);
    if u64::from(len) < least {
        return Err(Error::Field { name: "header length", got: len.to_string() });
    }
    if u64::from(len) > available {
        return Err(Error::Truncated { expected: len.into(), got: available });
    }
    Ok(len as usize)
}

/// A header whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// What it is the header of.
    pub kind: Kind,
    /// Bytes of the header.
    pub len: usize,
    /// Bytes of everything; 0 if that was not known.
    pub length: u64,
    /// What the kind adds.
    pub added: &'a [u8],
    /// The checksum, from which that of a body goes on.
    pub checksum: u32,
}

impl<'a> Header<'a> {
    /// The header that these bytes begin with, of the `wanted` kind or of any filter.
    pub fn read(bytes: &'a [u8], wanted: Option<Kind>) -> Result<Self> {
        let head = &bytes[..bytes.len().min(HEAD)];
        let len = measure(head, bytes.len() as u64)?;
        let (covered, sum) = bytes[..len].split_at(len - SUM);
        let (stored, computed) = (u32_at(sum, 0), checksum(covered));
        if stored != computed {
            return Err(Error::Checksum { expected: stored, got: computed, offset: 0 });
        }
        let code = u16::from_le_bytes([head[8], head[9]]);
        let fits = |kind: &Kind| wanted.map_or(kind.is_filter(), |wanted| wanted == *kind);
        let Some(kind) = Kind::from_code(code).filter(fits) else {
            let got = Kind::from_code(code).map(|kind| kind.name().to_owned());
            return Err(Error::Kind {
                expected: wanted.map_or(ANY_FILTER, Kind::name),
                got: got.unwrap_or_else(|| format!("kind {code}")),
            });
        };
        match u16::from_le_bytes([head[10], head[11]]) {
            VERSION => {}
            0 => return Err(Error::Field { name: "version", got: "0".to_owned() }),
            got => return Err(Error::Version { expected: VERSION, got }),
        }
        Ok(Header {
            kind,
            len,
            length: u64_at(bytes, 16),
            added: &covered[HEAD..],
            checksum: stored,
        })
    }

    /// The same, of bytes that must be all there is.
    pub fn read_whole(bytes: &'a [u8], wanted: Option<Kind>) -> Result<Self> {
        let header = Header::read(bytes, wanted)?;
        header.require_length(bytes.len() as u64)?;
        Ok(header)
    }

    /// Refuses an input that is shorter or longer than the header says.
    pub fn require_length(&self, available: u64) -> Result<()> {
        if self.length == available {
            return Ok(());
        }
        Err(Error::Truncated { expected: self.length, got: available })
    }

    /// What the kind adds, if it has that many bytes.
    pub fn fields<const N: usize>(&self) -> Result<&'a [u8; N]> {
        let wrong = Error::Field { name: "header length", got: self.len.to_string() };
        self.added.try_into().map_err(|_| wrong)
    }
}

/// What stands before the end of a file that may be mapped.
pub fn require_end(bytes: &[u8]) -> Result<&[u8]> {
    let (before, end) = bytes.split_at(bytes.len().saturating_sub(END.len()));
    if end == END {
        return Ok(before);
    }
    Err(Error::Field { name: "end", got: format!("{end:02x?}") })
}

/// The header and the body of what `seal` ended, which is all that `bytes` holds.
pub fn unseal(bytes: &[u8], kind: Kind) -> Result<(Header<'_>, &[u8])> {
    let header = Header::read_whole(bytes, Some(kind))?;
    let Some(end) = bytes.len().checked_sub(SUM).filter(|end| *end >= header.len) else {
        let expected = (header.len + SUM) as u64;
        return Err(Error::Truncated { expected, got: bytes.len() as u64 });
    };
    let body = &bytes[header.len..end];
    let (expected, got) = (u32_at(bytes, end), crc32c::crc32c_append(header.checksum, body));
    if expected != got {
        return Err(Error::Checksum { expected, got, offset: header.len as u64 });
    }
    Ok((header, body))
}

/// A number in bytes; zero where they end before it.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |four| u32::from_le_bytes(*four))
}

/// The same of eight bytes.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |eight| u64::from_le_bytes(*eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_names_differ() {
        for (i, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(Kind::from_code(kind.code()), Some(*kind));
            assert_eq!(Kind::from_name(kind.name()), Some(*kind));
            assert!(Kind::ALL[i + 1..].iter().all(|later| later.code() > kind.code()));
        }
    }

    #[test]
    fn a_body_belongs_to_one_header() {
        let sealed = |added: &[u8]| {
            let mut bytes = header(Kind::Partial, added, (header_len(2) + 4 + SUM) as u64);
            bytes.extend(b"body");
            seal(&mut bytes, header_len(2));
            bytes
        };
        let (one, other) = (sealed(b"ab"), sealed(b"cd"));
        assert_eq!(unseal(&one, Kind::Partial).unwrap().1, b"body");
        let mixed = [&one[..header_len(2)], &other[header_len(2)..]].concat();
        assert!(matches!(unseal(&mixed, Kind::Partial), Err(Error::Checksum { .. })));
        assert!(unseal(&one[..header_len(2)], Kind::Partial).is_err());
    }
}
