//! TDIGEST.*: quantiles and ranks of numbers. Replies, defaults and texts of errors are those of RedisBloom, but a
//! question changes nothing: it does not merge the values that wait.

use super::words::{self, Field, Options, note};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::store::Slot;
use crate::structure::Structure;
use crate::structures::{TDigest, View};
use crate::wire::number;
use crate::wire::request::Args;

const WRITE: u32 = is::TDIGEST | is::WRITE;
const READ: u32 = is::TDIGEST | is::READ | is::FAST;

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("TDIGEST.CREATE", -2, WRITE | is::FAST, Keys::FIRST, create),
    Command::new("TDIGEST.RESET", 2, WRITE | is::FAST, Keys::FIRST, reset),
    Command::new("TDIGEST.ADD", -3, WRITE, Keys::FIRST, add),
    Command::new("TDIGEST.MERGE", -4, WRITE, Keys::FIRST, merge),
    Command::new("TDIGEST.MIN", 2, READ, Keys::FIRST, end::<true>),
    Command::new("TDIGEST.MAX", 2, READ, Keys::FIRST, end::<false>),
    Command::new("TDIGEST.QUANTILE", -3, READ, Keys::FIRST, quantile),
    Command::new("TDIGEST.CDF", -3, READ, Keys::FIRST, cdf),
    Command::new("TDIGEST.RANK", -3, READ, Keys::FIRST, rank::<false>),
    Command::new("TDIGEST.REVRANK", -3, READ, Keys::FIRST, rank::<true>),
    Command::new("TDIGEST.BYRANK", -3, READ, Keys::FIRST, by_rank::<false>),
    Command::new("TDIGEST.BYREVRANK", -3, READ, Keys::FIRST, by_rank::<true>),
    Command::new("TDIGEST.TRIMMED_MEAN", 4, is::TDIGEST | is::READ, Keys::FIRST, trimmed_mean),
    Command::new("TDIGEST.INFO", 2, READ, Keys::FIRST, info),
];

const MISSING: Failure = Failure::new("ERR T-Digest: key does not exist");
const EXISTS: Failure = Failure::new("ERR T-Digest: key already exists");
const KEYWORD: Failure = Failure::new("ERR T-Digest: wrong keyword");
const TOO_LARGE: Failure = Failure::new("ERR T-Digest: allocation failed");
const OVERFLOW: Failure = Failure::new("ERR T-Digest: overflow detected");
const COMPRESSION: u64 = 100;

/// A number, finite or not.
fn float(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(value).filter(|value| !value.is_nan())
}

/// Numbers of a request, each in a range, or the failures that say which of them is none.
fn floats(
    args: Args<'_>,
    bad: &'static str,
    (from, to): (f64, f64),
    outside: &'static str,
) -> Result<Vec<f64>, Failure> {
    let each = args.iter().map(|text| {
        let value = float(text).ok_or(Failure::new(bad))?;
        if (from..=to).contains(&value) { Ok(value) } else { Err(Failure::new(outside)) }
    });
    each.collect()
}

const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

fn compression(text: &[u8]) -> Result<u64, Failure> {
    let bad = Failure::new("ERR T-Digest: error parsing compression parameter");
    let positive = "ERR T-Digest: compression parameter needs to be a positive integer";
    match number::integer(text).ok_or(bad)? {
        value @ 1.. => Ok(value as u64),
        _ => Err(Failure::new(positive)),
    }
}

/// The digest of that name.
fn found<'a>(call: &'a mut Call<'_>) -> Result<&'a TDigest, Failure> {
    call.store.get::<TDigest>(call.args.at(1))?.ok_or(MISSING)
}

/// The same, to be changed.
fn changing<'a>(call: &'a mut Call<'_>) -> Result<&'a mut TDigest, Failure> {
    let slot = call.store.find(call.args.at(1)).ok_or(MISSING)?;
    call.store.at_mut::<TDigest>(slot)
}

// ---- changing

