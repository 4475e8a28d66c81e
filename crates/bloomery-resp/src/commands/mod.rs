//! The commands, one family in each file. A family's `TABLE` says everything that the rest has to know.

pub mod bf;
mod chunks;
pub mod connection;
pub mod generic;
pub mod outer;

use crate::command::Command;

/// All families that are done here.
pub const FAMILIES: &[&[Command]] = &[connection::TABLE, generic::TABLE, bf::TABLE];
