//! The core of bloomtide: Bloom filters for web and stream monitoring.
//!
//! One file per structure; each says which paper and section it follows, what stays true of it and
//! which way its answers err. Data flows one way:
//!
//! ```text
//! key bytes -> hash::Hasher -> KeyHash -> positions -> cells -> answer
//! ```
//!
//! The core knows no clock, no global randomness and no host language. It takes seeds and secrets
//! from its caller, so that equal inputs give equal bytes on every machine.

#[cfg(target_endian = "big")]
compile_error!(
    "mapped files hold little-endian words; a big-endian machine needs a swap in `Words`"
);

pub mod batch;
pub mod cells;
pub mod crew;
pub mod durable;
pub mod error;
pub mod event_time;
pub mod events;
pub mod filters;
pub mod format;
pub mod hash;
pub mod history;
pub mod instants;
pub mod key;
pub mod lines;
pub mod logs;
mod named;
mod owners;
pub mod pages;
pub mod placement;
pub mod positions;
pub mod sizing;
pub mod snapshot;
mod system;
pub mod url;

pub use batch::KeySource;
pub use crew::Crew;
/// What keeps cells alive that a rebuild replaces while they are read.
pub use crossbeam_epoch as epoch;
pub use error::{Error, Result};
pub use filters::{
    BloomFilter, BloomPlan, CountingBloomFilter, CountingPlan, DecayingPlan, Estimate, HotItem,
    HotList, HotPlan, LayerPlan, Policy, ScalableBloomFilter, ScalablePlan, Steps,
    TimeDecayingBloomFilter, Times, UrlFilter, UrlPlan,
};
pub use hash::{Hasher, KeyHash};
pub use key::{Key, OwnedKey};
pub use placement::{Layout, Placement};
pub use positions::Derivation;
pub use system::MappedFile;
pub use url::{Canon, canonical};
