//! CF.*: sets whose keys can be taken away again. Replies and defaults are those of RedisBloom; behind them are counting
//! Bloom filters, see `structures/cuckoo.rs`.

use super::sets;
use super::words::{self, EXISTS, Field, NOT_FOUND, Options, wrong_number};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::store::Slot;
use crate::structure::Structure;
use crate::structures::{Cuckoo, CuckooGoal, Membership};
use crate::wire::number;

const WRITE: u32 = is::CUCKOO | is::WRITE;
const READ: u32 = is::CUCKOO | is::READ;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("CF.RESERVE", -3, WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("CF.ADD", 3, WRITE | is::FAST, Keys::FIRST, add::<false>),
    Command::new("CF.ADDNX", 3, WRITE | is::FAST, Keys::FIRST, add::<true>),
    Command::new("CF.INSERT", -4, WRITE, Keys::FIRST, insert::<false>),
    Command::new("CF.INSERTNX", -4, WRITE, Keys::FIRST, insert::<true>),
    Command::new("CF.EXISTS", 3, READ | is::FAST, Keys::FIRST, sets::exists::<Cuckoo>),
    Command::new("CF.MEXISTS", -3, READ, Keys::FIRST, sets::mexists::<Cuckoo>),
    Command::new("CF.DEL", 3, WRITE | is::FAST, Keys::FIRST, del),
    Command::new("CF.COUNT", 3, READ | is::FAST, Keys::FIRST, count),
    Command::new("CF.COMPACT", 2, READ, Keys::FIRST, compact),
    Command::new("CF.INFO", 2, READ | is::FAST, Keys::FIRST, info),
    Command::new("CF.DEBUG", 2, READ | is::FAST, Keys::FIRST, debug),
    Command::new("CF.SCANDUMP", 3, READ, Keys::FIRST, scandump),
    Command::new("CF.LOADCHUNK", 4, WRITE, Keys::FIRST, sets::load::<Cuckoo>),
];

const FULL: Failure = Failure::new("Filter is full");
const AT_MOST: Failure = Failure::new("Maximum expansions reached");
const MOST_CAPACITY: u64 = 1 << 30;

// ---- making

/// The value of an option, between two others.
fn within(word: &str, text: Option<&[u8]>, (least, most): (i64, i64)) -> Result<u64, Failure> {
    let value = text.and_then(number::integer);
    let value = value.ok_or_else(|| Failure::said(format!("Couldn't parse {word}")))?;
    if (least..=most).contains(&value) {
        return Ok(value as u64);
    }
    let text = format!("{word}: value must be in the range [{least}, {most}]");
    Err(Failure::said(text))
}

/// A capacity of at least two buckets, which the refusal calls as RedisBloom does.
fn capacity(text: Option<&[u8]>, bucket: u64, least: &str) -> Result<u64, Failure> {
    let value = text.and_then(number::integer).ok_or(Failure::new("Bad capacity"))?;
    let value = u64::try_from(value).unwrap_or(0);
    if (bucket * 2..=MOST_CAPACITY).contains(&value) {
        return Ok(value);
    }
    let text = format!("Capacity must be in the range [{least}, {MOST_CAPACITY}]");
    Err(Failure::said(text))
}

#[cold]
fn make(call: &mut Call<'_>, goal: CuckooGoal) -> Result<Slot, Failure> {
    let name = call.args.at(1);
    call.store.admit_as(name, goal.bytes()?)?;
    let slot = call.store.insert(name, Box::new(Cuckoo::new(goal)?));
    let values = [goal.capacity, goal.bucket, goal.iterations, goal.expansion];
    let [capacity, bucket, iterations, expansion] = values.map(|value| value.to_string());
    let args: [&[u8]; 9] = [
        b"CF.RESERVE",
        name,
        capacity.as_bytes(),
        b"BUCKETSIZE",
        bucket.as_bytes(),
        b"MAXITERATIONS",
        iterations.as_bytes(),
        b"EXPANSION",
        expansion.as_bytes(),
    ];
    call.changes.note(call.now, &args);
    Ok(slot)
}

fn find_or_make(call: &mut Call<'_>, goal: CuckooGoal) -> Result<Slot, Failure> {
    match call.store.find(call.args.at(1)) {
        Some(slot) => Ok(slot),
        None => make(call, goal),
    }
}

fn reserve(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    if args.len().is_multiple_of(2) {
        return Err(wrong_number("cf.reserve"));
    }
    number::integer(args.at(2)).ok_or(Failure::new("Bad capacity"))?;
    let mut goal = CuckooGoal::default();
    let mut options = Options::new(args, 3);
    while let Some(word) = options.next(&["BUCKETSIZE", "MAXITERATIONS", "EXPANSION"])? {
        let value = options.value();
        match word {
            "BUCKETSIZE" => goal.bucket = within(word, value, (1, 255))?,
            "MAXITERATIONS" => goal.iterations = within(word, value, (1, 65535))?,
            _ => {
                let given = within(word, value, (0, 32768))?;
                goal.expansion = if given == 0 { 0 } else { given.next_power_of_two() };
            }
        }
    }
    goal.capacity = capacity(args.get(2), goal.bucket, "2 * BUCKETSIZE")?;
    if let Some(slot) = call.store.find(args.at(1)) {
        call.store.at::<Cuckoo>(slot)?;
    }
    words::reserve(call, EXISTS, goal.bytes()?, || Cuckoo::new(goal))
}

// ---- adding and taking away

