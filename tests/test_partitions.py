"""`bloomtide.partitions`: the numbers of partitions that the paper's equations and ours give."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import PartitionedDynamicCountFilter, PartitionedSpectralBloomFilter
from bloomtide.errors import ParameterError
from bloomtide.memory_models import mean_counter_bits
from bloomtide.papers import PartitionModel
from bloomtide.partitions import (
    DYNAMIC_ENTRY_BYTES,
    PAPER_ENTRY_BYTES,
    SPECTRAL_ENTRY_BYTES,
    EvenModel,
    HotCounterModel,
    LevelModel,
    PausedPartitionModel,
    SkewModel,
    oversized_share,
)

TABLE_3: dict[str, Any] = {
    "rebuild_seconds": 0.05,
    "requests_per_second": 1e5,
    "element_bytes": 4,
    "entry_bytes": 6,
}
NO_BUFFER: dict[str, Any] = {
    "rebuild_seconds": 0,
    "requests_per_second": 0,
    "element_bytes": 4,
}
SKEW: dict[str, Any] = {"oversized_share": 0.5, "counter_bits": 16, "used_share": 0.1}
PLENTY = 10**9

MODELS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (EvenModel, TABLE_3),
    (SkewModel, TABLE_3 | SKEW),
    (HotCounterModel, TABLE_3 | {"hot_counters": 100, "extra_bits": 5}),
    (LevelModel, TABLE_3 | {"counters_with": (100, 60, 5)}),
    (PausedPartitionModel, TABLE_3 | {"hashes": 3}),
)


def least(cost: Any, cells: int) -> int:
    """The best number by trying each."""
    return min(range(1, cells + 1), key=cost)


# --- Eq. 3 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "requests", "element", "entry", "best"),
    [(0.05, 1e5, 4, 6, 58), (0.5, 1e5, 4, 10, 141), (2.0, 1e6, 8, 10, 1265)],
)
def test_equation_3_is_the_best_of_all_numbers(
    seconds: float, requests: float, element: int, entry: int, best: int
) -> None:
    model = EvenModel(
        rebuild_seconds=seconds,
        requests_per_second=requests,
        element_bytes=element,
        entry_bytes=entry,
    )
    assert model.choose(PLENTY) == best == least(model.overhead, 2_000)


def test_the_best_number_shrinks_a_buffer_of_20_000_bytes_to_347() -> None:
    model = EvenModel(**TABLE_3)
    assert model.buffer_bytes == 20_000
    assert model.buffer_bytes / model.optimum() == pytest.approx(347, abs=1)
    assert model.overhead(58) == pytest.approx(2 * sqrt(20_000 * 6), rel=1e-4)


def test_more_partitions_than_break_even_cost_more_than_one() -> None:
    model = EvenModel(**TABLE_3)
    assert model.break_even() == pytest.approx(model.optimum() ** 2)
    last = int(model.break_even())
    assert model.overhead(last) < model.overhead(1) < model.overhead(last + 1)


def test_a_break_even_of_175_as_in_figure_8_belongs_to_13_partitions() -> None:
    model = EvenModel(rebuild_seconds=1, requests_per_second=1_750, element_bytes=1, entry_bytes=10)
    assert model.break_even() == 175
    assert model.choose(PLENTY) == 13


def test_four_times_the_requests_need_twice_the_partitions() -> None:
    once = EvenModel(**TABLE_3).optimum()
    assert EvenModel(**TABLE_3 | {"requests_per_second": 4e5}).optimum() == pytest.approx(2 * once)


# --- Eq. 4 ---------------------------------------------------------------------------------------


def test_equation_4_lowers_the_price_of_a_partition() -> None:
    """PV - occ csize (1 - inn_occ) = 6 - 0.5 x 2 bytes x 0.9 = 5.1."""
    model = SkewModel(**TABLE_3 | SKEW)
    assert model.optimum() == pytest.approx(sqrt(20_000 / 5.1))
    assert model.choose(PLENTY) == least(model.overhead, 1_000) == 63
    assert model.break_even() == pytest.approx(model.optimum() ** 2)


def test_equation_4_without_skew_is_equation_3() -> None:
    model = SkewModel(**TABLE_3 | SKEW | {"oversized_share": 0})
    assert model.optimum() == EvenModel(**TABLE_3).optimum()


@pytest.mark.parametrize("counter_bits", [48, 64])
def test_equation_4_has_no_optimum_when_a_partition_saves_more_than_its_entry(
    counter_bits: int,
) -> None:
    with pytest.raises(ParameterError, match="equation 4") as refused:
        SkewModel(**TABLE_3 | {"oversized_share": 1, "counter_bits": counter_bits, "used_share": 0})
    assert refused.value.name == "entry_bytes"
    assert "HotCounterModel" in refused.value.hint


# --- hot counters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hot_counters", "extra_bits_in_all", "optimum"),
    [(588, 1_980, 4_020), (2_585, 6_879, 7_493), (17_778, 34_080, 16_677)],
    ids=["theta 2", "theta 1.5", "theta 1"],
)
def test_the_closed_form_for_the_paper_s_zipf_streams(
    hot_counters: int, extra_bits_in_all: int, optimum: int
) -> None:
    """n = 100,000, M = 10 n, m = 652,878: the hot counters are those over 15."""
    model = HotCounterModel(
        **NO_BUFFER,
        hot_counters=hot_counters,
        extra_bits=extra_bits_in_all / hot_counters,
        entry_bytes=PAPER_ENTRY_BYTES,
    )
    assert round(model.optimum(652_878)) == optimum


@pytest.mark.parametrize("hot", [0, 1, 7, 300, 5_000])
@pytest.mark.parametrize("seconds", [0, 0.05])
def test_the_search_finds_the_best_of_all_numbers(hot: int, seconds: float) -> None:
    requests = TABLE_3 | {"rebuild_seconds": seconds}
    models: tuple[HotCounterModel | LevelModel, ...] = (
        HotCounterModel(**requests, hot_counters=hot, extra_bits=3),
        LevelModel(**requests, counters_with=(hot, hot / 3, hot / 20)),
    )
    for model in models:
        for cells in (1, 2, 50, 20_000):

            def cost(partitions: int, model: Any = model, cells: int = cells) -> float:
                return float(model.overhead(partitions, cells))

            assert cost(model.choose(cells)) == cost(least(cost, cells))


def test_a_share_of_partitions_has_hot_counters_as_chance_deals_them() -> None:
    draw = np.random.default_rng(3)
    dealt = [len(set(draw.integers(0, 50, 40).tolist())) / 50 for _ in range(2_000)]
    assert oversized_share(50, 40) == pytest.approx(np.mean(dealt), abs=0.005)
    assert oversized_share(1, 40) == 1.0
    assert oversized_share(1, 0) == oversized_share(9, 0) == 0.0


def test_counters_of_one_size_are_the_level_model_with_equal_levels() -> None:
    hot = HotCounterModel(**TABLE_3, hot_counters=80, extra_bits=4)
    levels = LevelModel(**TABLE_3, counters_with=(80, 80, 80, 80))
    assert levels.overhead(33, 10_000) == pytest.approx(hot.overhead(33, 10_000))
    assert levels.optimum(10_000) == pytest.approx(hot.optimum(10_000))
    assert levels.choose(10_000) == hot.choose(10_000)


def overflow_bits(theta: float, n: int = 20_000, hashes: int = 3) -> npt.NDArray[np.int64]:
    """Extra bits of each counter beyond x = 4 after a Zipf stream of M = 10 n."""
    draw = np.random.default_rng(12)
    cells = ceil(-hashes * n / log(1 - 0.05 ** (1 / hashes)))
    shares = 1 / np.arange(1, n + 1) ** theta
    visits = draw.multinomial(10 * n, shares / shares.sum())
    counters = np.zeros(cells, np.int64)
    np.add.at(counters, draw.integers(0, cells, (n, hashes)).ravel(), np.repeat(visits, hashes))
    bits: npt.NDArray[np.int64] = np.ceil(np.log2((counters >> 4) + 1)).astype(np.int64)
    return bits


def real_overhead(
    bits: npt.NDArray[np.int64], partitions: int, entry_bytes: int = DYNAMIC_ENTRY_BYTES
) -> float:
    """Bytes of the OFVs, each as wide as its largest counter demands, and of the vector."""
    size = -(-len(bits) // partitions)
    widest = np.pad(bits, (0, size * partitions - len(bits))).reshape(partitions, size).max(axis=1)
    return float(widest.sum()) * size / 8 + entry_bytes * partitions


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0, 1.5, 2.0])
def test_the_level_model_comes_within_two_percent_of_the_best_real_layout(theta: float) -> None:
    bits = overflow_bits(theta)
    counters_with = tuple(int((bits >= level).sum()) for level in range(1, bits.max() + 1))
    model = LevelModel(**NO_BUFFER, counters_with=counters_with)
    chosen = model.choose(len(bits))
    best = min(real_overhead(bits, int(1.1**step)) for step in range(1, 113))
    assert real_overhead(bits, chosen) <= 1.02 * best
    assert model.overhead(chosen, len(bits)) == pytest.approx(real_overhead(bits, chosen), rel=0.03)


def test_one_mean_for_a_long_tail_misleads_the_hot_counter_model() -> None:
    """Why there is a level model: at theta 1 the mean of two bits hides counters of thirteen."""
    bits = overflow_bits(1.0)
    hot = bits[bits > 0]
    model = HotCounterModel(
        **NO_BUFFER,
        hot_counters=len(hot),
        extra_bits=float(hot.mean()),
        entry_bytes=PAPER_ENTRY_BYTES,
    )
    best = min(real_overhead(bits, int(1.1**step), PAPER_ENTRY_BYTES) for step in range(1, 113))
    assert real_overhead(bits, model.choose(len(bits)), PAPER_ENTRY_BYTES) > 2 * best


# --- what an entry really takes -------------------------------------------------------------------


def zipf_counts(theta: float, keys: int, total: int) -> npt.NDArray[np.uint64]:
    """The key of rank r comes in proportion to 1/r^theta."""
    shares = 1 / np.arange(1, keys + 1) ** theta
    counts: npt.NDArray[np.uint64] = np.maximum(1, total * shares / shares.sum()).astype(np.uint64)
    return counts


@pytest.mark.parametrize("partitions", [100, 1_000, 5_000])
def test_an_entry_of_the_partition_vector_takes_what_the_models_say(partitions: int) -> None:
    """Blocks of counters are whole words, so what a filter takes beside them is its entries."""
    blocks: Any = {"layout": "blocked", "cells": partitions * 128, "hashes": 4}
    dynamic = PartitionedDynamicCountFilter(**blocks, partitions=partitions, counter_bits=4)
    keys = np.arange(partitions * 20)
    dynamic.add_many(keys, np.full(len(keys), 100))
    values = (dynamic.cells() >> np.uint64(4)).reshape(partitions, 128).max(axis=1)
    assert values.min() > 0, "every partition has overflow counters"
    overflow = sum(int(value).bit_length() for value in values) * 128 // 8
    taken = dynamic.stats().bytes - 128 * partitions * 4 // 8 - overflow
    assert taken / partitions == pytest.approx(DYNAMIC_ENTRY_BYTES, rel=0.02)


def test_an_entry_of_a_spectral_filter_takes_what_the_models_say() -> None:
    """A piece of one counter is an entry and a line of 64 bytes for the counter and its index."""
    single = PartitionedSpectralBloomFilter(cells=500, hashes=3, partitions=500)
    assert single.stats().bytes == 500 * (SPECTRAL_ENTRY_BYTES + 64)


@pytest.mark.parametrize("theta", [0.8, 1.0, 1.5])
def test_the_partitions_that_the_level_model_chooses_take_what_it_says(theta: float) -> None:
    """With the paper's entry of 10 bytes it chose four times as many, and was twice too low."""
    keys, total = 100_000, 1_000_000
    setting: dict[str, Any] = {"hashes": 3, "layout": "classic", "total": total}
    counts = zipf_counts(theta, keys, total)
    whole = PartitionedDynamicCountFilter(keys, 0.05, **setting, partitions=1)
    whole.add_many(np.arange(keys), counts)
    x = mean_counter_bits(keys, total)
    bits = np.frexp((whole.cells() >> np.uint64(x)).astype(np.float64))[1]
    levels = tuple(float((bits >= level).sum()) for level in range(1, bits.max() + 1))
    model = LevelModel(**NO_BUFFER, counters_with=levels)
    whole.repartition(model)
    cells = whole.stats().cells
    predicted = cells * x / 8 + model.overhead(whole.partitions, cells)
    assert whole.stats().bytes == pytest.approx(predicted, rel=0.05)
    chosen = whole.stats().bytes
    for other in (100, 300, 1_000, 3_000, 10_000, 30_000):
        whole.repartition(other)
        assert chosen < 1.03 * whole.stats().bytes


