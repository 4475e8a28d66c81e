"""What was seen to go wrong, each as it was told."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide import HotList, RecentFilter, TimeDecayingBloomFilter

T, DAY = 1_700_000_000, 86_400


def counting(kind: str) -> Any:
    """Something that counts and fades."""
    if kind == "list":
        return HotList(100, half_life="1h")
    return TimeDecayingBloomFilter(1000, 0.01, half_life="1h", storage=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["list", "basic", "optimized"])
@pytest.mark.parametrize("ahead", [3 * 3600, 30 * DAY, 5000 * DAY])
def test_one_event_far_ahead_fades_nothing(kind: str, ahead: int) -> None:
    made = counting(kind)
    made.add("k", 355, at=T)
    before = made.time
    made.add("wrong", at=T + ahead)
    assert made.count("k", at=T) == pytest.approx(355)
    assert made.time == before
    told = made.stats() if kind == "list" else made.stats(at=T)
    assert (told.aside, told.ahead) == (1, int(ahead == 5000 * DAY))
    if ahead < 5000 * DAY:
        assert made.count("wrong", at=T) == 0, "it has not happened yet"
        own = made.count("wrong", at=T + ahead)
        assert own == pytest.approx(1), "it is counted at its own time"


@pytest.mark.parametrize("kind", ["list", "basic", "optimized"])
def test_a_wrong_time_may_also_be_the_first(kind: str) -> None:
    made = counting(kind)
    made.add("wrong", at=T + 700 * DAY)
    for second in range(30):
        made.add("k", at=T + second)
    assert made.time is not None
    assert made.time <= T + 30
    assert made.count("k", at=T + 30) > 29
    assert made.count("wrong", at=T + 700 * DAY) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["list", "basic", "optimized"])
def test_a_stream_that_was_silent_for_a_weekend_goes_on_as_if_nothing_had_been(kind: str) -> None:
    made, known = counting(kind), counting(kind)
    times = [T + second for second in range(100)] + [T + 3 * DAY + s for s in range(200)]
    for number, at in enumerate(times):
        made.add(f"page {number % 7}", at=at)
    known.advance(now=T + 3 * DAY)  # what a program does that knows what time it is
    for number, at in enumerate(times):
        known.add(f"page {number % 7}", at=at)
    assert made.time == known.time
    for page in range(7):
        found, expected = (each.count(f"page {page}", at=times[-1]) for each in (made, known))
        assert found == pytest.approx(expected, abs=0.1)
    assert made.stats().late == 0


def test_the_clock_confirms_what_happens_now() -> None:
    now = [T]
    made = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", clock=lambda: now[0])
    for second in range(100):
        made.add("k", at=T + second)
    now[0] = T + 3 * DAY
    made.add("k", at=now[0] - 20)
    assert made.time is not None
    assert made.time > T + 2 * DAY
    assert made.stats().aside == 0


@pytest.mark.parametrize("kind", ["list", "basic", "optimized"])
def test_every_time_is_believed_with_max_jump(kind: str) -> None:
    if kind == "list":
        made: Any = HotList(100, half_life="1h", max_jump=float("inf"))
    else:
        made = TimeDecayingBloomFilter(
            1000, 0.01, half_life="1h", max_jump=float("inf"), storage=kind  # type: ignore[arg-type]
        )  # fmt: skip
    made.add("k", at=T)
    made.add("k", at=T + 30 * DAY)
    assert made.time is not None
    assert made.time > T + 29 * DAY


def test_a_key_is_not_forgotten_because_of_one_event() -> None:
    recent = RecentFilter(1000, 1e-9, within="1d", clock=lambda: T + 900 * DAY)
    for number in range(100):
        recent.add(f"k{number}", at=T + number)
    assert recent.add("wrong", at=T + 300 * DAY)
    assert recent.add("ahead", at=T + 950 * DAY)
    assert all(recent.contains(f"k{number}", at=T + 100) for number in range(100))
    assert not recent.add("k5", at=T + 200)
    assert recent.contains("wrong", at=T + 300 * DAY)
    assert recent.stats().ahead == 1
    assert recent.time == T + 200


def test_what_cannot_be_told_of_the_future_is_refused_by_name() -> None:
    for made in (HotList(10, half_life="1h"), TimeDecayingBloomFilter(100, 0.1, half_life="1h")):
        with pytest.raises(Exception, match="`now` must be not later than the clock"):
            made.advance(now="2030-01-01T00:00:00Z")


@pytest.mark.parametrize("kind", ["basic", "list"])
def test_three_events_that_agree_on_nothing_do_not_move_what_now_means_to_the_latest(
    kind: str,
) -> None:
    made = counting(kind)
    for second in range(100):
        made.add("k", at=T + second)
    for days in (30, 60, 500):
        made.add("w", at=T + days * DAY)
    # All three say that it is at least the thirtieth day, and one alone says more.
    assert T + 29 * DAY < made.time <= T + 30 * DAY
    for second in range(3):
        made.add("w", at=T + 500 * DAY + second)
    assert T + 500 * DAY - 360 <= made.time <= T + 500 * DAY + 2
