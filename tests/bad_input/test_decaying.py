"""Time-decaying filters: what makes no sense is one clear error."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide import TimeDecayingBloomFilter
from bloomtide.errors import IncompatibleError, ParameterError
from tests.bad_input.refusal import refused


def made(**words: Any) -> TimeDecayingBloomFilter:
    return TimeDecayingBloomFilter(100, 0.01, **words)


def test_a_rate_needs_counts_that_fade() -> None:
    for_ever = made(decay=1, epoch="1h")
    for_ever.add("a", 3, at=1e9)
    assert for_ever.count("a", at=1e9 + 10**6) == 3
    refused(ParameterError, for_ever.rate, "a", name="decay")
    refused(ParameterError, for_ever.rate_many, ["a"], name="decay")


def test_half_life_and_decay_exclude_each_other() -> None:
    error = refused(
        ParameterError, lambda: made(half_life="1h", decay=0.5, epoch="1m"), name="decay"
    )
    assert "either `half_life`" in error.hint


def test_a_clock_that_is_no_clock_is_refused() -> None:
    for clock in (5, "now", object()):
        refused(ParameterError, lambda clock=clock: made(half_life="1h", clock=clock), name="clock")


@pytest.mark.parametrize("told", [float("nan"), -1, 1.7e12, None, "2020-01-01T00:00:00", "noon"])
def test_a_clock_that_tells_no_time_is_named(told: Any) -> None:
    filled = made(half_life="1h", clock=lambda: told)
    for ask in (filled.add, filled.count, filled.rate, filled.estimate, filled.__contains__):
        refused(ParameterError, ask, "a", name="clock")
    refused(ParameterError, filled.add_many, ["a"], name="clock")
    refused(ParameterError, filled.advance, name="clock")
    refused(ParameterError, filled.stats, name="clock")
    assert filled.time is None


def test_an_exception_of_the_clock_comes_out_and_nothing_is_counted() -> None:
    def broken() -> float:
        raise LookupError("no clock today")

    filled = made(half_life="1h", clock=broken)
    with pytest.raises(LookupError, match="no clock today"):
        filled.add("a")
    with pytest.raises(LookupError, match="no clock today"):
        filled.add_many(["a"])
    assert filled.time is None


def test_an_unknown_word_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="halflife"):
        made(halflife="1h")
    with pytest.raises(TypeError, match="clock"):
        TimeDecayingBloomFilter.plan(100, 0.01, half_life="1h", clock=None)  # type: ignore[call-arg]


def test_an_unknown_storage_is_refused() -> None:
    refused(ParameterError, lambda: made(half_life="1h", storage="tiered"), name="storage")


def test_other_time_is_refused_by_name() -> None:
    one = made(half_life="1h")
    for field, words in {
        "epoch": {"half_life": "1h", "epoch": "1m"},
        "decay": {"half_life": "2h", "epoch": "6m"},
        "origin": {"half_life": "1h", "origin": 100},
        "rounding": {"half_life": "1h", "rounding": "expiring"},
        "policy": {"half_life": "1h", "policy": "conservative"},
    }.items():
        refused(IncompatibleError, one.merge, made(**words), field=field)  # type: ignore[arg-type]


def test_two_machines_of_one_half_life_merge() -> None:
    one, other = made(half_life="1h"), made(half_life=3600, epoch="6m")
    one.merge(other)
    assert one.decay == pytest.approx(2**-0.1, rel=1e-15)
