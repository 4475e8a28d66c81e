//! Free counters for the optimized layout (paper, section 4.1): digits of four bits that cells borrow.
//!
//! A cell has one digit of its own; a value of d digits borrows d - 1 of them. A pool that does not grow counts
//! what is borrowed, by values and not by bytes, so it does not depend on how blocks are kept. A block
//! that fades gives digits back.
//!
//!   `grow`       no limit
//!   `saturate`   a cell that finds none left stays at the largest value of the digits that it has, flagged
//!   `fail`       what would need more than are left is refused, and changes nothing

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// What happens when a cell needs a digit; the number is how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolPolicy {
    /// There is always another one.
    Grow,
    /// The cell stays where it is.
    Saturate(u64),
    /// An error.
    Fail(u64),
}

impl PoolPolicy {
    /// The policy of that name, for so many cells; as many digits as half of the cells, like the paper, unless
    /// another number is given.
    pub fn parse(name: &str, digits: Option<u64>, cells: u64) -> Result<Self> {
        let size = digits.unwrap_or(cells / 2);
        match name {
            "saturate" => Ok(PoolPolicy::Saturate(size)),
            "fail" => Ok(PoolPolicy::Fail(size)),
            "grow" => match digits {
                None => Ok(PoolPolicy::Grow),
                Some(digits) => {
                    let hint = "pool=\"saturate\" or \"fail\" has a size";
                    let allowed = "left out when the pool grows";
                    Err(Error::parameter("pool_cells", digits, allowed, hint))
                }
            },
            _ => {
                let hint = "\"grow\" never runs out";
                let allowed = "\"grow\", \"saturate\" or \"fail\"";
                Err(Error::parameter("pool", name, allowed, hint))
            }
        }
    }

    /// The name users and files know it by.
    pub fn name(self) -> &'static str {
        match self {
            PoolPolicy::Grow => "grow",
            PoolPolicy::Saturate(_) => "saturate",
            PoolPolicy::Fail(_) => "fail",
        }
    }

    /// How many digits there are, if there is a limit.
    pub fn digits(self) -> Option<u64> {
        match self {
            PoolPolicy::Grow => None,
            PoolPolicy::Saturate(digits) | PoolPolicy::Fail(digits) => Some(digits),
        }
    }
}

/// An add that the pool has too few digits for: how many would be borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Digits that would be in use.
    pub needed: u64,
}

/// Digits that a value borrows.
pub(super) fn borrowed(value: u32) -> u64 {
    u64::from((u32::BITS - value.leading_zeros()).div_ceil(4).saturating_sub(1))
}

/// How many digits are borrowed.
#[derive(Debug)]
pub(super) struct Pool {
    limit: u64,
    used: AtomicU64,
}

impl Pool {
    pub(super) fn new(policy: PoolPolicy) -> Option<Self> {
        Some(Pool { limit: policy.digits()?, used: AtomicU64::new(0) })
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The only writer, here and below.
    pub(super) fn set_used(&self, used: u64) {
        self.used.store(used, Ordering::Relaxed);
    }

    pub(super) fn has_room_for(&self, needed: u64) -> std::result::Result<(), Refused> {
        if needed <= self.limit { Ok(()) } else { Err(Refused { needed }) }
    }

    /// Borrows for a cell that shall rise from one value to another; how far it may.
    pub(super) fn lend(&self, old: u32, wanted: u32) -> u32 {
        let (used, has) = (self.used(), borrowed(old));
        let most = has + self.limit.saturating_sub(used);
        let new = if borrowed(wanted) <= most {
            wanted
        } else {
            // Fewer than eight digits, since a value of eight fits.
            (1 << (4 * (most + 1))) - 1
        };
        self.set_used(used + borrowed(new) - has);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_borrows_all_its_digits_but_one() {
        let cases = [(0, 0), (15, 0), (16, 1), (255, 1), (256, 2), (u32::MAX, 7)];
        assert!(cases.iter().all(|(value, digits)| borrowed(*value) == *digits));
    }

    #[test]
    fn a_cell_gets_as_many_digits_as_there_are_and_stays_at_their_largest_value() {
        let pool = Pool::new(PoolPolicy::Saturate(3)).unwrap();
        assert_eq!(pool.lend(3, 300), 300);
        assert_eq!(pool.lend(0, 300), 255);
        assert_eq!(pool.used(), 3);
        assert_eq!(pool.lend(7, 16), 15);
        assert_eq!(pool.lend(255, 256), 255);
        assert_eq!(pool.lend(300, 400), 400);
        assert_eq!(pool.has_room_for(4), Err(Refused { needed: 4 }));
        assert_eq!(pool.has_room_for(3), Ok(()));
    }
}
