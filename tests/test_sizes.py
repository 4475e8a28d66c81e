"""What plans promise of sizes: the layout, the target, and the numbers that are known."""

from __future__ import annotations

from math import isinf, log
from typing import Any

import pytest

from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from bloomtide.errors import ParameterError

KINDS = [BloomFilter, CountingBloomFilter]


@pytest.mark.parametrize(
    ("kind", "rate", "layout"),
    [
        (BloomFilter, 0.1, "blocked"),
        (BloomFilter, 1e-4, "blocked"),
        (BloomFilter, 9.9e-5, "classic"),
        (CountingBloomFilter, 0.1, "blocked"),
        (CountingBloomFilter, 0.005, "blocked"),
        (CountingBloomFilter, 0.0049, "classic"),
    ],
)
def test_the_layout_follows_the_error_rate(kind: Any, rate: float, layout: str) -> None:
    assert kind.plan(1000, rate).layout == layout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("rate", [0.5, 0.3, 0.1, 0.01, 1e-3, 1e-6])
def test_every_plan_meets_its_target(kind: Any, layout: str, rate: float) -> None:
    for capacity in (1, 10, 1000, 10**6, 10**9):
        assert kind.plan(capacity, rate, layout=layout).predicted_error <= rate * 1.000_001


def test_the_classic_numbers_are_the_known_ones() -> None:
    plan = BloomFilter.plan(10**6, 0.01, layout="classic")
    assert plan.hashes == 7
    assert plan.cells == pytest.approx(9.585e6, rel=2e-3)
    assert plan.predicted_error == pytest.approx(0.01, rel=0.01)
    assert all(plan.cells % prime for prime in (2, 3, 5, 7, 11, 13, 59, 61)), "no small divisor"


def test_only_small_filters_get_more_cells_than_the_average_needs() -> None:
    for rate in (0.1, 0.01, 1e-4, 1e-9):
        small, large = (BloomFilter.plan(n, rate, layout="classic") for n in (100, 10**6))
        assert large.cells < 1.02 * 10**6 * -log(rate) / log(2) ** 2
        assert small.cells > 1.02 * 100 * -log(rate) / log(2) ** 2


def test_a_small_k_is_chosen_where_it_saves_memory() -> None:
    assert BloomFilter.plan(10**6, 0.01).hashes == 8
    assert BloomFilter.plan(10**6, 0.1).hashes < 5
    assert CountingBloomFilter.plan(10**6, 0.01).hashes == 4


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_keys_follows_from_the_fill(kind: Any) -> None:
    filter = kind(100_000, 0.01, layout="classic")
    filter.add_many(range(50_000))
    assert filter.estimated_items() == pytest.approx(50_000, rel=0.01)
    full = kind(**{"bits" if kind is BloomFilter else "cells": 5, "hashes": 3})
    full.add_many(range(200))
    assert isinf(full.estimated_items())


def test_the_errors_of_all_layers_sum_to_the_target() -> None:
    grown = ScalableBloomFilter(100, 0.01, growth=1.0)
    grown.add_many(range(3000))
    rates = [layer.error_rate for layer in grown.stats().layers]
    assert len(rates) > 5
    assert rates[:3] == pytest.approx([0.005, 0.0025, 0.00125])
    # The error of layers that hold next to nothing is not lost.
    tiny = ScalableBloomFilter(10**7, 1e-8)
    tiny.add_many(range(1000))
    assert 0 < tiny.stats().predicted_error < 1e-18


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("capacity", "rate"), [(2**48 + 1, 0.01), (10, 0.0), (10, float("nan")), (10, 0.9), (10, -1.0)]
)
def test_nothing_absurd_is_planned(kind: Any, capacity: int, rate: float) -> None:
    with pytest.raises(ParameterError):
        kind.plan(capacity, rate)
    size = "bits" if kind is BloomFilter else "cells"
    with pytest.raises(ParameterError):
        kind.plan(**{size: 1000, "hashes": 3, "paper": {"derivation": "slices"}})
