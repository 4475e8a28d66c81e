//! Weights that grow instead of decaying (specification 10.2), rounded outward.
//!
//! An event of time t weighs 2^(t/H - s), with the half-life H and a whole number s, the shift, that all
//! weights of a list share. What it is worth at time u is its weight divided by 2^(u/H - s): all weights
//! shrink by the same factor, so their order never changes by decay, and nothing has to be done while
//! time passes. When weights become too large, s is raised, which multiplies all of them by a power of
//! two: exactly. Two lists of one half-life differ in s only, so they merge exactly too.
//!
//! Each number comes as a pair of bounds: `low` at most, `high` at least what real numbers would give.
//! Where real numbers have an exact answer (no decay, whole half-lives) both are that answer.

/// Bounds of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// More than all errors of `power` together: reducing x costs 2^-54, the product with ln 2 less than
/// 2^-53, the polynomial less than 2^-51.
const MARGIN: f64 = 1.0 / (1u64 << 50) as f64;

/// 2^x with its exponent apart: the real number lies in `mantissa` times 2^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Power {
    mantissa: Bounds,
    exponent: i64,
}

impl Power {
    pub(super) const ONE: Power = Power { mantissa: Bounds { low: 1.0, high: 1.0 }, exponent: 0 };

    /// 2^(at/half_life - shift), or its reciprocal.
    pub(super) fn of(at: f64, half_life: f64, shift: i64, reciprocal: bool) -> Power {
        // at/half_life as an unevaluated sum of two numbers: the rest of a division is exact.
        let quotient = at / half_life;
        let rest = (-quotient).mul_add(half_life, at) / half_life;
        let (x, lost) = two_sum(quotient, -(shift as f64));
        let rest = rest + lost;
        let (x, rest) = if reciprocal { (-x, -rest) } else { (x, rest) };
        // To the nearest, but without a call: x is far below 2^63.
        let exponent = (x + 0.5f64.copysign(x)) as i64;
        let fraction = (x - exponent as f64) + rest;
        if fraction == 0.0 && rest == 0.0 {
            return Power { exponent, ..Power::ONE };
        }
        let value = two_to(fraction);
        let mantissa = Bounds {
            low: (value * (1.0 - MARGIN)).next_down(),
            high: (value * (1.0 + MARGIN)).next_up(),
        };
        Power { mantissa, exponent }
    }

    /// How many times two this is, rounded.
    pub(super) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// `count` times this.
    #[inline(always)]
    pub(super) fn times(&self, count: u64) -> Bounds {
        if count == 1 {
            return self.scaled(self.mantissa);
        }
        let near = count as f64;
        let (low, high) = match (near as u128).cmp(&u128::from(count)) {
            std::cmp::Ordering::Less => (near, near.next_up()),
            std::cmp::Ordering::Equal => (near, near),
            std::cmp::Ordering::Greater => (near.next_down(), near),
        };
        self.of_bounds(Bounds { low, high })
    }

    /// `bounds` times this.
    pub(super) fn of_bounds(&self, bounds: Bounds) -> Bounds {
        let Bounds { low, high } = self.mantissa;
        let product = Bounds { low: bounds.low * low, high: bounds.high * high };
        // A mantissa of one is the only exact one, and nothing of nothing is nothing.
        if low == high || bounds.high == 0.0 {
            return self.scaled(product);
        }
        self.scaled(Bounds { low: below(product.low), high: above(product.high) })
    }

    #[inline(always)]
    fn scaled(&self, Bounds { low, high }: Bounds) -> Bounds {
        if self.exponent == 0 {
            return Bounds { low, high };
        }
        Bounds { low: scale(low, self.exponent, below), high: scale(high, self.exponent, above) }
    }
}

impl Bounds {
    pub(super) const ZERO: Bounds = Bounds { low: 0.0, high: 0.0 };

    /// The sum, each bound rounded its own way; exact sums stay exact.
    #[inline(always)]
    pub(super) fn plus(self, other: Bounds) -> Bounds {
        let (low, lost) = two_sum(self.low, other.low);
        let low = f64::from_bits(low.to_bits() - u64::from(lost < 0.0));
        Bounds { low: low.min(f64::MAX), high: sum_up(self.high, other.high) }
    }

    /// Times 2^exponent.
    pub(super) fn shifted(self, exponent: i64) -> Bounds {
        Power { exponent, ..Power::ONE }.scaled(self)
    }
}

/// The sum, rounded up unless it is exact.
#[inline(always)]
pub(super) fn sum_up(a: f64, b: f64) -> f64 {
    let (sum, lost) = two_sum(a, b);
    // The next number has the next bits; whether it is wanted is as good as random, so no branch.
    f64::from_bits(sum.to_bits() + u64::from(lost > 0.0)).min(f64::MAX)
}

/// The next number above, but never infinite.
pub(super) fn above(value: f64) -> f64 {
    value.next_up().min(f64::MAX)
}

