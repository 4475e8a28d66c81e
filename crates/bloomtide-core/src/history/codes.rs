//! Counts as codes of their own length: exponential Golomb codes, whose order suits the segment.
//!
//! A count v >= 1 of order r is x = v - 1 + 2^r with 2^n <= x < 2^(n+1): n - r zeros, a one, and the n lowest
//! bits of x. Order 0 spends one bit on a count of one, a higher order less on large ones. Every count has a
//! code, so no cell can overflow.

use super::MAX_EVENTS;
use super::bits::{BitWriter, low};

/// Orders there are.
pub(super) const ORDERS: usize = 12;

/// Bits of a count's code.
#[inline(always)]
pub(super) fn length(count: u64, order: u32) -> u32 {
    debug_assert!((1..=MAX_EVENTS).contains(&count));
    2 * (count - 1 + (1 << order)).ilog2() - order + 1
}

/// What codes would cost in each order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    /// Counts of one, which are most of them, are only counted.
    ones: u64,
    bits: [u64; ORDERS],
}

impl Costs {
    #[inline]
    pub(super) fn add(&mut self, count: u64) {
        if count == 1 {
            self.ones += 1;
            return;
        }
        for (order, bits) in (0..).zip(&mut self.bits) {
            *bits += u64::from(length(count, order));
        }
    }

    /// The cheapest order, and the bits it needs.
    pub(super) fn best(&self) -> (u32, u64) {
        let mut best = (0, u64::MAX);
        for (order, bits) in (0..).zip(self.bits) {
            let bits = bits + self.ones * u64::from(length(1, order));
            if bits < best.1 {
                best = (order, bits);
            }
        }
        best
    }
}

/// Appends a count's code.
#[inline]
pub(super) fn put(count: u64, order: u32, out: &mut BitWriter) {
    let x = count - 1 + (1 << order);
    let len = x.ilog2();
    let zeros = len - order;
    // The prefix alone may be long; one and payload follow together while they fit.
    out.push(1 << zeros, zeros + 1);
    out.push(x & low(u64::from(len)), len);
}

/// Reads codes one after the other from bits that `window` shows 64 at a time.
pub(super) struct Cursor<W> {
    window: W,
    order: u32,
    /// Where the next code begins.
    at: u64,
    /// The bits from there on that were seen already, and how many they are.
    ahead: u64,
    left: u32,
}

impl<E, W: FnMut(u64) -> Result<u64, E>> Cursor<W> {
    pub(super) fn new(window: W, at: u64, order: u32) -> Self {
        Cursor { window, order, at, ahead: 0, left: 0 }
    }

    /// Where the next code begins.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// (zeros, bits) of the next code, if all of it is ahead.
    #[inline(always)]
    fn look(&self) -> Option<(u32, u32)> {
        let zeros = self.ahead.trailing_zeros();
        let bits = 2 * zeros + 1 + self.order;
        (bits <= self.left).then_some((zeros, bits))
    }

    #[inline(always)]
    fn pass(&mut self, bits: u32) {
        // A code of 64 bits leaves nothing.
        self.ahead = self.ahead.checked_shr(bits).unwrap_or(0);
        self.left -= bits;
        self.at += u64::from(bits);
    }

    #[inline(always)]
    fn fetch(&mut self) -> Result<(), E> {
        (self.ahead, self.left) = ((self.window)(self.at)?, 64);
        Ok(())
    }

    /// The next count; None for bits that are no code.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<u64>, E> {
        if self.look().is_none() {
            self.fetch()?;
        }
        let Some((zeros, bits)) = self.look() else { return self.next_long() };
        let len = zeros + self.order;
        let payload = (self.ahead >> zeros >> 1) & low(u64::from(len));
        self.pass(bits);
        Ok(Some(payload + (1 << len) - (1 << self.order) + 1))
    }

    /// The same for a code of more than 64 bits, which begins what is ahead.
    #[cold]
    fn next_long(&mut self) -> Result<Option<u64>, E> {
        let zeros = self.ahead.trailing_zeros();
        let len = zeros + self.order;
        if len > 62 {
            return Ok(None);
        }
        let payload = (self.window)(self.at + u64::from(zeros) + 1)? & low(u64::from(len));
        self.at += u64::from(zeros + 1 + len);
        self.left = 0;
        let count = payload + (1 << len) - (1 << self.order) + 1;
        Ok(Some(count).filter(|count| *count <= MAX_EVENTS))
    }

    /// Passes `n` codes; false for bits that are none.
    #[inline(always)]
    pub(super) fn skip(&mut self, n: u64) -> Result<bool, E> {
        for _ in 0..n {
            if self.next()?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::window;
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn counts_come_back_in_every_order_and_have_the_length_that_is_said() {
        let counts: Vec<u64> = (0..=62)
            .flat_map(|bit| [1u64 << bit, (1 << bit) + 1, (1 << bit) - 1])
            .filter(|count| (1..=MAX_EVENTS).contains(count))
            .collect();
        for order in 0..ORDERS as u32 {
            let mut out = BitWriter::default();
            for count in &counts {
                let before = out.len();
                put(*count, order, &mut out);
                assert_eq!(out.len() - before, u64::from(length(*count, order)));
            }
            let bytes = out.bytes();
            let window = |bit| Ok::<_, Infallible>(window(&bytes, bit));
            let mut cursor = Cursor::new(window, 0, order);
            assert!(counts.iter().all(|count| cursor.next().unwrap() == Some(*count)));
            for (skipped, count) in counts.iter().enumerate() {
                let mut cursor = Cursor::new(window, 0, order);
                assert!(cursor.skip(skipped as u64).unwrap());
                assert_eq!(cursor.next().unwrap(), Some(*count));
            }
        }
    }

    #[test]
    fn bits_that_are_no_code_are_told() {
        let mut cursor = Cursor::new(|_| Ok::<_, Infallible>(0), 0, 0);
        assert_eq!(cursor.next(), Ok(None));
        assert_eq!(cursor.skip(1), Ok(false));
    }
}
