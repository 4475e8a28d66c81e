//! What only the core can be asked; bounds, order, merges and files are tested from Python against exact counts.

use super::*;

#[test]
fn digests_without_keys_and_instants_that_cannot_be_change_nothing() {
    let hasher = Hasher::Xxh3 { seed: 3 };
    let mut list =
        HotList::new(HotPlan { k: 4, half_life: Some(60.0), steps: None, max_jump: None }, hasher)
            .unwrap();
    list.add(Key::Unsigned(1), 1, 1_700_000_000.0).unwrap();
    let before = list.copy().unwrap();
    let digests = [KeyHash::default()];
    assert!(list.add_many(&&digests[..], None, Times::All(1_700_000_000.0)).is_err());
    for at in [f64::NAN, -1.0, f64::INFINITY, 1e13] {
        assert!(list.add(Key::Unsigned(1), 1, at).is_err());
    }
    assert!(list.same_as(&before));
    list.validate().unwrap();
}
