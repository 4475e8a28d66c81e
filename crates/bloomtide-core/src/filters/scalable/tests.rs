use super::*;
use crate::snapshot::{Loaded, read, to_bytes};
use std::collections::HashSet;

const HASHER: Hasher = Hasher::Xxh3 { seed: 5 };

fn filter(plan: ScalablePlan) -> ScalableBloomFilter {
    ScalableBloomFilter::new(plan, HASHER).expect("small")
}

fn digests(range: std::ops::Range<u64>) -> Vec<KeyHash> {
    range.map(|key| HASHER.unsigned(key)).collect()
}

fn plans() -> Vec<ScalablePlan> {
    let plan = ScalablePlan::default();
    let mut plans = vec![
        plan,
        ScalablePlan { capacity: 40, ..plan },
        ScalablePlan { reserve: true, capacity: 100, growth: 2.0, ..plan },
    ];
    for error_rate in [0.5, 0.05, 1e-4, 1e-9, 1e-13] {
        plans.push(ScalablePlan { capacity: 3000, error_rate, growth: 1.5, ..plan });
    }
    // A second layer of several parts, and one with nearly as many cells as there can be.
    plans.push(ScalablePlan { capacity: 1000, growth: 200.0, ..plan });
    plans.push(ScalablePlan { capacity: 1000, error_rate: 1e-10, growth: 200.0, ..plan });
    plans
}

#[test]
fn a_filter_is_the_cells_of_its_keys() {
    for plan in plans() {
        let mut filter = filter(plan);
        let mut cells: Vec<(HashSet<u64>, u64)> = vec![(HashSet::new(), 0)];
        let layers: Vec<_> = (0..9).filter_map(|i| plan.layer(i).ok()).collect();
        for hash in digests(0..20_000).into_iter().chain(digests(0..1000)) {
            let known = cells.iter().zip(&layers).any(|((set, _), layer)| {
                layer.positions(hash).iter().all(|cell| set.contains(cell))
            });
            assert_eq!(filter.contains(hash), known);
            assert_eq!(filter.add(hash).expect("small"), !known);
            if !known {
                if cells[cells.len() - 1].1 == layers[cells.len() - 1].capacity {
                    cells.push((HashSet::new(), 0));
                }
                let newest = cells.len() - 1;
                cells[newest].0.extend(layers[newest].positions(hash));
                cells[newest].1 += 1;
            }
        }
        assert!(filter.layer_items().eq(cells.iter().map(|(_, items)| *items)));
        assert!(filter.layers().eq(&layers[..cells.len()]));
        filter.validate().expect("sound");
    }
}

#[test]
fn a_batch_answers_as_one_by_one() {
    for plan in plans() {
        let (mut one, mut many) = (filter(plan), filter(plan));
        let keys = [digests(0..700), digests(300..5000), digests(0..31)].concat();
        for keys in [&keys[..], &keys[..0], &keys[..1], &keys[..33]] {
            let expected: Vec<_> = keys.iter().map(|key| one.add(*key).expect("small")).collect();
            let mut new = vec![true; keys.len()];
            many.add_many(&keys, &mut new).expect("small");
            assert_eq!(new, expected);
            assert!(one.same_as(&many) && many.same_as(&one.copy().expect("small")));
        }
        let asked = digests(4000..9000);
        let mut present = vec![false; asked.len()];
        many.contains_many(&&asked[..], &mut present, &mut Crew::new(3));
        assert!(present.iter().zip(&asked).all(|(there, key)| *there == one.contains(*key)));
    }
}

#[test]
fn the_order_of_keys_changes_nothing_within_a_layer() {
    let plan = ScalablePlan { capacity: 1, growth: 180.0, ..ScalablePlan::default() };
    let (mut up, mut down) = (filter(plan), filter(plan));
    let first = digests(50_000..50_001)[0];
    assert!(up.add(first).is_ok() && down.add(first).is_ok());
    let keys = digests(0..30_000);
    let answers = &mut vec![false; keys.len()][..];
    let backwards: Vec<_> = keys.iter().rev().copied().collect();
    up.add_many(&&keys[..], answers).expect("small");
    down.add_many(&&backwards[..], answers).expect("small");
    assert!(up.same_as(&down));
    let last = digests(29_999..30_001);
    assert!(up.contains(last[0]) && !up.contains(last[1]));
    let other = &mut filter(plan);
    assert!(other.add(first).is_ok());
    other.add_many(&&[&keys[1..], &last[1..]].concat()[..], answers).expect("small");
    assert!(!up.same_as(other) && !other.same_as(&up));
}

#[test]
fn a_snapshot_is_the_filter_and_goes_on_alike() {
    for plan in plans() {
        for keys in [0, 1, 64, 65, 3000, 10_000] {
            let mut filter = filter(plan);
            digests(0..keys).into_iter().for_each(|key| assert!(filter.add(key).is_ok()));
            let bytes = to_bytes(&filter).expect("small");
            let Ok(Loaded::Scalable(mut back)) = read(&bytes, None) else { panic!("{plan:?}") };
            assert!(back.same_as(&filter));
            for key in digests(keys / 2..keys + 500) {
                assert_eq!(back.add(key).ok(), filter.add(key).ok());
            }
            assert!(back.same_as(&filter));
        }
    }
}

#[test]
fn memory_follows_the_keys() {
    // Twice a filter of the right size at most, at every number of keys past a million.
    let mut filter = filter(ScalablePlan::default());
    let mut new = vec![false; 1 << 14];
    for first in (0..3_000_000).step_by(new.len()) {
        filter.add_many(&&digests(first..first + (1 << 14))[..], &mut new).expect("small");
        let items = first + (1 << 14);
        if items > 1_000_000 {
            let right = crate::BloomPlan::for_goal(items, 0.01, None, crate::Derivation::Enhanced);
            let right = right.expect("small").bytes();
            assert!(filter.bytes() < right * 2, "{items}: {} of {right}", filter.bytes());
        }
    }
}

#[test]
fn a_reserved_layer_has_its_memory_from_the_start() {
    let plan = ScalablePlan { capacity: 5000, growth: 2.0, reserve: true, ..Default::default() };
    let mut filter = filter(plan);
    let mut expected = plan.layer(0).expect("small").bytes();
    for key in digests(0..14_000) {
        let rest = |layer: &Layer| match layer.cells() {
            Cells::Bloom(_) => 0,
            Cells::Sparse(parts) => {
                let rests = parts.iter().flat_map(|part| part.chain().skip(1));
                rests.map(|rest| rest.words().bytes()).sum()
            }
        };
        let rest: u64 = filter.cells().iter().map(rest).sum();
        let (before, layers) = (filter.bytes() - rest, filter.layers().len());
        assert_eq!(before, expected);
        filter.add(key).expect("small");
        if filter.layers().len() > layers {
            expected += plan.layer(layers as u32).expect("small").bytes();
        }
    }
    assert_eq!(filter.layers().len(), 2);
}
