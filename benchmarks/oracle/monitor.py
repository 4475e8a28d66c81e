"""`Monitor`, all structures about one stream; and `LogCounter`, which counts the lines of a log."""

from __future__ import annotations

import itertools
import math
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks.oracle.streams import Key
from benchmarks.oracle.trial import Trial, Verb, same_key, sound
from bloomtide import HotList, LogCounter, Monitor, TimeDecayingBloomFilter
from bloomtide.errors import BloomtideError, KeyTypeError

STEP = 1.08
"""Counts fade in steps; so much may lie between a step and the exact decay."""


class MonitorTrial(Trial):
    """A monitor in memory."""

    structure = "Monitor"
    block = 1500

    def __init__(self, *arguments: Any) -> None:
        self.events: dict[bytes | int, list[tuple[float, int]]] = {}
        self.spelling: dict[bytes | int, Key] = {}
        self.latest = 0.0
        super().__init__(*arguments)

    def make(self) -> Any:
        self.half_life = float(self.draw.choice([600.0, 3600.0]))
        return Monitor.open(capacity=20_000, half_life=self.half_life, hot=500, clock=self.clock)

    def clock(self) -> float:
        return 2.5e9

    def put(self, key: Key, count: int, at: float) -> bool:
        known = same_key(key) in self.events
        self.events.setdefault(same_key(key), []).append((at, count))
        self.spelling[same_key(key)] = key
        self.latest = max(self.latest, at)
        return known

    def verbs(self) -> dict[Verb, float]:
        return {self.add_one: 3, self.add_batch: 3, self.bad_batch: 0.5, self.feed_log: 1}

    def rows(self, most: int) -> tuple[list[Key], list[int], list[float]]:
        keys, times = self.next_rows(most)
        counts, _ = self.weights(len(keys))
        late = self.draw.random(len(times)) < 0.05
        ages = self.draw.exponential(900, len(times)) * late
        return keys, counts, (np.array(times) - ages).round(3).tolist()

    def add_one(self) -> None:
        for row in zip(*self.rows(5), strict=True):
            known = self.put(*row)
            new = self.made.add(*row)
            self.holds(not (new and known), "True only if the key was certainly new", row)

    def add_batch(self) -> None:
        keys, counts, times = self.rows(int(self.draw.choice([20, 1000])))
        fresh = len({same_key(key) for key in keys} - self.events.keys())
        new = self.made.add_many(self.form(keys), counts, np.array(times))
        self.holds(new <= fresh, "add_many tells how many keys were certainly new", new, fresh)
        for row in zip(keys, counts, times, strict=True):
            self.put(*row)

    def bad_batch(self) -> None:
        keys, counts, times = self.rows(10)
        before = self.made.digest()
        for given, weights in (([*keys[:-1], 3.5], counts), (keys, [*counts[:-1], 0])):
            self.refusal(lambda g=given, w=weights: self.made.add_many(g, w, np.array(times)),  # type: ignore[misc]
                         BloomtideError, KeyTypeError)  # fmt: skip
        self.holds(self.made.digest() == before, "after an error the monitor is as it was")

    def feed_log(self) -> None:
        """Lines without Python for a line, cut anywhere."""
        lines, rows = log_lines(*self.rows(60))
        feed = self.made.log(by="path")
        for piece in pieces(b"".join(lines), self.draw):
            feed.feed(piece)
        feed.finish()
        for row in rows:
            self.put(*row)

    def compare(self) -> None:
        if not self.events:
            return
        now = self.made.now()
        truths = {same: self.heat(same, now) for same in self.events}
        for same in self.some(list(self.events), 250):
            key = self.spelling[same]
            often = sum(count for _, count in self.events[same])
            self.holds(self.made.seen(key), "a key that was added is seen", key)
            count = self.made.count(key)
            self.holds(
                count.value >= often and count.upper >= often,
                "count is never too low",
                key,
                count,
                often,
            )
            heat = self.made.heat(key, now)
            self.holds(heat.upper * STEP + 1e-9 >= truths[same], "heat is within certain bounds",
                       key, heat, truths[same])  # fmt: skip
            self.holds(heat.lower <= truths[same] * STEP + 1e-9, "heat is within certain bounds",
                       key, heat, truths[same])  # fmt: skip
        for item in self.made.top(20, now):
            true = truths[same_key(item.key)]
            self.holds(item.lower <= true * STEP + 1e-9 and true <= item.count * STEP + 1e-9,
                       "top() has certain bounds", item, true)  # fmt: skip
        whole = sum(truths.values())
        listed = {same_key(item.key) for item in self.made.top(500, now)}
        hot = [same for same, true in truths.items() if true > STEP * whole / 500 + 1e-9]
        self.holds(listed.issuperset(hot), "the hottest keys are listed", hot[:3])

    def heat(self, same: bytes | int, now: float) -> float:
        half = self.half_life
        ages = ((c, now - at) for at, c in self.events[same] if at <= now)
        return math.fsum(c * 0.5 ** (age / half) for c, age in ages)

    def run(self, operations: int) -> None:
        try:
            super().run(operations)
        finally:
            sound(self.made).close()


