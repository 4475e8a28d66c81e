"""The exact binomial interval: how many false positives may come out if the rate is right.

No normal approximation: at an error rate of 1e-6 it would be wrong where it matters. The
probabilities are built from the mode outwards by the ratio of neighbours,

    P(x + 1) / P(x) = (n - x) / (x + 1) * p / (1 - p),

and divided by their sum, so that nothing large is ever subtracted from something large.
"""

from __future__ import annotations

import math

import numpy as np

_NEGLIGIBLE = 1e-30  # relative to the mode; far below any alpha used with it


def interval(trials: int, rate: float, alpha: float) -> tuple[int, int]:
    """The smallest and the largest count that a two-sided test at `alpha` accepts.

    Binomial(trials, rate) falls below the first with probability <= alpha / 2, and above the
    second with probability <= alpha / 2; each is the tightest such number.
    """
    if not 0 < rate < 1:
        raise ValueError(f"the rate must lie between 0 and 1: {rate}")
    mode = min(int((trials + 1) * rate), trials)
    # Chernoff: beyond this distance the terms are negligible whatever the shape.
    reach = 12 * math.ceil(math.sqrt(trials * rate * (1 - rate))) + 400
    odds = rate / (1 - rate)
    above = np.arange(mode, min(mode + reach, trials), dtype=np.float64)
    below = np.arange(mode, max(mode - reach, 0), -1, dtype=np.float64)
    rising = np.cumprod((trials - above) / (above + 1) * odds)
    falling = np.cumprod(below / (trials - below + 1) / odds)
    weights = np.concatenate([falling[::-1], [1.0], rising])
    first = mode - len(falling)
    for last_weight, at_edge in (
        (weights[0], first == 0),
        (weights[-1], first + len(weights) - 1 == trials),
    ):
        if not at_edge and last_weight > _NEGLIGIBLE:
            raise ArithmeticError("the sum was cut before its terms became negligible")
    weights /= math.fsum(weights)
    low = first + int(np.searchsorted(np.cumsum(weights), alpha / 2, side="right"))
    tail = int(np.searchsorted(np.cumsum(weights[::-1]), alpha / 2, side="right"))
    high = first + len(weights) - 1 - tail
    return low, high
