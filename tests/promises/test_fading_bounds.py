"""The bounds of fading counts, by exact sums: through merges, and where counts may expire."""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from typing import Any, Literal

import pytest

from bloomtide import TimeDecayingBloomFilter
from bloomtide.distributed import combine
from bloomtide.records import Estimate

T = 1_700_000_000
Storage = Literal["basic", "optimized"]
STORAGES: tuple[Storage, ...] = ("basic", "optimized")


def below(found: Estimate) -> float:
    assert found.lower is not None
    return found.lower


def above(found: Estimate) -> float:
    assert found.upper is not None
    return found.upper


@pytest.mark.parametrize("storage", STORAGES)
def test_eight_merged_filters_have_the_sum_of_their_counts(storage: Storage) -> None:
    def filled() -> TimeDecayingBloomFilter:
        made = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", storage=storage)
        made.add("k", 14, T)
        return made

    one = filled()
    for _ in range(7):
        one.merge(filled())
    assert one.count("k", at=T) == 112
    whole: Any = combine([filled().to_bytes() for _ in range(8)])
    assert whole.count("k", at=T) == 112


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("copies", [1, 4])
def test_an_expiring_count_and_its_upper_bound_keep_the_bound_of_the_page(
    storage: Storage, copies: int
) -> None:
    decay = 0.9
    parts = [
        TimeDecayingBloomFilter(
            1000, 0.01, decay=decay, epoch=60, rounding="expiring", storage=storage
        )
        for _ in range(copies)
    ]
    for part in parts:
        part.add("k", 15, T)
    whole = parts[0]
    for part in parts[1:]:
        whole.merge(part)
    for epochs in range(80):
        at = T + 60 * epochs
        true = float(15 * copies * Fraction(decay) ** epochs)
        found = whole.estimate("k", at=at)
        assert above(found) >= true * (1 - 1e-9), epochs
        assert below(found) <= true * (1 + 1e-9), epochs
        assert found.value <= above(found)
    assert whole.count("k", at=T + 60 * 1000) == 0


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rounding", ["strict", "expiring"])
@pytest.mark.parametrize("seed", range(5))
def test_both_bounds_hold_for_streams_with_late_events_merges_copies_and_files(
    storage: Storage, rounding: Literal["strict", "expiring"], seed: int
) -> None:
    random_ = random.Random(seed)
    decay, keys = random_.choice([0.5, 0.9, 0.99]), [f"key {n}" for n in range(5)]

    def made() -> TimeDecayingBloomFilter:
        return TimeDecayingBloomFilter(
            1000, 0.01, decay=decay, epoch=60, rounding=rounding, storage=storage,
            max_jump=float("inf"), fraction_bits=4, counter_bits=32,
        )  # fmt: skip

    filters, events = [made(), made()], []
    time = 0
    for _ in range(400):
        time += random_.choice([0, 0, 0, 1, 2, 7])
        at = max(0, time - random_.choice([0, 0, 0, 0, 1, 5, 30]))
        key, count = random_.choice(keys), random_.choice([1, 1, 3, 40])
        events.append((key, count, at))
        filters[random_.randrange(2)].add(key, count, T + 60 * at)
        if random_.random() < 0.02:
            filters = [
                copy.copy(filters[0]),
                TimeDecayingBloomFilter.from_bytes(filters[1].to_bytes()),
            ]
        if random_.random() < 0.01:
            filters[0].merge(filters[1])
            filters[1] = made()
    filters[0].merge(filters[1])
    for later in (0, 1, 10, 200):
        for key in keys:
            ages = [(count, time + later - at) for name, count, at in events if name == key]
            true = float(sum(count * Fraction(decay) ** age for count, age in ages))
            found = filters[0].estimate(key, at=T + 60 * (time + later), confidence=0.999_999)
            assert below(found) <= true * (1 + 1e-9), (key, later)
            assert above(found) >= true * (1 - 1e-9), (key, later)
            assert below(found) <= found.value <= above(found)


@pytest.mark.parametrize("storage", STORAGES)
def test_what_was_not_rounded_is_its_own_lower_bound(storage: Storage) -> None:
    made = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", storage=storage)
    made.add("k", 14, T)
    found = made.estimate("k", at=T)
    assert (found.lower, found.value, found.upper) == (14, 14, 14)


@pytest.mark.parametrize("storage", STORAGES)
def test_an_expiring_filter_whose_first_event_was_wrong_comes_back_from_its_file(
    storage: Storage,
) -> None:
    made = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", rounding="expiring", storage=storage)
    made.add("wrong", at=T + 700 * 86_400)
    for second in range(30):
        made.add("k", at=T + second)
    again = TimeDecayingBloomFilter.from_bytes(made.to_bytes())
    at = T + 40 * 3600
    assert again.estimate("k", at=at) == made.estimate("k", at=at)
    assert above(made.estimate("k", at=at)) >= 30 * 0.5**40
