//! MULTI and EXEC: several commands as one. Clients send them by default around their pipelines.
//!
//! The keyspace itself runs a queue (`keyspace.rs`); here is what is said without one. There is no WATCH: what it
//! guards against can be had by commands that add and answer in one step.

use super::words;
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::session::Queue;

const NOW: u32 = is::CONNECTION | is::FAST | is::LOADING | is::NOW;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("MULTI", 1, NOW, Keys::NONE, multi),
    Command::new("EXEC", 1, NOW, Keys::NONE, exec),
    Command::new("DISCARD", 1, NOW, Keys::NONE, discard),
];

fn multi(call: &mut Call<'_>) -> Answer {
    if call.session.queue.is_some() {
        return Err(Failure::new("ERR MULTI calls can not be nested"));
    }
    call.session.queue = Some(Box::new(Queue::default()));
    words::ok(call)
}

/// Only without a queue: the keyspace does it otherwise.
fn exec(_: &mut Call<'_>) -> Answer {
    Err(Failure::new("ERR EXEC without MULTI"))
}

fn discard(call: &mut Call<'_>) -> Answer {
    match call.session.queue.take() {
        Some(_) => call.reply.ok(),
        None => return Err(Failure::new("ERR DISCARD without MULTI")),
    }
    Ok(())
}
