//! COUNT.*: counts of keys that can be removed again, with bounds. On the partitioned dynamic count filter, or on one
//! of its kin.
//!
//! A name that is not there has no keys: EXISTS and COUNT say so. Everything else needs COUNT.RESERVE first.

use super::words::{self, EXISTS, Field, NOT_FOUND, changed, changing, each_hashed, note};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::structure::{Held, Kind};
use crate::structures::{CountKind, Counts, CountsPlan};
use crate::wire::number;
use crate::wire::reply::Reply;
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
    let kind = match args.len() {
        4 => CountKind::Pdcf,
        6 if args.is(4, "KIND") => {
            let known = CountKind::ALL.iter().find(|(word, _)| args.is(5, word));
            let unknown = || {
                let allowed = "PDCF, DCF, PSBF, SBF or COUNTING";
                Error::parameter("kind", words::shown(args.at(5)), allowed, "leave it out for PDCF")
            };
            known.ok_or_else(unknown)?.1
        }
        _ => return Err(Failure::SYNTAX),
    };
    let (capacity, error_rate) = (words::capacity(args.at(2))?, words::error_rate(args.at(3))?);
    let plan = CountsPlan::for_goal(kind, capacity, error_rate)?;
    words::reserve(call, EXISTS, plan.bytes(), || Ok(Counts::new(plan, 0)?.into_structure()))
}

// ---- changing

fn add(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let count = match args.len() {
        3 => 1,
        4 => words::count(args.at(3))?,
        _ => return Err(words::wrong_number("count.add")),
    };
    let slot = changing(call)?;
    let counts = call.store.at_mut::<Counts>(slot)?;
    let new = counts.add(counts.hasher().bytes(args.at(2)), count)?;
    call.reply.bool(new);
    if count > 0 { changed(call, slot, Counts::is_due) } else { Ok(()) }
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
    let hasher = *counts.hasher();
    call.reply.array(len);
    for at in 0..len {
        let (key, count) = item(at);
        let hash = hasher.bytes(key);
        match counts.add(hash, count) {
            Ok(new) => answer(call.reply, new, &|| counts.count(hash)),
            Err(error) => {
                for (key, count) in (0..at).map(&item) {
                    counts.remove(hasher.bytes(key), count)?;
                }
                return Err(error.into());
            }
        }
    }
    changed(call, slot, Counts::is_due)
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
    let count = match args.len() {
        3 => 1,
        4 => words::count(args.at(3))?,
        _ => return Err(words::wrong_number("count.remove")),
    };
    let slot = call.store.find(args.at(1)).ok_or(NOT_FOUND)?;
    let counts = call.store.at_mut::<Counts>(slot)?;
    let left = counts.remove(counts.hasher().bytes(args.at(2)), count).map_err(absent)?;
    call.reply.count(left);
    if count > 0 { changed(call, slot, Counts::is_due) } else { Ok(()) }
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
    let others = slots.iter().map(|slot| call.store.at::<Counts>(*slot));
    let merged = ours.merged(&others.collect::<Result<Vec<_>, _>>()?)?;
    call.store.admit(merged.bytes().saturating_sub(ours.bytes()))?;
    *call.store.at_mut::<Counts>(target)? = merged;
    call.store.recount(target);
    note(call);
    call.reply.ok();
    Ok(())
}

// ---- asking

fn count(call: &mut Call<'_>) -> Answer {
    let counts = call.store.get::<Counts>(call.args.at(1))?;
    let item = call.args.at(2);
    call.reply.count(counts.map_or(0, |counts| counts.count(counts.hasher().bytes(item))));
    Ok(())
}

fn exists(call: &mut Call<'_>) -> Answer {
    let counts = call.store.get::<Counts>(call.args.at(1))?;
    let item = call.args.at(2);
    call.reply.bool(counts.is_some_and(|counts| counts.count(counts.hasher().bytes(item)) > 0));
    Ok(())
}

/// Writes an answer for each item from its count.
fn ask_all(call: &mut Call<'_>, answer: impl Fn(&mut Reply, u64)) -> Answer {
    let counts = call.store.get::<Counts>(call.args.at(1))?;
    let (items, reply) = (call.args.from(2), &mut *call.reply);
    reply.array(items.len());
    match counts {
        None => items.iter().for_each(|_| answer(reply, 0)),
        Some(counts) => each_hashed(
            items.iter(),
            counts.hasher(),
            |_| {},
            |_, hash| answer(reply, counts.count(hash)),
        ),
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
    let confidence = match args.len() {
        3 => CONFIDENCE,
        5 if args.is(3, "CONFIDENCE") => {
            let given = number::float(args.at(4)).filter(|share| (0.0..1.0).contains(share));
            given.ok_or_else(|| {
                let got = words::shown(args.at(4));
                let allowed = "at least 0 and below 1";
                Error::parameter("confidence", got, allowed, "0.95 is usual")
            })?
        }
        _ => return Err(Failure::SYNTAX),
    };
    let counts = call.store.get::<Counts>(args.at(1))?.ok_or(NOT_FOUND)?;
    let found = counts.estimate(counts.hasher().bytes(args.at(2)), confidence);
    let upper = if found.saturated { Field::Nothing } else { Field::Count(found.value) };
    let fields = [
        ("value", Field::Count(found.value)),
        ("lower", Field::Count(found.lower)),
        ("upper", upper),
        ("confidence", Field::Number(confidence)),
        ("saturated", Field::Bool(found.saturated)),
    ];
    words::map(call.reply, &fields);
    Ok(())
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
        ("Number of keys", Field::Count(counts.items())),
        ("Count of all keys", Field::Count(counts.total())),
        ("Expected error", Field::Number(counts.summary().error)),
    ];
    words::map(call.reply, &fields);
    Ok(())
}
