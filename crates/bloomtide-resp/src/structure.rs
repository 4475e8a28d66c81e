//! What a name may stand for. Each kind is a file in `structures/` and one line of `KINDS`.

use crate::structures::{
    Arriving, Bloom, CountMin, Counts, Cuckoo, Fading, TDigest, Text, TopK, Urls,
};
use bloomtide_core::{Error, Result};
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::io::{self, BufWriter, Write};

/// A structure of any kind.
pub trait Structure: Any + Debug + Send {
    /// The kind in the words of this product.
    fn kind(&self) -> &'static str;

    /// Memory in bytes.
    fn bytes(&self) -> u64;

    /// Memory that it will have without asking for more: all that was admitted when it was made.
    fn admitted(&self) -> u64 {
        self.bytes()
    }

    /// Its state in numbers, without a pass over its cells.
    fn summary(&self) -> Summary {
        Summary::default()
    }

    /// Writes what `read` needs to make it again. Equal structures write equal bytes.
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;

    /// What was written, or why it cannot be that. The bytes have passed a checksum.
    fn read(bytes: &[u8]) -> Result<Self>
    where
        Self: Sized;
}

/// A structure's state in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Different keys that went in, as far as it knows.
    pub items: f64,
    /// Share of cells that are to be expected in use.
    pub fill: f64,
    /// Chance of a wrong answer that is to be expected.
    pub error: f64,
}

/// What is the same for all structures of a kind.
#[derive(Debug)]
pub struct Kind {
    /// The kind's number in files, which never changes its meaning.
    pub tag: u8,
    /// What TYPE answers.
    pub type_name: &'static str,
    type_id: fn() -> TypeId,
    read: fn(&[u8]) -> Result<Box<dyn Structure>>,
}

static KINDS: [Kind; 10] = [
    Kind::new::<Text>(1, "string"),
    Kind::new::<Arriving>(2, "arriving"),
    Kind::new::<Bloom>(3, "MBbloom--"),
    Kind::new::<Cuckoo>(4, "MBbloomCF"),
    Kind::new::<CountMin>(5, "CMSk-TYPE"),
    Kind::new::<TopK>(6, "TopK-TYPE"),
    Kind::new::<Counts>(7, "counts"),
    Kind::new::<Fading>(8, "decaying"),
    Kind::new::<Urls>(9, "urls"),
    Kind::new::<TDigest>(10, "TDIS-TYPE"),
];

impl Kind {
    const fn new<T: Structure>(tag: u8, type_name: &'static str) -> Self {
        let read = |bytes: &[u8]| -> Result<Box<dyn Structure>> { Ok(Box::new(T::read(bytes)?)) };
        Kind { tag, type_name, type_id: TypeId::of::<T>, read }
    }

    /// The kind of a structure.
    pub fn of(structure: &dyn Structure) -> &'static Kind {
        Kind::of_type(structure.type_id())
    }

    /// The kind of all structures of that type.
    pub fn of_type(id: TypeId) -> &'static Kind {
        // Every type that implements `Structure` has its line.
        KINDS.iter().find(|kind| (kind.type_id)() == id).unwrap_or(&KINDS[0])
    }
}

/// Writes a structure in pieces that are worth a call.
pub fn write<W: Write>(structure: &dyn Structure, out: W) -> io::Result<W> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    structure.write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A structure of that tag from what was written.
pub fn read(tag: u8, bytes: &[u8]) -> Result<Box<dyn Structure>> {
    let kind = KINDS.iter().find(|kind| kind.tag == tag);
    let unknown = || Error::Field { name: "kind", got: tag.to_string() };
    (kind.ok_or_else(unknown)?.read)(bytes)
}
