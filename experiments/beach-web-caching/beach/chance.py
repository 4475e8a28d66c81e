"""Whether a count is what a rate makes of so many questions."""

from __future__ import annotations

import math


def near(found: int, rate: float, asked: int) -> bool:
    """Within 4 sigma, and one more: none expected and one found is no surprise."""
    expected = rate * asked
    return abs(found - expected) <= 4 * math.sqrt(expected * (1 - rate) + 1)
