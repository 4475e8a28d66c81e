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
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bloomtide.errors import ParameterError, require
from bloomtide.history.ladder import MICRO, micros

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


@dataclass(frozen=True, slots=True)
class Weights:
    """What events between two times weigh now."""

    weigh: Decay
    now: int
    _asked: list[tuple[int, float]] = field(default_factory=list)
    """Ages and their weights, the youngest first."""

    def __call__(self, first: int, last: int) -> tuple[float, float]:
        """The weights of the youngest and of the oldest event; of none that is after now."""
        if first > self.now:
            return 0.0, 0.0
        young = self._weight(max(self.now - last, 0))
        old = self._weight(self.now - first)
        return young, old if last <= self.now else 0.0

    def _weight(self, age: int) -> float:
        asked = self._asked
        place = bisect_left(asked, (age, -1.0))
        if place < len(asked) and asked[place][0] == age:
            return asked[place][1]
        weight = float(self.weigh(age / MICRO))
        if not (math.isfinite(weight) and weight >= 0):
            _refuse(f"{weight} at {age / MICRO} s")
        asked.insert(place, (age, weight))
        for (young, more), (old, less) in pairwise(asked[max(place - 1, 0) : place + 2]):
            if less > more:
                _refuse(f"{less} at {old / MICRO} s after {more} at {young / MICRO} s")
        return weight


def _refuse(got: str) -> None:
    raise ParameterError(
        f"`g` must be a function of an age in seconds, at least 0 and never rising, got: {got}",
        hint="exponential, sliding and polynomial in bloomtide.history make such functions",
        name="g",
        got=got,
        allowed="at least 0 and never rising",
    )
