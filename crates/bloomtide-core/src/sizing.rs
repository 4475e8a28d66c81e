//! Every formula, each with its source. Symbols: n keys, m cells, k cells per key, p error rate.
//!
//! Specification section 0 unless another is named. Nothing here allocates or knows a filter.

use crate::positions::Derivation;
use std::f64::consts::LN_2;

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
    if derivation == Derivation::Slices {
        let power = (cells.max(1.0) as u64).checked_next_power_of_two().unwrap_or(u64::MAX);
        return (power, best_hashes(n, power as f64).min(hashes));
    }
    let error = |cells: f64| derived_error(n, cells, hashes, derivation);
    // Only small filters with tiny errors enter: elsewhere the second term is far below the first.
    cells = next_rough(cells as u64) as f64;
    while error(cells) > p * (1.0 + 1e-9) && cells < 1e15 {
        cells = next_rough((cells * 1.005).ceil() as u64) as f64;
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
    block_error(n / blocks, (-f64::from(k) / BLOCK_BITS as f64).ln_1p(), k)
}

/// A block with Poisson(lambda) keys: each key leaves a cell alone with chance exp(miss), and an absent
/// key needs k cells that were not left alone.
fn block_error(lambda: f64, miss: f64, k: u32) -> f64 {
    // Terms further than 12 standard deviations from the mean are below 1e-30.
    let spread = 12.0 * lambda.sqrt() + 30.0;
    let first = (lambda - spread).max(0.0) as u64;
    let last = (lambda + spread) as u64;
    let mut log_factorial = ln_factorial(first);
    let mut total = 0.0;
    for i in first..=last {
        if i > first {
            log_factorial += (i as f64).ln();
        }
        let log_weight =
            if lambda > 0.0 { i as f64 * lambda.ln() - lambda - log_factorial } else { 0.0 };
        let fill = -(i as f64 * miss).exp_m1();
        total += log_weight.exp() * fill.powi(k as i32);
        if lambda == 0.0 {
            break;
        }
    }
    total.min(1.0)
}

/// Cells in one block of counters (`placement.rs`).
pub const COUNTER_BLOCK: u64 = 128;

/// Expected error of blocks of counters with k groups: a block holds Poisson(n / blocks) keys, each of
/// which raises one of the 128/k cells of every group (specification 10.4, groups instead of free
/// choice).
pub fn counter_block_error(n: f64, blocks: f64, k: u32) -> f64 {
    block_error(n / blocks, (-f64::from(k) / COUNTER_BLOCK as f64).ln_1p(), k)
}

/// The blocks of counters for n keys at error p: (blocks, k). Half the probes are worth a little
/// memory, so k = 8 must save more than 5 % against k = 4, and so on.
pub fn counter_block_plan(n: f64, p: f64) -> (u64, u32) {
    let least = |k| fewest_blocks(n, p, COUNTER_BLOCK, |blocks| counter_block_error(n, blocks, k));
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
    fewest_blocks(n, p, BLOCK_BITS, |blocks| blocked_error(n, blocks, k))
}

/// The fewest blocks whose error meets p, by bisection (the error falls with more blocks).
fn fewest_blocks(n: f64, p: f64, block: u64, error: impl Fn(f64) -> f64) -> u64 {
    let meets = |blocks: f64| error(blocks) <= p;
    let mut high = (classic_cells(n, p) / block as f64).ceil().max(1.0);
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

    #[test]
    fn the_classic_numbers_are_the_known_ones() {
        assert!(close(classic_cells(1.0, 0.01), 9.585, 1e-3));
        // The partitioned paper's sizing: P = 0.05, d = 3 gives 6.529 n.
        assert!(close(classic_cells_for(1e6, 0.05, 3), 6.529e6, 1e-3));
        assert_eq!(best_hashes(1e6, 9.585e6), 7);
        assert!(close(classic_error(1e6, 9.585e6, 7), 0.01, 0.01));
    }

    #[test]
    fn keys_from_fill_inverts_the_fill() {
        let fill = classic_fill(5e5, 1e7, 7);
        assert!(close(keys_from_fill(fill, 1e7, 7.0), 5e5, 1e-6));
        assert!(keys_from_fill(1.0, 1e7, 7.0).is_infinite());
    }

    #[test]
    fn blocked_sizes_meet_the_target_and_not_one_block_fewer() {
        for p in [0.2, 0.05, 0.01, 1e-3, 1e-4] {
            let (blocks, k) = blocked_plan(1e5, p);
            assert!(blocked_error(1e5, blocks as f64, k) <= p);
            assert!(blocked_error(1e5, blocks as f64 - 1.0, k) > p);
        }
    }

    #[test]
    fn blocks_of_counters_meet_the_target_and_not_one_block_fewer() {
        for p in [0.5, 0.2, 0.05, 0.01, 0.005, 1e-4] {
            let (blocks, k) = counter_block_plan(1e5, p);
            assert!([1, 2, 4, 8].contains(&k));
            assert!(counter_block_error(1e5, blocks as f64, k) <= p);
            assert!(counter_block_error(1e5, blocks as f64 - 1.0, k) > p);
        }
    }

    #[test]
    fn a_small_k_is_chosen_where_it_saves_memory() {
        assert_eq!(blocked_plan(1e6, 0.01).1, 8);
        assert!(blocked_plan(1e6, 0.1).1 < 5);
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
