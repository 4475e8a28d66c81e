//! Histories for Python: what still takes events, what was sealed, and keys hashed once for many segments.

mod buffer;
mod digests;
mod forest;
mod naming;
mod sealed;
mod segment;

pub(crate) use buffer::HistoryBuffer;
pub(crate) use digests::Digests;
pub(crate) use forest::{HistoryForest, HistoryPlan};
pub(crate) use sealed::history_roll_up;
pub(crate) use segment::HistorySegment;
