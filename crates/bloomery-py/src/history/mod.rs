//! Histories for Python: what still takes events, and what was sealed.

mod buffer;
mod naming;
mod sealed;

pub(crate) use buffer::HistoryBuffer;
pub(crate) use sealed::history_roll_up;