fn create(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    if let Some(slot) = call.store.find(args.at(1)) {
        call.store.at::<TDigest>(slot)?;
        return Err(EXISTS);
    }
    let given = match args.len() {
        2 => COMPRESSION,
        4 if args.is(2, "COMPRESSION") => compression(args.at(3))?,
        4 => return Err(KEYWORD),
        _ => return Err(words::wrong_number("tdigest.create")),
    };
    let digest = TDigest::new(given).ok_or(TOO_LARGE)?;
    words::reserve(call, EXISTS, digest.bytes(), || Ok(digest))
}

fn reset(call: &mut Call<'_>) -> Answer {
    let digest = changing(call)?;
    *digest = TDigest::new(digest.compression()).ok_or(TOO_LARGE)?;
    note(call);
    words::ok(call)
}

fn add(call: &mut Call<'_>) -> Answer {
    changing(call)?;
    let finite = "ERR T-Digest: val parameter needs to be a finite number";
    let bad = "ERR T-Digest: error parsing val parameter";
    let values = floats(call.args.from(2), bad, (f64::MIN, f64::MAX), finite)?;
    let digest = changing(call)?;
    if !digest.has_room(values.len() as u64) {
        return Err(OVERFLOW);
    }
    values.into_iter().for_each(|value| digest.add(value));
    note(call);
    words::ok(call)
}

/// `TDIGEST.MERGE dest numkeys src... [COMPRESSION c] [OVERRIDE]`.
fn merge(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let name = args.at(1);
    let target = call.store.find(name);
    let before = target.map(|slot| call.store.at::<TDigest>(slot)).transpose()?;
    let mut wanted = before.map(TDigest::compression);
    let keys = number::integer(args.at(2));
    let keys = keys.ok_or(Failure::new("ERR T-Digest: error parsing numkeys"))?;
    let keys = usize::try_from(keys).ok().filter(|keys| *keys > 0);
    let positive = Failure::new("ERR T-Digest: numkeys needs to be a positive integer");
    let keys = keys.ok_or(positive)?;
    let wrong = || words::wrong_number("tdigest.merge");
    if keys > args.len() - 3 {
        return Err(wrong());
    }
    let (mut overrides, mut said) = (false, None);
    let mut options = Options::new(args, 3 + keys);
    while let Some(word) = options.next(&["COMPRESSION", "OVERRIDE"]).map_err(|_| KEYWORD)? {
        match word {
            "COMPRESSION" => said = Some(compression(options.value().ok_or_else(wrong)?)?),
            _ => (overrides, wanted) = (true, None),
        }
    }
    let mut sources = Vec::new();
    for place in 3..3 + keys {
        words::may_use(call, args.at(place))?;
        let slot = call.store.find(args.at(place)).ok_or(MISSING)?;
        call.store.at::<TDigest>(slot)?;
        sources.push(slot);
    }
    let digest = |slot: &Slot| call.store.at::<TDigest>(*slot);
    let largest = sources.iter().filter_map(|slot| digest(slot).ok()).map(TDigest::compression);
    let compression = said.or(wanted).or(largest.max()).unwrap_or(COMPRESSION);
    let mut merged = TDigest::new(compression)
        .ok_or(Failure::new("ERR T-Digest: allocation of destination digest failed"))?;
    for slot in target.iter().filter(|_| !overrides).chain(&sources) {
        let source = digest(slot)?;
        if !merged.has_room(source.values()) {
            return Err(OVERFLOW);
        }
        merged.merge(source);
    }
    match target {
        Some(slot) => {
            let more = merged.bytes().saturating_sub(digest(&slot)?.bytes());
            call.store.admit(more)?;
            *call.store.at_mut::<TDigest>(slot)? = merged;
            call.store.recount(slot);
        }
        None => {
            call.store.admit_as(name, merged.bytes())?;
            call.store.insert(name, Box::new(merged));
        }
    }
    note(call);
    words::ok(call)
}

// ---- asking

