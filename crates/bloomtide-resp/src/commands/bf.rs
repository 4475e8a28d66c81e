//! BF.*: sets that may wrongly say "present", never wrongly "absent". Replies and defaults are those of RedisBloom.

use super::chunks;
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::store::Slot;
use crate::structure::{Held, Kind};
use crate::structures::{Added, Bloom, BloomGoal, Layer};
use crate::wire::number;

const WRITE: u32 = is::BLOOM | is::WRITE;
const READ: u32 = is::BLOOM | is::READ;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("BF.RESERVE", -4, WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("BF.ADD", 3, WRITE | is::FAST, Keys::FIRST, add),
    Command::new("BF.MADD", -3, WRITE, Keys::FIRST, madd),
    Command::new("BF.INSERT", -4, WRITE, Keys::FIRST, insert),
    Command::new("BF.EXISTS", 3, READ | is::FAST, Keys::FIRST, exists),
    Command::new("BF.MEXISTS", -3, READ, Keys::FIRST, mexists),
    Command::new("BF.CARD", 2, READ | is::FAST, Keys::FIRST, card),
    Command::new("BF.INFO", -2, READ | is::FAST, Keys::FIRST, info),
    Command::new("BF.DEBUG", 2, READ | is::FAST, Keys::FIRST, debug),
    Command::new("BF.SCANDUMP", 3, READ, Keys::FIRST, scandump),
    Command::new("BF.LOADCHUNK", 4, WRITE, Keys::FIRST, loadchunk),
];

