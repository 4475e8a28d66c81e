"""lower <= true <= count, and every key with more than a k-th of all events is listed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide import HotList
from bloomtide.reference import ReferenceHotList
from tests.hot.exact import Event, counts, fed, obeys_the_law

KEYS = st.one_of(
    st.integers(-4, 12), st.sampled_from(["a", "b", "ü", ""]), st.sampled_from([b"a", b"\xff"])
)
HALF_LIVES = st.one_of(st.none(), st.floats(1e-3, 1e7), st.sampled_from([0.001, 1.0, 3600.0]))
INSTANTS = st.floats(0, 3e9) | st.floats(1.7e9, 1.7e9 + 100) | st.sampled_from([0.0, 1.7e9])
EVENTS = st.lists(st.tuples(KEYS, st.integers(1, 2**40), INSTANTS), max_size=60)


def last(*streams: list[Event]) -> float:
    return max((at for stream in streams for _, _, at in stream), default=0.0)


@given(EVENTS, st.integers(1, 9), HALF_LIVES, st.floats(0, 1e6))
def test_bounds_and_guarantee_hold_for_any_stream(
    events: list[Event], k: int, half_life: float | None, later: float
) -> None:
    hot = fed(HotList(k, half_life=half_life, clock=lambda: 3e9), events)
    obeys_the_law(hot, events, last(events) + later)


@given(EVENTS, EVENTS, EVENTS, st.integers(1, 9), HALF_LIVES)
def test_bounds_and_guarantee_hold_after_merges_and_what_comes_then(
    left: list[Event],
    right: list[Event],
    then: list[Event],
    k: int,
    half_life: float | None,
) -> None:
    hot = fed(HotList(k, half_life=half_life, clock=lambda: 3e9), left)
    hot.merge(fed(HotList(k, half_life=half_life, clock=lambda: 3e9), right))
    hot.validate()
    obeys_the_law(hot, left + right, last(left, right))
    obeys_the_law(fed(hot, then), left + right + then, last(left, right, then))


@pytest.mark.parametrize("half_life", [None, 3.0, 600.0])
def test_a_long_skewed_stream_keeps_the_law(half_life: float | None) -> None:
    draw = np.random.default_rng(5)
    keys = draw.zipf(1.3, 20_000) % 5000
    instants = 1.7e9 + np.arange(20_000) * 0.05
    hot = HotList(50, half_life=half_life)
    hot.add_many(keys, at=instants)
    hot.validate()
    events: list[Event] = [(int(k), 1, float(t)) for k, t in zip(keys, instants, strict=True)]
    obeys_the_law(hot, events, float(instants[-1]) + 1)


def test_the_guarantee_is_tight_so_a_list_of_fewer_places_would_break_it() -> None:
    # Eleven keys of equal weight: each has a share of 1/11, so ten places promise nothing for them.
    hot = HotList(10)
    for _ in range(10):
        hot.add_many(list(range(11)))
    assert len(hot) == 10
    assert sum(key in hot for key in range(11)) == 10
    assert hot.total() == 110


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 40)), max_size=200),
    st.integers(1, 6),
    st.sampled_from([None, 1.0, 8.0]),
)
def test_the_model_evicts_the_same_keys(
    events: list[tuple[int, int, int]], k: int, half_life: float | None
) -> None:
    # Whole half-lives, so that neither of the two rounds and ties are ties in both.
    step = half_life or 1.0
    model = ReferenceHotList(k, half_life)
    hot = HotList(k, half_life=half_life, max_jump=math.inf)  # the model believes every time
    for key, count, ticks in events:
        model.add(key, count, ticks * step)
        hot.add(key, count, ticks * step)
    now = max((ticks * step for _, _, ticks in events), default=0.0)
    assert {item.key for item in hot.top(at=now)} == {place.key for place in model.places}
    for item in hot.top(at=now):
        bounds = Fraction(item.lower), Fraction(item.count)
        assert bounds == model.bounds(item.key, now)
    assert hot.total(at=now) == model.total(now)


def test_a_late_event_weighs_what_is_left_of_it() -> None:
    hot = HotList(4, half_life=10)
    hot.add("now", at=1000)
    hot.add("late", 8, at=970)
    assert hot.count("late", at=1000) == 1.0
    assert hot.stats().late == 1
    assert hot.time == 1000


def test_no_late_key_is_lost_however_old_it_is() -> None:
    hot = HotList(4, half_life=0.001)
    hot.add("now", at=1.7e9)
    hot.add("old", 1, at=0)
    assert "old" in hot
    assert 0 < hot.count("old", at=1.7e9) < 1e-300
    assert hot.estimate("old", at=1.7e9).lower == 0


def test_counts_halve_with_every_half_life_and_order_never_changes_by_decay() -> None:
    hot = HotList(10, half_life="1h")
    for number in range(10):
        hot.add(number, number + 1, at=3600)
    order = [item.key for item in hot.top(at=3600)]
    assert order == list(range(9, -1, -1))
    for hours in range(2, 40):
        assert [item.key for item in hot.top(at=3600 * hours)] == order
        assert hot.count(9, at=3600 * hours) == 10 / 2 ** (hours - 1)


def test_a_million_half_lives_of_silence_leave_tiny_counts_and_a_usable_list() -> None:
    hot = HotList(3, half_life=0.001)
    hot.add_many(["a", "b", "c"], at=1.7e9)
    assert all(0 < item.count < 1e-300 and item.lower == 0 for item in hot.top(at=1.7e9 + 1e6))
    hot.add("d", at=1.7e9 + 1e6)
    hot.validate()
    assert hot.top(1, at=1.7e9 + 1e6)[0].key == "d"
    assert hot.count("d", at=1.7e9 + 1e6) == pytest.approx(1)


def test_huge_counts_stay_finite_bounds() -> None:
    hot = HotList(2, half_life=1)
    for _ in range(100):
        hot.add("a", 2**64 - 2, at=1.7e9)
    truth = counts([("a", 100 * (2**64 - 2), 1.7e9)], 1, 1.7e9)[b"a"]
    estimate = hot.estimate("a", at=1.7e9)
    assert Fraction(estimate.lower) <= truth <= Fraction(estimate.value)
    for _ in range(1100):
        hot.merge(hot.copy())
    assert math.isfinite(hot.count("a", at=1.7e9))
    hot.validate()
