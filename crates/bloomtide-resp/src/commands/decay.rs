//! DECAY.*: counts that fade, so that a count says how hot a key is now; and the hottest keys. On the time-decaying
//! Bloom filter with a hot list.
//!
//! Time is the session's clock, or what the client says with AT. A name that is not there has no keys: COUNT says
//! so. Everything else needs DECAY.RESERVE first.

use super::words::{self, EXISTS, Field, NOT_FOUND, changed, changing};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::structure::{Held, Kind};
use crate::structures::{Fading, FadingPlan, Moment};
use crate::wire::number;
use bloomtide_core::Key;
use bloomtide_core::filters::{DecayStorage, Fade};

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("DECAY.RESERVE", -6, is::DECAY | is::WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("DECAY.ADD", -3, is::DECAY | is::WRITE | is::FAST, Keys::FIRST, add),
    Command::new("DECAY.MADD", -3, is::DECAY | is::WRITE, Keys::FIRST, add_many),
    Command::new("DECAY.COUNT", -3, is::DECAY | is::READ | is::FAST, Keys::FIRST, count),
    Command::new("DECAY.MCOUNT", -3, is::DECAY | is::READ, Keys::FIRST, count_many),
    Command::new("DECAY.RATE", -3, is::DECAY | is::READ | is::FAST, Keys::FIRST, rate),
    Command::new("DECAY.TOP", -2, is::DECAY | is::READ, Keys::FIRST, top),
    Command::new("DECAY.INFO", 2, is::DECAY | is::READ | is::FAST, Keys::FIRST, info),
];

/// A rate is for this long where nothing is said, in seconds.
const HOUR: f64 = 3600.0;

