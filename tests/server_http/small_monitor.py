"""The smallest monitor that answers everything, from the real structures, at a fixed time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bloomery import BloomFilter, History, HotFilter, HotList, PartitionedDynamicCountFilter
from bloomery import TimeDecayingBloomFilter
from bloomery.records import Estimate, HotItem


@dataclass(frozen=True)
class Structure:
    name: str
    kind: str
    items: float
    fill: float
    predicted_error: float
    bytes: int


@dataclass(frozen=True)
class Told:
    events: int
    new: int
    late: int
    per_second: float
    since: float
    time: float | None
    structures: tuple[Structure, ...]
    guards: tuple[str, ...]


@dataclass(frozen=True)
class Pulse:
    start: float
    events: list[int]
    new: list[int]


class SmallMonitor:
    half_life = 600.0

    def __init__(self, path: Path | None, clock: Any = time.time) -> None:
        self._clock = clock
        self._seen = BloomFilter(100_000, 0.001)
        self._counts = PartitionedDynamicCountFilter(100_000, 0.001)
        filter = TimeDecayingBloomFilter(100_000, 0.01, half_life=self.half_life, clock=clock)
        self._hot = HotFilter(filter, HotList(1000, half_life=self.half_life, clock=clock))
        self.history = None if path is None else History.open(path, "1m", clock=clock)
        self.guards: dict[str, Any] = {}
        self._events = self._new = 0
        self._since = clock()
        self._newest: float | None = None
        self._pulse: dict[int, list[int]] = {}

    def add_many(self, keys: Any, counts: Any = None, at: Any = None) -> int:
        if self.history is not None:
            self.history.add_many(keys, counts, at=at)
        self._hot.add_many(keys, counts, at)
        self._counts.add_many(keys, counts)
        new = int(np.sum(self._seen.add_many(keys)))
        events = len(keys) if counts is None else int(np.sum(np.asarray(counts)))
        now = float(self._clock())
        self._newest = max(
            self._newest or 0.0, now if at is None else float(np.max(np.asarray(at)))
        )
        second = self._pulse.setdefault(int(now), [0, 0])
        second[0] += events
        second[1] += new
        self._events += events
        self._new += new
        return new

    def seen(self, key: Any) -> bool:
        return key in self._seen

    def count(self, key: Any) -> Estimate:
        return self._counts.estimate(key)

    def heat(self, key: Any, at: Any = None) -> Estimate:
        return self._hot.estimate(key, at)

    def top(self, n: int = 20, at: Any = None) -> list[HotItem]:
        return self._hot.top(n, at)

    def stats(self) -> Told:
        parts = {"seen": self._seen, "counts": self._counts, "hot": self._hot.filter}
        found = {name: each.stats() for name, each in parts.items()}
        return Told(
            events=self._events, new=self._new, late=0,
            per_second=sum(self.pulse().events[-10:]) / 10, since=self._since, time=self._newest,
            structures=tuple(
                Structure(name, told.kind, told.items, told.fill, told.predicted_error, told.bytes)
                for name, told in found.items()
            ),
            guards=(),
        )  # fmt: skip

    def pulse(self) -> Pulse:
        end = int(self._clock())
        told = [self._pulse.get(second, [0, 0]) for second in range(end - 300, end)]
        return Pulse(end - 300, [each[0] for each in told], [each[1] for each in told])

    def close(self) -> None:
        if self.history is not None:
            self.history.close()
