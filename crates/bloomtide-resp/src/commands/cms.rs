//! CMS.*: count-min sketches. Replies, defaults and texts of errors are those of RedisBloom, but a request that is
//! refused changes nothing.

use super::words::{self, Field, note};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::store::Slot;
use crate::structure::Structure;
use crate::structures::{CountMin, CountMinPlan, FULL, HASHER};
use crate::wire::number;
use bloomtide_core::Error;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("CMS.INITBYDIM", 4, is::CMS | is::WRITE | is::FAST, Keys::FIRST, init_by_dim),
    Command::new("CMS.INITBYPROB", 4, is::CMS | is::WRITE | is::FAST, Keys::FIRST, init_by_prob),
    Command::new("CMS.INCRBY", -4, is::CMS | is::WRITE, Keys::FIRST, increase),
    Command::new("CMS.QUERY", -3, is::CMS | is::READ, Keys::FIRST, query),
    Command::new("CMS.MERGE", -4, is::CMS | is::WRITE, Keys::FIRST, merge),
    Command::new("CMS.INFO", 2, is::CMS | is::READ | is::FAST, Keys::FIRST, info),
];

const MISSING: Failure = Failure::new("CMS: key does not exist");
const EXISTS: Failure = Failure::new("CMS: key already exists");
const OVERFLOW: &str = "CMS: INCRBY overflow";

fn init_by_dim(call: &mut Call<'_>) -> Answer {
    let size = |place: usize| number::whole(call.args.at(place)).filter(|size| *size > 0);
    let width = size(2).ok_or(Failure::new("CMS: invalid width"))?;
    let depth = size(3).ok_or(Failure::new("CMS: invalid depth"))?;
    // More cells than can be numbered are wrong sizes, fewer that do not fit are too many.
    width.checked_mul(depth).ok_or(Failure::new("CMS: invalid init arguments"))?;
    init(call, CountMinPlan { width, depth }.checked())
}

fn init_by_prob(call: &mut Call<'_>) -> Answer {
    let share = |place: usize| {
        number::float(call.args.at(place)).filter(|share| *share > 0.0 && *share < 1.0)
    };
    let error = share(2).ok_or(Failure::new("CMS: invalid overestimation value"))?;
    let probability = share(3).ok_or(Failure::new("CMS: invalid prob value"))?;
    init(call, CountMinPlan::for_goal(error, probability))
}

fn init(call: &mut Call<'_>, plan: Result<CountMinPlan, Error>) -> Answer {
    let plan = plan.map_err(|_| Failure::new("CMS: Insufficient memory to create the key"))?;
    words::reserve(call, EXISTS, plan.bytes(), || CountMin::new(plan))
}

fn increase(call: &mut Call<'_>) -> Answer {
    let pairs = call.args.from(2);
    if pairs.len() % 2 == 1 {
        return Err(words::wrong_number("cms.incrby"));
    }
    let slot = call.store.find(call.args.at(1)).ok_or(MISSING)?;
    let sketch = call.store.at_mut::<CountMin>(slot)?;
    let mut sum = 0u64;
    for count in pairs.iter().skip(1).step_by(2) {
        let count = number::integer(count).ok_or(Failure::new("CMS: Cannot parse number"))?;
        let negative = |_| Failure::new("CMS: Number cannot be negative");
        sum = sum.saturating_add(u64::try_from(count).map_err(negative)?);
    }
    call.reply.array(pairs.len() / 2);
    if pairs.len() > 2 {
        pairs.iter().step_by(2).for_each(|item| sketch.prefetch(HASHER.bytes(item)));
    }
    for place in (0..pairs.len()).step_by(2) {
        let count = number::whole(pairs.at(place + 1)).unwrap_or(0);
        let counted = sketch.add(HASHER.bytes(pairs.at(place)), count);
        if counted == FULL {
            call.reply.error(OVERFLOW);
        } else {
            call.reply.count(counted.into());
        }
    }
    if sum > 0 {
        note(call);
    }
    Ok(())
}

fn query(call: &mut Call<'_>) -> Answer {
    let sketch = call.store.get::<CountMin>(call.args.at(1))?.ok_or(MISSING)?;
    let (items, reply) = (call.args.from(2), &mut *call.reply);
    reply.array(items.len());
    if items.len() > 1 {
        items.iter().for_each(|item| sketch.prefetch(HASHER.bytes(item)));
    }
    items.iter().for_each(|item| reply.count(sketch.count(HASHER.bytes(item)).into()));
    Ok(())
}

/// Sources with their weights, as `CMS.MERGE dest numKeys src... [WEIGHTS w...]` names them.
fn sources(call: &mut Call<'_>) -> Result<Vec<(Slot, i64)>, Failure> {
    let args = call.args;
    let keys = number::integer(args.at(2)).ok_or(Failure::new("CMS: invalid numkeys"))?;
    let keys = usize::try_from(keys).ok().filter(|keys| *keys > 0);
    let keys = keys.ok_or(Failure::new("CMS: Number of keys must be positive"))?;
    let rest = args.len() - 3;
    let weighted = rest == keys.saturating_mul(2).saturating_add(1) && args.is(3 + keys, "WEIGHTS");
    if !weighted && rest != keys {
        return Err(Failure::new("CMS: wrong number of keys/weights"));
    }
    let mut sources = Vec::with_capacity(keys);
    for place in 3..3 + keys {
        let weight = match weighted {
            false => 1,
            true => number::integer(args.at(place + keys + 1))
                .ok_or(Failure::new("CMS: invalid weight value"))?,
        };
        words::may_use(call, args.at(place))?;
        sources.push((call.store.find(args.at(place)).ok_or(MISSING)?, weight));
    }
    Ok(sources)
}

fn merge(call: &mut Call<'_>) -> Answer {
    let target = call.store.find(call.args.at(1)).ok_or(MISSING)?;
    call.store.at::<CountMin>(target)?;
    let sources = sources(call)?;
    let sketch = |slot: Slot| call.store.at::<CountMin>(slot);
    let parts = sources.iter().map(|(slot, weight)| Ok((sketch(*slot)?, *weight)));
    let parts = parts.collect::<Result<Vec<_>, Failure>>()?;
    // The old one and the new one are there together for a moment.
    call.store.admit(sketch(target)?.bytes())?;
    let merged = sketch(target)?.merged(&parts).map_err(|error| match error {
        Error::Incompatible { .. } => Failure::new("CMS: width/depth is not equal"),
        Error::Parameter { .. } => Failure::new("CMS: MERGE overflow"),
        other => other.into(),
    })?;
    *call.store.at_mut::<CountMin>(target)? = merged;
    note(call);
    words::ok(call)
}

fn info(call: &mut Call<'_>) -> Answer {
    let sketch = call.store.get::<CountMin>(call.args.at(1))?.ok_or(MISSING)?;
    let CountMinPlan { width, depth } = sketch.plan;
    let fields = [
        ("width", Field::Count(width)),
        ("depth", Field::Count(depth)),
        ("count", Field::Count(sketch.total)),
    ];
    words::map(call.reply, &fields)
}
