//! Laws of `Dedup`, against a plain set of the keys.

use super::*;
use crate::filters::BloomPlan;
use crate::positions::Derivation;
use crate::url::Canon;
use std::collections::HashSet;

const TEXT: &[u8] = b"b\na\r\n\nb\r\na\nc\0d\n\xff\xfe\n\n\xff\xfe\nlast";

fn filter() -> BloomFilter {
    let plan = BloomPlan::for_goal(10_000, 1e-9, None, Derivation::Enhanced);
    plan.and_then(|plan| BloomFilter::new(plan, Hasher::Xxh3 { seed: 0 })).unwrap()
}

fn whole_lines() -> Keys {
    Keys::new(Form::Lines, None, None, None).unwrap()
}

fn run(keys: Keys, invert: bool, threads: usize, files: &[&[&[u8]]]) -> (Vec<u8>, Tally) {
    let (filter, mut out) = (filter(), Vec::new());
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::of(threads)), Dedup::new(invert));
    for chunks in files {
        for chunk in chunks.iter().map(|chunk| Some(*chunk)).chain([None]) {
            let hashed = reader.hash(chunk, filter.hasher()).unwrap();
            dedup.filter(&hashed, chunk.unwrap_or_default(), &mut &filter, &mut out).unwrap();
        }
    }
    (out, dedup.tally())
}

/// By a set; verdicts are given through `take` and `keep`.
fn run_elsewhere(keys: Keys, files: &[&[&[u8]]]) -> (Vec<u8>, Tally) {
    let (mut seen, mut out) = (HashSet::new(), Vec::new());
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::of(1)), Dedup::new(false));
    for chunks in files {
        for chunk in chunks.iter().map(|chunk| Some(*chunk)).chain([None]) {
            let mut new = Vec::new();
            let each = |key: &[u8], _| new.push(seen.insert(key.to_vec()));
            dedup.take(&mut reader, chunk, &mut out, each).unwrap();
            dedup.keep(&new, None, &mut out).unwrap();
        }
    }
    (out, dedup.tally())
}

#[test]
fn lines_are_kept_when_their_bytes_without_the_line_end_are_new() {
    let expected = b"b\na\r\n\nc\0d\n\xff\xfe\nlast\n";
    let tally = Tally { lines: 10, new: 6, repeats: 4, keyless: 0 };
    assert_eq!(run(whole_lines(), false, 1, &[&[TEXT]]), (expected.to_vec(), tally));
    assert_eq!(run(whole_lines(), true, 1, &[&[TEXT]]).0, b"b\r\na\n\n\xff\xfe\n");
}

#[test]
fn borders_of_chunks_change_nothing() {
    let quoted: &[u8] = b"id,text\r\n1,\"a\"\"b,\n\"\n2,x\n1,y\n\"2\",\"z";
    for (keys, text) in [
        (whole_lines(), TEXT),
        (Keys::new(Form::Csv, Some("id"), None, None).unwrap(), quoted),
        (Keys::new(Form::Csv, Some("2"), None, None).unwrap(), quoted),
        (Keys::new(Form::Tsv, Some("1"), None, None).unwrap(), TEXT),
    ] {
        let whole = run(keys.clone(), false, 1, &[&[text]]);
        assert_eq!(run_elsewhere(keys.clone(), &[&[text]]), whole);
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let chunks = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(run(keys.clone(), false, 1, &[&chunks]), whole, "{first} {second}");
                assert_eq!(run_elsewhere(keys.clone(), &[&chunks]), whole, "{first} {second}");
            }
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut text = Vec::new();
    for i in 0..80_000_u64 {
        let number = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 50_000;
        text.extend_from_slice(format!("https://example.org/{number}\n").as_bytes());
    }
    text.extend_from_slice(&[b'x'; 3_000_000]);
    let alone = run(whole_lines(), false, 1, &[&[&text]]);
    assert!(alone.1.repeats > 10_000 && alone.1.new > 10_000, "{:?}", alone.1);
    for threads in [2, 3, 7] {
        assert_eq!(run(whole_lines(), false, threads, &[&[&text]]), alone);
    }
}

#[test]
fn a_last_line_without_end_does_not_stick_to_the_next_file() {
    let out = run(whole_lines(), false, 1, &[&[b"a\nb"], &[b""], &[b"b\nc"]]).0;
    assert_eq!(out, b"a\nb\nc\n");
}

#[test]
fn a_quote_that_is_never_closed_loses_nothing() {
    let keys = || Keys::new(Form::Csv, Some("1"), None, None).unwrap();
    let files: &[&[&[u8]]] = &[&[b"a,1\n\"b,2\n", b"c"], &[b"\"b,2\nc"]];
    let (out, tally) = run(keys(), false, 1, files);
    assert_eq!(out, b"a,1\n\"b,2\nc\n");
    assert_eq!(tally, Tally { lines: 3, new: 2, repeats: 1, keyless: 0 });
    assert_eq!(run_elsewhere(keys(), files), (out, tally));
}

