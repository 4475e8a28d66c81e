"""Sums that fade, at query time: `decayed(key, g)` for any g that does not grow with age.

The sum of g(age) over a key's events; g is chosen when the question is asked, so one store answers
for all of the families that the time-decay papers name:

    exponential("1h")        g(a) = 2^(-a / 1h)
    sliding("1d")            g(a) = 1 up to a day, then 0
    polynomial(2, "1h")      g(a) = (1 + a / 1h)^-2
    lambda age: ...          your own, of seconds

A row knows its earliest and its latest event, so its part lies between its count times g at those
two ages. Where both are nearly the same the row will do, however wide; elsewhere its children are
asked. Events after `now` do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bloomtide.errors import ParameterError, require
from bloomtide.history.forest import Damaged, Key, Node
from bloomtide.history.ladder import MICRO, micros
from bloomtide.history.ranges import unite

Decay = Callable[[float], float]
"""The weight of an event, by its age in seconds."""


def exponential(half_life: Any) -> Decay:
    """Half as much after each half-life."""
    length = micros(half_life, "half_life") / MICRO
    return lambda age: float(0.5 ** (age / length))


def sliding(window: Any) -> Decay:
    """All of it within the window, then nothing."""
    length = micros(window, "window") / MICRO
    return lambda age: 1.0 if age <= length else 0.0


def polynomial(power: float, unit: Any = "1s") -> Decay:
    """Falls as a power of the age: long memories, such as of burstiness."""
    require("power", power, "above zero", power > 0)
    length = micros(unit, "unit") / MICRO
    return lambda age: float((1 + age / length) ** -power)


@dataclass(slots=True)
class DecayedSum:
    """What has been summed up so far."""

    weigh: Decay
    now: int
    tolerance: float
    upper: float = 0.0
    inner: float = 0.0
    estimate: float = 0.0
    rows: int = 0
    missing: list[tuple[int, int]] = field(default_factory=list)

    def add_nodes(self, nodes: Iterable[Node], key: Key) -> None:
        """Adds what these nodes know; the time of one that cannot be read is missing."""
        for node in nodes:
            before = self.upper, self.inner, self.estimate, self.rows
            try:
                self._add(node, key)
            except Damaged:
                self.upper, self.inner, self.estimate, self.rows = before
                self.missing.append((node.begin, node.end))
        self.missing = unite(self.missing)

    def _add(self, node: Node, key: Key) -> None:
        import numpy as np

        if node.first > self.now:
            return
        node.require_sound()
        young, old = self._weights(node.first, node.last)
        if young == 0:
            return  # so is every older event
        if node.last <= self.now and young - old <= self.tolerance * young:
            self._take(node.count(key, 0, node.length), young, old)
            return
        rows = node.rows()
        counts = node.rows_of(key)
        for row in np.flatnonzero((counts > 0) & (rows.first <= self.now)).tolist():
            young, old = self._weights(int(rows.first[row]), int(rows.last[row]))
            if young > 0:
                self._add_row(node, row, key, int(counts[row]), young, old)

    def _add_row(
        self, node: Node, row: int, key: Key, count: int, young: float, old: float
    ) -> None:
        if young - old > self.tolerance * young:
            before = self.upper, self.inner, self.estimate, self.rows
            children = node.children(row)
            try:
                for child in children:
                    self._add(child, key)
            except Damaged:
                self.upper, self.inner, self.estimate, self.rows = before
                children = []
            if children:
                # The row's own count at its youngest is a bound as well.
                self.upper = min(self.upper, before[0] + count * young)
                self.estimate = min(self.estimate, self.upper)
                self.inner = min(self.inner, self.upper)
                return
        self._take(count, young, old)

    def _take(self, count: int, young: float, old: float) -> None:
        self.upper += count * young
        self.inner += count * old
        self.estimate += count * (young + old) / 2
        self.rows += 1

    def _weights(self, first: int, last: int) -> tuple[float, float]:
        """Of the youngest and of the oldest event; nothing if some lie after `now`."""
        young = self._weight(max(self.now - last, 0))
        old = self._weight(self.now - first)
        if old > young:
            _refuse(f"{old} at {(self.now - first) / MICRO} s after {young}")
        return young, old if last <= self.now else 0.0

    def _weight(self, age: int) -> float:
        weight = float(self.weigh(age / MICRO))
        if not (math.isfinite(weight) and weight >= 0):
            _refuse(f"{weight} at {age / MICRO} s")
        return weight


def _refuse(got: str) -> None:
    raise ParameterError(
        f"`g` must be a function of an age in seconds, at least 0 and never rising, got: {got}",
        hint="exponential, sliding and polynomial in bloomtide.history make such functions",
        name="g",
        got=got,
        allowed="at least 0 and never rising",
    )
