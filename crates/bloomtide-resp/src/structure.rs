//! What a name may stand for. One line of the list at the end for each kind; each kind is a file in
//! `structures/` that says what the keyspace has to know of it.

use crate::failure::Failure;
use crate::structures::{Arriving, Bloom, CountMin, Counts, Cuckoo, Fading, Text, TopK, Urls};
use bloomtide_core::Result;
use std::io::{self, Write};

/// What the keyspace has to know of a kind.
pub trait Held: Sized {
    /// What TYPE answers.
    const TYPE: &'static str;

    /// The kind in the words of this product.
    fn kind(&self) -> &'static str;

    /// Memory in bytes.
    fn bytes(&self) -> u64;

    /// Its state in numbers, without a pass over its cells.
    fn summary(&self) -> Summary;

    /// Writes what `read` needs to make it again. Equal structures write equal bytes.
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;

    /// What was written, or why it cannot be that.
    fn read(bytes: &[u8]) -> Result<Self>;
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

/// A kind that can be taken out of a `Structure`.
pub trait Kind: Held {
    /// The kind's number in files, which never changes its meaning.
    const TAG: u8;
    /// The structure, if it is of this kind.
    fn of(structure: &Structure) -> Option<&Self>;
    /// The same, to be changed.
    fn of_mut(structure: &mut Structure) -> Option<&mut Self>;
    /// As one of all kinds.
    fn into_structure(self) -> Structure;
}

macro_rules! kinds {
    ($($name:ident = $tag:literal),+ $(,)?) => {
        /// A structure of any kind.
        #[derive(Debug)]
        #[allow(missing_docs, reason = "each kind has a file of its own")]
        #[allow(clippy::large_enum_variant, reason = "the larger ones are the usual ones")]
        pub enum Structure { $($name($name)),+ }

        $(impl Kind for $name {
            const TAG: u8 = $tag;

            #[inline]
            fn of(structure: &Structure) -> Option<&Self> {
                match structure {
                    Structure::$name(this) => Some(this),
                    _ => None,
                }
            }
            #[inline]
            fn of_mut(structure: &mut Structure) -> Option<&mut Self> {
                match structure {
                    Structure::$name(this) => Some(this),
                    _ => None,
                }
            }
            fn into_structure(self) -> Structure {
                Structure::$name(self)
            }
        })+

        impl Structure {
            /// What TYPE answers.
            pub fn type_name(&self) -> &'static str {
                match self { $(Structure::$name(_) => <$name as Held>::TYPE),+ }
            }
            /// The kind in the words of this product.
            pub fn kind(&self) -> &'static str {
                match self { $(Structure::$name(this) => this.kind()),+ }
            }
            /// Memory in bytes.
            pub fn bytes(&self) -> u64 {
                match self { $(Structure::$name(this) => this.bytes()),+ }
            }
            /// Its state in numbers.
            pub fn summary(&self) -> Summary {
                match self { $(Structure::$name(this) => this.summary()),+ }
            }
            /// The kind's number in files, which never changes its meaning.
            pub fn tag(&self) -> u8 {
                match self { $(Structure::$name(_) => $tag),+ }
            }
            /// Writes what `read` needs to make it again.
            pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
                match self { $(Structure::$name(this) => this.write(out)),+ }
            }
            /// A structure of that tag from what was written.
            pub fn read(tag: u8, bytes: &[u8]) -> Result<Self> {
                match tag {
                    $($tag => <$name as Held>::read(bytes).map(Structure::$name),)+
                    other => Err(bloomtide_core::Error::Field { name: "kind", got: other.to_string() }),
                }
            }
        }
    };
}

kinds! {
    Text = 1,
    Arriving = 2,
    Bloom = 3,
    Cuckoo = 4,
    CountMin = 5,
    TopK = 6,
    Counts = 7,
    Fading = 8,
    Urls = 9,
}

impl Structure {
    /// The structure as one of that kind, or the refusal.
    #[inline]
    pub fn expect<T: Kind>(&self) -> std::result::Result<&T, Failure> {
        T::of(self).ok_or_else(|| self.refusal())
    }

    /// The same, to be changed.
    #[inline]
    pub fn expect_mut<T: Kind>(&mut self) -> std::result::Result<&mut T, Failure> {
        // Two steps, since the borrow of a failed one would last.
        if T::of(self).is_none() {
            return Err(self.refusal());
        }
        T::of_mut(self).ok_or(Failure::WRONG_TYPE)
    }

    fn refusal(&self) -> Failure {
        match self {
            Structure::Arriving(_) => Failure::ARRIVING,
            _ => Failure::WRONG_TYPE,
        }
    }
}