const FULL: Failure = Failure::new("ERR non scaling filter is full");
const NOT_FOUND: Failure = Failure::new("ERR not found");
const EXISTS: Failure = Failure::new("ERR item exists");
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
    let slot = call.store.insert(name, Bloom::new(goal)?.into_structure());
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
    let (mut at, mut fixed, mut said) = (4, false, None);
    while at < args.len() {
        if args.is(at, "NONSCALING") {
            fixed = true;
            at += 1;
        } else if args.is(at, "EXPANSION") {
            said = Some(expansion(args.get(at + 1))?);
            at += 2;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let goal = settled(goal, fixed, said)?;
    if call.store.find(args.at(1)).is_some() {
        return Err(EXISTS);
    }
    make(call, goal)?;
    call.reply.ok();
    Ok(())
}

// ---- adding

/// Adds one key, with a new layer if there must be one.
#[inline]
fn add_one(call: &mut Call<'_>, slot: Slot, key: &[u8]) -> Result<bool, Failure> {
    let bloom = call.store.at_mut::<Bloom>(slot)?;
    let new = match bloom.add(key) {
        Added::Known => return Ok(false),
        Added::New => true,
        Added::Full => {
            let next = bloom.next_bytes().ok_or(FULL)??;
            call.store.admit(next)?;
            call.store.at_mut::<Bloom>(slot)?.add_growing(key)?;
            call.store.recount(slot);
            true
        }
    };
    call.changes.note(call.now, &[b"BF.ADD", call.args.at(1), key]);
    Ok(new)
}

fn add(call: &mut Call<'_>) -> Answer {
    let slot = find_or_make(call, BloomGoal::default())?;
    let new = add_one(call, slot, call.args.at(2))?;
    call.reply.bool(new);
    Ok(())
}

/// Adds the elements from `first` on. The first that fails is answered by its error, and ends the array.
fn add_all(call: &mut Call<'_>, slot: Slot, first: usize) -> Answer {
    call.store.at::<Bloom>(slot)?;
    let keys = call.args.from(first);
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
    add_all(call, slot, 2)
}

fn insert(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let mut goal = BloomGoal::default();
    let (mut at, mut fixed, mut said, mut create) = (2, false, None, true);
    loop {
        if at >= args.len() {
            return Err(Failure::new("ERR wrong number of arguments for 'bf.insert' command"));
        }
        let value = args.get(at + 1);
        let two = |bad| value.ok_or(Failure::new(bad));
        at += if args.is(at, "ITEMS") {
            break;
        } else if args.is(at, "CAPACITY") {
            goal.capacity = capacity(two("ERR bad capacity")?)?;
            2
        } else if args.is(at, "ERROR") {
            goal.error = error_rate(two("ERR bad error rate")?)?;
            2
        } else if args.is(at, "EXPANSION") {
            said = Some(expansion(value)?);
            2
        } else if args.is(at, "NOCREATE") {
            create = false;
            1
        } else if args.is(at, "NONSCALING") {
            fixed = true;
            1
        } else {
            return Err(Failure::new("ERR Unknown argument received"));
        };
    }
    if at + 1 >= args.len() {
        return Err(Failure::new("ERR wrong number of arguments for 'bf.insert' command"));
    }
    let goal = settled(goal, fixed, said)?;
    let slot = match call.store.find(args.at(1)) {
        None if !create => return Err(NOT_FOUND),
        _ => find_or_make(call, goal)?,
    };
    add_all(call, slot, at + 1)
}

// ---- asking

/// A key of another kind is a filter without keys, as RedisBloom has it.
fn exists(call: &mut Call<'_>) -> Answer {
    let bloom = call.store.get::<Bloom>(call.args.at(1)).unwrap_or_default();
    call.reply.bool(bloom.is_some_and(|bloom| bloom.contains(call.args.at(2))));
    Ok(())
}

fn mexists(call: &mut Call<'_>) -> Answer {
    let bloom = call.store.get::<Bloom>(call.args.at(1)).unwrap_or_default();
    let keys = call.args.from(2);
    call.reply.array(keys.len());
    for key in keys.iter() {
        call.reply.bool(bloom.is_some_and(|bloom| bloom.contains(key)));
    }
    Ok(())
}

fn card(call: &mut Call<'_>) -> Answer {
    let bloom = call.store.get::<Bloom>(call.args.at(1))?;
    call.reply.count(bloom.map_or(0, Bloom::items));
    Ok(())
}

const FIELDS: [(&str, &str); 5] = [
    ("CAPACITY", "Capacity"),
    ("SIZE", "Size"),
    ("FILTERS", "Number of filters"),
    ("ITEMS", "Number of items inserted"),
    ("EXPANSION", "Expansion rate"),
];

fn info(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let bloom = call.store.get::<Bloom>(args.at(1))?.ok_or(NOT_FOUND)?;
    let layers = bloom.layers();
    let values = [
        Some(bloom.capacity()),
        Some(bloom.bytes()),
        Some(layers.len() as u64),
        Some(bloom.items()),
        bloom.expansion().map(u64::from),
    ];
    let wanted = match args.len() {
        2 => 0..FIELDS.len(),
        3 => {
            let place = FIELDS.iter().position(|(option, _)| args.is(2, option));
            let place = place.ok_or(Failure::new("ERR Invalid information value"))?;
            place..place + 1
        }
        _ => return Err(Failure::new("ERR wrong number of arguments for 'bf.info' command")),
    };
    // One value alone comes without its name in RESP2.
    let bare = args.len() == 3 && call.reply.protocol() == 2;
    if bare {
        call.reply.array(1);
    } else {
        call.reply.map(wanted.len());
    }
    for place in wanted {
        if !bare {
            call.reply.simple(FIELDS[place].1);
        }
        match values[place] {
            Some(value) => call.reply.count(value),
            None => call.reply.null(),
        }
    }
    Ok(())
}

/// One line for the whole, and one for each layer.
fn debug(call: &mut Call<'_>) -> Answer {
    let bloom = call.store.get::<Bloom>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let (layers, items) = (bloom.layers(), bloom.items());
    call.reply.array(layers.len() + 1);
    call.reply.bulk(format!("size:{items}").as_bytes());
    for Layer { bytes, bits, hashes, capacity, error_rate, items } in layers {
        let line = format!(
            "bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{capacity} \
             size:{items} ratio:{error_rate}",
        );
        call.reply.bulk(line.as_bytes());
    }
    Ok(())
}

// ---- chunks

fn scandump(call: &mut Call<'_>) -> Answer {
    call.store.get::<Bloom>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    chunks::dump(call, |reply| reply.bulk(b""))
}

fn loadchunk(call: &mut Call<'_>) -> Answer {
    chunks::load::<Bloom>(call)
}
