use super::super::form::{forged, is_refused_when_damaged, written};
use super::*;
use std::collections::HashMap as Counts;

fn top(k: u64, width: u64, depth: u64, decay: f64) -> TopK {
    TopK::new(TopKPlan { k, width, depth, decay }, 0).unwrap()
}

fn add(top: &mut TopK, item: &str, count: u32) -> Option<String> {
    let expelled = top.add(top.hasher.bytes(item.as_bytes()), item.as_bytes(), count);
    top.validate().unwrap();
    expelled.map(|item| String::from_utf8(item.into()).unwrap())
}

fn listed(top: &TopK) -> Vec<(String, u32)> {
    let text = |item: &[u8]| String::from_utf8(item.to_vec()).unwrap();
    top.list().into_iter().map(|(item, count)| (text(item), count)).collect()
}

fn count(top: &TopK, item: &str) -> u32 {
    top.count(top.hasher.bytes(item.as_bytes()))
}

const STREAM: &str = "A B C D E A A B C G D B D A E E";

#[test]
fn equal_keys_are_expelled_in_the_order_clients_know() {
    let mut top = top(3, 50, 4, 0.9);
    let expelled: Vec<_> = STREAM.split(' ').map(|item| add(&mut top, item, 1)).collect();
    let said: Vec<_> = expelled.iter().map(|item| item.as_deref().unwrap_or("-")).collect();
    assert_eq!(said.join(" "), "- - - A C D - - E - B C - - - D");
    assert_eq!(add(&mut top, "1", 1), None);
    let has = |item: &str| top.contains(top.hasher.bytes(item.as_bytes()));
    assert_eq!(["A", "B", "C", "D", "E", "F", "G"].map(has).map(u8::from), [1, 1, 0, 0, 1, 0, 0]);
    let counts = ["A", "B", "C", "D", "E", "F", "G"].map(|item| count(&top, item));
    assert_eq!(counts, [4, 3, 2, 3, 3, 0, 1]);
    assert_eq!(listed(&top).iter().map(|(item, _)| item.as_str()).collect::<String>(), "ABE");
}

#[test]
fn a_key_that_counts_more_than_the_smallest_takes_its_place() {
    let mut top = top(3, 10, 3, 1.0);
    for (item, count) in [("bar", 3), ("baz", 6), ("42", 2), ("42", 8)] {
        assert_eq!(add(&mut top, item, count), None);
    }
    assert_eq!(add(&mut top, "xyzzy", 4).as_deref(), Some("bar"));
    let counts = ["bar", "baz", "42", "xyzzy", "4"].map(|item| count(&top, item));
    assert_eq!(counts, [3, 6, 10, 4, 0]);
}

/// A stream in which key i comes about 1/i as often as the first.
fn skewed(events: u64) -> impl Iterator<Item = String> {
    (0..events).map(|event| (5000 / (mix(event) % 5000 + 1)).to_string())
}

#[test]
fn the_most_frequent_keys_of_a_skewed_stream_are_listed_with_counts_that_are_not_too_large() {
    let (mut list, mut exact) = (top(10, 500, 4, 0.9), Counts::new());
    for item in skewed(30_000) {
        list.add(list.hasher.bytes(item.as_bytes()), item.as_bytes(), 1);
        *exact.entry(item).or_insert(0) += 1;
    }
    list.validate().unwrap();
    let mut order: Vec<_> = exact.iter().collect();
    order.sort_by_key(|(item, count)| (std::cmp::Reverse(**count), item.len()));
    let listed = listed(&list);
    assert_eq!(listed.len(), 10);
    assert!(order[..5].iter().all(|(item, _)| listed.iter().any(|(listed, _)| listed == *item)));
    assert!(listed.iter().all(|(item, count)| *count <= exact[item]));
    assert!(listed.windows(2).all(|pair| pair[0].1 >= pair[1].1));
}

