"""A filter and a hot list in step. The filter here has no decay: the composition must not care."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery import CountingBloomFilter, HotFilter, HotList
from bloomery.errors import BloomeryError, TruncatedError

KEYS = ["a", "b", "a", b"c", 7, "a"]


class Timed:
    """A counting filter that takes instants, as a filter that decays does."""

    def __init__(self, filter: CountingBloomFilter | None = None) -> None:
        self.filter = filter or CountingBloomFilter(1000, 0.001, counter_bits=32)
        self.latest: Any = None

    def add(self, key: Any, count: int, at: Any) -> bool:
        return self.filter.add(key, count)

    def add_many(self, keys: Any, counts: Any, at: Any, **words: Any) -> Any:
        return self.filter.add_many(keys, **words)

    def count(self, key: Any, at: Any) -> float:
        return self.filter.count(key)

    def rate(self, key: Any, per: Any, at: Any) -> float:
        return self.filter.count(key) / 2

    def advance(self, now: Any) -> None:
        self.latest = now

    def merge(self, other: Timed) -> None:
        self.filter.merge(other.filter)

    def copy(self) -> Timed:
        return Timed(self.filter.copy())

    def clear(self) -> None:
        self.filter.clear()

    def to_bytes(self) -> bytes:
        return self.filter.to_bytes()

    def __contains__(self, key: Any) -> bool:
        return key in self.filter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timed) and self.filter == other.filter

    __hash__ = None  # type: ignore[assignment]


def made(k: int = 5) -> HotFilter:
    both = HotFilter(Timed(), HotList(k, clock=lambda: 100))
    both.add_many(iter(KEYS))
    return both


def test_every_event_reaches_both_parts() -> None:
    both = made()
    assert both.add("b", 2, at=50) is False
    assert both.add("new") is True
    assert both.filter.filter.count("b") == both.hot.count("b") == both.count("b") == 3
    assert [item.key for item in both.top(2)] == ["a", "b"]
    assert both.hot.stats().late == 1
    assert b"c" in both
    assert "absent" not in both
    assert both.rate("a") == 1.5
    assert both.estimate("a").lower == 3


def test_the_smaller_of_both_upper_bounds_counts() -> None:
    both = made(k=1)
    # One place for five keys: the list overestimates, the filter does not.
    assert both.hot.count("b") > 1
    assert both.count("b") == 1


def test_time_moves_on_in_both() -> None:
    both = made()
    both.advance(500)
    assert both.filter.latest == both.hot.time == 500


def test_a_merge_takes_both_parts_or_neither() -> None:
    both, other = made(), made()
    both.merge(other)
    assert both.count("a") == 6
    before = both.copy()
    with pytest.raises(BloomeryError):
        both.merge(made(k=6))
    assert both == before
    both.clear()
    assert both != before
    assert "a" not in both
    assert both.top() == []


def test_one_file_holds_both(tmp_path: Path) -> None:
    both = made()
    both.save(tmp_path / "hot")
    both.save(tmp_path / "hot")
    again = HotFilter.load(tmp_path / "hot")
    assert again.hot == both.hot
    assert again.filter == both.filter.filter
    assert [path.name for path in tmp_path.iterdir()] == ["hot"]
    assert HotFilter.from_bytes(both.to_bytes()).hot == both.hot


def test_half_a_file_is_refused() -> None:
    data = made().to_bytes()
    with pytest.raises(TruncatedError):
        HotFilter.from_bytes(CountingBloomFilter(10, 0.1).to_bytes())
    for cut in (0, 10, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(BloomeryError):
            HotFilter.from_bytes(data[:cut])
