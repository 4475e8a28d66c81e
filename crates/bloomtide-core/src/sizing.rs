//! Every formula, each with its source. Symbols: n keys, m cells, k cells per key, p error rate.
//!
//! Specification section 0 unless another is named. Nothing here allocates or knows a filter.

use crate::positions::Derivation;
use std::cell::RefCell;
use std::collections::HashMap;
use std::f64::consts::LN_2;

/// What a filter may err more than its target, for all seeds but one in a thousand: no plan relies on the average over
/// seeds. Small filters get more cells for it; where a hundred thousand keys or more are planned for, the average is
/// enough.
const TOLERANCE: f64 = 1.02;
/// Standard deviations above the mean that are reached as seldom. Errors have a longer tail than normal variables.
const SELDOM: f64 = 4.0;

/// Bits in one block of the blocked layout: one cache line.
pub const BLOCK_BITS: u64 = 512;
/// Words of 64 bits in one block.
pub const BLOCK_WORDS: u64 = 8;

/// Cells of a classic filter of the best k: m = -n ln p / (ln 2)^2.
pub fn classic_cells(n: f64, p: f64) -> f64 {
    -n * p.ln() / (LN_2 * LN_2)
}

/// Cells of a classic filter for a given k, the inverse of `classic_error`:
/// 1/m = 1 - (1 - p^(1/k))^(1/(kn)). For large n this is the usual m = -k n / ln(1 - p^(1/k)).
pub fn classic_cells_for(n: f64, p: f64, k: u32) -> f64 {
    let k = f64::from(k);
    -1.0 / ((-p.powf(1.0 / k)).ln_1p() / (k * n)).exp_m1()
}

/// The best k for n keys in m cells: (m/n) ln 2. (The time-decay paper prints the inverse.)
pub fn best_hashes(n: f64, m: f64) -> u32 {
    ((m / n) * LN_2).round().clamp(1.0, f64::from(crate::positions::MAX_HASHES)) as u32
}

/// Expected fill of a classic filter: 1 - (1 - 1/m)^(kn).
pub fn classic_fill(n: f64, m: f64, k: u32) -> f64 {
    if m <= 1.0 {
        return if n > 0.0 { 1.0 } else { 0.0 };
    }
    -(f64::from(k) * n * (-1.0 / m).ln_1p()).exp_m1()
}

/// Expected error of a classic filter: fill^k. The white paper: saturation^phase.
pub fn classic_error(n: f64, m: f64, k: u32) -> f64 {
    classic_fill(n, m, k).powi(k as i32)
}

/// Chance that an absent key is called present because the derivation has fewer sets of cells than
/// digests, beyond fill^k. Two ways (measured; `docs/plots/derivations.py`):
///
/// - The cells of a present key, or of its neighbour that begins a step earlier or later: two start
///   values make m^2 sets, four make m^4.
/// - Steps that divide m run around a few cells only: with steps that are multiples of m/d a key has
///   at most about d different cells. That needs a small divisor d of m, so planned filters have none
///   (`next_rough`), and only steps of zero remain. A power of two is safe for `double`, whose
///   step is odd there.
pub fn same_cells(n: f64, m: f64, fill: f64, derivation: Derivation) -> f64 {
    let rough = is_rough(m as u64);
    match derivation {
        Derivation::Double if rough || (m as u64).is_power_of_two() => 8.0 * n / (m * m),
        Derivation::Double => 8.0 * n / (m * m) + fill * 4.0 / m,
        Derivation::Enhanced => {
            3.0 * n / m.powi(4) + fill * if rough { 1.0 } else { 2048.0 } / m.powi(3)
        }
        Derivation::Slices => 0.0,
    }
}

/// `same_cells` at the expected fill.
fn classic_floor(n: f64, m: f64, k: u32, derivation: Derivation) -> f64 {
    same_cells(n, m, classic_fill(n, m, k), derivation)
}

