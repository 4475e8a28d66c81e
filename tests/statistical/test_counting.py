"""CountingBloomFilter: how often, and by how much, a count is too high."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import CountingBloomFilter
from tests.statistical.binomial import check, check_at_most
from tests.statistical.measure import (
    FIRST_ABSENT,
    check_errors,
    check_fill,
    count_false_positives,
    present_keys,
)

BLOCK = 128
LAYOUTS = ("blocked", "classic")
KEYS = 50_000
TRIALS = 1_000_000
SECRET = bytes(range(16, 32))


def _chance_of_all(chosen: npt.NDArray[np.bool_], layout: str, hashes: int) -> float:
    """The chance that all k cells of an absent key are chosen ones.

    Classic: share^k. Blocked: a key has one cell in each of the k groups of one block, so the
    shares of a block's groups are multiplied, and blocks are equally likely.
    """
    if layout == "classic":
        return float(chosen.mean()) ** hashes
    return float(chosen.reshape(-1, hashes, BLOCK // hashes).mean(axis=2).prod(axis=1).mean())


def _check_noise(filter: CountingBloomFilter, layout: str, hashes: int) -> None:
    """Absent keys count at least t as often as all k cells do, for all t."""
    cells = filter.cells()
    counts = filter.count_many(np.arange(FIRST_ABSENT, FIRST_ABSENT + TRIALS))
    for level in (1, 2, 3):
        expected = _chance_of_all(cells >= level, layout, hashes)
        check(int((counts >= level).sum()), TRIALS, expected, f"counts of at least {level}")


@pytest.mark.parametrize(
    "options",
    [
        {"counter_bits": 4},
        {"counter_bits": 16, "hash": "keyed", "secret": SECRET},
        {"counter_bits": 8, "policy": "conservative"},
        {"counter_bits": 4, "layout": "classic"},
        {"counter_bits": 8, "paper": {"derivation": "double"}},
        {"counter_bits": 32, "paper": {"derivation": "slices"}},
        {"counter_bits": 8, "policy": "conservative", "layout": "classic"},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values() if value != SECRET),
)
@pytest.mark.parametrize("rate", [0.2, 0.05, 0.01, 0.005])
def test_fill_errors_and_target(options: dict[str, Any], rate: float) -> None:
    filled = CountingBloomFilter(KEYS, rate, **options)
    assert filled.layout == ("classic" if {"layout", "paper"} & {*options} else "blocked")
    filled.add_many(present_keys(KEYS))
    stats = filled.stats()
    assert stats.fill == np.count_nonzero(filled.cells()) / stats.cells
    check_fill(stats, KEYS, filled.hashes)
    wrong = count_false_positives(filled, TRIALS)
    check(wrong, TRIALS, stats.predicted_error, "false positives given the fill")
    check_at_most(wrong, TRIALS, rate, "false positives at capacity")
    # Classic cells add the chance of a key that has the cells of another, tiny at this size.
    expected = _chance_of_all(filled.cells() > 0, filled.layout, filled.hashes)
    assert stats.predicted_error == pytest.approx(expected, rel=1e-3)
    _check_noise(filled, filled.layout, filled.hashes)


MANY, FEW_TRIALS = 400_000, 200_000
"""So many keys that the error of one filter strays from its expectation by much less than the
interval of so few trials is wide."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rate", [0.2, 0.05, 0.01, 0.005])
def test_the_plan_foretells_the_error_at_capacity_and_beyond(rate: float, layout: Any) -> None:
    plan = CountingBloomFilter.plan(MANY, rate, layout=layout)
    assert plan.predicted_error is not None
    assert plan.predicted_error_overfull is not None
    assert 0.99 * rate <= plan.predicted_error <= rate * (1 + 1e-9)
    filled = CountingBloomFilter.from_plan(plan)
    filled.add_many(present_keys(MANY))
    check_errors(filled, plan.predicted_error, FEW_TRIALS)
    filled.add_many(present_keys(2 * MANY)[MANY:])
    check_errors(filled, plan.predicted_error_overfull, FEW_TRIALS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_estimated_items_are_close_to_the_truth(layout: Any) -> None:
    for rate in (0.2, 0.01):
        filled = CountingBloomFilter(KEYS, rate, layout=layout)
        filled.add_many(np.repeat(present_keys(KEYS), 2))
        # At worst all groups stray together, by at most six times 0.3 % of n at this size.
        assert filled.estimated_items() == pytest.approx(KEYS, rel=0.018)
        assert filled.stats().items == filled.estimated_items()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_count_is_exact_until_all_cells_are_shared(layout: Any) -> None:
    """A key that went in once counts more than once iff others hit each of its k cells."""
    filled = CountingBloomFilter(KEYS, 0.05, counter_bits=8, layout=layout)
    filled.add_many(present_keys(KEYS))
    m, k = filled.stats().cells, filled.hashes
    others = 1.0 - (1.0 - 1.0 / m) ** (k * (KEYS - 1))
    chance = others**k
    if layout == "blocked":  # the others are those of the key's own block
        blocks = np.array([filled.positions(key)[0] // BLOCK for key in range(KEYS)])
        neighbours = np.bincount(blocks)[blocks] - 1
        chance = float(((1.0 - (1.0 - k / BLOCK) ** neighbours) ** k).mean())
    counts = filled.count_many(present_keys(KEYS))
    assert counts.min() == 1
    check(int((counts > 1).sum()), KEYS, chance, "counts above the truth")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conservative_updates_are_closer_to_the_truth(layout: Any) -> None:
    """The same skewed stream into both policies: never below the truth, and less above it."""
    rng = np.random.default_rng(7)
    stream = np.minimum(rng.zipf(1.3, 200_000), 30_000).astype(np.int64)
    keys, truth = np.unique(stream, return_counts=True)
    excess = {}
    for policy in ("plain", "conservative"):
        counting = CountingBloomFilter(
            len(keys) // 2, 0.05, counter_bits=32, policy=policy, layout=layout
        )
        counting.add_many(stream)
        counts = counting.count_many(keys).astype(np.int64)
        assert (counts >= truth).all()
        excess[policy] = float((counts - truth).mean())
    assert 0.0 < excess["conservative"] < 0.5 * excess["plain"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_lower_bound_of_an_estimate_holds_with_its_confidence(
    confidence: float, layout: Any
) -> None:
    rng = np.random.default_rng(11)
    trials = 4_000
    truth = rng.integers(1, 9, size=trials)
    counting = CountingBloomFilter(trials // 2, 0.05, counter_bits=16, layout=layout)
    counting.add_many(np.repeat(np.arange(trials), truth))
    missed = 0
    for key in range(trials):
        estimate = counting.estimate(key, confidence=confidence)
        assert estimate.lower <= estimate.value == estimate.upper
        assert int(truth[key]) <= estimate.value
        missed += int(truth[key]) < estimate.lower
    check_at_most(missed, trials, 1.0 - confidence, "lower bounds above the truth")


def _rarely_exceeded(cells: Any, layout: str, hashes: int, confidence: float) -> int:
    """The smallest t that all k cells exceed with chance 1 - confidence at most."""
    for t in range(int(cells.max()) + 1):
        if _chance_of_all(cells > t, layout, hashes) <= 1.0 - confidence:
            return t
    raise AssertionError("no cell exceeds the largest")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_lower_bound_takes_off_what_noise_rarely_exceeds(layout: Any) -> None:
    """A small filter is looked at whole, so the bound can be computed here from its counters."""
    rng = np.random.default_rng(13)
    counting = CountingBloomFilter(320, 0.005, counter_bits=16, layout=layout)
    counting.add_many(rng.integers(0, 1_500, 15_000))
    cells, k = counting.cells(), counting.hashes
    noises, without_blocks = [], []
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        noises.append(_rarely_exceeded(cells, layout, k, confidence))
        without_blocks.append(_rarely_exceeded(cells, "classic", k, confidence))
        for key in range(300):
            if len(counting.positions(key)) == k:
                estimate = counting.estimate(key, confidence=confidence)
                assert estimate.lower == max(0, estimate.value - noises[-1]), (key, confidence)
    # The sibling: one share for all cells would take off too little from blocked counts.
    assert (noises == without_blocks) == (layout == "classic")
    assert noises == sorted(set(noises)), "each confidence asks for more"


def test_broken_one_probe_too_few_fails_every_check() -> None:
    whole = CountingBloomFilter.plan(KEYS, 0.01, layout="classic")
    lazy = CountingBloomFilter(cells=whole.cells, hashes=whole.hashes - 1)
    lazy.add_many(present_keys(KEYS))
    assert lazy.stats().cells == whole.cells
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(lazy.stats(), KEYS, whole.hashes)
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(lazy, lazy.stats().fill ** whole.hashes, TRIALS)
    with pytest.raises(AssertionError, match="counts of at least 1"):
        _check_noise(lazy, "classic", whole.hashes)


def test_broken_half_the_groups_fail_every_check() -> None:
    """Blocks have no three groups, so a lazy key has two cells where four were planned."""
    whole = CountingBloomFilter.plan(MANY, 0.01)
    assert (whole.layout, whole.hashes) == ("blocked", 4)
    assert whole.predicted_error is not None
    lazy = CountingBloomFilter(cells=whole.cells, hashes=2, layout="blocked")
    lazy.add_many(present_keys(MANY))
    assert lazy.stats().cells == whole.cells
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(lazy.stats(), MANY, whole.hashes)
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(lazy, whole.predicted_error, FEW_TRIALS)
    with pytest.raises(AssertionError, match="counts of at least 1"):
        _check_noise(lazy, "blocked", whole.hashes)


def test_broken_prediction_that_forgets_the_blocks_is_too_low() -> None:
    """Blocks do not fill alike, and the full ones err more than the empty ones err less."""
    for rate in (0.05, 0.01, 0.005):
        filled = CountingBloomFilter(MANY, rate)
        filled.add_many(present_keys(MANY))
        stats = filled.stats()
        with pytest.raises(AssertionError, match="false positives"):
            check_errors(filled, stats.fill**filled.hashes, FEW_TRIALS)
        with pytest.raises(AssertionError, match="counts of at least 1"):
            _check_noise(filled, "classic", filled.hashes)
        check_errors(filled, stats.predicted_error, FEW_TRIALS)


def test_broken_plan_of_too_few_blocks_misses_the_target() -> None:
    plan = CountingBloomFilter.plan(MANY, 0.01)
    assert plan.predicted_error is not None
    small = CountingBloomFilter(cells=plan.cells * 9 // 10, hashes=4, layout="blocked")
    small.add_many(present_keys(MANY))
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(small, plan.predicted_error, FEW_TRIALS)
    with pytest.raises(AssertionError, match="at capacity"):
        check_at_most(count_false_positives(small, TRIALS), TRIALS, 0.01, "errors at capacity")


def test_broken_stats_of_an_emptier_filter_are_refused() -> None:
    filled = CountingBloomFilter(MANY, 0.01)
    filled.add_many(present_keys(MANY))
    stale = filled.stats()
    filled.add_many(present_keys(MANY + MANY // 10)[MANY:])
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(filled.stats(), MANY, filled.hashes)
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(filled, stale.predicted_error, TRIALS)


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
        _check_noise(Stale(), doubled.layout, doubled.hashes)  # type: ignore[arg-type]
