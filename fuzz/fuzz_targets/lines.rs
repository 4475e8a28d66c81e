//! Any bytes as lines of any form, cut into chunks anywhere: the same lines are kept as in one piece, by
//! a filter and by a set, and kept and repeated ones together are all of them.

#![no_main]

use arbitrary::Arbitrary;
use bloomtide_core::lines::{Dedup, Form, Keys, Reader};
use bloomtide_core::url::Canon;
use bloomtide_core::{BloomFilter, BloomPlan, Crew, Derivation, Hasher};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

#[derive(Arbitrary, Debug)]
struct Input {
    form: u8,
    url: bool,
    cuts: Vec<u8>,
    text: Vec<u8>,
}

fn keys(input: &Input) -> Option<Keys> {
    let url = input.url.then(Canon::default);
    match input.form % 6 {
        0 => Keys::new(Form::Lines, None, None, url),
        1 => Keys::new(Form::Csv, Some("1"), None, url),
        2 => Keys::new(Form::Csv, Some("a"), Some("b"), url),
        3 => Keys::new(Form::Tsv, Some("2"), Some("1"), url),
        4 => Keys::new(Form::Csv, None, None, url),
        _ => Keys::new(Form::Json, Some("a.b"), Some("t"), url),
    }
    .ok()
}

/// The lines kept by a filter; None if the header lacks the columns.
fn filtered(keys: Keys, invert: bool, chunks: &[&[u8]]) -> Option<Vec<u8>> {
    let plan = BloomPlan::for_goal(10_000, 1e-9, None, Derivation::Enhanced).ok()?;
    let filter = BloomFilter::new(plan, Hasher::Xxh3 { seed: 0 }).ok()?;
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::new(1)), Dedup::new(invert));
    let mut out = Vec::new();
    for chunk in chunks.iter().map(|chunk| Some(*chunk)).chain([None]) {
        let hashed = reader.hash(chunk, filter.hasher()).ok()?;
        dedup.filter(&hashed, chunk.unwrap_or_default(), &mut &filter, &mut out).ok()?;
    }
    let tally = dedup.tally();
    assert_eq!(tally.lines, tally.new + tally.repeats + tally.keyless);
    Some(out)
}

/// The same by verdicts of a set.
fn judged(keys: Keys, chunks: &[&[u8]]) -> Option<Vec<u8>> {
    let (mut seen, mut out) = (HashSet::new(), Vec::new());
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::new(1)), Dedup::new(false));
    for chunk in chunks.iter().map(|chunk| Some(*chunk)).chain([None]) {
        let mut new = Vec::new();
        let each = |key: &[u8], _| new.push(seen.insert(key.to_vec()));
        dedup.take(&mut reader, chunk, &mut out, each).ok()?;
        dedup.keep(&new, None, &mut out).ok()?;
    }
    Some(out)
}

fuzz_target!(|input: Input| {
    let Some(keys) = keys(&input) else { return };
    let mut chunks = Vec::new();
    let mut rest = input.text.as_slice();
    for cut in &input.cuts {
        let (chunk, next) = rest.split_at(usize::from(*cut).min(rest.len()));
        chunks.push(chunk);
        rest = next;
    }
    chunks.push(rest);
    let whole = filtered(keys.clone(), false, &[&input.text]);
    assert_eq!(filtered(keys.clone(), false, &chunks), whole);
    assert_eq!(judged(keys.clone(), &chunks), whole);
    let (Some(kept), Some(repeats)) = (whole, filtered(keys, true, &chunks)) else { return };
    let all = input.text.len() + usize::from(input.text.last().is_some_and(|byte| *byte != b'\n'));
    // A header is in both, and a record that ends within quotes gets a line end too.
    assert!(kept.len() + repeats.len() >= all);
    assert!(!input.form.is_multiple_of(6) || kept.len() + repeats.len() == all);
});