#[test]
fn equal_adds_make_equal_bytes_and_so_do_adds_after_a_load() {
    let (mut one, mut other) = (top(5, 20, 3, 0.9), top(5, 20, 3, 0.9));
    for (number, item) in skewed(3000).enumerate() {
        let digest = one.hasher.bytes(item.as_bytes());
        let expelled = one.add(digest, item.as_bytes(), 1);
        assert_eq!(other.add(digest, item.as_bytes(), 1), expelled);
        if number % 1000 == 500 {
            other = TopK::from_bytes(&written(&other)).unwrap();
        }
    }
    assert!(written(&one) == written(&other));
    assert!(one.draws > 500, "{}", one.draws);
}

#[test]
fn attempts_at_a_large_count_are_in_vain_and_cost_nothing() {
    let mut draws = 0;
    let chances: Vec<u64> = (0..READY as u32).map(|count| chance(0.9, count)).collect();
    assert_eq!(wear(&chances, 0.9, &mut draws, 1 << 30, 100_000), (1 << 30, 0));
    assert_eq!(draws, 0);
    // With certainty every attempt lowers the count.
    let certain = vec![chance(1.0, 9); READY];
    assert_eq!(wear(&certain, 1.0, &mut draws, 40, 100), (0, 61));
    assert_eq!((chance(0.5, 1), chance(0.5, 64), chance(0.5, 65)), (1 << 63, 1, 0));
}

#[test]
fn no_occurrence_is_no_change() {
    let mut top = top(2, 4, 2, 0.9);
    let before = written(&top);
    assert_eq!(add(&mut top, "a", 0), None);
    assert!(written(&top) == before);
}

#[test]
fn a_count_does_not_go_round() {
    let mut top = top(1, 4, 1, 0.9);
    add(&mut top, "a", u32::MAX - 1);
    add(&mut top, "a", 5);
    assert_eq!(listed(&top), [("a".to_owned(), u32::MAX)]);
}

#[test]
fn memory_is_that_of_the_plan_and_of_the_keys() {
    let mut top = top(2, 8, 2, 0.9);
    let empty = top.bytes();
    add(&mut top, &"x".repeat(100), 1);
    assert_eq!(top.bytes(), empty + 100);
    add(&mut top, "yy", 2);
    add(&mut top, "zzz", 3);
    assert_eq!(top.bytes(), empty + 5);
}

#[test]
fn what_cannot_be_built_is_named() {
    let plan = TopKPlan { k: 3, width: 8, depth: 7, decay: 0.9 };
    for wrong in [
        TopKPlan { k: 0, ..plan },
        TopKPlan { k: (1 << 24) + 1, ..plan },
        TopKPlan { width: 0, ..plan },
        TopKPlan { depth: 1 << 48, ..plan },
        TopKPlan { decay: 0.0, ..plan },
        TopKPlan { decay: 1.1, ..plan },
        TopKPlan { decay: f64::NAN, ..plan },
    ] {
        assert!(matches!(TopK::new(wrong, 0), Err(Error::Parameter { .. })), "{wrong:?}");
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let mut top = top(3, 4, 2, 0.9);
    for item in STREAM.split(' ') {
        add(&mut top, item, 1);
    }
    is_refused_when_damaged(&written(&top), TopK::from_bytes);
}

#[test]
fn bytes_with_a_right_checksum_and_wrong_contents_are_refused() {
    let mut top = top(2, 4, 2, 0.9);
    add(&mut top, "a", 1);
    add(&mut top, "b", 2);
    let bytes = written(&top);
    let places = bytes.len() - 4 - 2 * 13;
    let forgeries: [(usize, u8); 6] = [
        (36, 3),             // one place more
        (44, 255),           // a wider row
        (44, 0),             // no cells
        (places, 9),         // the smallest counts most
        (places + 12, b'b'), // the same key twice
        (places + 4, 200),   // a key beyond the end
    ];
    for (at, value) in forgeries {
        let forged = forged(&bytes, |body| body[at] = value);
        assert!(TopK::from_bytes(&forged).is_err(), "{at} {value}");
    }
}
