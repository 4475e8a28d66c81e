"""CountingBloomFilter: how often, and by how much, a count is too high."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bloomery import CountingBloomFilter
from tests.statistical.binomial import check, check_at_most
from tests.statistical.measure import (
    FIRST_ABSENT,
    check_errors,
    check_fill,
    count_false_positives,
    present_keys,
)

KEYS = 50_000
TRIALS = 1_000_000
SECRET = bytes(range(16, 32))


def _check_noise(filter: CountingBloomFilter, hashes: int) -> None:
    """Absent keys count at least t with chance (share of cells of at least t)^k, for all t."""
    cells = filter.cells()
    counts = filter.count_many(np.arange(FIRST_ABSENT, FIRST_ABSENT + TRIALS))
    for level in (1, 2, 3):
        expected = float((cells >= level).mean()) ** hashes
        check(int((counts >= level).sum()), TRIALS, expected, f"counts of at least {level}")


@pytest.mark.parametrize(
    "options",
    [
        {"counter_bits": 4},
        {"counter_bits": 8, "derivation": "double"},
        {"counter_bits": 16, "hash": "keyed", "secret": SECRET},
        {"counter_bits": 32, "derivation": "slices"},
        {"counter_bits": 8, "policy": "conservative"},
    ],
    ids=["4", "8-double", "16-keyed", "32-slices", "8-conservative"],
)
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_fill_errors_and_target(options: dict[str, Any], rate: float) -> None:
    filled = CountingBloomFilter(KEYS, rate, **options)
    filled.add_many(present_keys(KEYS))
    stats = filled.stats()
    assert stats.fill == np.count_nonzero(filled.cells()) / stats.cells
    check_fill(stats, KEYS, filled.hashes)
    wrong = count_false_positives(filled, TRIALS)
    check(wrong, TRIALS, stats.predicted_error, "false positives given the fill")
    check_at_most(wrong, TRIALS, rate, "false positives at capacity")
    _check_noise(filled, filled.hashes)


def test_a_count_is_exact_until_all_cells_are_shared() -> None:
    """A key that went in once counts more than once iff others hit each of its k cells."""
    filled = CountingBloomFilter(KEYS, 0.05, counter_bits=8)
    filled.add_many(present_keys(KEYS))
    m, k = filled.stats().cells, filled.hashes
    others = 1.0 - (1.0 - 1.0 / m) ** (k * (KEYS - 1))
    counts = filled.count_many(present_keys(KEYS))
    assert counts.min() == 1
    check(int((counts > 1).sum()), KEYS, others**k, "counts above the truth")


def test_conservative_updates_are_closer_to_the_truth() -> None:
    """The same skewed stream into both policies: never below the truth, and less above it."""
    rng = np.random.default_rng(7)
    stream = np.minimum(rng.zipf(1.3, 200_000), 30_000).astype(np.int64)
    keys, truth = np.unique(stream, return_counts=True)
    excess = {}
    for policy in ("plain", "conservative"):
        counting = CountingBloomFilter(len(keys) // 2, 0.05, counter_bits=32, policy=policy)
        counting.add_many(stream)
        counts = counting.count_many(keys).astype(np.int64)
        assert (counts >= truth).all()
        excess[policy] = float((counts - truth).mean())
    assert 0.0 < excess["conservative"] < 0.5 * excess["plain"]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_lower_bound_of_an_estimate_holds_with_its_confidence(confidence: float) -> None:
    rng = np.random.default_rng(11)
    trials = 4_000
    truth = rng.integers(1, 9, size=trials)
    counting = CountingBloomFilter(trials // 2, 0.05, counter_bits=16)
    counting.add_many(np.repeat(np.arange(trials), truth))
    missed = 0
    for key in range(trials):
        estimate = counting.estimate(key, confidence=confidence)
        assert estimate.lower <= estimate.value == estimate.upper
        assert int(truth[key]) <= estimate.value
        missed += int(truth[key]) < estimate.lower
    check_at_most(missed, trials, 1.0 - confidence, "lower bounds above the truth")


def test_broken_one_probe_too_few_fails_every_check() -> None:
    whole = CountingBloomFilter.plan(KEYS, 0.01)
    lazy = CountingBloomFilter(bits=whole.cells * 4, hashes=whole.hashes - 1)
    lazy.add_many(present_keys(KEYS))
    assert lazy.stats().cells == whole.cells
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(lazy.stats(), KEYS, whole.hashes)
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(lazy, lazy.stats().fill ** whole.hashes, TRIALS)
    with pytest.raises(AssertionError, match="counts of at least 1"):
        _check_noise(lazy, whole.hashes)


def test_broken_double_counting_fails_the_noise() -> None:
    """A filter that counts every key twice: same membership, but noise of one never occurs."""
    doubled = CountingBloomFilter(KEYS, 0.05, counter_bits=8)
    doubled.add_many(present_keys(KEYS))
    honest_cells = doubled.cells()
    doubled.add_many(present_keys(KEYS))

    class Stale:
        def cells(self) -> Any:
            return honest_cells

        def count_many(self, keys: Any) -> Any:
            return doubled.count_many(keys)

    with pytest.raises(AssertionError, match="counts of at least 2"):
        _check_noise(Stale(), doubled.hashes)  # type: ignore[arg-type]
