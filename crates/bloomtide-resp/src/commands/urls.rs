//! URL.*: URLs that were seen, and the sites and directories that they lie in. On the URL filter.
//!
//! URLs are brought to their canonical form first, so that two spellings of one are one. What is no URL is an error:
//! of the whole request if there is one URL, in its place if there are several. A name that is not there has
//! no URLs: EXISTS, HOST and PREFIX say so.

use super::words::{self, EXISTS, Field, NOT_FOUND, Options};
use crate::command::{Call, Command, Keys, is};
use crate::failure::{Answer, Failure};
use crate::structure::Structure;
use crate::structures::{Urls, bytes_at_most};
use crate::wire::number;
use bloomtide_core::filters::{Bind, LayerSizes, UrlPlan};
use bloomtide_core::{Canon, Result as CoreResult, canonical};

/// The family.
pub const TABLE: &[Command] = &[
    Command::new("URL.RESERVE", -4, is::URL | is::WRITE | is::FAST, Keys::FIRST, reserve),
    Command::new("URL.ADD", 3, is::URL | is::WRITE | is::FAST, Keys::FIRST, add),
    Command::new("URL.MADD", -3, is::URL | is::WRITE, Keys::FIRST, add_many),
    Command::new("URL.EXISTS", 3, is::URL | is::READ | is::FAST, Keys::FIRST, exists),
    Command::new("URL.MEXISTS", -3, is::URL | is::READ, Keys::FIRST, exists_many),
    Command::new("URL.HOST", 3, is::URL | is::READ | is::FAST, Keys::FIRST, host),
    Command::new("URL.PREFIX", 4, is::URL | is::READ | is::FAST, Keys::FIRST, prefix),
    Command::new("URL.CANONICAL", 2, is::URL | is::FAST, Keys::NONE, canonical_form),
    Command::new("URL.INFO", 2, is::URL | is::READ | is::FAST, Keys::FIRST, info),
];

/// Layers where nothing is said.
const LAYERS: u32 = 8;

fn reserve(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let mut layers = LAYERS;
    let mut options = Options::new(args, 4);
    while options.next(&["LAYERS"])?.is_some() {
        let number = number::whole(options.needed()?).ok_or(Failure::NOT_AN_INTEGER)?;
        layers = u32::try_from(number).unwrap_or(u32::MAX);
    }
    let plan = UrlPlan {
        capacity: words::capacity(args.at(2))?,
        error_rate: words::error_rate(args.at(3))?,
        max_layers: layers,
        bind: Bind::default(),
        layer_sizes: LayerSizes::Uniform,
    }
    .checked()?;
    // Layers come with the depth of URLs, so all of them must fit.
    words::reserve(call, EXISTS, bytes_at_most(&plan)?, || Urls::new(plan))
}

// ---- adding

fn add(call: &mut Call<'_>) -> Answer {
    let slot = call.store.find(call.args.at(1)).ok_or(NOT_FOUND)?;
    let urls = call.store.at_mut::<Urls>(slot)?;
    let layers = urls.filter.layers().len();
    let new = urls.add(call.args.at(2))?;
    if urls.filter.layers().len() > layers {
        call.store.recount(slot);
    }
    if new {
        words::note(call);
    }
    call.reply.bool(new);
    Ok(())
}

/// Each URL is answered in its place; one that is none is an error there, and the others go on.
fn add_many(call: &mut Call<'_>) -> Answer {
    let (name, items) = (call.args.at(1), call.args.from(2));
    let slot = call.store.find(name).ok_or(NOT_FOUND)?;
    let urls = call.store.at_mut::<Urls>(slot)?;
    call.reply.array(items.len());
    for url in items.iter() {
        match urls.add(url) {
            Ok(new) => {
                call.reply.bool(new);
                if new {
                    call.changes.note(call.now, &[b"URL.ADD", name, url]);
                }
            }
            Err(error) => call.reply.error(&Failure::from(error).0),
        }
    }
    call.store.recount(slot);
    Ok(())
}

// ---- asking

fn exists(call: &mut Call<'_>) -> Answer {
    ask(call, |urls, url| urls.filter.contains(url))
}

/// Answers a question about one element; of a name that is not there nothing is known.
fn ask<'a>(
    call: &mut Call<'a>,
    question: impl FnOnce(&Urls, &'a [u8]) -> CoreResult<bool>,
) -> Answer {
    let element = call.args.at(2);
    let urls = call.store.get::<Urls>(call.args.at(1))?;
    let known = urls.map_or(Ok(false), |urls| question(urls, element))?;
    call.reply.bool(known);
    Ok(())
}

fn exists_many(call: &mut Call<'_>) -> Answer {
    let items = call.args.from(2);
    let urls = call.store.get::<Urls>(call.args.at(1))?;
    call.reply.array(items.len());
    for url in items.iter() {
        match urls.map_or(Ok(false), |urls| urls.filter.contains(url)) {
            Ok(seen) => call.reply.bool(seen),
            Err(error) => call.reply.error(&Failure::from(error).0),
        }
    }
    Ok(())
}

fn host(call: &mut Call<'_>) -> Answer {
    ask(call, |urls, host| urls.filter.seen_host(host))
}

fn prefix(call: &mut Call<'_>) -> Answer {
    let depth = number::whole(call.args.at(3)).ok_or(Failure::NOT_AN_INTEGER)?;
    let depth = u32::try_from(depth).unwrap_or(u32::MAX);
    ask(call, |urls, url| urls.filter.seen_prefix(url, depth))
}

fn canonical_form(call: &mut Call<'_>) -> Answer {
    let mut buffer = Vec::new();
    call.reply.bulk(canonical(call.args.at(1), &Canon::default(), &mut buffer)?);
    Ok(())
}

fn info(call: &mut Call<'_>) -> Answer {
    let urls = call.store.get::<Urls>(call.args.at(1))?.ok_or(NOT_FOUND)?;
    let plan = urls.filter.plan();
    let fields = [
        ("Capacity", Field::Count(plan.capacity)),
        ("Error rate", Field::Number(plan.error_rate)),
        ("Size", Field::Count(urls.bytes())),
        ("Number of URLs", Field::Count(urls.items)),
        ("Number of layers", Field::Count(urls.filter.layers().len() as u64)),
        ("Most layers", Field::Count(plan.max_layers.into())),
        ("Expected error", Field::Number(urls.summary().error)),
    ];
    words::map(call.reply, &fields)
}
