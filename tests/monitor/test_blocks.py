"""Blocks of events: what they hold, what is refused, and what a pass over one comes to."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide import BloomFilter, HotList, TimeDecayingBloomFilter
from bloomtide._core import Events, Intake
from bloomtide.errors import BloomtideError, ParameterError

T, DAY = 1_700_000_000, 86_400
KEYS: list[Any] = ["/a", b"", 2**64 - 1, -(2**63), "/a much longer path than sixteen bytes"]
COUNTS = [1, 7, 1, 2**62 - 1, 1]
TIMES = [T + 5, T + 5, T + 4, 0, 253_402_300_799]


def block(note: bytes = b"where") -> bytes:
    made = Events()
    for key, count, at in zip(KEYS, COUNTS, TIMES, strict=True):
        made.add(key, count, at=at)
    assert len(made) == 5
    data = made.take(T + 9, note)
    assert len(made) == 0
    return data


def taken() -> tuple[BloomFilter, HotList]:
    return BloomFilter(100, 1e-9), HotList(50, half_life=60, max_jump=float("inf"))


def test_a_block_says_what_was_put_into_it() -> None:
    filter, hot = taken()
    applied = Intake(filter, hot).apply(block())
    assert (applied.events, applied.new, applied.first) == (sum(COUNTS), 5, 0)
    assert (applied.arrived, applied.note) == ((T + 9) * 10**6, b"where")
    assert all(key in filter for key in KEYS)
    assert {item.key for item in hot.top(at=hot.time)} == set(KEYS)
    assert Intake(filter).apply(Events().take(T, b"")).events == 0
    assert Intake(filter, taken()[0]).apply(block()).new == 0, "the first filter says what is new"


def test_a_block_that_was_cut_or_grew_is_refused_before_anything_changes() -> None:
    filter, hot = taken()
    intake, data = Intake(filter, hot), block()
    for bad in [*(data[:length] for length in range(len(data))), data + b"\0", b"\2" + data[1:]]:
        with pytest.raises(BloomtideError):
            intake.apply(bad)
    assert filter == taken()[0]
    assert len(hot) == 0
    assert intake.time == Intake(filter, hot).time


@pytest.mark.parametrize(
    ("key", "count", "at"),
    [("a", 0, 0), ("a", 2**62, 0), ("a", 1, -1), ("a", 1, 253_402_300_800), (None, 1, 0)],
)
def test_what_no_structure_takes_is_refused(key: Any, count: int, at: float) -> None:
    events = Events()
    with pytest.raises(BloomtideError):
        events.add(key, count, at=at)
    assert len(events) == 0


def test_where_urls_are_wanted_nothing_else_is_taken() -> None:
    urls = Events(urls=True)
    for wrong in ("no url", 1):
        with pytest.raises(ParameterError):
            urls.add(wrong, at=0)
    urls.add("http://example.org/", at=0)
    assert (len(urls), urls.refused) == (1, 0)


def test_an_event_ahead_of_the_clock_takes_its_time_in_all_structures() -> None:
    events = Events()
    events.add("/a", at=10 * DAY)
    events.add("/b", at=400 * DAY)
    hot = HotList(50, half_life=60)
    fading = TimeDecayingBloomFilter(100, 1e-6, half_life=60)
    applied = Intake(hot, fading).apply(events.take(10 * DAY + 1, b""))
    assert (applied.ahead, applied.newest) == (1, (10 * DAY + 1) * 10**6)
    top = hot.top(at=hot.time)
    assert [item.count > 0.9 for item in top] == [True, True]
    assert fading.count("/b", at=10 * DAY + 1) == 1


def test_a_pass_is_the_same_as_adding_to_each_structure() -> None:
    """More than one piece, times that go back and forth, and counts in one of the pieces only."""
    keys = [f"/page/{i * i % 701}" for i in range(3000)]
    counts = [3 if 1500 <= i < 1600 else 1 for i in range(3000)]
    times = [T + max(i // 10 - i % 7, 0) for i in range(3000)]
    (filter, hot), (one, other) = taken(), taken()
    other_filter = BloomFilter(100, 1e-9)
    for structure in (filter, other_filter, one):
        structure.add("/page/0")
    intake = Intake(filter, other_filter, hot)
    applied = intake.apply(Events().pack(keys, counts, at=times, arrived=T + 1000))
    new = int(sum(one.add_many(keys)))
    other.add_many(keys, counts, times)
    assert filter == other_filter == one
    assert hot.top(at=hot.time) == other.top(at=other.time)
    assert hot.stats() == other.stats()
    assert (applied.events, applied.new) == (sum(counts), new)
    assert (applied.first, applied.newest) == (min(times) * 10**6, max(times) * 10**6)
    assert applied.late == other.stats().late
