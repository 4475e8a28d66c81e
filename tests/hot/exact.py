"""Exact decayed counts: what a hot list must enclose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from bloomtide import HotList
from bloomtide.reference.hot_list import power_of_two

Event = tuple[str | bytes | int, int, float]


def plain(key: str | bytes | int) -> bytes | int:
    """What makes two spellings one key."""
    return key.encode() if isinstance(key, str) else key


def counts(
    events: Iterable[Event], half_life: float | None, now: float
) -> dict[bytes | int, Fraction]:
    """Each key's decayed count, by decimals of 60 digits."""
    sums: dict[bytes | int, Fraction] = defaultdict(Fraction)
    for key, count, at in events:
        sums[plain(key)] += count * left(Fraction(now) - Fraction(at), half_life)
    return dict(sums)


def left(age: Fraction, half_life: float | None) -> Fraction:
    """What is left of an event; far below what a float can show, its exact size does not matter."""
    if half_life is None:
        return Fraction(1)
    return power_of_two(max(-age / Fraction(half_life), Fraction(-4000)))


def obeys_the_law(hot: HotList, events: list[Event], now: float) -> None:
    """lower <= true <= count for every key, and what has more than total/k is listed."""
    truth = counts(events, hot.half_life, now)
    total = Fraction(hot.total(at=now))
    assert total >= sum(truth.values())
    assert total <= sum(truth.values()) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**300)
    for key, count in truth.items():
        estimate = hot.estimate(key, at=now)
        assert Fraction(estimate.lower) <= count <= Fraction(estimate.value)
        assert count <= total / hot.k or key in hot
    for item in hot.top(at=now):
        true = truth[plain(item.key)]
        assert Fraction(item.lower) <= true <= Fraction(item.count)
        # No estimate is wider than the guarantee.
        most = total / hot.k * (1 + Fraction(1, 10**9)) + Fraction(1, 10**300)
        assert Fraction(item.count) - true <= most


def fed(hot: HotList, events: list[Event]) -> HotList:
    """The list after every event, one by one."""
    for key, count, at in events:
        hot.add(key, count, at)
    hot.validate()
    return hot
