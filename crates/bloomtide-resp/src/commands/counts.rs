//! COUNT.*: counts of keys that can be removed again, with bounds. On the partitioned dynamic count filter, or on one
//! of its kin.
//!
//! A name that is not there has no keys: EXISTS and COUNT say so. Everything else needs COUNT.RESERVE first.

use super::words::{self, EXISTS, Field, NOT_FOUND, Options, changed, changing, note};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::structure::Structure;
use crate::structures::{COUNT_KINDS, Counts, CountsPlan, HASHER};
use crate::wire::number;
use crate::wire::reply::Reply;
use crate::wire::request::Args;
use bloomtide_core::Error;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("COUNT.RESERVE", -4, is::COUNT | is::WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("COUNT.ADD", -3, is::COUNT | is::WRITE | is::FAST, Keys::FIRST, add),
    Command::new("COUNT.MADD", -3, is::COUNT | is::WRITE, Keys::FIRST, add_many),
    Command::new("COUNT.INCRBY", -4, is::COUNT | is::WRITE, Keys::FIRST, increase),
    Command::new("COUNT.REMOVE", -3, is::COUNT | is::WRITE | is::FAST, Keys::FIRST, remove),
    Command::new("COUNT.COUNT", 3, is::COUNT | is::READ | is::FAST, Keys::FIRST, count),
    Command::new("COUNT.MCOUNT", -3, is::COUNT | is::READ, Keys::FIRST, count_many),
    Command::new("COUNT.ESTIMATE", -3, is::COUNT | is::READ, Keys::FIRST, estimate),
    Command::new("COUNT.EXISTS", 3, is::COUNT | is::READ | is::FAST, Keys::FIRST, exists),
    Command::new("COUNT.MEXISTS", -3, is::COUNT | is::READ, Keys::FIRST, exists_many),
    Command::new("COUNT.INFO", 2, is::COUNT | is::READ | is::FAST, Keys::FIRST, info),
    Command::new("COUNT.MERGE", -3, is::COUNT | is::WRITE, Keys::ALL, merge),
];

/// The confidence of a lower bound where none is given.
const CONFIDENCE: f64 = 0.95;

fn reserve(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let mut kind = COUNT_KINDS[0];
    let mut options = Options::new(args, 4);
    while options.next(&["KIND"])?.is_some() {
        let word = options.needed()?;
        let known = COUNT_KINDS.iter().find(|kind| word.eq_ignore_ascii_case(kind.0.as_bytes()));
        kind = *known.ok_or_else(|| {
            let allowed = "PDCF, DCF, PSBF, SBF or COUNTING";
            Error::parameter("kind", words::shown(word), allowed, "leave it out for PDCF")
        })?;
    }
    let (capacity, error_rate) = (words::capacity(args.at(2))?, words::error_rate(args.at(3))?);
    let plan = CountsPlan::for_goal(kind.1, kind.2, capacity, error_rate)?;
    words::reserve(call, EXISTS, plan.bytes(), || Counts::new(plan))
}

// ---- changing

/// How often, if the request for one item says it.
fn times(args: Args<'_>, name: &str) -> Result<u64, Failure> {
    match args.len() {
        3 => Ok(1),
        4 => Ok(words::count(args.at(3))?),
        _ => Err(words::wrong_number(name)),
    }
}

fn add(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let count = times(args, "count.add")?;
    let slot = changing(call)?;
    let counts = call.store.at_mut::<Counts>(slot)?;
    let new = counts.add(HASHER.bytes(args.at(2)), count)?;
    call.reply.bool(new);
    if count > 0 { changed(call, slot, 1) } else { Ok(()) }
}

/// Adds items with their counts, and writes an answer for each. What was added before a failure is taken back.
fn add_all<'a>(
    call: &mut Call<'a>,
    len: usize,
    item: impl Fn(usize) -> (&'a [u8], u64),
    answer: impl Fn(&mut Reply, bool, &dyn Fn() -> u64),
) -> Answer {
    let slot = changing(call)?;
    let counts = call.store.at_mut::<Counts>(slot)?;
    call.reply.array(len);
    for at in 0..len {
        let (key, count) = item(at);
        let hash = HASHER.bytes(key);
        match counts.add(hash, count) {
            Ok(new) => answer(call.reply, new, &|| counts.count(hash)),
            Err(error) => {
                for (key, count) in (0..at).map(&item) {
                    counts.remove(HASHER.bytes(key), count)?;
                }
                return Err(error.into());
            }
        }
    }
    changed(call, slot, len)
}

fn add_many(call: &mut Call<'_>) -> Answer {
    let items = call.args.from(2);
    add_all(call, items.len(), |at| (items.at(at), 1), |reply, new, _| reply.bool(new))
}

