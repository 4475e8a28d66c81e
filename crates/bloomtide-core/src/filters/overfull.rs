//! Whether a filter holds far more keys than it was made for, told by a few of its cells: quick, whatever its size.
//!
//! The share of the looked-at cells that are used is the fill, give or take one in a hundred, and the fill tells the
//! number of keys. Cells are taken from all over the filter, since none of them is more likely to be used than another.

use crate::positions::reduce;
use crate::sizing;

/// How many times its capacity a filter holds when it is called overfull: by then it errs many times as often as it
/// was planned for.
pub const OVERFULL: f64 = 2.0;

/// Cells that are looked at: few, which tell the number of keys to one in ten or so, and if those are suspicious more. A
/// smaller filter is looked at whole.
const GLANCE: u64 = 512;
const SAMPLE: u64 = 4096;

/// What an overfull filter is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overfull {
    /// About how many distinct keys are inside.
    pub items: f64,
    /// How many it was made for.
    pub capacity: u64,
    /// Chance that an absent key is called present, with so many inside.
    pub error: f64,
}

impl Overfull {
    /// Of a filter whose number of keys `items` tells by a sample of so many cells; None if it is no more than the
    /// filter can bear.
    pub(crate) fn of(
        capacity: Option<u64>,
        items: impl Fn(u64) -> f64,
        error_at: impl Fn(f64) -> f64,
    ) -> Option<Self> {
        let capacity = capacity?;
        let most = capacity as f64 * OVERFULL;
        if items(GLANCE) < 0.8 * most {
            return None;
        }
        let items = Some(items(SAMPLE)).filter(|items| *items > most)?;
        let error = if items.is_finite() { error_at(items) } else { 1.0 };
        Some(Overfull { items, capacity, error })
    }
}

/// Which of a filter's pieces to look at: all of a few, else some that lie anywhere.
pub(crate) fn sample(pieces: u64, most: u64) -> impl Iterator<Item = u64> {
    // Multiples of the golden ratio are spread evenly, and meet no pattern in the cells.
    let anywhere = move |i: u64| reduce(i.wrapping_mul(0x9E37_79B9_7F4A_7C15), pieces);
    (0..pieces.min(most)).map(move |i| if pieces <= most { i } else { anywhere(i) })
}

/// About how many keys set k of m cells each, by looking at some of them.
pub(crate) fn sampled_items(
    cells: u64,
    hashes: u32,
    most: u64,
    is_used: impl Fn(u64) -> bool,
) -> f64 {
    let used = sample(cells, most).filter(|cell| is_used(*cell)).count();
    let fill = used as f64 / cells.min(most) as f64;
    sizing::keys_from_fill(fill, cells as f64, f64::from(hashes))
}

/// What to tell of something that holds more than it was made for; an estimate from cells that are all set is infinite.
pub fn holds(who: &str, what: &str, found: &Overfull) -> String {
    let items = found.items.min(u64::MAX as f64) as u64;
    let items =
        if items == u64::MAX { "any number of".to_owned() } else { format!("about {items}") };
    let (capacity, error) = (found.capacity, found.error * 100.0);
    format!(
        "{who} holds {items} {what}, made for {capacity}: \
         {error:.3} % of absent ones are called seen"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_few_is_all_of_them_and_of_many_lies_everywhere() {
        assert!(sample(10, 20).eq(0..10));
        let found: Vec<u64> = sample(1 << 40, SAMPLE).collect();
        assert_eq!(found.len() as u64, SAMPLE);
        let mut quarters = [0u64; 4];
        found.iter().for_each(|cell| quarters[(cell >> 38) as usize] += 1);
        assert!(quarters.iter().all(|count| count.abs_diff(SAMPLE / 4) < 50), "{quarters:?}");
    }

    #[test]
    fn the_estimate_of_a_sample_is_that_of_the_cells() {
        for (every, fill) in [(2, 0.5), (3, 1.0 / 3.0), (10, 0.1)] {
            let cells = 10_000_019;
            // Scrambled, as hashes do.
            let scrambled = |cell: u64| cell.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 33;
            let found = sampled_items(cells, 7, SAMPLE, |cell| scrambled(cell) % every == 0);
            let expected = sizing::keys_from_fill(fill, cells as f64, 7.0);
            assert!((found / expected - 1.0).abs() < 0.1, "{found} {expected}");
        }
    }
}
