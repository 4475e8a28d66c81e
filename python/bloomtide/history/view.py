"""The questions a store answers, over its forest and its open segments, in microseconds.

A segment that turns out to be damaged in the middle of an answer is remembered, and the answer is
begun again without it (`History._ask`): each answer is of one piece and says which time it lacks.
"""

from __future__ import annotations

import math
from typing import Any

from bloomtide._core import Digests, HistoryPlan
from bloomtide.errors import ParameterError, require
from bloomtide.history.decay import Decay, Weights
from bloomtide.history.forest import Counts, Key
from bloomtide.history.ladder import MICRO, micros
from bloomtide.history.records import DecayedCount, RangeCount, Series, TopKeys
from bloomtide.history.settings import Nulls
from bloomtide.history.state import State, to_micros
from bloomtide.records import HotItem

FIRST, LAST = -(2**62), 2**62
"""Before and after every event."""


class View:
    """A store as it is now; used under its lock."""

    def __init__(self, state: State) -> None:
        """Reads nothing yet."""
        self._state = state

    def range_of(self, start: Any, end: Any, last: Any, now: Any) -> tuple[int, int]:
        """Start and end, from whichever way they were given."""
        if last is not None:
            if start is not None or end is not None:
                raise ParameterError(
                    "`last` does not go with `start` or `end`", hint="give one or the other",
                    name="last", got=last, allowed="alone",
                )  # fmt: skip
            stop = self._state.now() if now is None else to_micros(now, "now")
            return max(stop - micros(last, "last"), FIRST), stop
        first = FIRST if start is None else to_micros(start, "start")
        stop = LAST if end is None else to_micros(end, "end")
        require("start", start, "not after `end`", first <= stop, hint="ranges are [start, end)")
        return first, stop

    def count(self, key: Key, start: int, end: int, rollups: bool) -> RangeCount:
        """One key in one range."""
        plan = self._plan(start, end, rollups)
        return self._range_count(plan, plan.count(key), start, end)

    def count_many(self, keys: Digests, start: int, end: int, rollups: bool) -> Counts:
        """The upper bound of each key."""
        return self._plan(start, end, rollups).count_many(keys)[0]

    def total(self, start: int, end: int) -> RangeCount:
        """All keys in one range; exact but for partial rows."""
        plan = self._plan(start, end, True)
        return self._range_count(plan, plan.events(), start, end)

    def contains(self, key: Key, start: int, end: int) -> bool:
        """Whether the key may have been seen; any may, in a time that cannot be read."""
        plan = self._plan(start, end, True)
        return bool(plan.about()[2] or self._state.lost or plan.count(key)[0])

    def series(self, key: Key, start: int, end: int, step: int) -> Series:
        """One key, step by step."""
        import numpy as np

        state = self._state
        (upper, inner, estimate), missing = state.forest.core.series(
            state.buffer, key, start, end, step, state.forest
        )
        return Series(
            start=np.arange(start, end, step, dtype=np.int64).astype("datetime64[us]"),
            upper=upper, inner=inner, estimate=estimate,
            missing=self._missing(missing, start, end),
        )  # fmt: skip

    def decayed(self, key: Key, weigh: Decay, now: int, tolerance: float) -> DecayedCount:
        """One key, each event weighed by its age."""
        state, weights = self._state, Weights(weigh, now)
        (upper, inner, estimate), rows, missing = state.forest.core.decayed(
            state.buffer, key, tolerance, weights, state.forest
        )
        before = [(begin, end) for begin, end in missing if begin <= now]
        return DecayedCount(
            upper=upper, inner=inner, estimate=estimate, rows=rows,
            missing=self._missing(before, FIRST, now + 1),
        )  # fmt: skip

    def top(self, start: int, end: int, number: int) -> TopKeys:
        """The most frequent keys, with bounds.

        Each segment knows its most frequent keys and the most that any other key has; over the
        segments read, those add up. A count on the list of a covered segment is exact, so it is a
        lower bound for the range.
        """
        plan = self._plan(start, end, True)
        keys: dict[bytes | int, Key] = {}
        lower: dict[bytes | int, int] = {}
        unlisted = 0
        for names, rest, covered in plan.names():
            unlisted += rest
            for key, count in names:
                same = key.encode() if isinstance(key, str) else key
                keys.setdefault(same, key)
                lower[same] = lower.get(same, 0) + (count if covered else 0)
        candidates = list(keys.values())
        counts = plan.count_many(self.digests(candidates, "refuse"))[0].tolist()
        total = plan.events()[0]
        ranked = sorted(
            zip(counts, candidates, lower.values(), strict=True),
            key=lambda row: (-row[0], -row[2]),
        )
        items = tuple(
            HotItem(key, count, float(low), min(count / max(total, 1), 1.0))
            for count, key, low in ranked[:number]
            if count
        )
        behind = ranked[number][0] if len(ranked) > number else 0
        return TopKeys(
            items=items,
            unlisted=min(max(unlisted, behind), total),
            total=total,
            missing=self._missing(plan.about()[2], start, end),
        )

    def bounds(self) -> tuple[int, int] | None:
        """The earliest event and the instant after the latest one."""
        opened = [segment for segment in self._state.buffer.segments() if segment.events]
        parts: list[Any] = [*self._state.forest.roots, *opened]
        if not parts:
            return None
        return min(part.first for part in parts), max(part.last for part in parts) + 1

    def missing(self) -> tuple[tuple[float, float], ...]:
        """All times that are known to be missing."""
        return self._missing(self._plan(FIRST, LAST, True).about()[2], FIRST, LAST)

    def _plan(self, start: int, end: int, rollups: bool) -> HistoryPlan:
        forest = self._state.forest
        return forest.core.plan(self._state.buffer, start, end, forest, rollups=rollups)

    def _range_count(
        self, plan: HistoryPlan, counts: tuple[int, int, float, float], start: int, end: int
    ) -> RangeCount:
        upper, inner, estimate, error = counts
        rows, partial, missing = plan.about()
        return RangeCount(
            upper=upper, inner=inner, estimate=estimate, rows=rows, partial=partial,
            predicted_error=error, missing=self._missing(missing, start, end),
        )  # fmt: skip

    def _missing(
        self, ranges: list[tuple[int, int]], start: int, end: int
    ) -> tuple[tuple[float, float], ...]:
        """In seconds, with what retention has dropped, and all of it if the journal is damaged:
        an event that was lost there may be of any time."""
        horizon = self._state.catalogue.horizon
        dropped = [] if horizon is None else [(start, min(horizon, end))]
        if self._state.lost is not None:
            dropped.append((start, end))
        return tuple(
            (
                begin / MICRO if begin > FIRST else -math.inf,
                stop / MICRO if stop < LAST else math.inf,
            )
            for begin, stop in _unite([*ranges, *dropped])
        )

    def digests(self, keys: Any, nulls: Nulls) -> Digests:
        """Keys as the store knows them."""
        settings = self._state.settings
        return Digests(
            keys,
            hash=settings.hash,
            seed=settings.seed,
            secret=self._state.secret,
            nulls=nulls,
        )


def _unite(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same time in as few ranges as possible."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
