"""What the clock says of the first events, and what a clock that was looked at long ago may not."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from bloomtide import HotList, RecentFilter, TimeDecayingBloomFilter
from bloomtide.errors import KeyTypeError, NullKeyError, ParameterError

T, HOUR, DAY = 1_769_860_800, 3600, 86_400
KINDS = ["list", "strict", "expiring"]


def counting(kind: str, **words: Any) -> Any:
    """Something that counts and fades."""
    if kind == "list":
        return HotList(100, half_life="1h", **words)
    return TimeDecayingBloomFilter(1000, 0.01, half_life="1h", rounding=kind, **words)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [False, True])
def test_events_of_now_count_after_days_without_any(kind: str, batch: bool) -> None:
    now = [float(T)]
    made = counting(kind, clock=lambda: now[0])
    made.add("a", at=T)
    now[0] += 3 * DAY
    if batch:
        made.add_many(["b"] * 1000)
    else:
        for _ in range(1000):
            made.add("b")
    assert made.count("b") == pytest.approx(1000)
    stats = made.stats()
    assert (stats.late, stats.ahead, stats.aside, stats.clock_jumps) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", ["at", "clock", "batch"])
def test_a_first_event_some_hours_ahead_of_the_clock_is_outvoted(kind: str, given: str) -> None:
    made = counting(kind, clock=lambda: T)
    made.add("wrong", at=T + 20 * HOUR)
    if given == "batch":
        made.add_many(["k"] * 1000)
    for _ in range(0 if given == "batch" else 1000):
        made.add("k", at=T if given == "at" else None)
    assert made.count("k") == pytest.approx(1000)
    assert made.count("k", at=T) == pytest.approx(1000)
    assert made.count("wrong", at=T + 20 * HOUR) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_clock_confirms_no_time_ahead_of_it_by_more_than_two_half_lives(kind: str) -> None:
    words: dict[str, Any] = {"half_life": "1m", "clock": lambda: T}
    made: Any = HotList(100, **words)
    if kind != "list":
        made = TimeDecayingBloomFilter(1000, 0.01, rounding=kind, **words)  # type: ignore[arg-type]
    for _ in range(100):
        made.add("k", at=T - 1)
    made.add("x", at=T + 290)
    assert made.count("k") > 90
    assert made.stats().aside == 1


def test_a_filter_and_its_list_have_one_now() -> None:
    now = float(T)
    made: Any = TimeDecayingBloomFilter(1000, 0.01, half_life="1m", clock=lambda: now)
    both = made.with_hot_list(5)
    for _ in range(20):
        both.add("a", 1, now)
    for _ in range(3):
        both.add("w", 1, now + 5 * HOUR)
    for key, count in (("a", 20), ("w", 0)):
        assert both.count(key) == pytest.approx(count)
        assert both.estimate(key).value == pytest.approx(count)


def test_events_set_aside_expire_as_all_others_do() -> None:
    made = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", rounding="expiring")
    for _ in range(30):
        made.add("a", at=T)
    for number in range(60):
        made.add("a", at=T)
        made.add("v", at=T + DAY + number * 400)
    assert made.stats(at=T + DAY * 2).aside > 0
    assert made.count("v", at=T + 30 * DAY) == 0
    assert not made.contains_many(["v", "a"], at=T + 300 * DAY).any()


@pytest.mark.parametrize("kind", ["strict", "expiring"])
def test_events_set_aside_are_within_both_bounds(kind: str) -> None:
    made = counting(kind)
    ahead = [T + DAY + number * 400 for number in range(60)]
    for _ in range(30):
        made.add("a", at=T)
    for at in ahead:
        made.add("a", at=T)
        made.add("v", at=at)
    assert made.stats(at=T + DAY).aside == 60
    unit, decay = 2.0**-8, 0.5**0.1
    for hours in range(48, 400, 7):
        now = T + hours * HOUR
        true = sum(decay ** (now // 360 - at // 360) for at in ahead)
        found = made.estimate("v", at=now)
        assert found.lower <= true * (1 + 1e-9)
        assert found.upper >= true * (1 - 1e-9)
        assert found.value - true <= unit * (60 + 1 / (1 - decay))


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_first_event_comes_back_from_a_file(kind: str) -> None:
    made = counting(kind)
    made.add("wrong", at=T + 30 * DAY)
    for key in ("a", "b"):
        made.add(key, at=T)
    again = pickle.loads(pickle.dumps(made))
    for key in ("a", "b", "wrong"):
        assert again.count(key, at=T + 30 * DAY) == made.count(key, at=T + 30 * DAY)
        assert again.count(key, at=T) == made.count(key, at=T)


@pytest.mark.parametrize("wrong", range(8))
@pytest.mark.parametrize("batch", [False, True])
def test_wrong_first_events_make_a_recent_filter_forget_nothing(wrong: int, batch: bool) -> None:
    made = RecentFilter(1000, 0.001, within="7d")
    keys = [f"wrong {n}" for n in range(wrong)] + [f"right {n}" for n in range(20)]
    times = [T + 30 * DAY] * wrong + [T + n for n in range(20)]
    if batch:
        new = made.add_many(keys, at=times).tolist()
    else:
        new = [made.add(key, at=at) for key, at in zip(keys, times, strict=True)]
    assert all(new)
    assert all(made.contains(key, at=T + 20) for key in keys[wrong:])
    assert made.contains_many(keys, at=times).all()
    assert pickle.loads(pickle.dumps(made)).contains_many(keys, at=times).all()


@pytest.mark.parametrize("said", [False, True])
def test_a_recent_filter_goes_by_the_majority_and_not_by_a_first_event_ahead(said: bool) -> None:
    made = RecentFilter(1000, 0.001, within="1h", clock=lambda: T)
    made.add("wrong", at=T + 20 * HOUR)
    new = [made.add("j", at=T if said else None) for _ in range(100)]
    assert new == [True] + [False] * 99
    assert "j" in made


def test_each_key_of_a_batch_is_asked_about_its_own_time() -> None:
    made = RecentFilter(1000, 0.001, within="1h", lateness="7d")
    times = [T + n * 10 * HOUR for n in range(5)]
    made.add_many([f"k{n}" for n in range(5)], at=times)
    asked = [f"k{n % 5}" for n in range(25)]
    at = [times[n // 5] for n in range(25)]
    found = made.contains_many(asked, at=at).tolist()
    assert found == [made.contains(key, at=when) for key, when in zip(asked, at, strict=True)]
    assert found == [n % 5 == n // 5 for n in range(25)]


def test_a_batch_that_is_refused_says_that_nothing_went_in() -> None:
    made = RecentFilter(1000, 0.001)
    for keys in (["a", None], ["a", 5.5]):
        with pytest.raises((NullKeyError, KeyTypeError)) as caught:
            made.add_many(keys, at=T)
        assert vars(caught.value)["added"] == 0
        assert "before it were" not in str(caught.value)
        assert not made.contains("a", at=T)
    with pytest.raises(ZeroDivisionError) as broken:
        made.add_many((1 // 0 for _ in "a"), at=T)
    assert "0 keys" in broken.value.__notes__[0]


@pytest.mark.parametrize("at", [[T], (T,), {}, {T}])
def test_one_key_has_one_instant(at: Any) -> None:
    made = RecentFilter(1000, 0.001)
    for call in (made.add, made.contains):
        with pytest.raises(ParameterError, match="`at`"):
            call("a", at=at)
    assert made.time is None
