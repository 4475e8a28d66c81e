//! Laws of the URL filter that need no interpreter.

use super::*;
use crate::crew::Crew;
use crate::key::Key;
use crate::snapshot::{Loaded, read, to_bytes};

const HASHER: Hasher = Hasher::Xxh3 { seed: 3 };

fn plan(bind: Bind, max_layers: u32) -> UrlPlan {
    let layer_sizes = LayerSizes::Uniform;
    UrlPlan { capacity: 4000, error_rate: 0.01, max_layers, bind, layer_sizes }
}

fn made(bind: Bind, max_layers: u32) -> UrlFilter {
    UrlFilter::new(plan(bind, max_layers), HASHER).unwrap()
}

/// URLs of two to seven segments, some of them twice.
fn urls(count: usize) -> Vec<String> {
    let url = |i: usize| {
        let above: String = (0..i % 6).map(|depth| format!("d{}/", i % (depth + 2))).collect();
        format!("https://site{}.example/{above}{}", i % 7, i / 2)
    };
    (0..count).map(url).collect()
}

fn keys(urls: &[String]) -> Vec<Key<'_>> {
    urls.iter().map(|url| Key::Text(url.as_bytes())).collect()
}

#[test]
fn a_batch_is_its_urls_one_by_one_with_any_crew() {
    let urls = urls(25_000);
    for bind in Bind::ALL {
        for threads in [1, 3] {
            let (mut alone, mut many) = (made(bind, 5), made(bind, 5));
            let expected: Vec<bool> =
                urls.iter().map(|url| alone.add(url.as_bytes()).unwrap()).collect();
            let mut out = vec![false; urls.len()];
            let mut crew = Crew::of(threads);
            many.add_many(&keys(&urls).as_slice(), &mut out, &mut crew).unwrap();
            assert!(out == expected && many.same_as(&alone), "{bind:?} {threads}");
            let probes: Vec<String> =
                urls.iter().map(|url| format!("{url}/x")).take(4000).collect();
            let probes = [&urls[..4000], &probes[..]].concat();
            let asked: Vec<bool> =
                probes.iter().map(|url| alone.contains(url.as_bytes()).unwrap()).collect();
            let mut out = vec![true; probes.len()];
            many.contains_many(&keys(&probes).as_slice(), &mut out, &mut crew).unwrap();
            assert!(out == asked && !out.iter().all(|found| *found));
        }
    }
}

#[test]
fn only_bound_segments_know_their_order_and_their_number() {
    let known = ["http://z/b/a", "http://x/", "http://z/a/b/c", "http://p/q/r"];
    // z/a/b has the segments of z/b/a, and z/a/b/c gives each of them its depth.
    for bind in Bind::ALL {
        let mut filter = made(bind, 8);
        known.iter().for_each(|url| assert!(filter.add(url.as_bytes()).is_ok()));
        let swapped = filter.contains(b"http://z/a/b").unwrap();
        assert_eq!(swapped, bind == Bind::Xor, "{bind:?}");
    }
    // A pair of equal segments leaves no trace in the paper's address, whatever the segment is.
    for bind in Bind::ALL {
        let filter = made(bind, 8);
        let whole = |url: &str| filter.positions(url.as_bytes()).unwrap().pop();
        assert_eq!(whole("http://x/a/a") == whole("http://x/b/b"), bind == Bind::Xor);
        assert_eq!(whole("http://x/a/b") == whole("http://x/b/a"), bind == Bind::Xor);
    }
}

#[test]
fn a_url_that_is_deeper_than_anything_is_absent_and_grows_nothing() {
    let mut filter = made(Bind::SaltedXor, 8);
    filter.add(b"http://h/a").unwrap();
    assert!(!filter.contains(b"http://h/a/b/c").unwrap());
    assert!(!filter.seen_prefix(b"http://h/a/b/c", 3).unwrap());
    assert_eq!(filter.layers().len(), 2);
    filter.add(b"http://h/a/b/c/d/e/f/g/h/i/j").unwrap();
    assert_eq!(filter.layers().len(), 8);
}

