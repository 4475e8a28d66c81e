//! BF.*: sets that may wrongly say "present", never wrongly "absent". Replies and defaults are those of RedisBloom.

use super::sets;
use super::words::{self, EXISTS, Field, NOT_FOUND, Options, wrong_number};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::store::Slot;
use crate::structure::Structure;
use crate::structures::{Bloom, BloomGoal, Layer};
use crate::wire::number;
use crate::wire::request::Args;

const WRITE: u32 = is::BLOOM | is::WRITE;
const READ: u32 = is::BLOOM | is::READ;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("BF.RESERVE", -4, WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("BF.ADD", 3, WRITE | is::FAST, Keys::FIRST, add),
    Command::new("BF.MADD", -3, WRITE, Keys::FIRST, madd),
    Command::new("BF.INSERT", -4, WRITE, Keys::FIRST, insert),
    Command::new("BF.EXISTS", 3, READ | is::FAST, Keys::FIRST, sets::exists::<Bloom>),
    Command::new("BF.MEXISTS", -3, READ, Keys::FIRST, sets::mexists::<Bloom>),
    Command::new("BF.CARD", 2, READ | is::FAST, Keys::FIRST, card),
    Command::new("BF.INFO", -2, READ | is::FAST, Keys::FIRST, info),
    Command::new("BF.DEBUG", 2, READ | is::FAST, Keys::FIRST, debug),
    Command::new("BF.SCANDUMP", 3, READ, Keys::FIRST, scandump),
    Command::new("BF.LOADCHUNK", 4, WRITE, Keys::FIRST, sets::load::<Bloom>),
];

const FULL: Failure = Failure::new("ERR non scaling filter is full");
const BAD_FIELD: Failure = Failure::new("ERR Invalid information value");
const CANNOT_EXPAND: Failure = Failure::new("Nonscaling filters cannot expand");
/// Rates above this are taken as this.
const MOST_ERROR: f64 = 0.25;
const MOST_CAPACITY: u64 = 1 << 30;
const MOST_EXPANSION: u64 = 32768;

// ---- parameters

fn error_rate(text: &[u8]) -> Result<f64, Failure> {
    let rate = number::float(text).ok_or(Failure::new("ERR bad error rate"))?;
    if rate > 0.0 && rate < 1.0 {
        return Ok(rate.min(MOST_ERROR));
    }
    Err(Failure::new("ERR error rate must be in the range (0.000000, 1.000000)"))
}

fn capacity(text: &[u8]) -> Result<u64, Failure> {
    let capacity = number::integer(text).ok_or(Failure::new("ERR bad capacity"))?;
    match u64::try_from(capacity) {
        Ok(capacity @ 1..=MOST_CAPACITY) => Ok(capacity),
        _ => Err(Failure::new("ERR capacity must be in the range [1, 1073741824]")),
    }
}

fn expansion(text: Option<&[u8]>) -> Result<u32, Failure> {
    let bad = Failure::new("ERR bad expansion");
    let expansion = text.and_then(number::integer).ok_or(bad)?;
    match u64::try_from(expansion) {
        Ok(expansion @ 0..=MOST_EXPANSION) => Ok(expansion as u32),
        _ => Err(Failure::new("ERR expansion must be in the range [0, 32768]")),
    }
}

/// Whether both were said, which is one too many.
fn settled(goal: BloomGoal, fixed: bool, said: Option<u32>) -> Result<BloomGoal, Failure> {
    match (fixed, said) {
        (true, Some(1..)) => Err(CANNOT_EXPAND),
        (true, _) => Ok(BloomGoal { expansion: 0, ..goal }),
        (false, said) => Ok(BloomGoal { expansion: said.unwrap_or(goal.expansion), ..goal }),
    }
}

// ---- making

/// The filter of that name; made with the goal if there is none.
#[inline]
fn find_or_make(call: &mut Call<'_>, goal: BloomGoal) -> Result<Slot, Failure> {
    match call.store.find(call.args.at(1)) {
        Some(slot) => Ok(slot),
        None => make(call, goal),
    }
}

#[cold]
fn make(call: &mut Call<'_>, goal: BloomGoal) -> Result<Slot, Failure> {
    let name = call.args.at(1);
    call.store.admit_as(name, goal.bytes()?)?;
    let slot = call.store.insert(name, Box::new(Bloom::new(goal)?));
    let error = goal.error.to_string();
    let (capacity, expansion) = (goal.capacity.to_string(), goal.expansion.to_string());
    let [error, capacity] = [error.as_bytes(), capacity.as_bytes()];
    let args = [b"BF.RESERVE", name, error, capacity, b"EXPANSION", expansion.as_bytes()];
    call.changes.note(call.now, &args);
    Ok(slot)
}

fn reserve(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let goal = BloomGoal {
        error: error_rate(args.at(2))?,
        capacity: capacity(args.at(3))?,
        ..BloomGoal::default()
    };
    let (mut fixed, mut said) = (false, None);
    let mut options = Options::new(args, 4);
    while let Some(word) = options.next(&["NONSCALING", "EXPANSION"])? {
        match word {
            "NONSCALING" => fixed = true,
            _ => said = Some(expansion(options.value())?),
        }
    }
    let goal = settled(goal, fixed, said)?;
    if let Some(slot) = call.store.find(args.at(1)) {
        call.store.at::<Bloom>(slot)?;
    }
    words::reserve(call, EXISTS, goal.bytes()?, || Bloom::new(goal))
}

