"""Growing counters: how often a count of a skewed stream is too high, and that none is too low."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import (
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from tests.statistical.binomial import check, check_at_most
from tests.statistical.measure import check_errors, check_fill, count_false_positives

KINDS: list[Any] = [
    SpectralBloomFilter,
    DynamicCountFilter,
    PartitionedSpectralBloomFilter,
    PartitionedDynamicCountFilter,
]
LAYOUTS = ("blocked", "classic")
KEYS = 400_000
SAMPLE = 20_000
TRIALS = 200_000
"""So many keys that the error of one filter strays from its expectation by much less than the
interval of so few trials is wide."""

Array = npt.NDArray[np.int64]


def zipf(distinct: int, seed: int) -> tuple[Array, Array]:
    """Distinct keys and how often each occurs: rank r about 1/r as often as the first."""
    counts = (distinct / np.arange(1, distinct + 1) ** 1.0).astype(np.int64) + 1
    return np.arange(distinct), np.random.default_rng(seed).permutation(counts)


def wrong_counts(filled: Any, keys: Array, truth: Array) -> int:
    """How many counts are not the truth; none may be too small."""
    found = filled.count_many(keys).astype(np.int64)
    assert (found >= truth).all()
    return int((found > truth).sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_the_share_of_wrong_counts_is_the_one_that_was_planned(
    kind: Any, layout: str, rate: float
) -> None:
    keys, truth = zipf(KEYS, 1)
    plan = kind.plan(KEYS, rate, total=int(truth.sum()), layout=layout)
    filled = kind.from_plan(plan)
    filled.add_many(keys, truth)
    wrong = wrong_counts(filled, keys[:SAMPLE], truth[:SAMPLE])
    check(wrong, SAMPLE, plan.predicted_error, "wrong counts")
    stats = filled.stats()
    check_fill(stats, KEYS, filled.hashes)
    check_errors(filled, stats.predicted_error, TRIALS)
    check_errors(filled, plan.predicted_error, TRIALS)
    absent = count_false_positives(filled, TRIALS)
    check_at_most(absent, TRIALS, rate, "false positives at capacity")
    assert filled.estimated_items() == pytest.approx(KEYS, rel=0.018)


@pytest.mark.parametrize("policy", ["plain", "conservative"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [SpectralBloomFilter, PartitionedSpectralBloomFilter])
def test_a_count_of_a_stream_is_never_too_small(kind: Any, layout: str, policy: str) -> None:
    """Twice as many keys as it was made for, in random order, one by one and in batches."""
    keys, truth = zipf(3_000, 2)
    stream = np.random.default_rng(3).permutation(np.repeat(keys, truth))
    filled = kind(1_500, 0.05, layout=layout, policy=policy)
    for key in stream[:5_000].tolist():
        filled.add(key)
    filled.add_many(stream[5_000:], threads=2)
    assert wrong_counts(filled, keys, truth) > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_conservative_policy_is_closer_to_the_truth(layout: Any) -> None:
    keys, truth = zipf(20_000, 4)
    stream = np.random.default_rng(5).permutation(np.repeat(keys, truth))
    excess = {}
    for policy in ("plain", "conservative"):
        filled = SpectralBloomFilter(15_000, 0.05, layout=layout, policy=policy)
        filled.add_many(stream)
        found = filled.count_many(keys).astype(np.int64)
        assert (found >= truth).all()
        excess[policy] = float((found - truth).mean())
    assert 0.0 < excess["conservative"] < 0.5 * excess["plain"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [DynamicCountFilter, SpectralBloomFilter])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_lower_bound_of_an_estimate_holds_with_its_confidence(
    confidence: float, kind: Any, layout: str
) -> None:
    trials = 4_000
    truth = np.random.default_rng(11).integers(1, 9, size=trials)
    filled = kind(trials // 2, 0.05, layout=layout)
    filled.add_many(np.arange(trials), truth)
    missed = 0
    for key in range(trials):
        estimate = filled.estimate(key, confidence=confidence)
        assert estimate.lower <= estimate.value == estimate.upper
        missed += int(truth[key]) < estimate.lower
    check_at_most(missed, trials, 1.0 - confidence, "lower bounds above the truth")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_broken_filters_of_too_few_counters_fail_every_check(kind: Any, layout: str) -> None:
    keys, truth = zipf(KEYS, 1)
    plan = kind.plan(KEYS, 0.05, layout=layout)
    fewer = plan.cells * 9 // 10 // 128 * 128
    small = kind(cells=fewer, hashes=plan.hashes, layout=layout)
    small.add_many(keys, truth)
    wrong = wrong_counts(small, keys[:SAMPLE], truth[:SAMPLE])
    with pytest.raises(AssertionError, match="wrong counts"):
        check(wrong, SAMPLE, plan.predicted_error, "wrong counts")
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(small, plan.predicted_error, TRIALS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_broken_counts_that_miss_an_occurrence_are_too_small(layout: Any) -> None:
    keys, truth = zipf(20_000, 7)
    forgetful = DynamicCountFilter(20_000, 0.01, layout=layout)
    forgetful.add_many(keys, truth)
    forgetful.remove(int(keys[0]))
    with pytest.raises(AssertionError):
        wrong_counts(forgetful, keys, truth)
