//! Division by a number that is known long before the division: two multiplications instead of a
//! `div`, which takes several times as long.

/// A divisor with its reciprocal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    divisor: u64,
    /// floor((2^64 - 1) / divisor).
    reciprocal: u64,
}

impl Divisor {
    /// `divisor` must not be zero.
    pub fn new(divisor: u64) -> Self {
        debug_assert!(divisor > 0);
        Divisor { divisor, reciprocal: u64::MAX / divisor }
    }

    /// The divisor itself.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.divisor
    }

    /// Quotient and remainder.
    #[inline(always)]
    pub fn split(&self, number: u64) -> (u64, u64) {
        let product = u128::from(number) * u128::from(self.reciprocal);
        // 2^64 - reciprocal·divisor <= divisor, so the guess falls short by less than number / 2^64
        // before it is cut off: it is right or one too small.
        let guess = (product >> 64) as u64;
        let rest = number - guess * self.divisor;
        if rest >= self.divisor { (guess + 1, rest - self.divisor) } else { (guess, rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotient_and_remainder_are_those_of_the_machine() {
        let edges = |n: u64| [n.saturating_sub(1).max(1), n, n.saturating_add(1)];
        let numbers: Vec<u64> = (0..64).flat_map(|bit| edges(1 << bit)).chain([u64::MAX]).collect();
        for &divisor in &numbers {
            for number in numbers.iter().flat_map(|&n| edges(n.wrapping_mul(divisor))) {
                let expected = (number / divisor, number % divisor);
                assert_eq!(Divisor::new(divisor).split(number), expected, "{number} / {divisor}");
            }
            assert_eq!(Divisor::new(divisor).split(0), (0, 0));
        }
    }
}