#[test]
fn what_is_no_url_changes_nothing_and_is_named_with_its_row() {
    let mut filter = made(Bind::SaltedXor, 8);
    filter.add(b"http://h/a").unwrap();
    let before = to_bytes(&filter).unwrap();
    assert!(filter.add(b"nothing like it").is_err());
    let mixed = ["http://h/1", "no", "http://h/2", "neither"].map(str::to_owned);
    let rows = keys(&mixed);
    for threads in [1, 3] {
        let outcome = UrlFilter::check_many(&rows.as_slice(), &mut Crew::of(threads));
        assert!(matches!(outcome, Err(Error::Row { row: 1, .. })));
    }
    let mut out = [false; 4];
    let outcome = filter.add_many(&rows.as_slice(), &mut out, &mut Crew::of(1));
    assert!(matches!(outcome, Err((0, Error::Row { row: 1, .. }))));
    let numbers = [Key::Unsigned(5)];
    assert!(UrlFilter::check_many(&numbers.as_slice(), &mut Crew::of(1)).is_err());
    assert_eq!(to_bytes(&filter).unwrap(), before);
}

#[test]
fn a_merge_has_the_layers_of_both() {
    for bind in Bind::ALL {
        let (mut shallow, mut deep, mut both) = (made(bind, 8), made(bind, 8), made(bind, 8));
        for url in ["http://h/a", "http://g/"] {
            shallow.add(url.as_bytes()).unwrap();
            both.add(url.as_bytes()).unwrap();
        }
        for url in ["http://h/a/b/c/d", "http://f/x/y"] {
            deep.add(url.as_bytes()).unwrap();
            both.add(url.as_bytes()).unwrap();
        }
        let mut other_way = deep.copy().unwrap();
        other_way.merge(&shallow).unwrap();
        shallow.merge(&deep).unwrap();
        assert!(shallow.same_as(&both) && other_way.same_as(&both));
    }
}

#[test]
fn a_snapshot_comes_back_and_a_changed_one_does_not() {
    for bind in Bind::ALL {
        let mut filter = made(bind, 5);
        urls(500).iter().for_each(|url| assert!(filter.add(url.as_bytes()).is_ok()));
        let Ok(Loaded::Url(back)) = read(&to_bytes(&filter).unwrap(), None) else {
            panic!("another kind")
        };
        assert!(back.same_as(&filter));
    }
    // Layers of one size where another was planned, and X in a layer's place.
    let sizes = LayerSizes::Expected(vec![70]);
    let listed = UrlPlan { layer_sizes: sizes, ..plan(Bind::SaltedXor, 5) };
    let filter = UrlFilter::new(listed, HASHER).unwrap();
    let whole = || BloomFilter::new(filter.plan().whole().unwrap(), HASHER).unwrap();
    let first = || BloomFilter::new(filter.plan().layer(1).unwrap(), HASHER).unwrap();
    let plan = || filter.plan().clone();
    assert!(UrlFilter::over(plan(), whole(), vec![first()]).is_ok());
    assert!(UrlFilter::over(plan(), first(), vec![]).is_err());
    assert!(UrlFilter::over(plan(), whole(), vec![whole()]).is_err());
    let other = BloomFilter::new(filter.plan().layer(1).unwrap(), Hasher::Xxh3 { seed: 4 });
    assert!(UrlFilter::over(plan(), whole(), vec![other.unwrap()]).is_err());
    let shallow = UrlPlan { max_layers: 1, ..plan() };
    assert!(UrlFilter::over(shallow, whole(), vec![first(), first()]).is_err());
}

#[test]
fn prefixes_are_counted_exactly() {
    let urls = urls(70_000);
    let keys = keys(&urls);
    for max_layers in [1, 4] {
        let mut counted = PrefixCount::new(max_layers).unwrap();
        for part in keys.chunks(30_000) {
            counted.add_many(&part).unwrap();
        }
        let mut expected = vec![std::collections::BTreeSet::new(); max_layers as usize];
        for url in &urls {
            let parts: Vec<&str> =
                url["https://".len()..].splitn(max_layers as usize, '/').collect();
            for depth in 0..parts.len() {
                expected[depth].insert(parts[..=depth].to_vec());
            }
        }
        let expected: Vec<u64> =
            expected.iter().map(|seen| seen.len() as u64).filter(|len| *len > 0).collect();
        assert_eq!(counted.counts(), expected);
    }
}

#[test]
fn every_layer_is_made_for_all_urls_and_a_list_of_sizes_ends_with_its_last_number() {
    let uniform = plan(Bind::SaltedXor, 8);
    let capacities = |plan: &UrlPlan| {
        (1..=4).map(|depth| plan.layer(depth).unwrap().capacity.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(capacities(&uniform), [4000; 4]);
    let listed = UrlPlan { layer_sizes: LayerSizes::Expected(vec![5, 70]), ..uniform };
    assert_eq!(capacities(&listed), [5, 70, 70, 70]);
}
