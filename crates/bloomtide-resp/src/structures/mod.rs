//! The kinds of structures that a name may stand for, one file each.

mod arriving;
mod bloom;
mod count_min;
mod counts;
mod cuckoo;
mod fading;
mod redisbloom;
mod redisbloom_cuckoo;
mod t_digest;
mod table;
mod text;
mod top_k;
mod urls;

pub use arriving::Arriving;
pub use bloom::{Bloom, BloomGoal, Layer};
pub use count_min::{CountMin, CountMinPlan, FULL};
pub use counts::{COUNT_KINDS, Counts, CountsPlan};
pub use cuckoo::{Cuckoo, CuckooGoal};
pub use fading::{Fading, FadingPlan, Moment};
pub use t_digest::{State, TDigest, View};
pub use text::Text;
pub use top_k::{TopK, TopKPlan};
pub use urls::{Urls, bytes_at_most};

use crate::structure::{Structure, Summary};
use bloomtide_core::{Hasher, sizing};

/// Every structure hashes alike, so that chunks of one server load into another.
pub const HASHER: Hasher = Hasher::Xxh3 { seed: 0 };

/// A filter that is asked for keys.
pub trait Membership: Structure {
    /// Whether the key may be inside.
    fn contains(&self, key: &[u8]) -> bool;
}

/// What is to be expected of a filter with so many keys, without a pass over its cells.
fn expected(items: u64, cells: u64, hashes: u32, error_at: impl FnOnce(f64) -> f64) -> Summary {
    let items = items as f64;
    let fill = sizing::classic_fill(items, cells as f64, hashes);
    Summary { items, fill, error: error_at(items) }
}

/// The filter of that kind in a snapshot; any other is refused.
macro_rules! loaded {
    ($kind:ident, $bytes:expr) => {
        match bloomtide_core::snapshot::read($bytes, Some(Kind::$kind))? {
            Loaded::$kind(filter) => filter,
            other => {
                let got = other.kind().name().to_owned();
                return Err(Error::Kind { expected: Kind::$kind.name(), got });
            }
        }
    };
}

use loaded;
