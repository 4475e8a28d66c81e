//! Commands about names, of whatever they stand for, and small texts.

use super::expire;
use super::words::{self, Options};
use crate::command::{Call, Command, Keys, is};
use crate::expiry;
use crate::failure::{Answer, Failure};
use crate::pattern;
use crate::structure::Kind;
use crate::structures::Text;
use crate::wire::number;

const READ: u32 = is::KEYSPACE | is::READ;
const WRITE: u32 = is::KEYSPACE | is::WRITE;
const TEXT: u32 = is::STRING | is::FAST;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("DEL", -2, WRITE, Keys::ALL, del),
    Command::new("UNLINK", -2, WRITE | is::FAST, Keys::ALL, del),
    Command::new("EXISTS", -2, READ | is::FAST, Keys::ALL, exists),
    Command::new("TOUCH", -2, READ | is::FAST, Keys::ALL, touch),
    Command::new("TYPE", 2, READ | is::FAST, Keys::FIRST, type_of),
    Command::new("KEYS", 2, READ | is::DANGEROUS, Keys::NONE, keys),
    Command::new("SCAN", -2, READ, Keys::NONE, scan),
    Command::new("RANDOMKEY", 1, READ, Keys::NONE, random_key),
    Command::new("DBSIZE", 1, READ | is::FAST, Keys::NONE, size),
    Command::new("FLUSHDB", -1, WRITE | is::DANGEROUS, Keys::NONE, flush),
    Command::new("FLUSHALL", -1, WRITE | is::DANGEROUS, Keys::NONE, flush),
    Command::new("SET", -3, TEXT | is::WRITE, Keys::FIRST, set),
    Command::new("GET", 2, TEXT | is::READ, Keys::FIRST, get),
    Command::new("STRLEN", 2, TEXT | is::READ, Keys::FIRST, strlen),
    Command::new("OBJECT", -2, READ, Keys(2, 2, 1), object),
    Command::new("MEMORY", -2, READ, Keys(2, 2, 1), memory),
    Command::new("WAIT", 3, is::CONNECTION, Keys::NONE, wait),
];

const OBJECT_HELP: [&str; 5] = [
    "OBJECT <subcommand> <key>. Subcommands are:",
    "ENCODING -- the kind of the structure, in the words of this product.",
    "IDLETIME -- seconds since the key was last used, or the server began.",
    "REFCOUNT -- 1.",
    "HELP -- this.",
];
const NO_FREQUENCIES: Failure = Failure::new(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
    between policies at runtime LRU and LFU data will take some time to adjust.",
);

