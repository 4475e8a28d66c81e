"""`plan(...).bytes` is what a filter takes when it is as full as planned, whatever its stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide import (
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
)
from tests.conformance.laws.memory import check_memory, counts_of, fill

KEYS = 20_000


def check(cls: Any, goal: dict[str, Any], **described: Any) -> None:
    plan = cls.plan(**goal, **described)
    for seed in (4, 5):
        made = cls(**goal, seed=seed)
        fill(made, plan, seed)
        check_memory(made, plan)


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("skew", [0.0, 0.5, 0.8, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("mean", [1, 4, 10, 1_000])
def test_of_a_dynamic_count_filter(mean: int, skew: float, layout: str) -> None:
    goal = {"capacity": KEYS, "error_rate": 0.01, "total": KEYS * mean, "layout": layout}
    check(DynamicCountFilter, goal, skew=skew)
    for partitions in ("auto", 100, 1_000):
        check(PartitionedDynamicCountFilter, goal | {"partitions": partitions}, skew=skew)


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.0, 2.0])
@pytest.mark.parametrize("mean", [4, 10, 1_000])
def test_of_a_dynamic_count_filter_that_counts_conservatively(mean: int, skew: float) -> None:
    goal = {"capacity": KEYS, "error_rate": 0.01, "total": KEYS * mean, "policy": "conservative"}
    check(DynamicCountFilter, goal, skew=skew)
    check(PartitionedDynamicCountFilter, goal, skew=skew)


@pytest.mark.parametrize("policy", ["plain", "conservative"])
def test_whatever_the_order_in_which_a_stream_comes(policy: Any) -> None:
    """One occurrence after the other, all keys mixed, instead of each key at once."""
    goal: dict[str, Any] = {"capacity": 5_000, "error_rate": 0.01, "total": 50_000}
    for skew in (0.5, 1.0):
        plan = PartitionedDynamicCountFilter.plan(**goal, policy=policy, skew=skew)
        made = PartitionedDynamicCountFilter(**goal, policy=policy)
        stream = np.repeat(np.arange(5_000), counts_of(plan).astype(np.int64))
        np.random.default_rng(6).shuffle(stream)
        made.add_many(stream)
        check_memory(made, plan)


def cut_to_the_total(skew: float, total: int) -> npt.NDArray[np.uint64]:
    """Counts of a stream of that skew and exactly so many occurrences, in which all keys come."""
    shares = np.arange(1, KEYS + 1, dtype=np.float64) ** -skew
    low, high = 0.0, float(total)
    for _ in range(80):
        middle = (low + high) / 2
        if np.maximum(1, np.floor(middle * shares)).sum() > total:
            high = middle
        else:
            low = middle
    return np.maximum(1, np.floor(low * shares)).astype(np.uint64)


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize(
    ("mean", "skew", "least", "most"),
    [(1, 1.0, 0.5, 0.7), (1.5, 1.0, 0.84, 0.9), (10, 0.5, 0.95, 1.05), (10, 1.0, 0.95, 1.05),
     (10, 1.5, 0.95, 1.05), (10, 2.0, 0.95, 1.05)],
)  # fmt: skip
def test_a_stream_of_exactly_the_total_takes_what_the_page_says(
    mean: float, skew: float, least: float, most: float, layout: str
) -> None:
    goal: Any = {"capacity": KEYS, "error_rate": 0.01, "total": int(KEYS * mean), "layout": layout}
    plan = PartitionedDynamicCountFilter.plan(**goal, skew=skew)
    made = PartitionedDynamicCountFilter(**goal)
    counts = cut_to_the_total(skew, goal["total"])
    assert counts.sum() <= goal["total"]
    made.add_many(np.random.default_rng(4).integers(0, 2**62, KEYS), counts)
    assert least <= made.stats().bytes / plan.bytes <= most


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize(("mean", "most"), [(1.5, 1.42), (10, 1.1)])
def test_a_stream_that_was_drawn_takes_more_than_an_even_one(
    mean: float, most: float, layout: str
) -> None:
    goal: Any = {"capacity": KEYS, "error_rate": 0.01, "total": int(KEYS * mean), "layout": layout}
    plan = PartitionedDynamicCountFilter.plan(**goal, skew=0)
    made = PartitionedDynamicCountFilter(**goal)
    made.add_many(np.random.default_rng(4).integers(0, KEYS, goal["total"]))
    assert 1 <= made.stats().bytes / plan.bytes <= most


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("slack", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("mean", [1, 10, 1_000])
def test_of_a_spectral_filter(mean: int, slack: float, layout: str) -> None:
    goal = {"capacity": KEYS, "error_rate": 0.01, "total": KEYS * mean, "layout": layout}
    goal |= {"slack": slack}
    check(SpectralBloomFilter, goal)
    for partitions in ("auto", 100):
        check(PartitionedSpectralBloomFilter, goal | {"partitions": partitions})


@pytest.mark.parametrize("rate", [0.1, 0.01, 1e-3, 1e-5])
@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("fraction", [0, 3, 4, 8])
def test_of_a_time_decaying_filter(fraction: int, bits: int, layout: str, rate: float) -> None:
    goal = {"capacity": KEYS, "error_rate": rate, "half_life": "1d", "layout": layout}
    goal |= {"counter_bits": bits, "fraction_bits": fraction}
    for storage in ("basic", "optimized"):
        check(TimeDecayingBloomFilter, goal | {"storage": storage})


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize(
    ("capacity", "least", "most"),
    [(30, 0.7, 1.4), (100, 0.7, 1.4), (200, 0.8, 1.2), (1000, 0.8, 1.2), (5000, 0.95, 1.05)],
)
def test_of_a_small_time_decaying_filter(
    capacity: int, least: float, most: float, layout: str
) -> None:
    """Chance decides how many of few blocks have a table."""
    for rate in (0.1, 0.05, 0.01, 1e-3):
        for fraction in (0, 3, 4, 8):
            goal: Any = {"capacity": capacity, "error_rate": rate, "half_life": "1d"}
            goal |= {"layout": layout, "fraction_bits": fraction, "storage": "optimized"}
            plan = TimeDecayingBloomFilter.plan(**goal)
            for seed in range(4):
                made = TimeDecayingBloomFilter(**goal, seed=seed)
                fill(made, plan, seed)
                assert least <= made.stats().bytes / plan.bytes <= most, (rate, fraction, seed)


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_keys_that_come_often_take_what_the_page_of_fading_filters_says(
    rate: float, layout: str
) -> None:
    goal: Any = {"capacity": KEYS, "error_rate": rate, "half_life": "1d", "layout": layout}
    at = 1_700_000_000

    def taken(often: int, share: float, fraction: int = 8) -> float:
        own = goal | {"fraction_bits": fraction, "storage": "optimized"}
        plan = TimeDecayingBloomFilter.plan(**own)
        made = TimeDecayingBloomFilter(**own)
        counts = np.ones(KEYS, np.int64)
        counts[: int(share * KEYS)] = often
        made.add_many(np.random.default_rng(4).integers(0, 2**62, KEYS), counts, at=at)
        found = made.stats(at).bytes
        assert found <= plan.bytes_at_most
        return float(found / plan.bytes)

    assert taken(16, 1) == pytest.approx(1, abs=0.05)
    assert taken(64, 1) <= 1.6
    assert taken(128, 1) <= 1.95
    assert taken(2048, 1) <= 2.65
    assert taken(2048, 0.01) <= 1.6
    assert taken(2, 1, fraction=3) <= 2.05
    assert taken(128, 1) > 1.05, "a key that comes often does need more"


def test_an_optimized_filter_of_the_classic_layout_has_a_table_for_every_block() -> None:
    """Half of the cells are in use, which is more than a record has entries for."""
    goal: Any = {"capacity": KEYS, "error_rate": 0.01, "half_life": "1d", "counter_bits": 16}
    classic = TimeDecayingBloomFilter.plan(**goal, layout="classic", storage="optimized")
    basic = TimeDecayingBloomFilter.plan(**goal, layout="classic")
    assert classic.bytes > basic.bytes
    blocked = TimeDecayingBloomFilter.plan(**goal, storage="optimized")
    assert blocked.bytes < 0.8 * TimeDecayingBloomFilter.plan(**goal).bytes


@pytest.mark.parametrize("capacity", [100, 3_000, KEYS])
@pytest.mark.parametrize("rate", [0.1, 1e-3, 1e-6])
def test_of_filters_whose_memory_is_fixed(rate: float, capacity: int) -> None:
    goal = {"capacity": capacity, "error_rate": rate}
    check(ScalableBloomFilter, goal)
    check(CountingBloomFilter, goal | {"counter_bits": 8})
    check(UrlFilter, goal)
    check(UrlFilter, goal | {"max_layers": 3, "layer_sizes": [capacity // 10, capacity]})


def test_no_stream_takes_more_than_a_plan_says_at_most() -> None:
    """Streams that the plan does not describe: few keys with all occurrences, or all alike."""
    keys, total = 2_000, 10**6
    for cls in (
        DynamicCountFilter,
        PartitionedDynamicCountFilter,
        SpectralBloomFilter,
        PartitionedSpectralBloomFilter,
    ):
        for layout in ("blocked", "classic"):
            goal: Any = {"capacity": keys, "error_rate": 0.02, "total": total, "layout": layout}
            most = cls.plan(**goal).bytes_at_most
            for hot in (1, 5, 50, 300, 1_000, keys):
                for seed in range(3):
                    made = cls(**goal, seed=seed)
                    made.add_many(np.arange(hot), np.full(hot, total // hot))
                    assert made.stats().bytes <= most, (cls, layout, hot)
