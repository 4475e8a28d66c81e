//! The Redis protocol without sockets: bytes of a client in, bytes of the answers out, and named structures in
//! between.
//!
//! ```text
//! bytes -> wire::request -> command::Table -> commands/* -> store -> structures/*
//!                                    |                        |
//!                            wire::reply -> bytes      changes -> the ledger
//! ```
//!
//! The crate opens no socket and no file that it is not asked to write, and reads no clock: time comes in with
//! each call. Whatever a client sends, it gets an answer or is sent away; nothing panics, and no length that
//! is merely claimed allocates anything.

pub mod acl;
pub mod changes;
pub mod command;
pub mod commands;
pub mod expiry;
pub mod failure;
mod fields;
pub mod file;
pub mod keyspace;
mod pattern;
pub mod session;
pub mod store;
pub mod structure;
pub mod structures;
#[cfg(test)]
mod tests;
pub mod wire;

pub use failure::{Answer, Failure};
pub use keyspace::{Calls, Keyspace};
pub use session::Session;
pub use structure::{Structure, Summary};
