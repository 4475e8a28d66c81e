"""The questions a store answers, over its forest and its open segments, in microseconds.

A segment that turns out to be damaged in the middle of an answer is remembered, and the answer is
begun again without it; so each answer is of one piece and says which time it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from bloomtide._core import Digests
from bloomtide.errors import ParameterError, require
from bloomtide.history.decay import Decay, DecayedSum
from bloomtide.history.forest import Counts, Damaged, Key, Node, OpenNode
from bloomtide.history.ladder import MICRO, micros
from bloomtide.history.ranges import RangePlan, plan_range, unite
from bloomtide.history.records import DecayedCount, RangeCount, TopKeys
from bloomtide.history.series import Series, Steps, edges_of
from bloomtide.history.settings import Nulls
from bloomtide.history.state import State, to_micros
from bloomtide.records import HotItem

T = TypeVar("T")
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
            return stop - micros(last, "last"), stop
        first = FIRST if start is None else to_micros(start, "start")
        stop = LAST if end is None else to_micros(end, "end")
        require("start", start, "not after `end`", first <= stop, hint="ranges are [start, end)")
        return first, stop

    def count(self, key: Key, start: int, end: int, rollups: bool) -> RangeCount:
        """One key in one range."""

        def answer() -> RangeCount:
            plan = self._plan(start, end, rollups)
            counts = plan.evaluate(self._state.forest, "count", key)
            return self._range_count(plan, counts, start, end)

        return _insist(answer)

    def count_many(
        self, keys: Any, start: int, end: int, rollups: bool, nulls: Nulls
    ) -> tuple[Counts, tuple[tuple[float, float], ...]]:
        """The upper bound of each key, and the missing times."""
        import numpy as np

        digests = self._digests(keys, nulls)

        def answer() -> tuple[Counts, tuple[tuple[float, float], ...]]:

            plan = self._plan(start, end, rollups)
            upper = plan.evaluate(self._state.forest, "count_many", digests)[0]
            counts = np.zeros(len(digests), dtype=np.uint64) + np.uint64(0)
            return counts + upper, self._missing(plan.missing, start, end)

        return _insist(answer)

    def total(self, start: int, end: int) -> RangeCount:
        """All keys in one range; exact but for partial rows."""

        def answer() -> RangeCount:
            plan = self._plan(start, end, True, read=False)
            counts = plan.evaluate(self._state.forest, "events")
            return self._range_count(plan, counts, start, end)

        return _insist(answer)

    def contains(self, key: Key, start: int, end: int) -> bool:
        """Whether the key may have been seen; any may, in a time that cannot be read."""

        def answer() -> bool:
            plan = self._plan(start, end, True)
            missing = plan.missing or self._state.lost
            return bool(missing or plan.evaluate(self._state.forest, "count", key)[0])

        return _insist(answer)

    def series(self, key: Key, start: int, end: int, step: int) -> Series:
        """One key, step by step."""
        edges = edges_of(start, end, step)

        def answer() -> Series:
            steps = Steps(edges)
            steps.add_nodes(self._nodes(start, end), key)
            return Series(
                start=edges[:-1].astype("datetime64[us]"),
                upper=steps.upper,
                inner=steps.inner,
                estimate=steps.estimate,
                missing=self._missing(steps.missing, start, end),
            )

        return _insist(answer)

    def decayed(self, key: Key, weigh: Decay, now: int, tolerance: float) -> DecayedCount:
        """One key, each event weighed by its age."""

        def answer() -> DecayedCount:
            total = DecayedSum(weigh, now, tolerance)
            total.add_nodes(self._nodes(FIRST, now + 1), key)
            return DecayedCount(
                upper=total.upper,
                inner=total.inner,
                estimate=total.estimate,
                rows=total.rows,
                missing=self._missing(total.missing, FIRST, now + 1),
            )

        return _insist(answer)

    def top(self, start: int, end: int, number: int) -> TopKeys:
        """The most frequent keys by name.

        Each segment lists its most frequent keys and the most that any other key has; over the
        segments read, those add up. A count on the list of a covered segment is exact, so it is a
        lower bound for the range.
        """
        import numpy as np

        def answer() -> TopKeys:

            plan = self._plan(start, end, True)
            forest = self._state.forest
            keys: dict[bytes | int, Key] = {}
            lower: dict[bytes | int, int] = {}
            unlisted = 0
            for node, covered in plan.nodes(forest):
                names, rest = node.names()
                unlisted += rest
                for key, count in names:
                    same = key.encode() if isinstance(key, str) else key
                    keys.setdefault(same, key)
                    lower[same] = lower.get(same, 0) + (count if covered else 0)
            candidates = list(keys.values())
            digests = self._digests(candidates, "refuse")
            upper = plan.evaluate(forest, "count_many", digests)[0]
            counts = (np.zeros(len(candidates), dtype=np.uint64) + upper).tolist()
            total = self.total(start, end)
            ranked = sorted(
                zip(counts, candidates, lower.values(), strict=True),
                key=lambda row: (-row[0], -row[2]),
            )
            items = tuple(
                HotItem(key, count, float(low), min(count / max(total.upper, 1), 1.0))
                for count, key, low in ranked[:number]
                if count
            )
            behind = ranked[number][0] if len(ranked) > number else 0
            return TopKeys(
                items=items,
                unlisted=min(max(unlisted, behind), total.upper),
                total=total.upper,
                missing=self._missing(plan.missing, start, end),
            )

        return _insist(answer)

    def bounds(self) -> tuple[int, int] | None:
        """The earliest event and the instant after the latest one."""
        nodes = self._nodes(FIRST, LAST)
        if not nodes:
            return None
        return min(node.first for node in nodes), max(node.last for node in nodes) + 1

    def missing(self) -> tuple[tuple[float, float], ...]:
        """All times that are known to be missing."""
        return self._missing(self._plan(FIRST, LAST, True, read=False).missing, FIRST, LAST)

    def _nodes(self, start: int, end: int) -> list[Node]:
        """Every root and open segment with an event in the range."""
        return [*self._state.forest.overlapping(start, end), *self._open_nodes(start, end)]

    def _open_nodes(self, start: int, end: int) -> list[OpenNode]:
        buffer = self._state.buffer
        return [
            OpenNode(buffer, segment)
            for segment in buffer.segments()
            if segment.events and segment.last >= start and segment.first < end
        ]

    def _plan(self, start: int, end: int, rollups: bool, *, read: bool = True) -> RangePlan:
        """`read`: keys will be asked for, so the files are needed."""
        sealed = self._state.forest.plan(start, end, read=read) if rollups else None
        if sealed is None:
            return plan_range(self._nodes(start, end), start, end, rollups=rollups)
        plan = plan_range(self._open_nodes(start, end), start, end)
        plan.sealed = sealed
        plan.rows += sealed.rows
        plan.partial += sealed.partial
        plan.missing += sealed.missing
        return plan

    def _range_count(
        self, plan: RangePlan, counts: tuple[Any, Any, Any], start: int, end: int
    ) -> RangeCount:
        upper, inner, estimate = counts
        return RangeCount(
            upper=int(upper),
            inner=int(inner),
            estimate=float(estimate),
            rows=plan.rows,
            partial=plan.partial,
            missing=self._missing(plan.missing, start, end),
        )

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
            for begin, stop in unite([*ranges, *dropped])
        )

    def _digests(self, keys: Any, nulls: Nulls) -> Digests:
        settings = self._state.settings
        return Digests(
            keys,
            hash=settings.hash,
            seed=settings.seed,
            secret=self._state.secret,
            nulls=nulls,
        )


def _insist(answer: Callable[[], T]) -> T:
    """Asks again each time a segment turns out to be damaged: it is known to be from then on."""
    while True:
        try:
            return answer()
        except Damaged:
            continue
