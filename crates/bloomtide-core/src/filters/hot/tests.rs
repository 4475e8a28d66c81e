//! The list against exact counts, its file, and the ends of its ranges.

use super::*;
use crate::snapshot::{Loaded, read, to_bytes};
use std::collections::HashMap;

const HASHER: Hasher = Hasher::Xxh3 { seed: 3 };
const START: f64 = 1_700_000_000.0;

fn list(k: u64, half_life: Option<f64>) -> HotList {
    HotList::new(HotPlan { k, half_life }, HASHER).unwrap()
}

/// A skewed stream of (key, count, instant), some of them late.
fn stream(len: usize, seed: u64) -> Vec<(u64, u64, f64)> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    (0..len)
        .map(|i| {
            let bits = next() % 9;
            let at = START + i as f64 * 7.3 - (next() % 50) as f64;
            (next() % (1 << bits), 1 + next() % 3, at)
        })
        .collect()
}

fn exact(events: &[(u64, u64, f64)], half_life: Option<f64>, now: f64) -> (HashMap<u64, f64>, f64) {
    let (mut counts, mut total) = (HashMap::new(), 0.0);
    for (key, count, at) in events {
        let left = half_life.map_or(1.0, |half_life| ((at - now) / half_life).exp2());
        *counts.entry(*key).or_default() += *count as f64 * left;
        total += *count as f64 * left;
    }
    (counts, total)
}

fn fed(k: u64, half_life: Option<f64>, events: &[(u64, u64, f64)]) -> HotList {
    let mut list = list(k, half_life);
    for (key, count, at) in events {
        list.add(Key::Unsigned(*key), *count, *at).unwrap();
    }
    list.validate().unwrap();
    list
}

/// The oracle's own sums are rounded; the law is exact in the Python tests.
const ORACLE: f64 = 1e-9;

fn obeys_its_law(list: &HotList, events: &[(u64, u64, f64)]) {
    let now = list.time().unwrap() + 100.0;
    let (counts, total) = exact(events, list.plan().half_life, now);
    let asked = list.total(now).unwrap();
    assert!((asked / total - 1.0).abs() < ORACLE, "{asked} {total}");
    for (key, count) in &counts {
        let hash = HASHER.unsigned(*key);
        let (lower, upper) = list.estimate(hash, now).unwrap();
        assert!(lower <= count * (1.0 + ORACLE) && *count <= upper * (1.0 + ORACLE));
        if *count > asked / list.plan().k as f64 * (1.0 + ORACLE) {
            assert!(list.contains(hash));
        }
    }
}

#[test]
fn bounds_and_guarantee_hold_with_and_without_decay_and_after_merges() {
    for half_life in [None, Some(3600.0), Some(60.0), Some(1.0)] {
        for k in [1, 2, 10, 64, 1000] {
            let (left, right) = (stream(3000, k), stream(2000, k + 77));
            let mut list = fed(k, half_life, &left);
            obeys_its_law(&list, &left);
            list.merge(&fed(k, half_life, &right)).unwrap();
            list.validate().unwrap();
            let both = [left, right].concat();
            obeys_its_law(&list, &both);
            list.add(Key::Unsigned(5), 1, START).unwrap();
            list.validate().unwrap();
        }
    }
}

#[test]
fn counts_without_decay_are_whole_and_exact_while_the_list_has_room() {
    let events = stream(5000, 1);
    let list = fed(1000, None, &events);
    let (counts, total) = exact(&events, None, 0.0);
    let now = list.time().unwrap();
    assert_eq!(list.total(now).unwrap(), total);
    for item in list.top(None, now).unwrap() {
        let Key::Unsigned(key) = item.key else { panic!("another key") };
        assert_eq!((item.lower, item.count), (counts[&key], counts[&key]));
    }
}

#[test]
fn a_batch_is_the_same_as_one_by_one() {
    for half_life in [None, Some(30.0)] {
        let events = stream(1000, 9);
        let keys: Vec<Key<'_>> = events.iter().map(|event| Key::Unsigned(event.0)).collect();
        let counts: Vec<u64> = events.iter().map(|event| event.1).collect();
        let times: Vec<f64> = events.iter().map(|event| event.2).collect();
        let mut many = list(20, half_life);
        many.add_many(&&keys[..], Some(&counts), Times::Each(&times)).unwrap();
        assert!(many.same_as(&fed(20, half_life, &events)));
    }
}

