//! Bytes of the wire: requests in, replies out.

pub mod number;
pub mod reply;
pub mod request;
