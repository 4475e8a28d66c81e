//! MULTI and EXEC: several commands as one. Clients send them by default around their pipelines.
//!
//! The keyspace itself runs a queue (`keyspace.rs`), unless a name that is watched has changed; here is what is said
//! without one.

use super::words;
use crate::command::{Call, Command, Keys, is};
use crate::expiry::millis;
use crate::failure::{Answer, Failure};
use crate::session::Queue;

const NOW: u32 = is::CONNECTION | is::FAST | is::LOADING | is::NOW;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("MULTI", 1, NOW, Keys::NONE, multi),
    Command::new("EXEC", 1, NOW, Keys::NONE, exec),
    Command::new("DISCARD", 1, NOW, Keys::NONE, discard),
    Command::new("WATCH", -2, is::CONNECTION | is::FAST | is::NOW, Keys::ALL, watch),
    Command::new("UNWATCH", 1, is::CONNECTION | is::FAST, Keys::NONE, unwatch),
];

/// Names that one client may watch: they are kept for it, and compared at EXEC.
const MOST_WATCHED: usize = 10_000;
/// Their bytes.
const MOST_BYTES: usize = 16 << 20;

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
    call.session.watched.clear();
    match call.session.queue.take() {
        Some(_) => call.reply.ok(),
        None => return Err(Failure::new("ERR DISCARD without MULTI")),
    }
    Ok(())
}

fn watch(call: &mut Call<'_>) -> Answer {
    if call.session.queue.is_some() {
        return Err(Failure::new("ERR WATCH inside MULTI is not allowed"));
    }
    let watched = &call.session.watched;
    let names = watched.iter().map(|(name, _)| name.len());
    let bytes: usize = names.chain(call.args.from(1).iter().map(<[u8]>::len)).sum();
    if watched.len() + call.args.len() > 1 + MOST_WATCHED || bytes > MOST_BYTES {
        let text = format!("ERR a client may watch {MOST_WATCHED} keys; UNWATCH or EXEC first");
        return Err(Failure::said(text));
    }
    for name in call.args.from(1).iter() {
        let change = call.store.changed(name, millis(call.now));
        call.session.watched.push((name.to_vec(), change));
    }
    words::ok(call)
}

fn unwatch(call: &mut Call<'_>) -> Answer {
    call.session.watched.clear();
    words::ok(call)
}
