"""What is hot: two hot lists side by side, one of which forgets more slowly, and the trend between.

`bloomtide.trend` says what the two tell together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from bloomtide import HotList, LogCounter
from bloomtide.records import LogReport
from bloomtide.trend import SLOWER, Trend, steady_window, trend_of

PLACES = 16_384
"""Keys in a list, if nothing else is asked for: so many different ones are counted exactly, and of
more none is missed that has more than 1/16384 of all hits. A few megabytes."""

DAY = 86_400.0
"""Seconds that one line may move the time of a log whose counts do not fade."""

ROUNDING = 1e-9
"""By so much of a faded count its bounds may lie apart though every hit is known."""

FORGOTTEN = 0.01
"""Hits below which a key is no longer shown: one hit after seven half-lives."""


@dataclass(frozen=True, slots=True)
class HotRow:
    """A hot key."""

    key: bytes
    count: float
    """Decayed hits: the true number is at most this,"""
    lower: float
    """and at least this."""
    share: float
    per_minute: float
    trend: Trend
    exact: bool
    """Whether the key was in the list from its first hit on."""


@dataclass(frozen=True, slots=True)
class Hot:
    """What is hot at an instant, and what was read for it."""

    at: float
    half_life: float | None
    total: float
    rows: tuple[HotRow, ...]
    reports: tuple[LogReport, ...]
    ahead: int
    """Lines that are later than the clock by more than a day."""
    aside: int
    """Lines far after all others, whose times are not believed yet; counts that fade lack them."""

    def sum(self, field: str) -> int:
        """A number of the reports, over all logs."""
        return sum(getattr(report, field) for report in self.reports)

    def formats(self) -> str:
        """The formats found, each once."""
        return ", ".join(sorted({report.format for report in self.reports if report.format}))


class Hotness:
    """Counts logs and says what is hot in them."""

    def __init__(self, by: str, half_life: float | None, places: int, **options: Any) -> None:
        self.half_life = half_life
        self.options = {"by": by, **options}
        # Both lists believe the same times, or one would be ahead of the other.
        jump = DAY if half_life is None else 2 * half_life
        self.lists = [HotList(places, half_life=half_life, max_jump=jump)]
        if half_life is not None:
            self.lists.append(HotList(places, half_life=SLOWER * half_life, max_jump=jump))
        self.counters: list[LogCounter] = []

    def counter(self) -> LogCounter:
        """For one more log."""
        self.counters.append(LogCounter(*self.lists, **self.options))
        return self.counters[-1]

    def hot(self, n: int, at: float) -> Hot:
        """The `n` hottest keys; if `at` is before the log's own time, as of that."""
        reports = tuple(counter.report() for counter in self.counters)
        at = max(at, self.time or at)
        # Counts that do not fade are those of all lines, also of such whose times are not believed:
        # none of these is later than the clock by more than a day.
        asked = max(at, time.time() + 2 * DAY) if self.half_life is None else at
        total = self.lists[0].total(asked)
        firsts = [report.first for report in reports if report.first is not None]
        age = at - min(firsts, default=at)
        items = (item for item in self.lists[0].top(n, asked) if item.count >= FORGOTTEN)
        rows = (self._row(item, at, age) for item in items)
        stats = self.lists[0].stats()
        return Hot(at, self.half_life, total, tuple(rows), reports, stats.ahead, stats.aside)

    @property
    def time(self) -> float | None:
        """The log's own time: that of its latest line, if it is believed."""
        return self.lists[0].time

    def _row(self, item: Any, at: float, age: float) -> HotRow:
        window = steady_window(self.half_life, age)
        trend: Trend = "flat"
        if self.half_life is not None:
            slow = self.lists[1].estimate(item.key, at)
            scale = window / steady_window(SLOWER * self.half_life, age)
            trend = trend_of(item.lower, item.count, slow.lower * scale, slow.value * scale)
        per_minute = 60 * item.count / window
        rounding = 0.0 if self.half_life is None else ROUNDING * item.count
        exact = item.count - item.lower <= rounding
        return HotRow(item.key, item.count, item.lower, item.share, per_minute, trend, exact)