/// Adds one key; false if it is there and should not be added again.
fn add_one(call: &mut Call<'_>, slot: Slot, key: &[u8], absent: bool) -> Result<bool, Failure> {
    let filter = call.store.at_mut::<Cuckoo>(slot)?;
    if absent && filter.contains(key) {
        return Ok(false);
    }
    if !filter.add(key) {
        let grows = filter.goal.expansion > 0;
        let next = filter.next_bytes().ok_or(if grows { AT_MOST } else { FULL })??;
        call.store.admit(next)?;
        let filter = call.store.at_mut::<Cuckoo>(slot)?;
        filter.grow()?;
        filter.add(key);
        call.store.recount(slot);
    }
    call.changes.note(call.now, &[b"CF.ADD", call.args.at(1), key]);
    Ok(true)
}

/// CF.ADD, and CF.ADDNX if the key must be absent.
fn add<const ABSENT: bool>(call: &mut Call<'_>) -> Answer {
    let slot = find_or_make(call, CuckooGoal::default())?;
    let added = add_one(call, slot, call.args.at(2), ABSENT)?;
    call.reply.bool(added);
    Ok(())
}

/// CF.INSERT, and CF.INSERTNX if keys must be absent.
fn insert<const ABSENT: bool>(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let mut goal = CuckooGoal::default();
    let mut create = true;
    let mut options = Options::new(args, 2);
    let unknown = |_| Failure::new("Unknown argument received");
    let wrong = || wrong_number(if ABSENT { "cf.insertnx" } else { "cf.insert" });
    while let Some(word) = options.next(&["ITEMS", "CAPACITY", "NOCREATE"]).map_err(unknown)? {
        match word {
            "ITEMS" => break,
            "CAPACITY" => {
                let value = Some(options.value().ok_or_else(wrong)?);
                goal.capacity = capacity(value, goal.bucket, "cf-bucket-size * 2")?;
            }
            _ => create = false,
        }
    }
    let keys = options.rest();
    if keys.len() == 0 {
        return Err(wrong());
    }
    let slot = match call.store.find(args.at(1)) {
        None if !create => return Err(NOT_FOUND),
        _ => find_or_make(call, goal)?,
    };
    call.store.at::<Cuckoo>(slot)?;
    call.reply.array(keys.len());
    // Whether a key is added can be true, false or impossible, which only numbers tell apart.
    let numbers = ABSENT || call.reply.protocol() == 2;
    for key in keys.iter() {
        match add_one(call, slot, key, ABSENT) {
            Ok(added) if numbers => call.reply.int(i64::from(added)),
            Ok(added) => call.reply.bool(added),
            Err(_) if numbers => call.reply.int(-1),
            Err(_) => call.reply.bool(false),
        }
    }
    Ok(())
}

fn del(call: &mut Call<'_>) -> Answer {
    let (name, key) = (call.args.at(1), call.args.at(2));
    let slot = call.store.find(name).ok_or(Failure::new("Not found"))?;
    let gone = call.store.at_mut::<Cuckoo>(slot)?.remove(key);
    if gone {
        call.changes.note(call.now, &[b"CF.DEL", name, key]);
    }
    call.reply.bool(gone);
    Ok(())
}

/// Counting filters have nothing to compact.
fn compact(call: &mut Call<'_>) -> Answer {
    let filter = call.store.get::<Cuckoo>(call.args.at(1)).unwrap_or_default();
    filter.ok_or(Failure::new("Cuckoo filter was not found"))?;
    words::ok(call)
}

// ---- asking

fn count(call: &mut Call<'_>) -> Answer {
    let filter = sets::asked::<Cuckoo>(call.store, call.args.at(1))?;
    call.reply.count(filter.map_or(0, |filter| filter.count(call.args.at(2))));
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let filter = call.store.get::<Cuckoo>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let goal = filter.goal;
    let fields = [
        ("Size", Field::Count(filter.bytes())),
        ("Number of buckets", Field::Count(goal.buckets())),
        ("Number of filters", Field::Count(filter.layers() as u64)),
        ("Number of items inserted", Field::Count(filter.items)),
        ("Number of items deleted", Field::Count(filter.deleted)),
        ("Bucket size", Field::Count(goal.bucket)),
        ("Expansion rate", Field::Count(goal.expansion)),
        ("Max iterations", Field::Count(goal.iterations)),
    ];
    words::map(call.reply, &fields)
}

/// One line, as RedisBloom writes it.
fn debug(call: &mut Call<'_>) -> Answer {
    let filter = call.store.get::<Cuckoo>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let (goal, items, deleted, layers) =
        (filter.goal, filter.items, filter.deleted, filter.layers());
    let line = format!(
        "bktsize:{} buckets:{} items:{items} deletes:{deleted} filters:{layers} max_iterations:{} expansion:{}",
        goal.bucket,
        goal.buckets(),
        goal.iterations,
        goal.expansion,
    );
    call.reply.bulk(line.as_bytes());
    Ok(())
}

// ---- chunks

fn scandump(call: &mut Call<'_>) -> Answer {
    number::whole(call.args.at(2)).ok_or(Failure::new("Invalid position"))?;
    // As RedisBloom has it: of an empty filter there is nothing to carry over.
    if call.store.get::<Cuckoo>(call.args.at(1))?.is_some_and(|filter| filter.items == 0) {
        call.reply.array(2);
        call.reply.int(0);
        call.reply.null();
        return Ok(());
    }
    sets::dump::<Cuckoo>(call, |reply| reply.null())
}
