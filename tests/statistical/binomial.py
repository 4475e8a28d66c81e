"""The exact binomial interval that every statistics test judges by.

A test counts X hits in `trials` independent trials, each a hit with chance `p`. It passes when X
is inside the two-sided interval outside of which a right filter falls with chance below ALPHA.
Seeds are fixed, so a test never flickers: ALPHA only says how rare a false alarm is after a seed
or a hash changes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p

ALPHA = 1e-9


def _log_mass(x: int, trials: int, p: float) -> float:
    """ln Pr[X = x] for 0 < p < 1."""
    ways = lgamma(trials + 1) - lgamma(x + 1) - lgamma(trials - x + 1)
    return ways + x * log(p) + (trials - x) * log1p(-p)


def _sum_outwards(x: int, trials: int, p: float, step: int) -> float:
    """Pr[X = x] + Pr[X = x + step] + ..., every term made from the one before it."""
    if not 0 <= x <= trials:
        return 0.0 if (x < 0) == (step < 0) else 1.0
    term, total = exp(_log_mass(x, trials, p)), 0.0
    odds = p / (1.0 - p)
    while 0 <= x <= trials:
        total += term
        # Beyond the mean, and only there, terms fall for good.
        if (trials * p - x) * step < 0 and term <= total * 1e-17:
            break
        term *= odds * (trials - x) / (x + 1) if step > 0 else x / (trials - x + 1) / odds
        x += step
    return min(total, 1.0)


def tail_at_most(x: int, trials: int, p: float) -> float:
    """Pr[X <= x]."""
    return _sum_outwards(x, trials, p, -1)


def tail_at_least(x: int, trials: int, p: float) -> float:
    """Pr[X >= x]."""
    return _sum_outwards(x, trials, p, +1)


def interval(trials: int, p: float, alpha: float = ALPHA) -> tuple[int, int]:
    """Smallest and largest X whose own tail still has at least alpha / 2."""
    if p <= 0.0 or p >= 1.0:
        sure = 0 if p <= 0.0 else trials
        return sure, sure
    mean = min(int(trials * p), trials)
    return (
        _first(0, mean, lambda x: tail_at_most(x, trials, p) >= alpha / 2),
        _first(mean, trials + 1, lambda x: tail_at_least(x, trials, p) < alpha / 2) - 1,
    )


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The smallest x in low..high where `holds` turns true; it stays true from there on."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def check(hits: int, trials: int, p: float, what: str, alpha: float = ALPHA) -> None:
    """Fail unless `hits` lies in the exact interval, too good counts as wrong as too bad."""
    low, high = interval(trials, p, alpha)
    assert low <= hits <= high, (
        f"{what}: {hits} of {trials}, expected {trials * p:.1f}, allowed {low}..{high}"
    )


def check_at_most(hits: int, trials: int, p: float, what: str, alpha: float = ALPHA) -> None:
    """Fail when `hits` is more than chance explains for a rate of at most `p`."""
    high = interval(trials, p, alpha)[1]
    assert hits <= high, f"{what}: {hits} of {trials}, at most {high} for a rate of {p:g}"
