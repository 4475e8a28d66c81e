//! The commands, one family in each file. A family's `TABLE` says everything that the rest has to know.

pub mod about;
pub mod bf;
pub mod cf;
pub mod cms;
pub mod connection;
pub mod copies;
pub mod counts;
pub mod decay;
pub mod expire;
pub mod generic;
pub mod outer;
mod sets;
pub mod tdigest;
pub mod topk;
pub mod transaction;
pub mod urls;
mod words;

use crate::command::Command;

/// All families that are done here.
pub const FAMILIES: &[&[Command]] = &[
    connection::TABLE,
    about::TABLE,
    generic::TABLE,
    expire::TABLE,
    copies::TABLE,
    transaction::TABLE,
    bf::TABLE,
    cf::TABLE,
    cms::TABLE,
    topk::TABLE,
    tdigest::TABLE,
    counts::TABLE,
    decay::TABLE,
    urls::TABLE,
];
