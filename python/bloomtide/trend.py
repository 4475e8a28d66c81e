"""What a decayed count tells: a rate, and beside a list that forgets more slowly, a trend.

A count that halves every H seconds is what a steady stream of `rate` hits a second brings it to:
`rate * window`, with the window H / ln 2 once the stream has run for long, and less before. So a
count tells a rate, and the same page's rates in the two lists tell whether it comes up or cools.
"""

from __future__ import annotations

import math
from typing import Literal

SLOWER = 6
"""How many times slower the second list forgets."""

Trend = Literal["up", "down", "flat"]


def steady_window(half_life: float | None, age: float) -> float:
    """Seconds of a steady stream that its count stands for, when it began `age` seconds ago."""
    age = max(age, 1.0)  # a log of one second still has a rate
    if half_life is None:
        return age
    return half_life / math.log(2) * -math.expm1(-math.log(2) * age / half_life)


def trend_of(low: float, high: float, least: float, most: float) -> Trend:
    """Whether a count between `low` and `high` lies off what is expected, `least` to `most`.

    Only beyond a tenth, and beyond what chance does: two standard deviations.
    """

    def margin(expected: float) -> float:
        # A decayed count of Poisson arrivals has half the variance of its mean.
        return max(0.1 * expected, 2 * math.sqrt(max(expected, 1.0) / 2))

    if low > most + margin(most):
        return "up"
    return "down" if high < least - margin(least) else "flat"