fn del(call: &mut Call<'_>) -> Answer {
    let mut gone = 0;
    for name in call.args.from(1).iter() {
        if call.store.remove(name).is_some() {
            call.changes.note(call.now, &[b"DEL", name]);
            gone += 1;
        }
    }
    call.reply.int(gone);
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Answer {
    let found = call.args.from(1).iter().filter(|name| call.store.look(name).is_some()).count();
    call.reply.int(found as i64);
    Ok(())
}

fn touch(call: &mut Call<'_>) -> Answer {
    let found = call.args.from(1).iter().filter(|name| call.store.find(name).is_some()).count();
    call.reply.int(found as i64);
    Ok(())
}

fn type_of(call: &mut Call<'_>) -> Answer {
    let held = call.store.get_any(call.args.at(1));
    call.reply.simple(held.map_or("none", |held| Kind::of(held).type_name));
    Ok(())
}

/// Names that the asking user may use.
fn may_see(call: &mut Call<'_>) -> impl Fn(&[u8]) -> bool + use<> {
    let user = call.users.seated(&call.session.user, &mut call.session.seat).cloned();
    move |name: &[u8]| user.as_ref().is_none_or(|user| user.may_everything() || user.may_use(name))
}

fn keys(call: &mut Call<'_>) -> Answer {
    expiry::forget_due(usize::MAX, call.store, call.changes, call.now);
    let may = may_see(call);
    let wanted = call.args.at(1);
    let names = call.store.iter().map(|(name, _)| name);
    let names: Vec<&[u8]> =
        names.filter(|name| pattern::matches(wanted, name) && may(name)).collect();
    call.reply.array(names.len());
    names.into_iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

/// The cursor is the slot to go on with, so what is there from the first call to the last is seen once.
fn scan(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let cursor = number::whole(args.at(1)).ok_or(Failure::new("ERR invalid cursor"))?;
    let (mut wanted, mut count, mut kind) = (None, 10, None);
    let mut options = Options::new(args, 2);
    while let Some(word) = options.next(&["MATCH", "COUNT", "TYPE"])? {
        let value = options.needed()?;
        match word {
            "MATCH" => wanted = Some(value),
            "COUNT" => {
                let given = number::integer(value).ok_or(Failure::NOT_AN_INTEGER)?;
                count = usize::try_from(given).ok().filter(|n| *n > 0).ok_or(Failure::SYNTAX)?;
            }
            _ => kind = Some(value),
        }
    }
    let may = may_see(call);
    let (mut names, mut due) = (Vec::new(), Vec::new());
    let mut next = 0;
    let from = usize::try_from(cursor).unwrap_or(usize::MAX);
    for (looked, (slot, name, held)) in call.store.iter_from(from).enumerate() {
        if looked == count {
            next = slot;
            break;
        }
        if call.is_due(slot) {
            due.push(name.to_vec());
            continue;
        }
        let named = wanted.is_none_or(|wanted| pattern::matches(wanted, name));
        let kind =
            kind.is_none_or(|kind| kind.eq_ignore_ascii_case(Kind::of(held).type_name.as_bytes()));
        if named && kind && may(name) {
            names.push(name);
        }
    }
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(names.len());
    names.into_iter().for_each(|name| call.reply.bulk(name));
    call.forget(due);
    Ok(())
}

fn random_key(call: &mut Call<'_>) -> Answer {
    let may = may_see(call);
    // Without randomness of its own, the core takes the time for it.
    let slots = call.store.len().max(1) as u64;
    let from = (call.now.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % slots;
    let mut due = Vec::new();
    let mut found = None;
    for (slot, name, _) in call.store.iter_from(from as usize).chain(call.store.iter_from(0)) {
        if call.is_due(slot) {
            due.push(name.to_vec());
        } else if may(name) {
            found = Some(name);
            break;
        }
    }
    match found {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null(),
    }
    call.forget(due);
    Ok(())
}

fn size(call: &mut Call<'_>) -> Answer {
    call.reply.int(call.store.len() as i64);
    Ok(())
}

fn flush(call: &mut Call<'_>) -> Answer {
    let mut options = Options::new(call.args, 1);
    options.next(&["ASYNC", "SYNC"])?;
    options.next(&[])?;
    if !call.store.is_empty() {
        call.store.clear();
        call.changes.note(call.now, &[b"FLUSHALL"]);
    }
    words::ok(call)
}

// ---- texts

fn set(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let (name, value) = (args.at(1), args.at(2));
    let (mut if_absent, mut if_there) = (false, false);
    let mut options = Options::new(args, 3);
    let (mut expires, mut kept, mut times) = (None, false, 0);
    while let Some(word) = options.next(&["NX", "XX", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"])? {
        match word {
            "NX" => if_absent = true,
            "XX" => if_there = true,
            "KEEPTTL" => (kept, times) = (true, times + 1),
            _ => {
                let given = number::integer(options.needed()?).ok_or(Failure::NOT_AN_INTEGER)?;
                let (seconds, absolute) = (!word.starts_with('P'), word.ends_with("AT"));
                let time = expire::time(given, seconds, absolute, call.now, "set")?;
                let wrong = expire::invalid("set");
                expires = Some(u64::try_from(time).ok().filter(|_| given > 0).ok_or(wrong)?);
                times += 1;
            }
        }
    }
    if (if_absent && if_there) || times > 1 {
        return Err(Failure::SYNTAX);
    }
    let there = call.store.find(name);
    expires = if kept { there.and_then(|slot| call.store.expires(slot)) } else { expires };
    let there = there.is_some();
    if (if_absent && there) || (if_there && !there) {
        call.reply.null();
        return Ok(());
    }
    call.store.admit_as(name, value.len() as u64)?;
    let slot = call.store.insert(name, Box::new(Text(value.to_vec())));
    call.changes.note(call.now, &[b"SET", name, value]);
    if expires.is_some() {
        expire::set(call, slot, expires);
    }
    words::ok(call)
}

fn get(call: &mut Call<'_>) -> Answer {
    match call.store.get::<Text>(call.args.at(1))? {
        Some(text) => call.reply.bulk(&text.0),
        None => call.reply.null(),
    }
    Ok(())
}

fn strlen(call: &mut Call<'_>) -> Answer {
    let text = call.store.get::<Text>(call.args.at(1))?;
    call.reply.int(text.map_or(0, |text| text.0.len() as i64));
    Ok(())
}

// ---- about a name

fn object(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    if args.is(1, "HELP") && args.len() == 2 {
        call.reply.array(OBJECT_HELP.len());
        OBJECT_HELP.iter().for_each(|line| call.reply.simple(line));
        return Ok(());
    }
    let known = ["ENCODING", "REFCOUNT", "IDLETIME", "FREQ"];
    let word = known.into_iter().find(|word| args.is(1, word));
    let word = word.ok_or_else(|| subcommand("object", call))?;
    if args.len() != 3 {
        return Err(words::wrong_number(&format!("object|{}", word.to_ascii_lowercase())));
    }
    let held = call.store.get_any(args.at(2)).map(|held| held.kind());
    match (held, word) {
        (None, _) => call.reply.null(),
        (Some(kind), "ENCODING") => call.reply.bulk(kind.as_bytes()),
        (Some(_), "REFCOUNT") => call.reply.int(1),
        (Some(_), "IDLETIME") => {
            let idle = call.store.idle(args.at(2)).unwrap_or(0);
            call.reply.int(idle.into());
        }
        _ => return Err(NO_FREQUENCIES),
    }
    Ok(())
}

/// There are no replicas to wait for.
fn wait(call: &mut Call<'_>) -> Answer {
    for place in [1, 2] {
        let given = number::integer(call.args.at(place)).ok_or(Failure::NOT_AN_INTEGER)?;
        if given < 0 && place == 2 {
            return Err(Failure::new("ERR timeout is negative"));
        }
    }
    call.reply.int(0);
    Ok(())
}

fn memory(call: &mut Call<'_>) -> Answer {
    if !call.args.is(1, "USAGE") {
        return Err(subcommand("memory", call));
    }
    match call.store.counted(call.args.at(2)) {
        Some(bytes) => call.reply.count(bytes),
        None => call.reply.null(),
    }
    Ok(())
}

/// The refusal of a subcommand that is not known.
pub fn subcommand(name: &str, call: &Call<'_>) -> Failure {
    let got = String::from_utf8_lossy(call.args.at(1));
    let name = name.to_ascii_uppercase();
    Failure::said(format!("ERR unknown subcommand '{got}'. Try {name} HELP."))
}