/// The next number below, but never below zero.
pub(super) fn below(value: f64) -> f64 {
    value.next_down().clamp(0.0, f64::MAX)
}

/// The rounded sum, and exactly what rounding took away (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let second = sum - a;
    let first = sum - second;
    (sum, (a - first) + (b - second))
}

/// value * 2^exponent; below the smallest normal number `round` says where to go.
#[inline(always)]
fn scale(value: f64, exponent: i64, round: impl Fn(f64) -> f64) -> f64 {
    let mut value = value;
    let mut left = exponent.clamp(-4200, 4200);
    while left != 0 && value != 0.0 {
        let step = left.clamp(-1022, 1023);
        // A normal number with that exponent.
        value *= f64::from_bits(((step + 1023) as u64) << 52);
        left -= step;
        if value < f64::MIN_POSITIVE {
            value = round(value);
        }
    }
    value.min(f64::MAX)
}

/// 1/n!
const SERIES: [f64; 16] = {
    let mut out = [1.0; 16];
    let mut n = 1;
    while n < 16 {
        out[n] = out[n - 1] / n as f64;
        n += 1;
    }
    out
};

/// 2^x for |x| <= 1/2 and a little more: the series of e^(x ln 2) until its terms are below 2^-57. Written
/// out, because every machine must come to the same bits, and their libraries do not; and in four lanes,
/// because one would keep the processor waiting for each step.
fn two_to(x: f64) -> f64 {
    let y = x * std::f64::consts::LN_2;
    let y2 = y * y;
    let y4 = y2 * y2;
    let lane =
        |i: usize| ((SERIES[i + 12] * y4 + SERIES[i + 8]) * y4 + SERIES[i + 4]) * y4 + SERIES[i];
    (lane(0) + lane(1) * y) + (lane(2) + lane(3) * y) * y2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(power: Power) -> (f64, f64) {
        let Bounds { low, high } = power.times(1);
        (low, high)
    }

    #[test]
    fn whole_half_lives_are_exact() {
        for n in -900..900i64 {
            let power = Power::of(7200.0 * 10.0, 7200.0, 10 - n, false);
            let expected = 2f64.powi(n as i32);
            assert_eq!(values(power), (expected, expected));
            let back = Power::of(7200.0 * 10.0, 7200.0, 10 - n, true);
            assert_eq!(values(back), (1.0 / expected, 1.0 / expected));
        }
    }

    #[test]
    fn bounds_enclose_the_power_and_are_tight() {
        for i in 1..2000 {
            let at = 1.7e9 + f64::from(i) * 1.37;
            let shift = (at / 3600.0) as i64 - i64::from(i % 300);
            let (low, high) = values(Power::of(at, 3600.0, shift, false));
            // 2^x by squares of the 64th root, whose own error is far below the distance asked for.
            let x = (at - 3600.0 * shift as f64) / 3600.0;
            let about = x.exp2();
            assert!(low < high && high / low < 1.0 + 4.0 * MARGIN);
            assert!((low / about - 1.0).abs() < 1e-13, "{low} {about}");
            let Bounds { low, high } =
                Power::of(at, 3600.0, shift, true).of_bounds(Bounds { low, high });
            assert!(low <= 1.0 && high >= 1.0 && high - low < 1e-14);
        }
    }

    #[test]
    fn sums_of_whole_numbers_are_exact_and_others_enclosed() {
        let one = Bounds { low: 1.0, high: 1.0 };
        let sum = (0..1000).fold(Bounds::ZERO, |sum, _| sum.plus(one));
        assert_eq!(sum, Bounds { low: 1000.0, high: 1000.0 });
        let large = Bounds { low: 2f64.powi(53), high: 2f64.powi(53) };
        let sum = large.plus(one);
        assert_eq!(sum, Bounds { low: 2f64.powi(53), high: 2f64.powi(53) + 2.0 });
    }

    #[test]
    fn what_underflows_goes_to_its_own_side() {
        let one = Bounds { low: 1.0, high: 1.0 };
        for exponent in [-1100, -5000, -1_000_000_000_000] {
            let Bounds { low, high } = one.shifted(exponent);
            assert!(low == 0.0 && high > 0.0 && high < 1e-300);
        }
        assert_eq!(one.shifted(4000).high, f64::MAX);
        assert_eq!(Bounds::ZERO.shifted(-5000), Bounds::ZERO);
        assert_eq!(Power::of(1.7e9, 60.0, 0, true).of_bounds(Bounds::ZERO), Bounds::ZERO);
    }

    #[test]
    fn counts_beyond_53_bits_are_enclosed() {
        let Bounds { low, high } = Power::ONE.times(u64::MAX);
        assert!((low as u128) <= u128::from(u64::MAX) && high as u128 >= u128::from(u64::MAX));
    }
}
