//! Histories for Python: what still takes events, and what was sealed.

mod buffer;
mod naming;

pub(crate) use buffer::HistoryBuffer;
