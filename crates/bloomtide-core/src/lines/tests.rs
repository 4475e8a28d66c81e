//! More threads than a machine has. All else is tested from Python, in `tests/cli/test_dedup_lines.py`.

use super::*;
use crate::filters::BloomPlan;
use crate::positions::Derivation;

fn run(threads: usize, text: &[u8]) -> (Vec<u8>, Tally) {
    let plan = BloomPlan::for_goal(100_000, 1e-9, None, Derivation::Enhanced);
    let filter = BloomFilter::new(plan.unwrap(), Hasher::Xxh3 { seed: 0 }).unwrap();
    let keys = Keys::new(Form::Lines, None, None, None).unwrap();
    let (mut reader, mut dedup) = (Reader::new(keys, Crew::of(threads)), Dedup::new(false));
    let mut out = Vec::new();
    for chunk in [Some(text), None] {
        let hashed = reader.hash(chunk, filter.hasher()).unwrap();
        dedup.filter(&hashed, chunk.unwrap_or_default(), &mut &filter, &mut out).unwrap();
    }
    (out, dedup.tally())
}

#[test]
fn threads_change_nothing() {
    let mut text = Vec::new();
    for i in 0..80_000_u64 {
        let number = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 50_000;
        text.extend_from_slice(format!("https://example.org/{number}\n").as_bytes());
    }
    text.extend_from_slice(&[b'x'; 3_000_000]);
    let alone = run(1, &text);
    assert!(alone.1.repeats > 10_000 && alone.1.new > 10_000, "{:?}", alone.1);
    for threads in [2, 3, 7] {
        assert_eq!(run(threads, &text), alone);
    }
}
