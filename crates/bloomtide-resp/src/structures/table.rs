//! What the count-min sketch and the top-k list are made of: a table of numbers, of which a key has one cell in
//! each row.

use bloomtide_core::cells::physical_memory;
use bloomtide_core::{Error, KeyHash, Result};

/// More cells than this are refused: their bytes must stay far below 2^63.
const MOST_CELLS: u64 = 1 << 48;

/// Refuses what this machine could not hold. The system would promise it, and end the process when it is used.
pub(super) fn check_fits(bytes: u64) -> Result<()> {
    if bytes > physical_memory() { Err(too_large(bytes)) } else { Ok(()) }
}

#[cold]
pub(super) fn too_large(needed: u64) -> Error {
    Error::Capacity { needed, limit: physical_memory() }
}

/// As many zeros as asked for, or the error that says how much memory that would take. Pages come with
/// their first use, so that a large structure is made at once.
pub(super) fn zeros<T: Clone + Default>(count: u64) -> Result<Box<[T]>> {
    let needed = count.saturating_mul(size_of::<T>() as u64);
    check_fits(needed)?;
    let len = usize::try_from(count).map_err(|_| too_large(needed))?;
    // What the system refuses ends here: `vec!` would end the process.
    Vec::<T>::new().try_reserve_exact(len).map_err(|_| too_large(needed))?;
    Ok(vec![T::default(); len].into())
}

/// A bijection of 64 bits in which every bit of the number reaches every bit of the result (the finalizer of
/// splitmix64). It makes the multipliers of rows, and randomness from a counter.
#[inline(always)]
pub(super) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// From a digest to one cell of each row.
///
/// Row i multiplies the digest's second half by a number of its own. Without that, as in double hashing, two
/// keys that meet in two rows would meet in most of the others, and more rows would be of no use.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    width: u64,
    multipliers: Box<[u64]>,
}

impl Rows {
    pub(super) fn new(width: u64, depth: u64) -> Self {
        Rows { width, multipliers: (1..=depth).map(|row| mix(row) | 1).collect() }
    }

    /// The key's cells, one in each row; rows follow each other.
    #[inline(always)]
    pub(super) fn cells(&self, hash: KeyHash) -> impl Iterator<Item = usize> + '_ {
        let mut start = 0;
        self.multipliers.iter().map(move |multiplier| {
            let mixed = hash.h1.wrapping_add(hash.h2.wrapping_mul(*multiplier));
            let cell = start + bloomtide_core::positions::reduce(mixed, self.width);
            start += self.width;
            cell as usize
        })
    }
}

/// Refuses tables that have no cells, or too many.
pub(super) fn check_table(width: u64, depth: u64) -> Result<()> {
    for (name, value) in [("width", width), ("depth", depth)] {
        if value == 0 {
            let hint = "a table has at least one cell";
            return Err(Error::parameter(name, value, "at least 1", hint));
        }
    }
    if width.checked_mul(depth).is_none_or(|cells| cells > MOST_CELLS) {
        let got = format!("{width} x {depth}");
        let hint = "2000 x 7 errs by a thousandth of all counts, once in a hundred keys";
        return Err(Error::parameter("width", got, "at most 2**48 cells with `depth`", hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomtide_core::Hasher;

    #[test]
    fn two_keys_that_meet_in_two_rows_meet_in_a_third_as_rarely_as_any() {
        let rows = Rows::new(16, 3);
        let cells: Vec<Vec<usize>> = (0..1500u64)
            .map(|key| rows.cells(Hasher::Xxh3 { seed: 0 }.unsigned(key)).collect())
            .collect();
        let (mut both, mut all) = (0, 0);
        for (i, a) in cells.iter().enumerate() {
            for b in &cells[..i] {
                if a[0] == b[0] && a[1] == b[1] {
                    both += 1;
                    all += u32::from(a[2] == b[2]);
                }
            }
        }
        // 1,124,250 pairs, of which one in 256 meets twice; one in 16 of those meets again.
        assert!((4000..4800).contains(&both), "{both}");
        assert!((210..340).contains(&all), "{all} of {both}");
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        assert!(zeros::<u64>(u64::MAX).is_err() && zeros::<u32>(1 << 62).is_err());
        assert_eq!(zeros::<u32>(3).unwrap().as_ref(), [0, 0, 0]);
        assert!(zeros::<u32>(0).unwrap().is_empty());
    }
}