/// Expected error of a classic filter with this derivation.
pub fn derived_error(n: f64, m: f64, k: u32, derivation: Derivation) -> f64 {
    (classic_error(n, m, k) + classic_floor(n, m, k, derivation)).min(1.0)
}

/// The same for the unluckiest seeds: with a fill that is `SELDOM` standard deviations above the expected one, and
/// all cells of all keys different at the most.
fn seldom_derived_error(n: f64, m: f64, k: u32, derivation: Derivation) -> f64 {
    let (used, variance) = occupied(f64::from(k) * n, m);
    let fill = ((used + SELDOM * variance.sqrt()).min(f64::from(k) * n) / m).min(1.0);
    (fill.powi(k as i32) + same_cells(n, m, fill, derivation)).min(1.0)
}

/// Mean and variance of the number of cells in use when so many balls fall into m cells.
pub fn occupied(balls: f64, m: f64) -> (f64, f64) {
    let left = |share: f64| (balls * (-share / m).ln_1p()).exp();
    let (one, two) = (left(1.0), left(2.0));
    let variance = m * one * (1.0 - one) + m * (m - 1.0) * (two - one * one);
    (m * (1.0 - one), variance.max(0.0))
}

/// Measured error of a classic filter with this derivation: fill^k is exact for independent cells.
pub fn measured_error(items: f64, m: f64, k: u32, fill: f64, derivation: Derivation) -> f64 {
    (fill.powi(k as i32) + same_cells(items, m, fill, derivation)).min(1.0)
}

/// Whether m has no divisor that a key of at most `MAX_HASHES` cells could notice.
fn is_rough(m: u64) -> bool {
    const PRIMES: [u64; 18] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61];
    PRIMES.iter().all(|prime| m == *prime || !m.is_multiple_of(*prime))
}

/// The smallest number from m on without small divisors: a dozen more at the most, usually.
fn next_rough(m: u64) -> u64 {
    (m..).find(|candidate| is_rough(*candidate)).unwrap_or(m)
}

/// Cells and k of the smallest classic filter that meets p for n keys.
pub fn classic_plan(n: f64, p: f64, derivation: Derivation) -> (u64, u32) {
    let hashes = best_hashes(n, classic_cells(n, p));
    // k is a whole number, so the best m for it is a little above the formula's.
    let mut cells = classic_cells_for(n, p, hashes).max(classic_cells(n, p)).ceil();
    let fails = |cells: f64, hashes| {
        derived_error(n, cells, hashes, derivation) > p * (1.0 + 1e-9)
            || seldom_derived_error(n, cells, hashes, derivation) > p * TOLERANCE
    };
    if derivation == Derivation::Slices {
        let mut power = (cells.max(1.0) as u64).checked_next_power_of_two().unwrap_or(u64::MAX);
        let best = |power: u64| best_hashes(n, power as f64).min(hashes);
        while fails(power as f64, best(power)) && power < 1 << 50 {
            power *= 2;
        }
        return (power, best(power));
    }
    // Only small filters enter.
    cells = next_rough(cells as u64) as f64;
    while fails(cells, hashes) && cells < 1e15 {
        cells = next_rough((cells * 1.001).ceil() as u64) as f64;
    }
    (cells as u64, hashes)
}

/// Distinct keys inside, from the fill s: n = -(m/k) ln(1 - s). Infinite when every cell is set.
pub fn keys_from_fill(fill: f64, m: f64, k: f64) -> f64 {
    if fill >= 1.0 { f64::INFINITY } else { -(m / k) * (-fill).ln_1p() }
}

/// Expected error of a blocked filter with k of the eight words used per key (specification 10.4):
/// a block holds Poisson(n / blocks) keys; a word of a block with i keys has fill
/// 1 - (1 - k/(8*64))^i, because each key sets one of its 64 bits with chance k/8.
pub fn blocked_error(n: f64, blocks: f64, k: u32) -> f64 {
    bloom_block(k).error(n / blocks)
}

