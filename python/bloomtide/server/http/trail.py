"""How the hottest keys came to be hot: what each of them got lately.

A stream of now is looked at every few seconds (`Trail`). An old log came within a moment, so what
its keys got step by step is asked of the history (`PastSteps`).

The list tells faded counts. Between two looks at it a count of c fades to c·2^(-t/h), so what is
above that came in between. t is by the stream's own time, which may run faster than the clock.

A key that was not on the list before may have been just below the last one there: only what it has
above that one's count is known to have come.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bloomtide.records import HotItem
from bloomtide.server.http.parts import Key
from bloomtide.trend import Trend

EVERY = 5.0
"""Seconds between two looks."""
LENGTH = 60
"""Steps that are shown; of looks these are five minutes."""
RECENT = 12
"""The last steps, which a trend compares with those before; of looks these are a minute."""
END = 4
"""The last of the recent ones."""
KEYS = 100
"""The hottest, at each look."""


@dataclass(slots=True)
class _Steps:
    count: float
    came: deque[float] = field(default_factory=lambda: deque(maxlen=LENGTH))


class Trail:
    """Looks at the hot list from time to time."""

    every = EVERY

    def __init__(self, half_life: float | None) -> None:
        self._half_life = half_life
        self._looked: float | None = None
        self._now = 0.0
        self._keys: dict[Key, _Steps] = {}

    def due(self, clock: float) -> bool:
        """Whether it is time to look."""
        return self._looked is None or not 0 <= clock - self._looked < EVERY

    def look(self, items: Sequence[HotItem], clock: float, now: float) -> None:
        """Notes what came since the last look; `now` is the stream's own time."""
        # What is there when a stream begins, or when its time goes back, is its past.
        first = not self._keys or now < self._now
        if first:
            self._keys = {}
        passed = 0.0 if first else now - self._now
        kept = 2 ** (-passed / self._half_life) if self._half_life else 1.0
        # While a stream catches up, its time runs ahead: all steps are of equal length by its time.
        scale = EVERY / max(passed, EVERY)
        fresh: dict[Key, _Steps] = {}
        floor = items[-1].count if len(items) >= KEYS else 0.0
        for item in items:
            steps = self._keys.get(item.key)
            if steps is None:
                # At the first look nothing is known about when anything came.
                steps = _Steps(item.count if first else min(floor, item.count))
            if not first:
                steps.came.append(max(0.0, item.count - steps.count * kept) * scale)
            steps.count = item.count
            fresh[item.key] = steps
        self._keys = fresh
        self._looked, self._now = clock, now

    def came(self, key: Key) -> list[float]:
        """Events of each step, the newest last; empty if the key is not followed."""
        steps = self._keys.get(key)
        return [] if steps is None else [round(value, 1) for value in steps.came]


class PastSteps:
    """What keys got in the steps of a history up to an instant."""

    def __init__(self, history: Any, now: float) -> None:
        first = history.stats().first
        self.every: float = history.window or 60.0
        self._history = history
        self._end = (now // self.every + 1) * self.every
        known = (now if first is None else first) // self.every * self.every
        self._start = max(self._end - LENGTH * self.every, known)

    def came(self, key: Key) -> list[float]:
        """Events of each step, the newest last."""
        told = self._history.series(key, self._start, self._end, self.every)
        return [round(value, 1) for value in told.estimate.tolist()]


def trend_of(came: Sequence[float]) -> Trend | None:
    """The recent steps beside those before; None if there are not enough to tell.

    What falls at the end of its line does not come up, however much the recent steps have together.
    """
    if len(came) < 2 * RECENT:
        return None
    trend = _compare(came[-RECENT:], came[:-RECENT])
    if trend == "up" and sum(came[-END:]) < 0.75 * sum(came[-2 * END : -END]):
        return "down" if _compare(came[-END:], came[-RECENT:-END]) == "down" else "flat"
    return trend


def _compare(recent: Sequence[float], before: Sequence[float]) -> Trend:
    expected = sum(before) * len(recent) / len(before)
    # Beyond a tenth, and beyond two standard deviations of what chance does.
    margin = max(0.1 * expected, 2 * math.sqrt(max(expected, 1.0)))
    difference = sum(recent) - expected
    if abs(difference) <= margin:
        return "flat"
    return "up" if difference > 0 else "down"