# --- one paused partition ------------------------------------------------------------------------


def test_when_one_partition_pauses_27_are_enough_where_equation_3_wants_58() -> None:
    model = PausedPartitionModel(**TABLE_3, hashes=3)
    assert model.optimum() == pytest.approx((2 * 3 * 20_000 / 6) ** (1 / 3))
    assert model.choose(PLENTY) == 27 == least(model.overhead, 2_000)


@pytest.mark.parametrize("hashes", [1, 3, 10, 57, 58, 60, 500])
@pytest.mark.parametrize("seconds", [0, 1e-5, 0.001, 0.05, 1])
def test_the_paused_model_is_the_best_of_all_numbers(hashes: int, seconds: float) -> None:
    model = PausedPartitionModel(**TABLE_3 | {"rebuild_seconds": seconds}, hashes=hashes)
    chosen = model.choose(PLENTY)
    assert model.overhead(chosen) == model.overhead(least(model.overhead, 3_000))


# --- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "parameters"), MODELS)
@pytest.mark.parametrize("cells", [1, 2, 10, 57])
def test_a_filter_never_gets_more_partitions_than_cells(
    cls: Any, parameters: dict[str, Any], cells: int
) -> None:
    model: PartitionModel = cls(**parameters)
    assert 1 <= model.choose(cells) <= cells


