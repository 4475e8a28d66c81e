"""Counts among wrong clocks, against exact sums of all events, each at its own time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bloomtide import HotList, TimeDecayingBloomFilter
from bloomtide.hot import HotFilter

START, HOUR, DAY = 1_700_000_000, 3600, 86_400
NOW = START + 1000 * DAY
KEYS = [f"/page/{number}" for number in range(40)]


class Exact:
    """All events; what is ahead of the clock by more than a day counts as of the clock."""

    def __init__(self, half_life: float, epoch: float | None) -> None:
        self.half_life, self.epoch = half_life, epoch
        self.events: list[tuple[str, int, float]] = []

    def step(self, at: float) -> float:
        return at if self.epoch is None else at // self.epoch * self.epoch

    def add(self, key: str, count: int, at: float, now: float = NOW) -> None:
        self.events.append((key, count, self.step(now if at > now + DAY else at)))

    def count(self, key: str, at: float) -> float:
        ages = ((c, self.step(at) - t) for k, c, t in self.events if k == key)
        return float(sum(count * 0.5 ** (age / self.half_life) for count, age in ages if age >= 0))

    def total(self, at: float) -> float:
        return sum(self.count(key, at) for key in {key for key, _, _ in self.events})


def history(seed: int, length: int) -> list[tuple[str, int, float]]:
    """A stream with late events, silent days, and times that are wrong by anything."""
    draw = np.random.default_rng(seed)
    now, events = float(START), []
    wrong = draw.choice([0.0, 0.01, 0.2])
    for _ in range(length):
        now += float(draw.exponential(60)) + (DAY * 3 if draw.random() < 0.002 else 0)
        at = now - float(draw.exponential(600)) * (draw.random() < 0.1)
        if draw.random() < wrong:
            at = now + float(draw.choice([2 * HOUR, 30 * DAY, -400 * DAY, 700 * DAY, 5000 * DAY]))
            at += float(draw.exponential(HOUR))
        events.append((str(draw.choice(KEYS)), int(draw.integers(1, 5)), at))
    return events


def check_filter(made: Any, exact: Exact, at: float, slack: float = 1e-6) -> None:
    counts = made.count_many(KEYS, at)
    for key, counted in zip(KEYS, counts, strict=True):
        assert counted >= exact.count(key, at) - slack, key
        assert made.count(key, at) == counted


def check_list(made: Any, exact: Exact, at: float) -> None:
    total = exact.total(at)
    listed = {item.key: item for item in made.top(at=at)}
    for key in KEYS:
        true, bounds = exact.count(key, at), made.estimate(key, at)
        margin = 1e-9 * max(true, 1)
        assert bounds.lower - margin <= true <= bounds.upper + margin, key
        assert key in listed or true <= total / made.k + margin
    for key, item in listed.items():
        assert item.lower - 1e-9 <= exact.count(key, at) <= item.count * (1 + 1e-9)
    assert made.total(at) >= total * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_no_count_is_too_low_whatever_the_clocks_say(seed: int) -> None:
    draw = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "half_life": HOUR,
        "clock": lambda: NOW,
        "storage": ["basic", "optimized"][seed % 2],
        "policy": ["plain", "conservative"][seed // 2 % 2],
    }
    made = TimeDecayingBloomFilter(200, 0.01, **options)
    exact = Exact(HOUR, made.epoch)
    events = history(seed, 900)
    while events:
        cut = int(draw.integers(1, 60))
        some, events = events[:cut], events[cut:]
        keys, counts, instants = (list(column) for column in zip(*some, strict=True))
        if draw.random() < 0.5:
            made.add_many(keys, counts, np.array(instants))
        else:
            for key, count, at in some:
                made.add(key, count, at)
        for key, count, at in some:
            exact.add(key, count, at)
        if draw.random() < 0.3:
            made = TimeDecayingBloomFilter.from_bytes(made.to_bytes(), clock=lambda: NOW)
        if draw.random() < 0.2:
            other = TimeDecayingBloomFilter(200, 0.01, **options)
            other.add("/page/7", 3, some[0][2])
            exact.add("/page/7", 3, some[0][2])
            made.merge(other)
        made.validate()
        assert made.time is not None
        for later in (0, HOUR, 40 * DAY, 6000 * DAY):
            check_filter(made, exact, made.time + later)
    assert made.time is not None
    assert made.time <= NOW


@pytest.mark.parametrize("seed", range(40))
def test_the_bounds_of_a_hot_list_hold_whatever_the_clocks_say(seed: int) -> None:
    draw = np.random.default_rng(seed)
    epoch = [None, 360.0][seed % 2]
    made = HotList(8, half_life=HOUR, epoch=epoch, clock=lambda: NOW)
    exact = Exact(HOUR, epoch)
    events = history(seed, 600)
    while events:
        cut = int(draw.integers(1, 60))
        some, events = events[:cut], events[cut:]
        for key, count, at in some:
            made.add(key, count, at)
            exact.add(key, count, at)
        if draw.random() < 0.3:
            made = HotList.from_bytes(made.to_bytes(), clock=lambda: NOW)
        if draw.random() < 0.2:
            other = HotList(8, half_life=HOUR, epoch=epoch, clock=lambda: NOW)
            other.add("/page/7", 3, some[0][2])
            exact.add("/page/7", 3, some[0][2])
            made.merge(other)
        made.validate()
        assert made.time is not None
        for later in (0, HOUR, 40 * DAY, 6000 * DAY):
            check_list(made, exact, made.time + later)


@pytest.mark.parametrize("seed", range(12))
def test_a_filter_and_its_list_believe_the_same_times_and_count_alike(seed: int) -> None:
    filter = TimeDecayingBloomFilter(500, 1e-6, half_life=HOUR, clock=lambda: NOW)
    both = filter.with_hot_list(64)
    assert isinstance(both, HotFilter)
    for key, count, at in history(seed, 500):
        both.add(key, count, at)
        assert both.filter.time == both.hot.time
        told, listed = both.filter.stats(at=both.filter.time), both.hot.stats()
        assert (told.late, told.ahead, told.aside) == (listed.late, listed.ahead, listed.aside)
    at = both.filter.time or 0.0
    for key in KEYS:
        # The filter rounds up by at most a unit for each time it fades, which no list does.
        assert both.estimate(key, at).value == pytest.approx(both.count(key, at), abs=0.2)