_PLAIN = re.compile(r"/[\w/.-]*", re.ASCII)


def log_lines(
    keys: list[Key], counts: list[int], times: list[float]
) -> tuple[list[bytes], list[tuple[Key, int, float]]]:
    """Lines in the combined format of the keys that are plain paths, and what they say."""
    lines: list[bytes] = []
    rows: list[tuple[Key, int, float]] = []
    for key, at in zip(keys, times, strict=True):
        text = key.decode("latin-1") if isinstance(key, bytes) else str(key)
        path = text if text.startswith("/") else f"/{text}"
        if _PLAIN.fullmatch(path):
            when = datetime.fromtimestamp(int(at), UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
            lines.append(f'192.0.2.7 - - [{when}] "GET {path} HTTP/1.1" 200 5 "-" "-"\n'.encode())
            rows.append((path, 1, float(int(at))))
    return lines, rows


def pieces(data: bytes, draw: np.random.Generator) -> list[bytes]:
    """The bytes, cut anywhere."""
    cuts = sorted(draw.integers(0, len(data) + 1, 4).tolist())
    bounds = [0, *cuts, len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


class LogTrial(Trial):
    """`LogCounter` into a list and a filter: the same as adding each line by hand."""

    structure = "LogCounter"
    block = 1500

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.filter = self.make_filter()
        self.by_hand, self.filter_by_hand = self.make(), self.make_filter()
        self.log = self.plant(self.made_log())
        self.lines = self.bad = 0
        self.truth: dict[bytes | int, int] = {}

    def make(self) -> Any:
        return HotList(100_000, clock=lambda: 2.5e9)

    def make_filter(self) -> Any:
        words: dict[str, Any] = {"half_life": "1h", "max_jump": float("inf")}
        return TimeDecayingBloomFilter(5000, 0.01, **words, clock=lambda: 2.5e9)

    def made_log(self) -> Any:
        """A counter of a log in the combined format, by path."""
        return LogCounter(sound(self.made), self.filter, by="path", format="combined")

    def verbs(self) -> dict[Verb, float]:
        return {self.feed: 5, self.another: 0.2}

    def feed(self) -> None:
        keys, times = self.next_rows(200)
        lines, rows = log_lines(keys, [1] * len(keys), times)
        if self.draw.random() < 0.3:
            lines.insert(int(self.draw.integers(len(lines) + 1)), b"no line of a log\n")
            self.bad += 1
        self.lines += len(lines)
        for piece in pieces(b"".join(lines), self.draw):
            self.log.feed(piece)
        for path, count, at in rows:
            self.by_hand.add(str(path).encode(), count, at)
            self.filter_by_hand.add(path, count, at)
            self.truth[same_key(path)] = self.truth.get(same_key(path), 0) + 1

    def another(self) -> None:
        """The bytes have ended; another log of the same format follows."""
        self.done += 1
        self.log.finish()

    def compare(self) -> None:
        report = self.log.report()
        self.holds(report.lines == self.lines, "report() tells the lines", report, self.lines)
        self.holds(
            report.skipped == self.bad,
            "a line in another format is skipped and counted",
            report,
            self.bad,
        )
        if not self.truth:
            return
        found = {same_key(item.key): item.count for item in self.made.top()}
        self.holds(found == self.truth, "every line is counted, once", len(found), len(self.truth))
        self.holds(self.filter == self.filter_by_hand, "a log counts as its lines by hand")
        self.holds(sound(self.made) == self.by_hand, "a log counts as its lines by hand")
