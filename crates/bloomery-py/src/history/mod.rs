//! The history store's compiled parts: sealed segments, and keys hashed once for many of them.

mod build;
mod digests;
mod formulas;
mod segment;

pub(crate) use digests::Digests;
pub(crate) use formulas::{history_formulas, history_paper_sizes};
pub(crate) use segment::HistorySegment;

mod buffer;
mod naming;
mod sealed;

pub(crate) use buffer::HistoryBuffer;
pub(crate) use sealed::history_roll_up;
