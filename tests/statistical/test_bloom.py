"""BloomFilter: its fill and its false positives are what the formulas say, in every variant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bloomtide import BloomFilter
from tests.statistical.binomial import check, check_at_most
from tests.statistical.measure import (
    FIRST_ABSENT,
    check_errors,
    check_fill,
    count_false_positives,
    present_keys,
)

KEYS = 100_000
SECRET = bytes(range(16))

# Trials are chosen so that the interval is at most a quarter wide at either side.
VARIANTS = [
    pytest.param({"error_rate": rate, "layout": "blocked"}, trials, id=f"blocked-{rate:g}")
    for rate, trials in [
        (0.1, 1_000_000),
        (0.05, 1_000_000),
        (0.01, 2_000_000),
        (0.001, 4_000_000),
        (1e-4, 16_000_000),
    ]
] + [
    pytest.param(
        {"error_rate": rate, "layout": "classic", "paper": {"derivation": derivation}},
        trials,
        id=f"classic-{derivation}-{rate:g}",
    )
    for derivation in ("enhanced", "double", "slices")
    for rate, trials in [(0.01, 2_000_000), (1e-4, 8_000_000)]
]
KEYED = [
    pytest.param(
        {"error_rate": 0.01, "layout": layout, "hash": "keyed", "secret": SECRET},
        2_000_000,
        id=f"{layout}-keyed",
    )
    for layout in ("blocked", "classic")
]
SEEDED = [
    pytest.param({"error_rate": 0.01, "seed": 0xFEED_5EED}, 2_000_000, id="blocked-seeded"),
]


def _filled(options: dict[str, Any], keys: int = KEYS) -> BloomFilter:
    made = BloomFilter(KEYS, **options)
    made.add_many(present_keys(keys))
    return made


@pytest.mark.parametrize(("options", "trials"), VARIANTS + KEYED + SEEDED)
def test_fill_errors_and_target(options: dict[str, Any], trials: int) -> None:
    filled = _filled(options)
    stats = filled.stats()
    check_fill(stats, KEYS, filled.hashes)
    wrong = count_false_positives(filled, trials)
    check(wrong, trials, stats.predicted_error, "false positives given the fill")
    # The plan's promise: at capacity the target is met, and memory is not wasted to meet it.
    check_at_most(wrong, trials, options["error_rate"], "false positives at capacity")
    plan = BloomFilter.plan(
        KEYS,
        options["error_rate"],
        layout=options.get("layout"),
        paper=options.get("paper"),
    )
    assert plan.predicted_error is not None
    assert plan.predicted_error <= options["error_rate"]
    if plan.derivation != "slices":  # which must round its cells up to a power of two
        assert plan.predicted_error >= 0.9 * options["error_rate"]


@pytest.mark.parametrize(("options", "trials"), VARIANTS)
def test_twice_the_capacity_errs_as_planned(options: dict[str, Any], trials: int) -> None:
    overfull = _filled(options, 2 * KEYS)
    trials //= 4
    check_fill(overfull.stats(), 2 * KEYS, overfull.hashes)
    check_errors(overfull, overfull.stats().predicted_error, trials)
    plan = BloomFilter.plan(KEYS, **options)
    assert plan.predicted_error_overfull is not None
    check_errors(overfull, plan.predicted_error_overfull, trials)


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_text_keys_err_at_the_predicted_rate(layout: Any) -> None:
    trials = 1_000_000
    filled = BloomFilter(KEYS, 0.01, layout=layout)
    filled.add_many(_urls(0, KEYS))
    check_fill(filled.stats(), KEYS, filled.hashes)
    wrong = int(filled.contains_many(_urls(FIRST_ABSENT, trials)).sum())
    check(wrong, trials, filled.stats().predicted_error, "false positives")


def _urls(first: int, count: int) -> Any:
    """Long texts that differ only in their last digits."""
    numbers = pa.array(np.arange(first, first + count)).cast(pa.string())
    return pa.compute.binary_join_element_wise("https://example.org/item", numbers, "/")


def test_estimated_items_are_close_to_the_truth() -> None:
    for layout in ("blocked", "classic"):
        filled = _filled({"error_rate": 0.01, "layout": layout})
        # n is -(m/k) ln(1 - fill); the fill's own interval is below 0.3 % of n at this size.
        assert filled.estimated_items() == pytest.approx(KEYS, rel=0.003)
        assert filled.stats().items == filled.estimated_items()


# Each check above must refuse a filter that is wrong on purpose.


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_broken_one_probe_too_few_fails_both_checks(layout: Any) -> None:
    whole = BloomFilter.plan(KEYS, 0.01, layout=layout)
    lazy = BloomFilter(layout=layout, bits=whole.cells, hashes=whole.hashes - 1)
    lazy.add_many(present_keys(KEYS))
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(lazy.stats(), KEYS, whole.hashes)
    stats = lazy.stats()
    claimed = stats.predicted_error ** (whole.hashes / lazy.hashes)
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(lazy, claimed, 200_000)
    check_errors(lazy, stats.predicted_error, 200_000)


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_broken_wrong_fill_fails_both_checks(layout: Any) -> None:
    filled = _filled({"error_rate": 0.01, "layout": layout})
    stale = filled.stats()
    filled.add_many(np.arange(KEYS, KEYS + KEYS // 20))
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(filled.stats(), KEYS, filled.hashes)
    with pytest.raises(AssertionError, match="false positives"):
        check_errors(filled, stale.predicted_error, 2_000_000)


def test_broken_one_biased_hash_bit_fails_the_fill() -> None:
    """Keys chosen so that two thirds of them fall into the upper half of the blocks.

    (One biased probe of a classic filter barely moves its fill: test_positions.py sees that.)
    """
    target = BloomFilter(KEYS, 0.01, layout="blocked")
    keep = np.random.default_rng(20260101).random(2 * KEYS) < 0.5
    chosen = [
        key for key in range(2 * KEYS) if keep[key] or target.positions(key)[0] * 2 >= target.bits
    ][:KEYS]
    assert len(chosen) == KEYS
    target.add_many(chosen)
    with pytest.raises(AssertionError, match="set cells"):
        check_fill(target.stats(), KEYS, target.hashes)


def test_broken_filter_that_is_never_wrong_fails_the_lower_bound() -> None:
    filled = _filled({"error_rate": 0.01})
    empty = BloomFilter(KEYS, 0.01)
    with pytest.raises(AssertionError, match="false positives: 0 of"):
        check_errors(empty, filled.stats().predicted_error, 100_000)


def test_broken_plan_that_is_too_small_misses_the_target() -> None:
    planned = BloomFilter.plan(KEYS, 0.01, layout="classic")
    small = BloomFilter(bits=planned.cells * 9 // 10, hashes=planned.hashes)
    small.add_many(present_keys(KEYS))
    wrong = count_false_positives(small, 1_000_000)
    with pytest.raises(AssertionError, match="at capacity"):
        check_at_most(wrong, 1_000_000, 0.01, "false positives at capacity")
