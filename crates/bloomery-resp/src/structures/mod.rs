//! The kinds of structures that a name may stand for, one file each.

mod arriving;
mod bloom;
mod cuckoo;
mod text;

pub use arriving::Arriving;
/// The chunks of a structure.
pub mod chunking {
    pub use super::arriving::{chunk, head};
}
pub use bloom::{Added, Bloom, BloomGoal};
pub use cuckoo::{Cuckoo, CuckooGoal};
pub use text::Text;
