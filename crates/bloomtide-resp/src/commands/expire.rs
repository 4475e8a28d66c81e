//! When names expire: at an instant in milliseconds, which the journal has as such. A time that is over forgets the
//! name at once.

use crate::command::{Call, Command, Keys, is};
use crate::expiry::millis;
use crate::failure::{Answer, Failure};
use crate::store::{Slot, Time};
use crate::wire::number;

const READ: u32 = is::KEYSPACE | is::READ | is::FAST;
const WRITE: u32 = is::KEYSPACE | is::WRITE | is::FAST;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("EXPIRE", -3, WRITE, Keys::FIRST, expire::<true, false>),
    Command::new("PEXPIRE", -3, WRITE, Keys::FIRST, expire::<false, false>),
    Command::new("EXPIREAT", -3, WRITE, Keys::FIRST, expire::<true, true>),
    Command::new("PEXPIREAT", -3, WRITE, Keys::FIRST, expire::<false, true>),
    Command::new("PERSIST", 2, WRITE, Keys::FIRST, persist),
    Command::new("TTL", 2, READ, Keys::FIRST, ttl::<true, false>),
    Command::new("PTTL", 2, READ, Keys::FIRST, ttl::<false, false>),
    Command::new("EXPIRETIME", 2, READ, Keys::FIRST, ttl::<true, true>),
    Command::new("PEXPIRETIME", 2, READ, Keys::FIRST, ttl::<false, true>),
];

#[cold]
pub(super) fn invalid(command: &str) -> Failure {
    Failure::said(format!("ERR invalid expire time in '{command}' command"))
}

/// The instant in milliseconds that a request means, which may be before 1970.
pub(super) fn time(
    given: i64,
    seconds: bool,
    absolute: bool,
    now: f64,
    command: &str,
) -> Result<i64, Failure> {
    let scaled = given.checked_mul(if seconds { 1000 } else { 1 });
    let since = if absolute { 0 } else { millis(now) as i64 };
    scaled.and_then(|given| given.checked_add(since)).ok_or_else(|| invalid(command))
}

/// Lets the name at a slot expire then, or never, and notes it. A time that is over forgets it.
pub(super) fn set(call: &mut Call<'_>, slot: Slot, expires: Option<Time>) {
    let name = call.args.at(1);
    match expires {
        Some(time) if time <= millis(call.now) => {
            call.store.remove(name);
            call.changes.note(call.now, &[b"DEL", name]);
        }
        Some(time) => {
            call.store.expire_at(slot, expires);
            let time = time.to_string();
            call.changes.note(call.now, &[b"PEXPIREAT", name, time.as_bytes()]);
        }
        None => {
            call.store.expire_at(slot, None);
            call.changes.note(call.now, &[b"PERSIST", name]);
        }
    }
}

fn expire<const SECONDS: bool, const ABSOLUTE: bool>(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let [mut nx, mut xx, mut gt, mut lt] = [false; 4];
    for place in 3..args.len() {
        let known = [("NX", &mut nx), ("XX", &mut xx), ("GT", &mut gt), ("LT", &mut lt)];
        let word = known.into_iter().find(|(word, _)| args.is(place, word));
        let (_, said) = word.ok_or_else(|| {
            let got = String::from_utf8_lossy(args.at(place));
            Failure::said(format!("ERR Unsupported option {got}"))
        })?;
        *said = true;
    }
    if nx && (xx || gt || lt) {
        let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(Failure::new(text));
    }
    if gt && lt {
        let text = "ERR GT and LT options at the same time are not compatible";
        return Err(Failure::new(text));
    }
    let given = number::integer(args.at(2)).ok_or(Failure::NOT_AN_INTEGER)?;
    let command = String::from_utf8_lossy(args.at(0)).to_ascii_lowercase();
    let time = time(given, SECONDS, ABSOLUTE, call.now, &command)?;
    let time = u64::try_from(time).unwrap_or(0);
    let Some(slot) = call.store.find(args.at(1)) else {
        call.reply.int(0);
        return Ok(());
    };
    // Who never expires does so later than everybody.
    let before = call.store.expires(slot);
    let refused = (nx && before.is_some())
        || (xx && before.is_none())
        || (gt && before.is_none_or(|before| time <= before))
        || (lt && before.is_some_and(|before| time >= before));
    if !refused {
        set(call, slot, Some(time));
    }
    call.reply.int(i64::from(!refused));
    Ok(())
}

fn persist(call: &mut Call<'_>) -> Answer {
    let slot = call.store.find(call.args.at(1));
    let slot = slot.filter(|slot| call.store.expires(*slot).is_some());
    if let Some(slot) = slot {
        set(call, slot, None);
    }
    call.reply.int(i64::from(slot.is_some()));
    Ok(())
}

fn ttl<const SECONDS: bool, const ABSOLUTE: bool>(call: &mut Call<'_>) -> Answer {
    let answer = match call.store.look(call.args.at(1)) {
        None => -2,
        Some(slot) => call.store.expires(slot).map_or(-1, |time| {
            let since = if ABSOLUTE { 0 } else { millis(call.now) };
            let left = time.saturating_sub(since) as i64;
            if SECONDS { left.saturating_add(500) / 1000 } else { left }
        }),
    };
    call.reply.int(answer);
    Ok(())
}
