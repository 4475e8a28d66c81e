"""The questions to a monitor that its filters and lists answer. None waits for who adds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from bloomtide._core import parse_instant
from bloomtide.errors import ParameterError
from bloomtide.monitor.records import HotKey
from bloomtide.monitor.settings import Settings
from bloomtide.monitor.state import Totals
from bloomtide.monitor.structures import Structures
from bloomtide.records import Estimate, HotItem
from bloomtide.trend import SLOWER, steady_window, trend_of

Key = str | bytes | int
T = TypeVar("T")
MICRO = 1_000_000


class Answers:
    """What a monitor knows of keys now."""

    settings: Settings
    structures: Structures
    _totals: Totals
    _clock: Callable[[], Any] | None

    def clock(self) -> float:
        """The clock, in Unix seconds."""
        return seconds_of(self._clock)

    def seen(self, key: Key) -> bool:
        """Whether the key may have come; False is certain."""
        seen, counts = self.structures.seen, self.structures.counts
        if seen is None:
            return key in _there(counts, "seen")
        return key in seen  # type: ignore[operator]  # a URL filter refuses a number by itself

    def count(self, key: Key, *, confidence: float = 0.95) -> Estimate:
        """How often the key came, ever, with bounds."""
        return _there(self.structures.counts, "counts").estimate(key, confidence=confidence)

    def heat(self, key: Key, at: Any = None) -> Estimate:
        """The key's decayed count now: the filter's, within the certain bounds of the list."""
        heat, hot = _there(self.structures.heat, "hot"), _there(self.structures.hot, "hot")

        def ask(instant: float) -> Estimate:
            bounds = hot.estimate(key, instant)
            most = float("inf") if bounds.upper is None else bounds.upper
            value = min(max(heat.count(key, instant), bounds.lower), most)
            return replace(bounds, value=value)

        return self._ask(ask, at)

    def top(self, n: int | None = 20, at: Any = None) -> list[HotItem]:
        """The hottest keys now."""
        hot = _there(self.structures.hot, "hot")
        return self._ask(lambda instant: hot.top(n, instant), at)

    def hot(self, n: int | None = 20, at: Any = None) -> list[HotKey]:
        """The hottest keys now, with their rates and trends."""
        hot, slow = _there(self.structures.hot, "hot"), _there(self.structures.slow, "hot")

        def ask(instant: float) -> list[HotKey]:
            first = self._totals.first
            age = 0.0 if first is None else instant - first / MICRO
            window = steady_window(self.settings.half_life, age)
            scale = window / steady_window(SLOWER * self.settings.half_life, age)
            found = []
            for item in hot.top(n, instant):
                long = slow.estimate(item.key, instant)
                trend = trend_of(item.lower, item.count, long.lower * scale, long.value * scale)
                per_minute = 60 * item.count / window
                found.append(HotKey(per_minute=per_minute, trend=trend, **item.as_dict()))
            return found

        return self._ask(ask, at)

    def now(self) -> float:
        """The stream's own time, in Unix seconds."""
        newest, lag = self._totals.newest, self._totals.lag
        return self.clock() if newest is None else max(newest / MICRO, self.clock() - lag)

    def _ask(self, question: Callable[[float], T], at: Any) -> T:
        """The answer at an instant, or now: time may move on between that and the answer."""
        if at is not None:
            return question(float(parse_instant(at, "at")))
        hot = self.structures.hot
        while True:
            # The list is a moment ahead of the totals while a block is being counted.
            latest = hot.time if hot is not None else None
            try:
                return question(max(self.now(), latest or 0.0))
            except ParameterError as error:
                if error.name != "at":
                    raise


def _there(structure: T | None, name: str) -> T:
    """Refuses a question that the monitor was not made for."""
    if structure is None:
        raise ParameterError(
            f"this monitor was made without `{name}`", hint=f"make one with `{name}`",
            name=name, got=None, allowed="a monitor that has it",
        )  # fmt: skip
    return structure


def seconds_of(clock: Callable[[], Any] | None) -> float:
    """What a clock says, or the machine's if there is none."""
    return time.time() if clock is None else float(parse_instant(clock(), "clock"))