#[test]
fn a_file_holds_all_of_a_list_and_both_go_on_alike() {
    for half_life in [None, Some(30.0)] {
        let events = stream(2000, 4);
        let mut list = fed(16, half_life, &events[..1000]);
        for key in
            [Key::Text(b"text"), Key::Bytes(&[0xff; 70_000]), Key::Negative(-7), Key::Text(b"")]
        {
            list.add(key, 1000, events[1000].2).unwrap();
        }
        let Loaded::Hot(mut again) = read(&to_bytes(&list).unwrap(), None).unwrap() else {
            panic!("another kind")
        };
        assert!(again.same_as(&list));
        for (key, count, at) in &events[1000..] {
            list.add(Key::Unsigned(*key), *count, *at).unwrap();
            again.add(Key::Unsigned(*key), *count, *at).unwrap();
        }
        assert!(again.same_as(&list));
        again.validate().unwrap();
    }
}

#[test]
fn merging_is_symmetric() {
    let (a, b) = (fed(8, Some(60.0), &stream(500, 1)), fed(8, Some(60.0), &stream(700, 2)));
    let (mut ab, mut ba) = (a.copy().unwrap(), b.copy().unwrap());
    ab.merge(&b).unwrap();
    ba.merge(&a).unwrap();
    assert!(ab.same_as(&ba));
    let mut with_nothing = a.copy().unwrap();
    with_nothing.merge(&list(8, Some(60.0))).unwrap();
    let now = a.time().unwrap();
    assert_eq!(with_nothing.top(None, now).unwrap(), a.top(None, now).unwrap());
}

#[test]
fn a_long_idle_list_keeps_its_keys_and_hands_out_tiny_counts() {
    let mut list = list(3, Some(1e-3));
    for i in 0..3 {
        list.add(Key::Unsigned(i), 5, START).unwrap();
    }
    let later = START + 1e6;
    for item in list.top(None, later).unwrap() {
        assert!(item.lower == 0.0 && item.count > 0.0 && item.count < 1e-300);
    }
    list.add(Key::Text(b"now"), 1, later).unwrap();
    list.validate().unwrap();
    assert_eq!(list.len(), 3);
    let (lower, count) = list.estimate(HASHER.bytes(b"now"), later).unwrap();
    assert!(lower <= 1.0 && (1.0..1.001).contains(&count));
    // An event far in the past is listed all the same.
    let mut late = super::tests::list(3, Some(1e-3));
    late.add(Key::Unsigned(1), 1, later).unwrap();
    late.add(Key::Unsigned(2), 1, 0.0).unwrap();
    assert!(late.contains(HASHER.unsigned(2)) && late.late() == 1);
    late.validate().unwrap();
}

#[test]
fn the_first_spelling_of_a_key_is_kept() {
    let mut list = list(2, None);
    list.add(Key::Text(b"a"), 1, 0.0).unwrap();
    list.add(Key::Bytes(b"a"), 1, 0.0).unwrap();
    let top = list.top(None, 0.0).unwrap();
    assert_eq!(top, [HotItem { key: Key::Text(b"a"), count: 2.0, lower: 2.0, share: 1.0 }]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    assert!(HotList::new(HotPlan { k: 0, half_life: None }, HASHER).is_err());
    assert!(HotList::new(HotPlan { k: 1 << 40, half_life: None }, HASHER).is_err());
    for half_life in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
        assert!(HotList::new(HotPlan { k: 1, half_life: Some(half_life) }, HASHER).is_err());
    }
    let mut list = fed(4, Some(60.0), &stream(100, 1));
    let before = list.copy().unwrap();
    for at in [f64::NAN, -1.0, f64::INFINITY, 1e13] {
        assert!(list.add(Key::Unsigned(1), 1, at).is_err());
        assert!(list.advance(at).is_err());
        assert!(list.top(None, at).is_err());
    }
    assert!(list.total(START - 1e6).is_err());
    assert!(list.merge(&super::tests::list(5, Some(60.0))).is_err());
    assert!(list.merge(&super::tests::list(4, None)).is_err());
    assert!(list.same_as(&before));
    let digests = [KeyHash::default()];
    assert!(list.add_many(&&digests[..], None, Times::All(START)).is_err());
    assert!(list.same_as(&before));
}

#[test]
fn a_huge_list_costs_what_its_keys_cost() {
    let mut list = list(1 << 30, None);
    list.add(Key::Bytes(&[7; 1 << 20]), 1, 0.0).unwrap();
    assert!((1 << 20..2 << 20).contains(&list.bytes()));
    let mut small = super::tests::list(1, None);
    small.add(Key::Bytes(&[7; 1 << 20]), 1, 0.0).unwrap();
    small.add(Key::Bytes(&[7; 10]), 1, 0.0).unwrap();
    assert!(small.bytes() < 2000, "a replaced key keeps its memory: {}", small.bytes());
}
