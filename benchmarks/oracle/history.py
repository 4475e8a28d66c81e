"""`History`: counts over any range of the past, beside the list of all events."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import History
from bloomtide.errors import BloomtideError
from bloomtide.history import exponential, sliding

HOUR, DAY = 3600.0, 86_400.0
NOT_LOW = "the true count is never above `upper`"
INSIDE = "`inner` has nothing from outside the range, but for the share that error_rate allows"


class HistoryTrial(Trial):
    """A store in a directory, closed and opened again, sealed, rolled up and merged."""

    structure = "History"
    block = 2500

    def __init__(self, *arguments: Any) -> None:
        self.words: dict[str, Any] = {}
        self.events: dict[bytes | int, list[tuple[float, int]]] = {}
        self.spelling: dict[bytes | int, Key] = {}
        self.all: list[tuple[float, int]] = []
        self.numbers = itertools.count()
        self.shift = 0.0
        self.latest = 0.0
        self.asked_inside = 0
        self.wrong_inside = 0
        super().__init__(*arguments)

    def make(self) -> Any:
        if not self.words:
            self.words = {
                "window": [60, 600, 3600][int(self.draw.integers(3))],
                "error_rate": float(self.draw.choice([0.05, 0.01])),
                "lateness": [0, 7200][int(self.draw.integers(2))],
                "sync": "no",
            }
            self.path = self.folder / f"history-{self.seed}"
        return History.open(self.path, **self.words, background=False, clock=self.clock)

    def clock(self) -> float:
        return 2.5e9

    # --- the model

    def put(self, key: Key, count: int, at: float) -> None:
        self.events.setdefault(same_key(key), []).append((at, count))
        self.spelling[same_key(key)] = key
        self.all.append((at, count))
        self.latest = max(self.latest, at)

    def truth(self, key: Key, start: float, end: float) -> int:
        events = self.events.get(same_key(key), ())
        return sum(count for at, count in events if start <= at < end)

    def edge(self, at: float) -> float:
        """The beginning of the window of an instant."""
        return float(at // self.words["window"] * self.words["window"])

    # --- verbs

    def verbs(self) -> dict[Verb, float]:
        return {
            self.add_one: 3, self.add_batch: 5, self.bad_batch: 0.3, self.reopen: 0.25,
            self.seal: 0.1, self.compact: 0.15, self.merge: 0.03, self.jump: 0.05,
        }  # fmt: skip

    def rows(self, most: int) -> tuple[list[Key], list[int], list[float]]:
        keys, times = self.next_rows(most)
        counts, _ = self.weights(len(keys))
        late = self.draw.random(len(times)) < 0.05
        ages = self.draw.exponential(DAY, len(times)) * late
        return keys, counts, (np.array(times) + self.shift - ages).round(3).tolist()

    def add_one(self) -> None:
        for row in zip(*self.rows(5), strict=True):
            self.made.add(*row)
            self.put(*row)

    def add_batch(self) -> None:
        keys, counts, times = self.rows(int(self.draw.choice([30, 1500])))
        done = self.made.add_many(self.form(keys), counts, at=np.array(times))
        self.holds(done == len(keys), "add_many tells how many", done)
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)

    def bad_batch(self) -> None:
        """All rows or none."""
        keys, counts, times = self.rows(20)
        before = self.made.total().upper if self.all else 0
        row = int(self.draw.integers(len(keys)))
        for given, weights, at in (
            ([*keys[:row], 3.5, *keys[row + 1 :]], counts, times),
            (keys, counts[:-1], times),
            (keys, [*counts[:-1], 0], times),
            (keys, counts, [*times[:-1], math.nan]),
            (keys, counts, [*times, 5.0]),
        ):
            self.refusal(lambda g=given, w=weights, a=at: self.made.add_many(g, w, at=a),  # type: ignore[misc]
                         BloomtideError, TypeError)  # fmt: skip
        after = self.made.total().upper if self.all else 0
        self.holds(before == after, "add_many takes all rows or none", before, after)

    def reopen(self) -> None:
        self.done += 1
        self.made.close()
        self.made = self.plant(self.make())

    def seal(self) -> None:
        self.done += 1
        self.made.seal()

    def compact(self) -> None:
        self.done += 1
        self.made.compact(now=self.latest)

    def jump(self) -> None:
        self.done += 1
        self.shift += float(self.draw.choice([HOUR, DAY, 10 * DAY]))

    def merge(self) -> None:
        """All segments of another store."""
        keys, counts, times = self.rows(300)
        path = self.folder / f"other-{self.seed}-{next(self.numbers)}"
        with History.open(path, **self.words, background=False, clock=self.clock) as other:
            other.add_many(keys, counts, at=np.array(times))
            other.seal()
            self.made.merge(other)
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)

    # --- comparison

    def range(self) -> tuple[float, float, bool]:
        """A range, and whether it begins and ends with a window."""
        times = [at for at, _ in (self.all[0], self.all[-1])]
        low, high = min(times) - DAY, self.latest + HOUR
        start, end = sorted(self.draw.uniform(low, high, 2).tolist())
        if self.draw.random() < 0.3:
            end = min(start + float(self.draw.exponential(10 * HOUR)), high)
        if self.draw.random() < 0.6:
            return self.edge(start), self.edge(end) + self.words["window"], True
        return round(start, 3), round(end, 3) + 0.001, False

    def compare(self) -> None:
        if not self.all:
            return
        self.compare_whole()
        segments = max(1, self.made.stats().segments + self.made.stats().open_segments)
        rate = min(0.5, self.words["error_rate"] * segments)
        for _ in range(6):
            start, end, aligned = self.range()
            self.compare_range(start, end, aligned=aligned)
        self.not_more_wrong(self.asked_inside, self.wrong_inside, rate, INSIDE)
        self.compare_decayed()

    def compare_whole(self) -> None:
        every = sum(count for _, count in self.all)
        total = self.made.total()
        self.holds(
            (total.upper, total.inner) == (every, every), "total() is all events", total, every
        )
        self.holds(not total.missing, "nothing is missing", total.missing)

    def compare_range(self, start: float, end: float, *, aligned: bool) -> None:
        known = [self.spelling[same] for same in self.some(list(self.events), 25)]
        uppers = self.made.count_many(known, start, end).tolist()
        for key, many in zip(known, uppers, strict=True):
            true, found = self.truth(key, start, end), self.made.count(key, start, end)
            self.holds(found.upper >= true, NOT_LOW, key, start, end, found, true)
            self.holds(many == found.upper, "count_many is `upper` of each key", key, many, found)
            self.holds(found.inner <= found.estimate <= found.upper,
                       "`estimate` lies between `inner` and `upper`", key, found)  # fmt: skip
            self.asked_inside += 1
            self.wrong_inside += found.inner > true
            if aligned:
                self.holds(
                    found.inner == found.upper,
                    "a range of whole windows has no partial rows",
                    key,
                    found,
                )
            if true:
                self.holds(self.made.contains(key, start, end), "a key that came is contained", key)
        all_true = sum(count for at, count in self.all if start <= at < end)
        total = self.made.total(start, end)
        self.holds(total.inner <= all_true <= total.upper, "total() is exact but for rows that the "
                   "range cuts", total, all_true)  # fmt: skip
        if aligned:
            self.holds(
                total.upper == all_true, "total() of whole windows is exact", total, all_true
            )
            self.compare_parts(known[:4], start, end)
            self.compare_top(start, end)

    def compare_parts(self, keys: list[Key], start: float, end: float) -> None:
        """Ranges that meet at the edge of a row, and series."""
        middle = self.edge((start + end) / 2)
        window = self.words["window"]
        for key in keys:
            whole, left, right = (
                self.made.count(key, *ends, rollups=False).upper
                for ends in ((start, end), (start, middle), (middle, end))
                if ends[0] < ends[1]
            ) if start < middle < end else (0, 0, 0)  # fmt: skip
            self.holds(whole == left + right, "rollups=False is additive at the edge of a row", key)
            first = max(start, end - 30 * window)
            series = self.made.series(key, first, end, window)
            begins = series.start.astype("datetime64[us]").astype(np.int64) / 1e6
            for begin, upper in zip(begins.tolist(), series.upper.tolist(), strict=True):
                true = self.truth(key, begin, begin + window)
                self.holds(upper >= true, NOT_LOW, "series", key, begin, upper, true)

    def compare_top(self, start: float, end: float) -> None:
        found = self.made.top(start, end, 8)
        names = set()
        for item in found.items:
            true = self.truth(item.key, start, end)
            names.add(same_key(item.key))
            self.holds(item.lower <= true <= item.count, "top() has certain bounds", item, true)
        if len(found.items) < 8:
            for same in self.some(list(self.events), 60):
                if same not in names:
                    true = self.truth(self.spelling[same], start, end)
                    self.holds(true <= found.unlisted, "a key that is on no list came at most "
                               "`unlisted` times", same, true, found.unlisted)  # fmt: skip

    def compare_decayed(self) -> None:
        now = self.latest + 1.0
        for same in self.some(list(self.events), 4):
            for g in (exponential("6h"), sliding("1d")):
                true = math.fsum(
                    count * g(now - at) for at, count in self.events[same] if at <= now
                )
                found = self.made.decayed(self.spelling[same], g, now=now)
                self.holds(found.upper >= true * (1 - 1e-9), "decayed() is never too low",
                           same, found, true)  # fmt: skip

    def run(self, operations: int) -> None:
        try:
            super().run(operations)
        finally:
            sound(self.made).close()
