"""Every unit of a count that fades, against whole numbers of any size."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any, Literal

import pytest

from bloomtide import TimeDecayingBloomFilter

ONE, T = 2**64, 1000
DECAYS = [0.0, 1e-300, 0.1, 0.5, 0.9, 0.999_999_9, 1.0]
AGES = [1, 2, 3, 10, 255, 256, 1001, 3 * 10**9]
VALUES = [1, 2, 3, 255, 256, 65_535, 2**20, 2**32 - 2, 2**32 - 1]
Storage = Literal["basic", "optimized"]
STORAGES: list[Storage] = ["basic", "optimized"]


def made(decay: float, **words: Any) -> TimeDecayingBloomFilter:
    """Units are occurrences, epochs are seconds, and every time is believed."""
    sizes = {"capacity": 10_000, "error_rate": 1e-9, "fraction_bits": 0} | words
    return TimeDecayingBloomFilter(decay=decay, epoch=1, max_jump=float("inf"), **sizes)


def power(decay: float, age: int) -> int:
    """The decay to the age in units of 2^-64, each product rounded up."""
    square, factors = min(-int(-(decay * 2.0**64) // 1), ONE - 1), []
    while age:
        if age & 1:
            factors.append(square)
        square, age = -(-square * square // ONE), age >> 1
    return reduce(lambda product, factor: -(-product * factor // ONE), factors)


def faded(value: int, decay: float, age: int, rounding: str) -> int:
    rounded = -(-value * power(decay, age) // ONE)
    if rounding == "strict":
        return rounded
    return min(rounded, max(value - age, 0)) if rounded > 1 else 0


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rounding", ["strict", "expiring"])
@pytest.mark.parametrize("decay", DECAYS)
def test_a_value_is_the_product_rounded(storage: Storage, rounding: str, decay: float) -> None:
    filter = made(decay, storage=storage, rounding=rounding)
    filter.add_many(VALUES, VALUES, at=T)
    assert filter.count_many(VALUES, at=T).tolist() == VALUES
    for age in AGES:
        expected = [faded(value, decay, age, rounding) for value in VALUES]
        assert filter.count_many(VALUES, at=T + age).tolist() == expected, age
        assert [filter.count(value, at=T + age) for value in VALUES] == expected
        # The same where the blocks themselves are brought up to date.
        later = filter.copy()
        later.advance(now=T + age) if age < 10**9 else later.add("x", at=T + age)
        later.validate()
        assert later.count_many(VALUES, at=T + age).tolist() == expected


def test_an_expiring_count_loses_a_unit_every_epoch_and_ends_at_zero() -> None:
    filter = made(0.999, rounding="expiring")
    filter.add("k", 500, at=T)
    counts = [filter.count("k", at=T + age) for age in range(501)]
    assert all(after < before for before, after in itertools.pairwise(counts) if before)
    assert counts[-1] == 0
    # However hot it was, it does not wait for as many epochs as it has units.
    hot = made(0.5, rounding="expiring")
    hot.add("k", 2**30, at=T)
    assert [hot.count("k", at=T + age) for age in (29, 31)] == [2, 0]


@pytest.mark.parametrize("decay", [0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("added", [1, 2, 3, 7, 256])
def test_an_expiring_count_is_too_small_by_the_bound_at_most(decay: float, added: int) -> None:
    for ages in ([1], [1, 2, 5], [40]):
        filter, exact, now = made(decay, rounding="expiring"), 0.0, T
        for step in range(120):
            age = ages[step % len(ages)]
            now, exact = now + age, exact * decay**age
            assert exact - filter.count("k", at=now) <= 1 / (1 - decay) + 1e-9
            filter.add("k", added, at=now)
            exact += added


def test_a_late_weight_is_never_lost() -> None:
    for age, left in ((3, 32), (3 * 10**9, 1), (1, 128)):
        filter = made(0.5)
        filter.add("now", at=T + age)
        filter.add("k", 256, at=T)
        assert filter.count("k", at=T + age) == left


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_question_changes_nothing_and_a_full_cell_is_flagged(
    layout: Any, storage: Storage
) -> None:
    filter = made(0.5, layout=layout, storage=storage, fraction_bits=8, counter_bits=16)
    assert filter.add("k", 64, at=T)
    before = filter.to_bytes()
    counts = [filter.count("k", at=T + age) for age in range(8)]
    assert counts == [64, 32, 16, 8, 4, 2, 1, 0.5]
    assert filter.to_bytes() == before
    assert not filter.add("k", 1, at=T + 3)
    assert filter.count("k", at=T + 3) == 9
    filter.add("k", 250, at=T + 3)
    assert filter.count("k", at=T + 3) == 65_535 / 256
    assert filter.estimate("k", at=T + 23).saturated
    other = made(0.5, layout=layout, storage=storage, fraction_bits=8, counter_bits=16)
    other.add("other", at=T + 23)
    other.merge(filter)
    assert other.estimate("k", at=T + 23).saturated
