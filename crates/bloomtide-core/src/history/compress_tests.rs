//! Laws of the two compressions.

use super::tests::{HASHER, MINUTE, contents, goal, of_pairs, segment, shapes};
use super::*;
use crate::key::Key;
use std::collections::BTreeMap;

/// Both halves of some rows as segments of their own, with the items as they are in the whole.
fn halves(whole: &Contents, goals: [Goal; 2]) -> [Segment; 2] {
    let middle = whole.rows.len() as u32 / 2;
    [(0, 0..middle), (1, middle..whole.rows.len() as u32)].map(|(i, rows)| {
        let inside = whole.items.iter().filter(|item| rows.contains(&item.row));
        let half = Contents {
            begin: whole.rows[rows.start as usize].begin,
            end: whole.rows[rows.end as usize - 1].end,
            rows: whole.rows[rows.start as usize..rows.end as usize].to_vec(),
            items: inside.map(|item| Item { row: item.row - rows.start, ..*item }).collect(),
            ..whole.clone()
        };
        segment(&half, &goals[i])
    })
}

#[test]
fn merging_rows_lowers_no_answer_and_adds_cells() {
    for contents in shapes() {
        for factor in [2, 3, 1000] {
            let before = segment(&contents, &goal(0.05, CellPolicy::Plain));
            let merged = merge_rows(&before, factor, 1.0).unwrap();
            let after = Segment::from_vec(merged).unwrap();
            after.validate().unwrap();
            assert_eq!(after.rows().len(), before.rows().len().div_ceil(factor));
            assert_eq!(after.events(), before.events());
            let (mut fine, mut coarse) = (Vec::new(), Vec::new());
            for column in 0..before.sizes().columns {
                before.cells(column, &mut fine).unwrap();
                after.cells(column, &mut coarse).unwrap();
                assert!(
                    fine.chunks(factor)
                        .map(|part| part.iter().sum::<u64>())
                        .eq(coarse.iter().copied())
                );
            }
            for item in contents.items.iter().step_by(3) {
                let fine = before.counts(item.mark).unwrap();
                let coarse = after.counts(item.mark).unwrap();
                let sums = fine.chunks(factor).map(|part| part.iter().sum::<u64>());
                assert!(sums.zip(coarse).all(|(fine, coarse)| fine <= coarse));
            }
        }
    }
}

#[test]
fn segments_of_equal_sizes_join_as_in_the_paper() {
    let whole = contents(31, 200, 20, 3, 6);
    let goal = Goal {
        sizes: Some(paper_sizes(30, 10, 0.01, 0.01).unwrap()),
        ..goal(0.01, CellPolicy::Plain)
    };
    let [a, b] = halves(&whole, [goal, goal]);
    let joined = Segment::from_vec(join(&b, &a, 1.0).unwrap()).unwrap();
    joined.validate().unwrap();
    let expected = segment(&whole, &goal);
    assert_eq!(joined.rows(), expected.rows());
    assert_eq!(joined.span(), expected.span());
    for mark in whole
        .items
        .iter()
        .map(|item| item.mark)
        .chain((0..500).map(|key| HASHER.unsigned(key).mark()))
    {
        assert_eq!(joined.contains(mark).unwrap(), expected.contains(mark).unwrap());
        assert_eq!(joined.counts(mark).unwrap(), expected.counts(mark).unwrap());
    }
}

#[test]
fn segments_of_any_sizes_join_without_lowering_an_answer() {
    let whole = contents(32, 400, 21, 3, 6);
    for (x, y) in [(0.01, 0.01), (0.2, 0.001), (0.001, 0.3)] {
        let [a, b] = halves(&whole, [goal(x, CellPolicy::Largest), goal(y, CellPolicy::Largest)]);
        assert_ne!(a.sizes(), b.sizes());
        let joined = Segment::from_vec(join(&a, &b, 1.0).unwrap()).unwrap();
        joined.validate().unwrap();
        for mark in whole.items.iter().map(|item| item.mark) {
            let parts = [a.counts(mark).unwrap(), b.counts(mark).unwrap()].concat();
            assert!(
                joined
                    .counts(mark)
                    .unwrap()
                    .iter()
                    .zip(parts)
                    .all(|(joined, part)| *joined >= part)
            );
        }
    }
}