fn bloom_block(k: u32) -> Block {
    Block { groups: k, cells: BLOCK_BITS as f64 / 8.0, taken: f64::from(k) / 8.0 }
}

/// A block of groups of cells. A key takes one cell of a group, or, with a chance, none; an absent key is called
/// present if its cells of all groups are in use.
#[derive(Clone, Copy)]
struct Block {
    groups: u32,
    cells: f64,
    /// Chance that a key takes a cell of a group.
    taken: f64,
}

impl Block {
    /// Mean error with Poisson(lambda) keys inside.
    fn error(&self, lambda: f64) -> f64 {
        self.error_beside(lambda, 0.0)
    }

    /// The same with so many more.
    fn error_beside(&self, lambda: f64, more: f64) -> f64 {
        let miss = (-self.taken / self.cells).ln_1p();
        let error = |keys: f64| (-((keys + more) * miss).exp_m1()).powi(self.groups as i32);
        poisson_mean(lambda, error).min(1.0)
    }

    /// Error of so many blocks for the unluckiest seeds. The mean over few blocks is skewed to the right, as a
    /// lognormal variable is; the second moment of a product of independent fills is that of their second moments.
    /// All blocks together have n keys: what the error rises with a key more is not left to chance.
    fn seldom_error(&self, n: f64, blocks: f64) -> f64 {
        let (lambda, mean) = (n / blocks, self.error(n / blocks));
        let left =
            |cells: f64, keys: f64| (keys * (-cells * self.taken / self.cells).ln_1p()).exp();
        let squares = poisson_mean(lambda, |keys| {
            let (one, two) = (left(1.0, keys), left(2.0, keys));
            let variance = (one - two) / self.cells + two - one * one;
            ((1.0 - one).powi(2) + variance.max(0.0)).powi(self.groups as i32)
        });
        let rise = self.error_beside(lambda, 1.0) - mean;
        let variance = (squares - mean * mean - lambda * rise * rise).max(0.0) / blocks;
        let spread = (variance / (mean * mean)).ln_1p();
        mean * (SELDOM * spread.sqrt() - spread / 2.0).exp()
    }
}

/// Mean of a function of a Poisson variable.
pub fn poisson_mean(lambda: f64, of: impl Fn(f64) -> f64) -> f64 {
    if lambda <= 0.0 {
        return of(0.0);
    }
    // Terms further than 12 standard deviations from the mean are below 1e-30.
    let spread = 12.0 * lambda.sqrt() + 30.0;
    let (first, last) = ((lambda - spread).max(0.0) as u64, (lambda + spread) as u64);
    let mut log_weight = first as f64 * lambda.ln() - lambda - ln_factorial(first);
    let mut mean = log_weight.exp() * of(first as f64);
    for i in first + 1..=last {
        log_weight += (lambda / i as f64).ln();
        mean += log_weight.exp() * of(i as f64);
    }
    mean
}

