"""ScalableBloomFilter: however far it grows, all layers together stay under the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import BloomFilter, ScalableBloomFilter
from tests.statistical.binomial import check, check_at_most
from tests.statistical.measure import count_false_positives, present_keys

FIRST = 2_000


@pytest.mark.parametrize(
    ("options", "rate", "trials"),
    [
        ({"growth": 2.0}, 0.01, 1_000_000),
        ({"growth": 2.0}, 1e-3, 4_000_000),
        ({"growth": 4.0, "tightening": 0.8}, 0.01, 1_000_000),
        ({"growth": 1.5, "tightening": 0.9}, 0.05, 1_000_000),
        ({"growth": 2.0, "hash": "keyed", "secret": bytes(16)}, 0.01, 1_000_000),
    ],
    ids=["doubling", "1e-3", "fast", "slow", "keyed"],
)
def test_compound_error_stays_under_the_target_while_growing(
    options: dict[str, Any], rate: float, trials: int
) -> None:
    growing = ScalableBloomFilter(FIRST, rate, **options)
    layers = 0
    for keys in (FIRST, 8 * FIRST, 30 * FIRST):
        growing.add_many(present_keys(keys))
        stats = growing.stats()
        assert len(stats.layers) > layers, "the test must see it grow"
        layers = len(stats.layers)
        wrong = count_false_positives(growing, trials)
        # Layers see the same digest, so independence is only nearly true: given the fills this
        # also measures that nesting does not matter.
        check(wrong, trials, stats.predicted_error, "false positives given the fills")
        check_at_most(wrong, trials, rate, "false positives of all layers")
    assert layers >= 3


@pytest.mark.parametrize(
    ("options", "rate"),
    [({"growth": 2.0, "tightening": 0.1}, 0.2), ({"growth": 2.0, "tightening": 0.1}, 0.5)],
)
def test_a_first_layer_with_nearly_all_of_a_large_error_keeps_it(
    options: dict[str, Any], rate: float
) -> None:
    growing = ScalableBloomFilter(30_000, rate, **options)
    planned = ScalableBloomFilter.plan(30_000, rate, **options).predicted_error
    growing.add_many(present_keys(90_000))
    stats = growing.stats()
    wrong = count_false_positives(growing, 1_000_000)
    check_at_most(wrong, 1_000_000, stats.predicted_error, "false positives given the fills")
    share = stats.layers[0].error_rate
    assert planned is not None
    assert share is not None
    assert stats.layers[0].predicted_error <= planned <= share
    assert stats.predicted_error <= rate


def test_a_filter_from_its_default_start_keeps_the_target() -> None:
    growing = ScalableBloomFilter()
    for keys in (1000, 1_000_000, 2 * growing.capacity, 4 * growing.capacity):
        growing.add_many(present_keys(keys))
        wrong = count_false_positives(growing, 1_000_000)
        check(wrong, 1_000_000, growing.stats().predicted_error, "false positives given the fills")
        check_at_most(wrong, 1_000_000, 0.01, "false positives of all layers")
    assert len(growing.stats().layers) == 2


def test_items_are_counted_over_all_layers() -> None:
    growing = ScalableBloomFilter(FIRST, 0.001)
    growing.add_many(present_keys(20 * FIRST))
    # Keys an older layer already (wrongly) knows are not added: at most the target's share.
    assert growing.estimated_items() == pytest.approx(20 * FIRST, rel=0.01)


class _Untightened:
    """The scalable filter as one would first write it: each layer has the whole target."""

    def __init__(self, rate: float, layers: int) -> None:
        self.layers = [BloomFilter(FIRST << i, rate) for i in range(layers)]
        first = 0
        for i, layer in enumerate(self.layers):
            layer.add_many(np.arange(first, first + (FIRST << i)))
            first += FIRST << i

    def contains_many(self, keys: Any) -> npt.NDArray[np.bool_]:
        answers = [layer.contains_many(keys) for layer in self.layers]
        present: npt.NDArray[np.bool_] = np.any(answers, axis=0)
        return present

    def stats(self) -> Any:
        return self.layers[0].stats()


def test_broken_layers_without_tightening_miss_the_target() -> None:
    wrong = count_false_positives(_Untightened(0.01, 5), 1_000_000)
    with pytest.raises(AssertionError, match="false positives of all layers"):
        check_at_most(wrong, 1_000_000, 0.01, "false positives of all layers")


def test_broken_forgotten_layer_fails_the_prediction() -> None:
    growing = ScalableBloomFilter(FIRST, 0.05, growth=2.0, tightening=0.9)
    growing.add_many(present_keys(20 * FIRST))
    errors = [layer.predicted_error for layer in growing.stats().layers]
    without_first = 1.0 - float(np.prod([1.0 - error for error in errors[1:]]))
    wrong = count_false_positives(growing, 1_000_000)
    with pytest.raises(AssertionError, match="false positives"):
        check(wrong, 1_000_000, without_first, "false positives")
