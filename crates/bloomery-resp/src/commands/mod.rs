//! The commands, one family in each file. A family's `TABLE` says everything that the rest has to know.

pub mod about;
pub mod bf;
pub mod cf;
mod chunks;
pub mod connection;
pub mod generic;
pub mod outer;
pub mod transaction;

use crate::command::Command;

/// All families that are done here.
pub const FAMILIES: &[&[Command]] =
    &[connection::TABLE, about::TABLE, generic::TABLE, transaction::TABLE, bf::TABLE, cf::TABLE];