// ---- adding

/// Adds one key, with a new layer if there must be one.
#[inline]
fn add_one(call: &mut Call<'_>, slot: Slot, key: &[u8]) -> Result<bool, Failure> {
    let bloom = call.store.at_mut::<Bloom>(slot)?;
    match bloom.add(key) {
        Some(false) => return Ok(false),
        Some(true) => {}
        None => {
            let next = bloom.next_bytes().ok_or(FULL)??;
            call.store.admit(next)?;
            call.store.at_mut::<Bloom>(slot)?.add_growing(key)?;
            call.store.recount(slot);
        }
    }
    call.changes.note(call.now, &[b"BF.ADD", call.args.at(1), key]);
    Ok(true)
}

fn add(call: &mut Call<'_>) -> Answer {
    let slot = find_or_make(call, BloomGoal::default())?;
    let new = add_one(call, slot, call.args.at(2))?;
    call.reply.bool(new);
    Ok(())
}

/// Adds keys. The first that fails is answered by its error, and ends the array.
fn add_all<'a>(call: &mut Call<'a>, slot: Slot, keys: Args<'a>) -> Answer {
    call.store.at::<Bloom>(slot)?;
    let start = call.reply.len();
    call.reply.array(keys.len());
    let body = call.reply.len();
    for (place, key) in keys.iter().enumerate() {
        match add_one(call, slot, key) {
            Ok(new) => call.reply.bool(new),
            Err(failure) => {
                call.reply.error(&failure.0);
                call.reply.shorten(start, body, place + 1);
                break;
            }
        }
    }
    Ok(())
}

fn madd(call: &mut Call<'_>) -> Answer {
    let slot = find_or_make(call, BloomGoal::default())?;
    add_all(call, slot, call.args.from(2))
}

fn insert(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let mut goal = BloomGoal::default();
    let (mut fixed, mut said, mut create) = (false, None, true);
    let mut options = Options::new(args, 2);
    let known = ["ITEMS", "CAPACITY", "ERROR", "EXPANSION", "NOCREATE", "NONSCALING"];
    let unknown = |_| Failure::new("ERR Unknown argument received");
    while let Some(word) = options.next(&known).map_err(unknown)? {
        match word {
            "ITEMS" => break,
            "CAPACITY" => goal.capacity = capacity(options.value().unwrap_or_default())?,
            "ERROR" => goal.error = error_rate(options.value().unwrap_or_default())?,
            "EXPANSION" => said = Some(expansion(options.value())?),
            "NOCREATE" => create = false,
            _ => fixed = true,
        }
    }
    let keys = options.rest();
    if keys.len() == 0 {
        return Err(wrong_number("bf.insert"));
    }
    let goal = settled(goal, fixed, said)?;
    let slot = match call.store.find(args.at(1)) {
        None if !create => return Err(NOT_FOUND),
        _ => find_or_make(call, goal)?,
    };
    add_all(call, slot, keys)
}

// ---- asking

fn card(call: &mut Call<'_>) -> Answer {
    let bloom = call.store.get::<Bloom>(call.args.at(1))?;
    call.reply.count(bloom.map_or(0, |bloom| bloom.items));
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let bloom = call.store.get::<Bloom>(args.at(1))?.ok_or(NOT_FOUND)?;
    let capacity = bloom.layers().iter().map(|layer| layer.capacity).sum();
    let expansion = bloom.expansion().map_or(Field::Nothing, |it| Field::Count(it.into()));
    let fields = [
        ("Capacity", Field::Count(capacity)),
        ("Size", Field::Count(bloom.bytes())),
        ("Number of filters", Field::Count(bloom.layers().len() as u64)),
        ("Number of items inserted", Field::Count(bloom.items)),
        ("Expansion rate", expansion),
    ];
    let wanted = match args.len() {
        2 => &fields[..],
        3 => {
            let options = ["CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION"];
            let place = options.iter().position(|option| args.is(2, option));
            std::slice::from_ref(&fields[place.ok_or(BAD_FIELD)?])
        }
        _ => return Err(wrong_number("bf.info")),
    };
    match wanted {
        // One value alone comes without its name in RESP2.
        [(_, value)] if call.reply.protocol() == 2 => {
            call.reply.array(1);
            words::value(call.reply, value);
        }
        _ => words::map(call.reply, wanted)?,
    }
    Ok(())
}

/// One line for the whole, and one for each layer.
fn debug(call: &mut Call<'_>) -> Answer {
    let bloom = call.store.get::<Bloom>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let layers = bloom.layers();
    call.reply.array(layers.len() + 1);
    call.reply.bulk(format!("size:{}", bloom.items).as_bytes());
    for Layer { capacity, error_rate, cells, hashes, items, bytes, .. } in layers {
        let line = format!(
            "bytes:{bytes} bits:{cells} hashes:{hashes} hashwidth:64 capacity:{capacity} \
             size:{items} ratio:{error_rate}",
        );
        call.reply.bulk(line.as_bytes());
    }
    Ok(())
}

// ---- chunks

fn scandump(call: &mut Call<'_>) -> Answer {
    sets::dump::<Bloom>(call, |reply| reply.bulk(b""))
}