fn reserve(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let (mut half_life, mut epoch, mut top) = (None, None, None);
    let mut storage = DecayStorage::Basic;
    for at in (4..args.len()).step_by(2) {
        let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
        if args.is(at, "HALFLIFE") {
            half_life = Some(words::duration("half_life", value)?);
        } else if args.is(at, "EPOCH") {
            epoch = Some(words::duration("epoch", value)?);
        } else if args.is(at, "TOP") {
            top = Some(number::whole(value).ok_or(Failure::NOT_AN_INTEGER)?);
        } else if args.is(at, "STORAGE") {
            storage = DecayStorage::parse(&words::shown(value).to_ascii_lowercase())?;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let half_life =
        half_life.ok_or(Failure::new("ERR HALFLIFE must be given, such as HALFLIFE 10m"))?;
    let (capacity, error_rate) = (words::capacity(args.at(2))?, words::error_rate(args.at(3))?);
    let fade = Fade::from_half_life(half_life, epoch, 0.0)?;
    let plan = FadingPlan::for_goal(capacity, error_rate, fade, storage, top)?;
    words::reserve(call, EXISTS, plan.bytes(), || Ok(Fading::new(plan, 0)?.into_structure()))
}

// ---- adding

fn add(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let (mut count, mut moment) = (1, Moment::Now(call.now));
    for at in (3..args.len()).step_by(2) {
        let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
        if args.is(at, "COUNT") {
            count = words::count(value)?;
        } else if args.is(at, "AT") {
            moment = Moment::At(words::instant(value)?);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let slot = changing(call)?;
    let fading = call.store.at_mut::<Fading>(slot)?;
    let hash = fading.hasher().bytes(args.at(2));
    let new = fading.add(hash, args.at(2), count, moment, call.now)?;
    call.reply.bool(new);
    changed(call, slot, Fading::is_due)
}

fn add_many(call: &mut Call<'_>) -> Answer {
    let slot = changing(call)?;
    let (items, now) = (call.args.from(2), call.now);
    let fading = call.store.at_mut::<Fading>(slot)?;
    let hasher = *fading.hasher();
    call.reply.array(items.len());
    for (done, item) in items.iter().enumerate() {
        match fading.add(hasher.bytes(item), item, 1, Moment::Now(now), now) {
            Ok(new) => call.reply.bool(new),
            // Only for want of memory. What is in stays in, so it must be noted.
            Err(error) => {
                let args = call.args.iter().take(2 + done);
                if done > 0 {
                    call.changes.note_all(now, 2 + done, args);
                }
                return Err(error.into());
            }
        }
    }
    changed(call, slot, Fading::is_due)
}

// ---- asking

/// The moment that the options from `at` on name, and what else they say by `other`.
fn options<'a>(
    call: &Call<'a>,
    mut at: usize,
    mut other: impl FnMut(usize, &'a [u8]) -> Result<bool, Failure>,
) -> Result<Moment, Failure> {
    let mut moment = Moment::Now(call.now);
    while at < call.args.len() {
        let value = call.args.get(at + 1).ok_or(Failure::SYNTAX)?;
        if call.args.is(at, "AT") {
            moment = Moment::At(words::instant(value)?);
        } else if !other(at, value)? {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    Ok(moment)
}

fn count(call: &mut Call<'_>) -> Answer {
    let moment = options(call, 3, |_, _| Ok(false))?;
    let (item, now) = (call.args.at(2), call.now);
    let fading = call.store.get::<Fading>(call.args.at(1))?;
    let counted = fading.map(|fading| fading.count(fading.hasher().bytes(item), moment, now));
    call.reply.double(counted.transpose()?.unwrap_or(0.0));
    Ok(())
}

fn count_many(call: &mut Call<'_>) -> Answer {
    let (items, now) = (call.args.from(2), call.now);
    let fading = call.store.get::<Fading>(call.args.at(1))?;
    call.reply.array(items.len());
    for item in items.iter() {
        let count =
            |fading: &Fading| fading.count(fading.hasher().bytes(item), Moment::Now(now), now);
        call.reply.double(fading.map(count).transpose()?.unwrap_or(0.0));
    }
    Ok(())
}

fn rate(call: &mut Call<'_>) -> Answer {
    let (mut per, args) = (HOUR, call.args);
    let moment = options(call, 3, |at, value| {
        if !args.is(at, "PER") {
            return Ok(false);
        }
        per = words::duration("per", value)?;
        Ok(true)
    })?;
    let fading = call.store.get::<Fading>(args.at(1))?.ok_or(NOT_FOUND)?;
    let rate = fading.rate(fading.hasher().bytes(args.at(2)), per, moment, call.now)?;
    call.reply.double(rate);
    Ok(())
}

fn top(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    // The number may be left out, the options too.
    let number = args.get(2).and_then(number::whole);
    let moment = options(call, if number.is_some() { 3 } else { 2 }, |_, _| Ok(false))?;
    let fading = call.store.get::<Fading>(args.at(1))?.ok_or(NOT_FOUND)?;
    let limit = number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let listed = fading.top(limit, moment);
    let listed =
        listed.ok_or(Failure::new("ERR no list was reserved: use DECAY.RESERVE ... TOP k"))?;
    let listed = listed?;
    call.reply.array(listed.len());
    for item in listed {
        call.reply.array(4);
        match item.key {
            Key::Text(key) | Key::Bytes(key) => call.reply.bulk(key),
            Key::Unsigned(key) => call.reply.count(key),
            Key::Negative(key) => call.reply.int(key),
        }
        call.reply.double(item.count);
        call.reply.double(item.lower);
        call.reply.double(item.share);
    }
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let fading = call.store.get::<Fading>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let (filter, hot) = (fading.filter(), fading.hot());
    let plan = filter.plan();
    let time = filter.now().map_or(Field::Nothing, |now| Field::Number(plan.fade.begin_of(now)));
    let half_life = plan.fade.halving().map_or(Field::Nothing, Field::Number);
    let (late, jumps) = filter.history();
    let fields = [
        ("Capacity", Field::Count(plan.capacity.unwrap_or(0))),
        ("Error rate", Field::Number(plan.error_rate.unwrap_or(0.0))),
        ("Half-life", half_life),
        ("Epoch", Field::Number(plan.fade.epoch)),
        ("Storage", Field::Word(plan.storage.name())),
        ("Size", Field::Count(fading.bytes())),
        ("Number of counters", Field::Count(plan.cells())),
        ("Counters per key", Field::Count(plan.hashes().into())),
        ("Number of keys", Field::Count(fading.items())),
        ("Time", time),
        ("Late events", Field::Count(late)),
        ("Clock jumps", Field::Count(jumps)),
        ("Keys in the list", hot.map_or(Field::Nothing, |hot| Field::Count(hot.len() as u64))),
        ("Length of the list", hot.map_or(Field::Nothing, |hot| Field::Count(hot.plan().k))),
    ];
    words::map(call.reply, &fields);
    Ok(())
}
