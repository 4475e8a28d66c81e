//! The kinds of structures that a name may stand for, one file each.

mod arriving;
mod bloom;
mod count_min;
mod counts;
mod cuckoo;
mod fading;
mod form;
mod table;
mod text;
mod top_k;
mod urls;

pub use arriving::Arriving;
/// The chunks of a structure.
pub mod chunking {
    pub use super::arriving::{chunk, head};
}
pub use bloom::{Added, Bloom, BloomGoal, Layer};
pub use count_min::{CountMin, CountMinPlan};
pub use counts::{CountKind, Counts, CountsPlan};
pub use cuckoo::{Cuckoo, CuckooGoal};
pub use fading::{Fading, FadingPlan, Moment};
pub use text::Text;
pub use top_k::{TopK, TopKPlan};
pub use urls::{Urls, bytes_at_most};