@pytest.mark.parametrize(("cls", "parameters"), MODELS)
def test_without_requests_even_data_need_one_partition(
    cls: Any, parameters: dict[str, Any]
) -> None:
    model = cls(**parameters | {"requests_per_second": 0})
    hot = cls in (HotCounterModel, LevelModel)
    assert (model.choose(PLENTY) == 1) is not hot


@pytest.mark.parametrize(("cls", "parameters"), MODELS)
def test_a_filter_without_cells_is_refused(cls: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="`cells` must be a whole number, 1 or more, got: 0"):
        cls(**parameters).choose(0)


WRONG: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("rebuild_seconds", (-0.1, float("nan"), float("inf"))),
    ("requests_per_second", (-1, float("nan"), float("inf"))),
    ("element_bytes", (0, -1, float("nan"), float("inf"))),
    ("entry_bytes", (0, -1, float("nan"), float("inf"))),
    ("oversized_share", (-0.1, 1.1, float("nan"))),
    ("used_share", (-0.1, 1.1, float("nan"))),
    ("counter_bits", (0, 65, float("nan"))),
    ("hot_counters", (-1, float("nan"), float("inf"))),
    ("extra_bits", (-1, 65, float("nan"))),
    ("counters_with", ((-1,), (3, 4), (float("inf"),), (float("nan"),), (1,) * 65)),
    ("hashes", (0, -1, float("nan"))),
)


@pytest.mark.parametrize(
    ("cls", "parameters", "name", "value"),
    [
        (cls, parameters, name, value)
        for cls, parameters in MODELS
        for name, values in WRONG
        if name in parameters
        for value in values
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(
    cls: Any, parameters: dict[str, Any], name: str, value: Any
) -> None:
    with pytest.raises(ParameterError) as refused:
        cls(**parameters | {name: value})
    assert refused.value.name == name
    assert refused.value.got is value
