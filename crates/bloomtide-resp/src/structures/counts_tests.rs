use super::super::form::{forged, is_refused_when_damaged, written};
use super::*;
use std::collections::HashMap;

fn counts(kind: CountKind, capacity: u64) -> Counts {
    Counts::new(CountsPlan::for_goal(kind, capacity, 0.001).unwrap(), 0).unwrap()
}

fn key(counts: &Counts, key: u64) -> KeyHash {
    counts.hasher().bytes(&key.to_le_bytes())
}

#[test]
fn counts_of_every_kind_are_those_of_a_map_and_go_away_again() {
    for (name, kind) in CountKind::ALL {
        let mut counts = counts(kind, 500);
        let mut exact = HashMap::new();
        // A counting filter has four bits: a counter that is full once stays so.
        for event in 0..2500u64 {
            let key = event % 500 / (event / 500 + 1);
            let before: &mut u64 = exact.entry(key).or_default();
            if *before < 3 {
                counts.add(self::key(&counts, key), 1).unwrap();
                *before += 1;
            }
        }
        let wrong = exact.iter().filter(|(k, n)| counts.count(key(&counts, **k)) != **n).count();
        assert!(wrong <= 2, "{name}: {wrong}");
        assert_eq!(counts.total(), exact.values().sum::<u64>());
        assert!(counts.items().abs_diff(exact.len() as u64) <= 2, "{name}");
        for (k, n) in &exact {
            counts.remove(key(&counts, *k), *n).unwrap();
        }
        assert_eq!((counts.total(), counts.items()), (0, 0), "{name}");
        let empty = self::counts(kind, 500);
        assert!(written(&counts) == written(&empty), "{name}");
    }
}

#[test]
fn what_was_not_added_is_not_removed() {
    let mut counts = counts(CountKind::Pdcf, 100);
    let hash = key(&counts, 1);
    counts.add(hash, 3).unwrap();
    let before = written(&counts);
    assert!(matches!(counts.remove(hash, 4), Err(Error::AbsentKey { estimate: 3, requested: 4 })));
    assert!(written(&counts) == before);
    assert_eq!(counts.remove(hash, 2).unwrap(), 1);
}

#[test]
fn a_merge_counts_both_streams_and_refuses_what_is_unlike() {
    let (mut a, mut b) = (counts(CountKind::Pdcf, 300), counts(CountKind::Pdcf, 300));
    for k in 0..200 {
        a.add(key(&a, k), k + 1).unwrap();
        b.add(key(&b, k + 100), 1000).unwrap();
    }
    let merged = a.merged(&[&b, &b]).unwrap();
    assert_eq!(merged.count(key(&a, 150)), 151 + 2000);
    assert_eq!(merged.total(), a.total() + 2 * b.total());
    assert!(merged.items().abs_diff(300) < 20, "{}", merged.items());
    assert!(a.merged(&[&counts(CountKind::Dcf, 300)]).is_err());
    assert!(a.merged(&[&counts(CountKind::Pdcf, 301)]).is_err());
    assert!(a.merged(&[&counts(CountKind::Counting, 300)]).is_err());
}

#[test]
fn bytes_give_the_same_counts_and_damage_is_refused() {
    for (name, kind) in CountKind::ALL {
        let mut counts = counts(kind, 10);
        for k in 0..10 {
            counts.add(key(&counts, k), k + 1).unwrap();
        }
        let bytes = written(&counts);
        let mut read = Counts::read(&bytes).unwrap();
        assert!(written(&read) == bytes, "{name}");
        assert_eq!((read.items(), read.total(), read.kind()), (10, 55, counts.kind()));
        for k in 5..20 {
            assert_eq!(
                counts.add(key(&counts, k), 3).unwrap(),
                read.add(key(&read, k), 3).unwrap()
            );
        }
        assert!(written(&read) == written(&counts), "{name}");
    }
    let bytes = written(&counts(CountKind::Pdcf, 3));
    is_refused_when_damaged(&bytes, Counts::read);
    assert!(Counts::read(&forged(&bytes, |body| body.truncate(body.len() - 8))).is_err());
}

#[test]
fn partitions_are_those_of_the_models() {
    // What `bloomtide.partitions.auto` says.
    for (cells, expected) in [(1, 1), (1000, 2), (1_000_000, 55), (123_456_789, 609)] {
        assert_eq!(partitions(cells), expected, "{cells}");
    }
}

#[test]
fn memory_is_foretold() {
    for (name, kind) in CountKind::ALL {
        let plan = CountsPlan::for_goal(kind, 10_000, 0.01).unwrap();
        let counts = Counts::new(plan, 0).unwrap();
        let ratio = counts.bytes() as f64 / plan.bytes() as f64;
        assert!((0.7..1.1).contains(&ratio), "{name}: {ratio}");
    }
    assert!(CountsPlan::for_goal(CountKind::Pdcf, 0, 0.01).is_err());
    assert!(CountsPlan::for_goal(CountKind::Sbf, 10, 1.5).is_err());
}
