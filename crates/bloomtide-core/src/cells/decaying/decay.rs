//! How a value fades: times lambda for every epoch that passed, in fixed point, never rounded down.
//!
//! Powers of lambda have 64 bits behind the point. lambda^age is made by squaring, each product rounded
//! up, so it is never below the true power and at most about age * 2^-64 above it; the same integers on
//! every machine. One multiplication then fades a value by any number of epochs (specification 10.1).
//!
//!   `strict`    ceil(v * lambda^age): never too small; the last unit stays for ever
//!   `expiring`  at least one unit less for every epoch, and nothing where a unit or less is left: reaches zero.
//!               An epoch takes at most one unit too much, so a value is at most 1 / (1 - lambda) units too small

use crate::named::named;

/// Which way a faded value is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Up: never too small.
    Strict,
    /// Down to zero in the end.
    Expiring,
}

named! {
    Rounding: "rounding", "\"strict\" or \"expiring\"",
        "\"strict\" never counts too little, \"expiring\" forgets keys in the end";
    Strict = "strict", Expiring = "expiring"
}

/// Powers of lambda that are looked up; older blocks are rare, and their power is worked out.
const TABLE: usize = 256;

/// Fades values.
#[derive(Clone, Debug)]
pub struct Decay {
    rounding: Rounding,
    /// lambda^0, lambda^1, ...; the first entry is not used.
    table: Box<[u64]>,
    /// lambda^1, lambda^2, lambda^4, ...
    squares: Box<[u64; 64]>,
}

impl Decay {
    /// Times `lambda`, between 0 and 1, for every epoch.
    pub fn new(lambda: f64, rounding: Rounding) -> Self {
        let mut squares = Box::new([in_units(lambda); 64]);
        for i in 1..64 {
            squares[i] = times(squares[i - 1], squares[i - 1]);
        }
        let table = (0..TABLE as u64).map(|age| power(&squares, age)).collect();
        Decay { rounding, table, squares }
    }

    /// lambda^age in units of 2^-64, for an age above zero.
    #[inline(always)]
    pub fn power(&self, age: u64) -> u64 {
        match self.table.get(age as usize) {
            Some(power) => *power,
            None => power(&self.squares, age),
        }
    }

    /// A value of that age, which may be zero.
    #[inline(always)]
    pub fn fade(&self, value: u32, age: u64) -> u32 {
        if age == 0 {
            return value;
        }
        Fading::new(self, age).fade(value)
    }

    /// A weight on its way into the cells: always rounded up, so that no late event is lost.
    pub fn fade_up(&self, weight: u64, age: u64) -> u64 {
        if age == 0 { weight } else { times(weight, self.power(age)) }
    }

    /// Everything of one age, for many values.
    #[inline(always)]
    pub fn of_age(&self, age: u64) -> Fading {
        Fading::new(self, age)
    }
}

/// What one age does to values.
#[derive(Clone, Copy, Debug)]
pub struct Fading {
    high: u32,
    low: u32,
    /// Units that go away at least.
    least: u32,
    /// What rounds up to no more than this is nothing.
    gone: u64,
}

impl Fading {
    #[inline(always)]
    fn new(decay: &Decay, age: u64) -> Self {
        let power = decay.power(age);
        let (least, gone) = match decay.rounding {
            Rounding::Strict => (0, 0),
            Rounding::Expiring => (u32::try_from(age).unwrap_or(u32::MAX), 1),
        };
        Fading { high: (power >> 32) as u32, low: power as u32, least, gone }
    }

    /// ceil(value * power / 2^64), and at least so many units less. Two products of 32 bits, which
    /// vectorise where one of 128 would not.
    #[inline(always)]
    pub fn fade(&self, value: u32) -> u32 {
        const ALMOST: u64 = u32::MAX as u64;
        let (value, least) = (u64::from(value), u64::from(self.least));
        let low = (value * u64::from(self.low) + ALMOST) >> 32;
        let rounded = (value * u64::from(self.high) + low + ALMOST) >> 32;
        // Below 2^32, like the value.
        let left = rounded.min(value.saturating_sub(least)) as u32;
        if rounded > self.gone { left } else { 0 }
    }
}

#[cfg(target_arch = "x86_64")]
impl Fading {
    /// `fade` for sixteen values.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn fade_sixteen(
        &self,
        values: std::arch::x86_64::__m512i,
    ) -> std::arch::x86_64::__m512i {
        use std::arch::x86_64::*;
        let (low, high) = (_mm512_set1_epi64(self.low.into()), _mm512_set1_epi64(self.high.into()));
        let almost = _mm512_set1_epi64(u32::MAX.into());
        // Products are of the lower halves of 64 bits.
        let product = |values: __m512i| {
            let low = _mm512_add_epi64(_mm512_mul_epu32(values, low), almost);
            let low = _mm512_add_epi64(_mm512_srli_epi64::<32>(low), almost);
            _mm512_add_epi64(_mm512_mul_epu32(values, high), low)
        };
        let even = _mm512_srli_epi64::<32>(product(values));
        let odd = product(_mm512_srli_epi64::<32>(values));
        let rounded = _mm512_mask_blend_epi32(0xaaaa, even, odd);
        let least = _mm512_set1_epi32(self.least as i32);
        let less = _mm512_sub_epi32(_mm512_max_epu32(values, least), least);
        let left = _mm512_min_epu32(rounded, less);
        let gone = _mm512_set1_epi32(self.gone as i32);
        _mm512_maskz_mov_epi32(_mm512_cmpgt_epu32_mask(rounded, gone), left)
    }
}

/// lambda in units of 2^-64, rounded up; one is a unit less, which no product with a value shows.
fn in_units(lambda: f64) -> u64 {
    // A power of two times a double is exact, and so is rounding it up; `as` stops at the largest.
    (lambda * 18_446_744_073_709_551_616.0).ceil() as u64
}

/// a * b / 2^64, rounded up.
#[inline(always)]
fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 + u64::from(product as u64 != 0)
}

fn power(squares: &[u64; 64], age: u64) -> u64 {
    let mut product = None;
    for (bit, square) in squares.iter().enumerate() {
        if age >> bit & 1 == 1 {
            product = Some(product.map_or(*square, |product| times(product, *square)));
        }
    }
    product.unwrap_or(u64::MAX)
}
