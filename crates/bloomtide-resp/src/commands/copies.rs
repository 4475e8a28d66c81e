//! Names that get what another name stands for: renamed, copied, or carried over by DUMP and RESTORE.
//!
//! A dump is the first chunk that BF.SCANDUMP gives, with the checksum of the rest, and then the structure as it is written to a file.

use super::words::{self, Options};
use crate::command::{Call, Command, Keys, is};
use crate::expiry::millis;
use crate::failure::{Answer, Failure};
use crate::structure::{self, Kind, Structure};
use crate::structures::Arriving;
use crate::wire::number;
use bloomtide_core::Error;
use std::io;

const WRITE: u32 = is::KEYSPACE | is::WRITE;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("RENAME", 3, WRITE, Keys(1, 2, 1), rename::<false>),
    Command::new("RENAMENX", 3, WRITE | is::FAST, Keys(1, 2, 1), rename::<true>),
    Command::new("COPY", -3, WRITE, Keys(1, 2, 1), copy),
    Command::new("DUMP", 2, is::KEYSPACE | is::READ, Keys::FIRST, dump),
    Command::new("RESTORE", -4, WRITE | is::DANGEROUS, Keys::FIRST, restore),
];

const BUSY: Failure = Failure::new("BUSYKEY Target key name already exists.");
const BAD_DUMP: Failure = Failure::new("ERR DUMP payload version or checksum are wrong");
/// A dump must fit into one request; SCANDUMP has no such limit.
const MOST: u64 = 500 << 20;

fn failed(error: &io::Error) -> Failure {
    Failure::said(format!("ERR {error}"))
}

fn rename<const ABSENT: bool>(call: &mut Call<'_>) -> Answer {
    let (old, new) = (call.args.at(1), call.args.at(2));
    if call.store.find(old).is_none() {
        return Err(Failure::new("ERR no such key"));
    }
    if ABSENT && call.store.find(new).is_some() {
        call.reply.int(0);
        return Ok(());
    }
    if old != new
        && let Some((structure, expires)) = call.store.take(old)
    {
        let slot = call.store.insert(new, structure);
        call.store.expire_at(slot, expires);
        call.changes.note(call.now, &[b"RENAME", old, new]);
    }
    if ABSENT {
        call.reply.int(1)
    } else {
        call.reply.ok()
    }
    Ok(())
}

/// The same structure once more.
fn twin(structure: &dyn Structure) -> Result<Box<dyn Structure>, Failure> {
    let bytes = structure::write(structure, Vec::new()).map_err(|error| failed(&error))?;
    structure::read(Kind::of(structure).tag, &bytes).map_err(Error::into)
}

fn copy(call: &mut Call<'_>) -> Answer {
    let (from, to) = (call.args.at(1), call.args.at(2));
    let mut replace = false;
    let mut options = Options::new(call.args, 3);
    while let Some(word) = options.next(&["DB", "REPLACE"])? {
        if word == "REPLACE" {
            replace = true;
        } else if number::integer(options.needed()?).ok_or(Failure::NOT_AN_INTEGER)? != 0 {
            return Err(Failure::new("ERR DB index is out of range"));
        }
    }
    if from == to {
        return Err(Failure::new("ERR source and destination objects are the same"));
    }
    let taken = call.store.find(to).is_some() && !replace;
    let source = call.store.find(from).filter(|_| !taken);
    let Some(source) = source else {
        call.reply.int(0);
        return Ok(());
    };
    let expires = call.store.expires(source);
    let bytes = call.store.get_any(from).map_or(0, Structure::admitted);
    call.store.admit_as(to, bytes)?;
    if let Some(structure) = call.store.get_any(from) {
        let structure = twin(structure)?;
        let slot = call.store.insert(to, structure);
        call.store.expire_at(slot, expires);
        call.changes.note(call.now, &[b"COPY", from, to, b"REPLACE"]);
    }
    call.reply.int(1);
    Ok(())
}

fn dump(call: &mut Call<'_>) -> Answer {
    let Some(structure) = call.store.get_any(call.args.at(1)) else {
        call.reply.null();
        return Ok(());
    };
    if structure.bytes() > MOST {
        let text =
            "ERR the key is too large for one reply; BF.SCANDUMP and CF.SCANDUMP give it in pieces";
        return Err(Failure::new(text));
    }
    let payload = Arriving::head(structure).map_err(|error| failed(&error))?;
    let payload = structure::write(structure, payload).map_err(|error| failed(&error))?;
    call.reply.bulk(&payload);
    Ok(())
}

fn restore(call: &mut Call<'_>) -> Answer {
    let (name, payload) = (call.args.at(1), call.args.at(3));
    let (mut replace, mut absolute) = (false, false);
    let mut options = Options::new(call.args, 4);
    while let Some(word) = options.next(&["REPLACE", "ABSTTL", "IDLETIME", "FREQ"])? {
        match word {
            "REPLACE" => replace = true,
            "ABSTTL" => absolute = true,
            // How Redis forgets for want of memory, which nothing here does.
            _ => drop(number::whole(options.needed()?).ok_or(Failure::NOT_AN_INTEGER)?),
        }
    }
    if call.store.find(name).is_some() && !replace {
        return Err(BUSY);
    }
    let given = number::integer(call.args.at(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let given = u64::try_from(given);
    let given = given.map_err(|_| Failure::new("ERR Invalid TTL value, must be >= 0"))?;
    let since = if absolute { 0 } else { millis(call.now) };
    let expires = Some(given.saturating_add(since)).filter(|_| given > 0);
    // What it becomes takes about as much as the payload, and is held beside it for a moment.
    call.store.admit_as(name, payload.len() as u64)?;
    let structure = Arriving::whole(payload).ok_or(BAD_DUMP)?;
    call.store.admit_as(name, structure.admitted())?;
    if expires.is_some_and(|time| time <= millis(call.now)) {
        if call.store.remove(name).is_some() {
            call.changes.note(call.now, &[b"DEL", name]);
        }
        return words::ok(call);
    }
    let slot = call.store.insert(name, structure);
    call.store.expire_at(slot, expires);
    let expires = expires.unwrap_or(0).to_string();
    let args = [b"RESTORE", name, expires.as_bytes(), payload, b"REPLACE", b"ABSTTL"];
    call.changes.note(call.now, &args);
    words::ok(call)
}
