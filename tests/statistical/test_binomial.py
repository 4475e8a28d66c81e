"""The measuring instrument itself: our binomial tails against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from tests.statistical.binomial import check, interval, tail_at_least, tail_at_most


def _exact_at_most(x: int, trials: int, p: Fraction) -> Fraction:
    return sum(
        (comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(x + 1)), Fraction(0)
    )


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 10), Fraction(63, 64)])
def test_tails_equal_the_rational_sums(p: Fraction) -> None:
    trials = 60
    for x in range(trials + 1):
        below = _exact_at_most(x, trials, p)
        above = 1 - _exact_at_most(x - 1, trials, p)
        assert tail_at_most(x, trials, float(p)) == pytest.approx(float(below), rel=1e-11)
        assert tail_at_least(x, trials, float(p)) == pytest.approx(float(above), rel=1e-11)


def test_the_interval_cuts_exactly_at_half_alpha() -> None:
    trials, p, half = 400, Fraction(1, 20), Fraction(1, 2_000_000_000)
    low, high = interval(trials, float(p))
    assert _exact_at_most(low - 1, trials, p) < half <= _exact_at_most(low, trials, p)
    above = 1 - _exact_at_most(high - 1, trials, p)
    assert 1 - _exact_at_most(high, trials, p) < half <= above


def test_a_million_trials_at_one_percent_allow_six_percent() -> None:
    assert interval(1_000_000, 0.01) == (9_398, 10_614)


@pytest.mark.parametrize("hits", [9_397, 10_615])
def test_one_hit_beyond_either_end_fails(hits: int) -> None:
    with pytest.raises(AssertionError, match="allowed 9398"):
        check(hits, 1_000_000, 0.01, "rate")


def test_chances_below_the_rounding_of_one_are_kept() -> None:
    assert tail_at_least(1, 1_000_000, 1e-20) == pytest.approx(1e-14)
    assert interval(1_000_000, 1e-20) == (0, 0)


def test_certain_outcomes_have_no_width() -> None:
    assert interval(10, 0.0) == (0, 0)
    assert interval(10, 1.0) == (10, 10)
