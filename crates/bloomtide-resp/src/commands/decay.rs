//! DECAY.*: counts that fade, so that a count says how hot a key is now; and the hottest keys. On the time-decaying
//! Bloom filter with a hot list.
//!
//! Time is the session's clock, or what the client says with AT. A name that is not there has no keys: COUNT says
//! so. Everything else needs DECAY.RESERVE first.

use super::words::{self, EXISTS, Field, NOT_FOUND, Options, changed, changing};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::structure::Structure;
use crate::structures::{Fading, FadingPlan, Moment};
use crate::wire::number;
use bloomtide_core::Key;
use bloomtide_core::event_time::Oddities;
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
    let mut options = Options::new(args, 4);
    while let Some(word) = options.next(&["HALFLIFE", "EPOCH", "TOP", "STORAGE"])? {
        let value = options.needed()?;
        match word {
            "HALFLIFE" => half_life = Some(words::duration("half_life", value)?),
            "EPOCH" => epoch = Some(words::duration("epoch", value)?),
            "TOP" => top = Some(number::whole(value).ok_or(Failure::NOT_AN_INTEGER)?),
            _ => storage = DecayStorage::parse(&words::shown(value).to_ascii_lowercase())?,
        }
    }
    let half_life =
        half_life.ok_or(Failure::new("ERR HALFLIFE must be given, such as HALFLIFE 10m"))?;
    let (capacity, error_rate) = (words::capacity(args.at(2))?, words::error_rate(args.at(3))?);
    let fade = Fade::from_half_life(half_life, epoch, 0.0)?;
    let plan = FadingPlan::for_goal(capacity, error_rate, fade, storage, top)?;
    words::reserve(call, EXISTS, plan.bytes(), || Fading::new(plan))
}

/// What options say of an event or a question.
struct Said {
    count: u64,
    per: f64,
    moment: Moment,
}

fn said(call: &Call<'_>, at: usize, known: &[&'static str]) -> Result<Said, Failure> {
    let mut said = Said { count: 1, per: HOUR, moment: Moment::Now(call.now) };
    let mut options = Options::new(call.args, at);
    while let Some(word) = options.next(known)? {
        let value = options.needed()?;
        match word {
            "COUNT" => said.count = words::count(value)?,
            "PER" => said.per = words::duration("per", value)?,
            _ => said.moment = Moment::At(words::instant(value)?),
        }
    }
    Ok(said)
}

// ---- adding

fn add(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let Said { count, moment, .. } = said(call, 3, &["COUNT", "AT"])?;
    let slot = changing(call)?;
    let fading = call.store.at_mut::<Fading>(slot)?;
    let new = fading.add(args.at(2), count, moment, call.now)?;
    call.reply.bool(new);
    changed(call, slot, 1)
}

fn add_many(call: &mut Call<'_>) -> Answer {
    let slot = changing(call)?;
    let (items, now) = (call.args.from(2), call.now);
    let fading = call.store.at_mut::<Fading>(slot)?;
    call.reply.array(items.len());
    for (done, item) in items.iter().enumerate() {
        match fading.add(item, 1, Moment::Now(now), now) {
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
    changed(call, slot, items.len())
}

// ---- asking

fn count(call: &mut Call<'_>) -> Answer {
    let moment = said(call, 3, &["AT"])?.moment;
    let (item, now) = (call.args.at(2), call.now);
    let fading = call.store.get::<Fading>(call.args.at(1))?;
    let counted = fading.map(|fading| fading.count(item, moment, now));
    call.reply.double(counted.transpose()?.unwrap_or(0.0));
    Ok(())
}

fn count_many(call: &mut Call<'_>) -> Answer {
    let (items, now) = (call.args.from(2), call.now);
    let fading = call.store.get::<Fading>(call.args.at(1))?;
    call.reply.array(items.len());
    for item in items.iter() {
        let count = |fading: &Fading| fading.count(item, Moment::Now(now), now);
        call.reply.double(fading.map(count).transpose()?.unwrap_or(0.0));
    }
    Ok(())
}

fn rate(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let Said { per, moment, .. } = said(call, 3, &["PER", "AT"])?;
    let fading = call.store.get::<Fading>(args.at(1))?.ok_or(NOT_FOUND)?;
    let rate = fading.rate(args.at(2), per, moment, call.now)?;
    call.reply.double(rate);
    Ok(())
}

fn top(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    // The number may be left out, the options too.
    let number = args.get(2).and_then(number::whole);
    let moment = said(call, if number.is_some() { 3 } else { 2 }, &["AT"])?.moment;
    let fading = call.store.get::<Fading>(args.at(1))?.ok_or(NOT_FOUND)?;
    let limit = number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let missing = Failure::new("ERR no list was reserved: use DECAY.RESERVE ... TOP k");
    let listed = fading.top(limit, moment).ok_or(missing)??;
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
    let (filter, hot) = (&fading.filter, &fading.hot);
    let plan = filter.plan();
    let time =
        filter.presumed().map_or(Field::Nothing, |now| Field::Number(plan.fade.begin_of(now)));
    let half_life = plan.fade.halving().map_or(Field::Nothing, Field::Number);
    let Oddities { late, clock_jumps, ahead } = filter.oddities();
    let fields = [
        ("Capacity", Field::Count(plan.capacity.unwrap_or(0))),
        ("Error rate", Field::Number(plan.error_rate.unwrap_or(0.0))),
        ("Half-life", half_life),
        ("Epoch", Field::Number(plan.fade.epoch)),
        ("Storage", Field::Word(plan.storage.name())),
        ("Size", Field::Count(fading.bytes())),
        ("Number of counters", Field::Count(plan.cells())),
        ("Counters per key", Field::Count(plan.hashes().into())),
        ("Number of keys", Field::Count(fading.items)),
        ("Time", time),
        ("Late events", Field::Count(late)),
        ("Clock jumps", Field::Count(clock_jumps)),
        ("Events ahead of the clock", Field::Count(ahead)),
        ("Events set aside", Field::Count(filter.aside() as u64)),
        (
            "Keys in the list",
            hot.as_ref().map_or(Field::Nothing, |hot| Field::Count(hot.len() as u64)),
        ),
        (
            "Length of the list",
            hot.as_ref().map_or(Field::Nothing, |hot| Field::Count(hot.plan().k)),
        ),
    ];
    words::map(call.reply, &fields)
}
