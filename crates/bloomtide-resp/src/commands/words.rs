//! What several families need to read their requests and to write their answers.

use crate::command::Call;
use crate::failure::{Answer, Failure};
use crate::store::Slot;
use crate::structure::Structure;
use crate::wire::number;
use crate::wire::reply::Reply;
use crate::wire::request::Args;
use bloomtide_core::{Error, Result, instants};

/// No key has that name.
pub(super) const NOT_FOUND: Failure = Failure::new("ERR not found");
/// The name is taken.
pub(super) const EXISTS: Failure = Failure::new("ERR item exists");

/// A request with too many elements, or an odd one.
#[cold]
pub(super) fn wrong_number(name: &str) -> Failure {
    Failure::said(format!("ERR wrong number of arguments for '{name}' command"))
}

/// Notes the request as it is.
#[inline]
pub(super) fn note(call: &mut Call<'_>) {
    call.changes.note_all(call.now, call.args.len(), call.args.iter());
}

/// Refuses a key that the table of commands does not know to be one, if the user may not use it.
pub(super) fn may_use(call: &mut Call<'_>, key: &[u8]) -> Answer {
    match call.users.seated(&call.session.user, &mut call.session.seat) {
        Some(user) if !user.may_use(key) => {
            Err(Failure::new("NOPERM No permissions to access a key"))
        }
        _ => Ok(()),
    }
}

/// Options of a request: words, some of them with a value.
pub(super) struct Options<'a> {
    args: Args<'a>,
    at: usize,
}

impl<'a> Options<'a> {
    /// Those of a request from a place on.
    pub(super) fn new(args: Args<'a>, at: usize) -> Self {
        Options { args, at }
    }

    /// Which of the known words is next; None at the end.
    pub(super) fn next(
        &mut self,
        known: &[&'static str],
    ) -> std::result::Result<Option<&'static str>, Failure> {
        let at = self.at;
        if at >= self.args.len() {
            return Ok(None);
        }
        self.at += 1;
        let word = known.iter().find(|word| self.args.is(at, word));
        word.map(|word| Some(*word)).ok_or(Failure::SYNTAX)
    }

    /// The next element, whatever it is.
    pub(super) fn value(&mut self) -> Option<&'a [u8]> {
        self.at += 1;
        self.args.get(self.at - 1)
    }

    /// The same, where it must be there.
    pub(super) fn needed(&mut self) -> std::result::Result<&'a [u8], Failure> {
        self.value().ok_or(Failure::SYNTAX)
    }

    /// All elements that are left.
    pub(super) fn rest(self) -> Args<'a> {
        self.args.from(self.at)
    }
}

/// Gives the name to a structure of that size, if the name is free and the memory is there.
pub(super) fn reserve<T: Structure>(
    call: &mut Call<'_>,
    exists: Failure,
    bytes: u64,
    make: impl FnOnce() -> Result<T>,
) -> Answer {
    let name = call.args.at(1);
    if call.store.find(name).is_some() {
        return Err(exists);
    }
    call.store.admit_as(name, bytes)?;
    call.store.insert(name, Box::new(make()?));
    note(call);
    ok(call)
}

/// Where the structure is that is about to change, if there is memory for more.
#[inline]
pub(super) fn changing(call: &mut Call<'_>) -> std::result::Result<Slot, Failure> {
    let slot = call.store.find(call.args.at(1)).ok_or(NOT_FOUND)?;
    call.store.admit(0)?;
    Ok(slot)
}

/// Notes so many changes of a structure whose memory may have grown with them.
#[inline]
pub(super) fn changed(call: &mut Call<'_>, slot: Slot, changes: usize) -> Answer {
    call.store.recount_sometimes(slot, changes);
    note(call);
    Ok(())
}

// ---- numbers and times

/// The number of keys that a structure is made for.
pub(super) fn capacity(text: &[u8]) -> Result<u64> {
    number::whole(text).ok_or_else(|| {
        let hint = "give the number of distinct keys you expect";
        Error::parameter("capacity", shown(text), "a whole number", hint)
    })
}

/// A chance of a wrong answer.
pub(super) fn error_rate(text: &[u8]) -> Result<f64> {
    number::float(text).ok_or_else(|| {
        let hint = "0.01 means one wrong \"present\" in a hundred absent keys";
        Error::parameter("error_rate", shown(text), "a number", hint)
    })
}

/// How often something happened.
#[inline]
pub(super) fn count(text: &[u8]) -> Result<u64> {
    number::whole(text).ok_or_else(|| {
        let allowed = "a whole number, at least 0";
        Error::parameter("count", shown(text), allowed, "leave it out for 1")
    })
}

/// A length of time in seconds, above zero.
pub(super) fn duration(name: &'static str, text: &[u8]) -> Result<f64> {
    let seconds = str::from_utf8(text).ok().and_then(instants::duration);
    seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0).ok_or_else(|| {
        let hint = "write 90s, 15m, 1h30m or 7d, or a number of seconds";
        Error::parameter(name, shown(text), "a length of time above zero", hint)
    })
}

/// A moment in seconds since 1970.
pub(super) fn instant(text: &[u8]) -> Result<f64> {
    instants::instant(text).ok_or_else(|| {
        let hint = "give seconds since 1970, or ISO 8601 with its zone";
        Error::parameter("at", shown(text), "an instant", hint)
    })
}

/// What a client sent, as an error shows it.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned()
}

// ---- maps

/// One value of an answer that describes a structure.
pub(super) enum Field<'a> {
    /// A whole number.
    Count(u64),
    /// A number with a fraction.
    Number(f64),
    /// A word.
    Word(&'a str),
    /// Nothing.
    Nothing,
    /// Yes or no.
    Bool(bool),
}

/// Writes names with their values.
pub(super) fn map(reply: &mut Reply, fields: &[(&str, Field<'_>)]) -> Answer {
    reply.map(fields.len());
    for (name, field) in fields {
        reply.simple(name);
        value(reply, field);
    }
    Ok(())
}

/// Answers that it was done.
pub(super) fn ok(call: &mut Call<'_>) -> Answer {
    call.reply.ok();
    Ok(())
}

/// Writes one value.
pub(super) fn value(reply: &mut Reply, value: &Field<'_>) {
    match *value {
        Field::Count(value) => reply.count(value),
        Field::Number(value) => reply.double(value),
        Field::Word(word) => reply.bulk(word.as_bytes()),
        Field::Nothing => reply.null(),
        Field::Bool(value) => reply.bool(value),
    }
}