#[test]
fn each_file_has_its_header_and_the_first_is_kept() {
    let keys = || Keys::new(Form::Csv, Some("id"), None, None).unwrap();
    let files: &[&[&[u8]]] =
        &[&[b"id,a\n1,x\n2,x\n"], &[b""], &[b"\xef\xbb\xbfa,\"id\"\r\nx,1\nx,3\n"]];
    assert_eq!(run(keys(), false, 1, files).0, b"id,a\n1,x\n2,x\nx,3\n");
    assert_eq!(run(keys(), true, 1, files).0, b"id,a\nx,1\n");
    let refused = Reader::new(keys(), Crew::of(1)).hash(Some(b"a,b\n1,2\n"), filter().hasher());
    assert!(refused.is_err_and(|error| error.to_string().contains("a,b")));
}

#[test]
fn a_line_without_a_key_is_never_dropped() {
    let keys = || Keys::new(Form::Json, Some("user.id"), None, None).unwrap();
    let text: &[u8] = b"{\"user\":{\"id\":\"a\"}}\n\
        {\"user.id\":\"\\u0061\"}\n\
        not json\nnot json\n\
        {\"user\":{\"id\":null}}\n{\"user\":{\"id\":null}}\n\
        {\"user\":{\"id\":[1, 2]}}\n{\"user\":{\"id\":[1, 3]}}\n{\"user\":{\"id\":[1, 2]}}\n";
    let (out, tally) = run(keys(), false, 1, &[&[text]]);
    assert_eq!(tally, Tally { lines: 9, new: 3, repeats: 2, keyless: 4 });
    let kept: Vec<_> = out.split(|b| *b == b'\n').collect();
    assert_eq!(kept.len(), 8, "{}", String::from_utf8_lossy(&out));
    assert_eq!(run(keys(), true, 1, &[&[text]]).1, tally);
    let short = Keys::new(Form::Csv, Some("3"), None, None).unwrap();
    assert_eq!(run(short, false, 1, &[&[b"a,b\na,b\n1,2,3\n1,2,3\n"]]).0, b"a,b\na,b\n1,2,3\n");
}

#[test]
fn a_url_is_the_same_in_every_spelling_and_what_is_none_passes() {
    let urls = Keys::new(Form::Lines, None, None, Some(Canon::default())).unwrap();
    let text =
        b"http://a.example\nHTTP://A.example:80/\nnot a url\nnot a url\n\nhttp://a.example/b\n";
    let (out, tally) = run(urls, false, 1, &[&[text]]);
    assert_eq!(out, b"http://a.example\nnot a url\nnot a url\n\nhttp://a.example/b\n");
    assert_eq!(tally, Tally { lines: 6, new: 2, repeats: 1, keyless: 3 });
}

#[test]
fn times_come_with_their_keys() {
    let mut taken = Vec::new();
    let keys = Keys::new(Form::Csv, Some("2"), Some("1"), None).unwrap();
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::of(1)), Dedup::new(false));
    let text = b"1700000000,a\n\"2023-11-14T22:13:21Z\",b\nnever,c\n";
    let each = |key: &[u8], time| taken.push((key.to_vec(), time));
    dedup.take(&mut reader, Some(text), &mut Vec::new(), each).unwrap();
    let at = |key: &[u8], time| (key.to_vec(), time);
    let expected = [at(b"a", Some(1.7e9)), at(b"b", Some(1_700_000_001.0)), at(b"c", None)];
    assert_eq!(taken, expected);
    assert!(dedup.keep(&[true], None, &mut Vec::new()).is_err());
    assert!(dedup.keep(&[true, false, true], None, &mut Vec::new()).is_ok());
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let mut reader = Reader::new(whole_lines(), Crew::of(1));
    let (filter, chunk) = (filter(), vec![b'x'; 1 << 24]);
    let mut fed = 0;
    let refused = loop {
        match reader.hash(Some(&chunk), filter.hasher()) {
            Ok(_) => fed += chunk.len(),
            Err(error) => break error.to_string(),
        }
        assert!(fed <= MAX_LINE);
    };
    assert!(refused.contains("line"), "{refused}");
}

#[test]
fn counts_stand_before_the_lines() {
    let keys = Keys::new(Form::Csv, Some("2"), None, None).unwrap();
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::of(1)), Dedup::new(false));
    let (text, mut out) = (b"1,a\n2,b\nnone\n3,a\r\n4,c", Vec::new());
    dedup.take(&mut reader, Some(text), &mut out, |_, _| ()).unwrap();
    assert!(dedup.keep(&[true, true, false], Some(&[2, 1]), &mut out).is_err());
    dedup.keep(&[true, true, false], Some(&[2, 1, 2]), &mut out).unwrap();
    assert_eq!(out, b"2\t1,a\n1\t2,b\n1\tnone\n");
}