#[test]
fn a_compression_beyond_the_allowed_error_is_refused_with_the_error() {
    let whole = contents(33, 400, 20, 2, 10);
    let [a, b] = halves(&whole, [goal(0.01, CellPolicy::Largest); 2]);
    for result in [merge_rows(&a, 2, 0.01), join(&a, &b, 0.01)] {
        let message = result.map(drop).unwrap_err().to_string();
        assert!(message.contains("max_error") && message.contains("would be"), "{message}");
    }
    assert!(merge_rows(&a, 1, 1.0).is_err());
    let merged = Segment::from_vec(merge_rows(&a, 2, 1.0).unwrap()).unwrap();
    let predicted = merged.predicted_errors().0;
    assert!(predicted > a.predicted_errors().0);
    assert!(merge_rows(&a, 2, predicted * 1.001).is_ok());
    assert!(merge_rows(&a, 2, predicted * 0.999).is_err());
}

#[test]
fn only_segments_of_one_kind_join() {
    let whole = contents(34, 50, 4, 2, 5);
    let sound = goal(0.01, CellPolicy::Largest);
    let others =
        [goal(0.01, CellPolicy::Plain), Goal { hasher: Hasher::Xxh3 { seed: 8 }, ..sound }];
    for other in others {
        let [a, b] = halves(&whole, [sound, other]);
        assert!(matches!(join(&a, &b, 1.0), Err(Error::Incompatible { .. })));
    }
}

#[test]
fn names_of_a_join_are_exact_and_others_have_no_more_than_is_said() {
    let pair = |marks: &[(u64, u64)], row| -> BTreeMap<(u64, u32), u64> {
        marks.iter().map(|(key, count)| ((HASHER.unsigned(*key).mark(), row), *count)).collect()
    };
    let named = |keys: &[(u64, u64)]| -> Vec<Named> {
        keys.iter()
            .map(|(key, count)| Named {
                key: OwnedKey::of(Key::Unsigned(*key)).unwrap(),
                count: *count,
            })
            .collect()
    };
    // Key 1 is listed in both, 2 and 5 in one and nowhere else, 3 in one and unlisted in the other.
    let left = Contents {
        names: named(&[(1, 50), (2, 40), (3, 30)]),
        unlisted: 4,
        ..of_pairs(pair(&[(1, 50), (2, 40), (3, 30), (4, 4)], 0), 1)
    };
    let mut right = Contents {
        names: named(&[(1, 20), (5, 10)]),
        unlisted: 7,
        ..of_pairs(pair(&[(1, 20), (5, 10), (3, 7)], 0), 1)
    };
    (right.begin, right.end) = (MINUTE, 2 * MINUTE);
    let goal = goal(0.001, CellPolicy::Largest);
    let joined =
        Segment::from_vec(join(&segment(&left, &goal), &segment(&right, &goal), 1.0).unwrap())
            .unwrap();
    let (names, unlisted) = joined.names().unwrap();
    assert_eq!(names, named(&[(1, 70), (2, 40), (5, 10)]));
    assert_eq!(unlisted, 37);
}

#[test]
fn segments_that_would_explode_do_not_join() {
    let sizes = |columns| Sizes { gate_hashes: 1, gate_bits: 64, hashes: 2, columns };
    let sized = |columns| Goal { sizes: Some(sizes(columns)), ..goal(0.1, CellPolicy::Largest) };
    let wide = segment(&contents(35, 10, 1, 1, 10), &sized(1 << 18));
    let long = segment(&contents(36, 2000, 200, 1, 10), &sized(64));
    assert!(matches!(join(&wide, &long, 1.0), Err(Error::Incompatible { field: "columns", .. })));
}