/// Answers a number for each one that was asked for.
fn each<T>(
    call: &mut Call<'_>,
    values: Vec<T>,
    answer: impl Fn(&View<'_>, &TDigest, T) -> f64,
) -> Answer {
    let digest = found(call)?;
    let view = digest.view();
    let answers: Vec<f64> = values.into_iter().map(|it| answer(&view, digest, it)).collect();
    call.reply.array(answers.len());
    answers.into_iter().for_each(|answer| call.reply.double(answer));
    Ok(())
}

fn end<const MIN: bool>(call: &mut Call<'_>) -> Answer {
    let digest = found(call)?;
    let value = if MIN { digest.min } else { digest.max };
    let value = if digest.values() == 0 { f64::NAN } else { value };
    call.reply.double(value);
    Ok(())
}

fn quantile(call: &mut Call<'_>) -> Answer {
    found(call)?;
    let bad = "ERR T-Digest: error parsing quantile";
    let outside = "ERR T-Digest: quantile should be in [0,1]";
    let values = floats(call.args.from(2), bad, (0.0, 1.0), outside)?;
    each(call, values, |view, _, q| view.quantile(q))
}

fn cdf(call: &mut Call<'_>) -> Answer {
    found(call)?;
    let bad = "ERR T-Digest: error parsing cdf";
    let values = floats(call.args.from(2), bad, ANY, bad)?;
    each(call, values, |view, digest, value| view.below(value) / digest.values() as f64)
}

fn rank<const REVERSE: bool>(call: &mut Call<'_>) -> Answer {
    found(call)?;
    let bad = "ERR T-Digest: error parsing value";
    let values = floats(call.args.from(2), bad, ANY, bad)?;
    let digest = found(call)?;
    let (view, len) = (digest.view(), digest.values() as f64);
    let ranks = values.into_iter().map(|value| {
        let (below, above) = (value < digest.min, value > digest.max);
        match () {
            () if digest.values() == 0 => -2.0,
            () if below => {
                if REVERSE {
                    len
                } else {
                    -1.0
                }
            }
            () if above => {
                if REVERSE {
                    -1.0
                } else {
                    len
                }
            }
            () if REVERSE => (len - view.below(value).round()).round(),
            // A half is rounded down, so the rank of the n-th of different values is n - 1.
            () => (view.below(value) - 0.5).ceil(),
        }
    });
    let ranks: Vec<f64> = ranks.collect();
    call.reply.array(ranks.len());
    ranks.into_iter().for_each(|rank| call.reply.int(rank as i64));
    Ok(())
}

fn by_rank<const REVERSE: bool>(call: &mut Call<'_>) -> Answer {
    found(call)?;
    let ranks = call.args.from(2).iter().map(|text| {
        let rank = number::integer(text);
        let rank = rank.ok_or(Failure::new("ERR T-Digest: error parsing rank"))?;
        let negative = |_| Failure::new("ERR T-Digest: rank needs to be non negative");
        u64::try_from(rank).map_err(negative)
    });
    let ranks = ranks.collect::<Result<Vec<u64>, Failure>>()?;
    each(call, ranks, |view, digest, rank| match digest.values() {
        0 => f64::NAN,
        len if rank >= len => {
            if REVERSE {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        _ if rank == 0 => {
            if REVERSE {
                digest.max
            } else {
                digest.min
            }
        }
        len => view.value_at(if REVERSE { len - rank - 1 } else { rank } as f64),
    })
}

fn trimmed_mean(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    found(call)?;
    let low = float(args.at(2));
    let low = low.ok_or(Failure::new("ERR T-Digest: error parsing low_cut_percentile"))?;
    let high = float(args.at(3));
    let high = high.ok_or(Failure::new("ERR T-Digest: error parsing high_cut_percentile"))?;
    if !(0.0..=1.0).contains(&low) || !(0.0..=1.0).contains(&high) {
        let text = "ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]";
        return Err(Failure::new(text));
    }
    if low >= high {
        let text = "ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile";
        return Err(Failure::new(text));
    }
    let mean = found(call)?.view().trimmed_mean(low, high);
    call.reply.double(mean);
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let digest = found(call)?;
    let (state, bytes) = (digest.state(), digest.bytes());
    let fields = [
        ("Compression", state.compression),
        ("Capacity", state.capacity),
        ("Merged nodes", state.nodes.0),
        ("Unmerged nodes", state.nodes.1),
        ("Merged weight", state.weights.0),
        ("Unmerged weight", state.weights.1),
        ("Observations", state.weights.0 + state.weights.1),
        ("Total compressions", state.compressions),
        ("Memory usage", bytes),
    ];
    words::map(call.reply, &fields.map(|(name, value)| (name, Field::Count(value))))
}
