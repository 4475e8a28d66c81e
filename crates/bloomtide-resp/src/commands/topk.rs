//! TOPK.*: the keys that came most often. Replies, defaults and texts of errors are those of RedisBloom, but a
//! request that is refused changes nothing.

use super::words::{self, Field, note};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::structure::Structure;
use crate::structures::{HASHER, TopK, TopKPlan};
use crate::wire::number;
use crate::wire::reply::Reply;
use crate::wire::request::Args;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("TOPK.RESERVE", -3, is::TOPK | is::WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("TOPK.ADD", -3, is::TOPK | is::WRITE, Keys::FIRST, add),
    Command::new("TOPK.INCRBY", -4, is::TOPK | is::WRITE, Keys::FIRST, increase),
    Command::new("TOPK.QUERY", -3, is::TOPK | is::READ, Keys::FIRST, query),
    Command::new("TOPK.COUNT", -3, is::TOPK | is::READ, Keys::FIRST, count),
    Command::new("TOPK.LIST", -2, is::TOPK | is::READ, Keys::FIRST, list),
    Command::new("TOPK.INFO", 2, is::TOPK | is::READ | is::FAST, Keys::FIRST, info),
];

const MISSING: Failure = Failure::new("TopK: key does not exist");
const EXISTS: Failure = Failure::new("TopK: key already exists");
/// Sizes where none are given.
const USUAL: TopKPlan = TopKPlan { k: 1, width: 8, depth: 7, decay: 0.9 };
/// The most that one request may add to a key.
const MOST: u64 = 100_000;

fn reserve(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    if args.len() != 3 && args.len() != 6 {
        return Err(words::wrong_number("topk.reserve"));
    }
    let size = |place: usize, wrong| {
        let size = number::whole(args.at(place));
        size.filter(|size| (1..=u32::MAX.into()).contains(size)).ok_or(Failure::new(wrong))
    };
    let mut plan = TopKPlan { k: size(2, "TopK: invalid k")?, ..USUAL };
    if args.len() == 6 {
        plan.width = size(3, "TopK: invalid width")?;
        plan.depth = size(4, "TopK: invalid depth")?;
        let decay = number::float(args.at(5)).filter(|decay| *decay > 0.0 && *decay <= 1.0);
        let wrong = "TopK: invalid decay value. must be '<= 1' & '> 0'";
        plan.decay = decay.ok_or(Failure::new(wrong))?;
    }
    let plan = plan.checked()?;
    words::reserve(call, EXISTS, plan.bytes(), || TopK::new(plan))
}

fn add(call: &mut Call<'_>) -> Answer {
    let items = call.args.from(2);
    add_all(call, items.len(), |place| (items.at(place), 1))
}

fn increase(call: &mut Call<'_>) -> Answer {
    let pairs = call.args.from(2);
    if pairs.len() % 2 == 1 {
        return Err(words::wrong_number("topk.incrby"));
    }
    let amount = |place: usize| number::whole(pairs.at(place)).filter(|amount| *amount <= MOST);
    if (1..pairs.len()).step_by(2).any(|place| amount(place).is_none()) {
        let text = "TopK: increment must be an integer greater or equal to 0 and smaller or equal to 100,000";
        return Err(Failure::new(text));
    }
    let pair = |at: usize| (pairs.at(2 * at), amount(2 * at + 1).unwrap_or(0) as u32);
    add_all(call, pairs.len() / 2, pair)
}

/// Adds items with their counts; answers whom each expelled.
fn add_all<'a>(
    call: &mut Call<'a>,
    count: usize,
    item: impl Fn(usize) -> (&'a [u8], u32),
) -> Answer {
    let slot = call.store.find(call.args.at(1)).ok_or(MISSING)?;
    call.store.admit(0)?;
    let top = call.store.at_mut::<TopK>(slot)?;
    let before = top.bytes();
    if count > 1 {
        (0..count).for_each(|at| top.prefetch(HASHER.bytes(item(at).0)));
    }
    call.reply.array(count);
    for at in 0..count {
        let (item, count) = item(at);
        match top.add(HASHER.bytes(item), item, count) {
            Some(expelled) => call.reply.bulk(&expelled),
            None => call.reply.null(),
        }
    }
    if top.bytes() != before {
        call.store.recount(slot);
    }
    note(call);
    Ok(())
}

fn ask<'a>(call: &'a mut Call<'_>) -> Result<(&'a TopK, Args<'a>, &'a mut Reply), Failure> {
    let top = call.store.get::<TopK>(call.args.at(1))?.ok_or(MISSING)?;
    Ok((top, call.args.from(2), call.reply))
}

fn query(call: &mut Call<'_>) -> Answer {
    let (top, items, reply) = ask(call)?;
    reply.array(items.len());
    items.iter().for_each(|item| reply.bool(top.contains(HASHER.bytes(item))));
    Ok(())
}

fn count(call: &mut Call<'_>) -> Answer {
    let (top, items, reply) = ask(call)?;
    reply.array(items.len());
    items.iter().for_each(|item| reply.count(top.count(HASHER.bytes(item)).into()));
    Ok(())
}

fn list(call: &mut Call<'_>) -> Answer {
    if call.args.len() > 3 {
        return Err(words::wrong_number("topk.list"));
    }
    let counted = call.args.len() == 3;
    if counted && !call.args.is(2, "WITHCOUNT") {
        return Err(Failure::new("WITHCOUNT keyword expected"));
    }
    let (top, _, reply) = ask(call)?;
    let list = top.list();
    reply.array(list.len() * if counted { 2 } else { 1 });
    for (item, count) in list {
        reply.bulk(item);
        if counted {
            reply.count(count.into());
        }
    }
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let (top, _, reply) = ask(call)?;
    let TopKPlan { k, width, depth, decay } = top.plan;
    let fields = [
        ("k", Field::Count(k)),
        ("width", Field::Count(width)),
        ("depth", Field::Count(depth)),
        ("decay", Field::Number(decay)),
    ];
    words::map(reply, &fields)
}