/// Chance that a normal variable is so many standard deviations above its mean (Abramowitz and Stegun 26.2.17).
pub fn normal_tail(deviations: f64) -> f64 {
    if deviations < 0.0 {
        return 1.0 - normal_tail(-deviations);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * deviations);
    let sum = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let sum = sum.iter().fold(0.0, |sum, term| (sum + term) * t);
    sum * (-deviations * deviations / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Cells in one block of counters (`placement.rs`).
pub const COUNTER_BLOCK: u64 = 128;

/// Expected error of blocks of counters with k groups: a block holds Poisson(n / blocks) keys, each of
/// which raises one of the 128/k cells of every group (specification 10.4, groups instead of free
/// choice).
pub fn counter_block_error(n: f64, blocks: f64, k: u32) -> f64 {
    counter_block(k).error(n / blocks)
}

fn counter_block(k: u32) -> Block {
    Block { groups: k, cells: COUNTER_BLOCK as f64 / f64::from(k), taken: 1.0 }
}

/// The blocks of counters for n keys at error p: (blocks, k). Half the probes are worth a little
/// memory, so k = 8 must save more than 5 % against k = 4, and so on.
pub fn counter_block_plan(n: f64, p: f64) -> (u64, u32) {
    remembered(COUNTER_BLOCK, n, p, search_counter_blocks)
}

fn search_counter_blocks(n: f64, p: f64) -> (u64, u32) {
    let least = |k| fewest_blocks(n, p, COUNTER_BLOCK, counter_block(k));
    [1, 2, 4, 8].map(|k| (least(k), k)).into_iter().fold((u64::MAX, 1), |best, next| {
        if (next.0 as f64) < 0.95 * best.0 as f64 { next } else { best }
    })
}

fn ln_factorial(i: u64) -> f64 {
    if i < 256 {
        return (2..=i).map(|j| (j as f64).ln()).sum();
    }
    // Stirling with two correction terms: error below 1e-12 here.
    let x = i as f64;
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x * x * x)
}

/// The fewest blocks whose `blocked_error` meets p.
pub fn blocked_blocks(n: f64, p: f64, k: u32) -> u64 {
    fewest_blocks(n, p, BLOCK_BITS, bloom_block(k))
}

/// The fewest blocks of so many cells whose error meets p, by bisection (the error falls with more blocks).
fn fewest_blocks(n: f64, p: f64, cells: u64, block: Block) -> u64 {
    let meets = |blocks: f64| {
        block.error(n / blocks) <= p && block.seldom_error(n, blocks) <= p * TOLERANCE
    };
    let mut high = (classic_cells(n, p) / cells as f64).ceil().max(1.0);
    while !meets(high) {
        high *= 2.0;
    }
    let mut low = 0.0;
    while high - low > 1.0 {
        let middle = ((low + high) / 2.0).floor();
        if middle >= 1.0 && meets(middle) {
            high = middle;
        } else {
            low = middle;
        }
        if high - low <= high * 1e-9 {
            break;
        }
    }
    high.ceil() as u64
}

/// The blocked layout for n keys at error p: (blocks, k). k = 8 needs no choice of words and is the
/// fastest, so a smaller k must save more than 2 % of memory.
pub fn blocked_plan(n: f64, p: f64) -> (u64, u32) {
    remembered(BLOCK_BITS, n, p, search_blocks)
}

/// Blocks and k of so many keys and that error, by the cells of a block.
type Plans = HashMap<(u64, u64, u64), (u64, u32)>;
/// Plans that are remembered; beyond it all are forgotten.
const PLANS: usize = 1024;

/// A search takes a millisecond, and servers make thousands of filters with few different goals. One memory for each
/// thread: a lock could be held by a thread that a forked child does not have.
fn remembered(block: u64, n: f64, p: f64, search: fn(f64, f64) -> (u64, u32)) -> (u64, u32) {
    thread_local!(static FOUND: RefCell<Plans> = RefCell::default());
    let goal = (block, n.to_bits(), p.to_bits());
    if let Some(found) = FOUND.with_borrow(|plans| plans.get(&goal).copied()) {
        return found;
    }
    let found = search(n, p);
    FOUND.with_borrow_mut(|plans| {
        if plans.len() >= PLANS {
            plans.clear();
        }
        plans.insert(goal, found);
    });
    found
}

fn search_blocks(n: f64, p: f64) -> (u64, u32) {
    let all_words = blocked_blocks(n, p, 8);
    (1..8)
        .map(|k| (blocked_blocks(n, p, k), k))
        .min()
        .filter(|(blocks, _)| (*blocks as f64) < 0.98 * all_words as f64)
        .unwrap_or((all_words, 8))
}

/// Error of layer i of a scalable filter, so that all layers together stay under p
/// (specification 10.10): p (1 - r) r^i, whose sum over i is p.
pub fn layer_error(p: f64, tightening: f64, layer: u32) -> f64 {
    p * (1.0 - tightening) * tightening.powi(layer as i32)
}

/// Chance that at least one of several independent filters answers wrongly: 1 - prod(1 - p_i).
pub fn compound_error(errors: impl Iterator<Item = f64>) -> f64 {
    -errors.map(|p| (-p).ln_1p()).sum::<f64>().exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, relative: f64) -> bool {
        (a - b).abs() <= relative * b.abs()
    }

    /// Whether blocks are as many as n keys need for the error p, on average and for the unluckiest seeds.
    fn are_fewest(block: Block, n: f64, p: f64, blocks: u64) -> bool {
        let meets = |blocks: f64| {
            block.error(n / blocks) <= p && block.seldom_error(n, blocks) <= p * TOLERANCE
        };
        meets(blocks as f64) && !meets(blocks as f64 - 1.0)
    }

    #[test]
    fn blocked_sizes_meet_the_target_and_not_one_block_fewer() {
        for p in [0.2, 0.05, 0.01, 1e-3, 1e-4] {
            for n in [1e3, 1e5, 1e8] {
                let (blocks, k) = blocked_plan(n, p);
                assert!(are_fewest(bloom_block(k), n, p, blocks), "{n} {p}");
            }
            let (blocks, k) = blocked_plan(1e8, p);
            assert!(blocked_error(1e8, blocks as f64 - 1.0, k) > p, "{p}");
        }
    }

    #[test]
    fn blocks_of_counters_meet_the_target_and_not_one_block_fewer() {
        for p in [0.5, 0.2, 0.05, 0.01, 0.005, 1e-4] {
            for n in [1e3, 1e5, 1e8] {
                let (blocks, k) = counter_block_plan(n, p);
                assert!([1, 2, 4, 8].contains(&k));
                assert!(are_fewest(counter_block(k), n, p, blocks), "{n} {p}");
            }
            let (blocks, k) = counter_block_plan(1e8, p);
            assert!(counter_block_error(1e8, blocks as f64 - 1.0, k) > p, "{p}");
        }
    }

    #[test]
    fn balls_in_two_cells_are_counted_exactly() {
        // Three balls: both cells are in use in six of eight cases.
        let (mean, variance) = occupied(3.0, 2.0);
        assert!(close(mean, 1.75, 1e-12) && close(variance, 0.1875, 1e-12));
    }

    #[test]
    fn a_poisson_mean_and_a_normal_tail_are_the_known_ones() {
        for lambda in [0.0, 0.3, 11.0, 5000.0] {
            assert!((poisson_mean(lambda, |i| i) - lambda).abs() <= 1e-9 * lambda);
            assert!(close(poisson_mean(lambda, |i| 0.5f64.powf(i)), (-lambda / 2.0).exp(), 1e-9));
        }
        assert!(close(normal_tail(1.644_853_6), 0.05, 1e-5));
        assert!(close(normal_tail(-1.644_853_6), 0.95, 1e-5));
    }

    #[test]
    fn rough_numbers_have_no_small_divisor() {
        assert!([1, 2, 61, 67, 4489, 1_000_003].into_iter().all(is_rough));
        assert!(![4, 459, 3721, 1 << 40].into_iter().any(is_rough));
        assert_eq!(next_rough(459), 461);
        assert!((1..10_000).all(|m| next_rough(m) - m < 200));
    }

    #[test]
    fn layer_errors_sum_to_the_target() {
        let sum: f64 = (0..200).map(|i| layer_error(0.01, 0.5, i)).sum();
        assert!(close(sum, 0.01, 1e-12));
    }

    #[test]
    fn compound_error_of_tiny_errors_is_not_lost() {
        assert!(close(compound_error([1e-18, 1e-18].into_iter()), 2e-18, 1e-9));
    }
}