fn increase(call: &mut Call<'_>) -> Answer {
    let pairs = call.args.from(2);
    if pairs.len() % 2 == 1 {
        return Err(words::wrong_number("count.incrby"));
    }
    for place in (1..pairs.len()).step_by(2) {
        words::count(pairs.at(place))?;
    }
    let pair = |at: usize| (pairs.at(2 * at), number::whole(pairs.at(2 * at + 1)).unwrap_or(0));
    add_all(call, pairs.len() / 2, pair, |reply, _, count| reply.count(count()))
}

fn remove(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let count = times(args, "count.remove")?;
    let slot = call.store.find(args.at(1)).ok_or(NOT_FOUND)?;
    let counts = call.store.at_mut::<Counts>(slot)?;
    let left = counts.remove(HASHER.bytes(args.at(2)), count).map_err(absent)?;
    call.reply.count(left);
    if count > 0 { changed(call, slot, 1) } else { Ok(()) }
}

/// A removal that was refused says what is there.
#[cold]
fn absent(error: Error) -> Failure {
    match error {
        Error::AbsentKey { .. } => Failure::said(format!("ABSENT {error}")),
        other => other.into(),
    }
}

fn merge(call: &mut Call<'_>) -> Answer {
    let target = call.store.find(call.args.at(1)).ok_or(NOT_FOUND)?;
    let mut slots = Vec::with_capacity(call.args.len() - 2);
    for name in call.args.from(2).iter() {
        slots.push(call.store.find(name).ok_or(NOT_FOUND)?);
    }
    let ours = call.store.at::<Counts>(target)?;
    // The old one and the new one are there together for a moment.
    call.store.admit(ours.bytes())?;
    let others = slots.iter().map(|slot| call.store.at::<Counts>(*slot));
    let merged = ours.merged(&others.collect::<Result<Vec<_>, _>>()?)?;
    call.store.admit(merged.bytes().saturating_sub(ours.bytes()))?;
    *call.store.at_mut::<Counts>(target)? = merged;
    call.store.recount(target);
    note(call);
    words::ok(call)
}

// ---- asking

/// The count of the item that a request names; 0 if there is no such key.
fn count_of(call: &mut Call<'_>) -> Result<u64, Failure> {
    let counts = call.store.get::<Counts>(call.args.at(1))?;
    Ok(counts.map_or(0, |counts| counts.count(HASHER.bytes(call.args.at(2)))))
}

fn count(call: &mut Call<'_>) -> Answer {
    let count = count_of(call)?;
    call.reply.count(count);
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Answer {
    let count = count_of(call)?;
    call.reply.bool(count > 0);
    Ok(())
}

/// Writes an answer for each item from its count.
fn ask_all(call: &mut Call<'_>, answer: impl Fn(&mut Reply, u64)) -> Answer {
    let counts = call.store.get::<Counts>(call.args.at(1))?;
    let (items, reply) = (call.args.from(2), &mut *call.reply);
    reply.array(items.len());
    for item in items.iter() {
        answer(reply, counts.map_or(0, |counts| counts.count(HASHER.bytes(item))));
    }
    Ok(())
}

fn count_many(call: &mut Call<'_>) -> Answer {
    ask_all(call, |reply, count| reply.count(count))
}

fn exists_many(call: &mut Call<'_>) -> Answer {
    ask_all(call, |reply, count| reply.bool(count > 0))
}

fn estimate(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let mut confidence = CONFIDENCE;
    let mut options = Options::new(args, 3);
    while options.next(&["CONFIDENCE"])?.is_some() {
        let given = options.needed()?;
        let share = number::float(given).filter(|share| (0.0..1.0).contains(share));
        confidence = share.ok_or_else(|| {
            let allowed = "at least 0 and below 1";
            Error::parameter("confidence", words::shown(given), allowed, "0.95 is usual")
        })?;
    }
    let counts = call.store.get::<Counts>(args.at(1))?.ok_or(NOT_FOUND)?;
    let found = counts.estimate(HASHER.bytes(args.at(2)), confidence);
    let upper = if found.saturated { Field::Nothing } else { Field::Count(found.value) };
    let fields = [
        ("value", Field::Count(found.value)),
        ("lower", Field::Count(found.lower)),
        ("upper", upper),
        ("confidence", Field::Number(confidence)),
        ("saturated", Field::Bool(found.saturated)),
    ];
    words::map(call.reply, &fields)
}

fn info(call: &mut Call<'_>) -> Answer {
    let counts = call.store.get::<Counts>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let ((capacity, error_rate), placement) = (counts.goal(), counts.placement());
    let fields = [
        ("Kind", Field::Word(counts.kind())),
        ("Capacity", Field::Count(capacity)),
        ("Error rate", Field::Number(error_rate)),
        ("Size", Field::Count(counts.bytes())),
        ("Number of counters", Field::Count(placement.cells)),
        ("Counters per key", Field::Count(placement.hashes.into())),
        ("Number of keys", Field::Count(counts.items)),
        ("Count of all keys", Field::Count(counts.total)),
        ("Expected error", Field::Number(counts.summary().error)),
    ];
    words::map(call.reply, &fields)
}
