"""When windows are sealed, and into how many files: live, from old logs, and with late events."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomtide.history import History
from bloomtide.history import store as store_module
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory, require_bounds


class Clock:
    """Shows the time of the latest event that came."""

    def __init__(self) -> None:
        self.now = float(START)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[History]:
    with History.open(
        tmp_path / "store", "1m", error_rate=SURE, sync="no", background=False, clock=clock
    ) as made:
        yield made


def files(tmp_path: Path) -> int:
    return len(list((tmp_path / "store" / "segments").glob("*")))


def stream(days: int, late: float, clock: Clock | None) -> Iterator[tuple[str, float]]:
    """Four events an hour; some come up to ten days late."""
    draw = random.Random(17)
    for number in range(days * 96):
        at = START + number * 900.0
        if clock is not None:
            clock.now = at
        if draw.random() < late:
            at = max(START, at - draw.random() * 10 * DAY)
        yield f"page {number % 7}", round(at, 3)


def test_old_logs_are_sealed_together_and_lie_in_a_few_files(
    store: History, clock: Clock, tmp_path: Path
) -> None:
    clock.now, exact = START + 100.0 * DAY, ExactHistory()
    for key, at in stream(40, 0.1, None):
        store.add(key, at=at)
        exact.add(key, at)
    assert store.stats().segments == 0
    store.compact()
    stats = store.stats()
    assert (stats.segments > 900, stats.levels[:2], stats.late) == (True, (40 * 24 - 1, 40), 0)
    assert files(tmp_path) == 7
    for start, end in ((START, START + 40 * DAY), (START + 90, START + 3 * DAY + 7)):
        require_bounds(store, exact, start, end)


def test_old_logs_are_sealed_when_many_counts_are_in_memory(
    store: History, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_TOGETHER", 500)
    clock.now, most = START + 100.0 * DAY, 0
    for key, at in stream(20, 0.0, None):
        store.add(key, at=at)
        most = max(most, store.stats().entries)
    assert 450 < most <= 501
    assert store.stats().segments > 300


def test_live_events_are_sealed_when_their_window_is_over(store: History, clock: Clock) -> None:
    most = 0
    for key, at in stream(10, 0.0, clock):
        store.add(key, at=at)
        most = max(most, store.stats().entries)
    assert most <= 5
    assert store.stats().segments == 10 * 24 - 1


def test_late_events_share_a_segment_instead_of_one_for_each_window(
    store: History, clock: Clock, tmp_path: Path
) -> None:
    exact = ExactHistory()
    for key, at in stream(30, 0.1, clock):
        store.add(key, at=at)
        exact.add(key, at)
    store.seal()
    stats = store.stats()
    late = sum(1 for it in store.segments() if it.begin % HOUR == 0 and it.end - it.begin > HOUR)
    assert 20 <= late <= 31, "one a day"
    assert stats.late > 200
    assert stats.segments <= 30 * 24 + 70
    for _ in range(2):
        for start, end in ((START, START + 30 * DAY), (START + 5 * DAY, START + 5 * DAY + 60)):
            require_bounds(store, exact, start, end)
        for hour in range(0, 30 * 24, 31):
            for key in exact.all_keys():
                start, end = START + hour * HOUR, START + (hour + 1) * HOUR
                assert store.count(key, start, end).upper == exact.count(key, start, end)
        clock.now = START + 70.0 * DAY
        store.add("later", at=clock.now)
        store.compact()
    assert store.stats().levels[2] >= 1
    assert store.verify().problems == ()


def test_late_events_survive_an_end_before_they_are_sealed(tmp_path: Path, clock: Clock) -> None:
    words: dict[str, Any] = {"error_rate": SURE, "background": False, "clock": clock}
    exact = ExactHistory()
    with History.open(tmp_path / "store", "1m", **words) as store:
        for key, at in stream(3, 0.2, clock):
            store.add(key, at=at)
            exact.add(key, at)
        assert store.stats().open_segments > 1
    with History.open(tmp_path / "store", **words) as store:
        require_bounds(store, exact, START, START + 3 * DAY)
        store.compact()
        assert store.stats().open_segments == 1
        require_bounds(store, exact, START, START + 3 * DAY)


def test_a_file_goes_when_nothing_in_it_is_needed_any_more(tmp_path: Path, clock: Clock) -> None:
    clock.now = START + 100.0 * DAY
    with History.open(
        tmp_path / "store", "1m", retention="1m for 2d, 1h for 9d", error_rate=SURE,
        background=False, clock=clock,
    ) as store:  # fmt: skip
        events = list(stream(14, 0.0, None))
        for key, at in events[: 10 * 96]:
            store.add(key, at=at)
        store.compact()
        named = {it.file for it in store.segments() if it.file}
        assert {file.name for file in (tmp_path / "store" / "segments").glob("*.segment")} == named
        old = {it.file for it in store.segments() if it.level == 0 and it.file}
        for key, at in events[10 * 96 :]:
            store.add(key, at=at)
        assert store.compact().dropped > 0
        named = {it.file for it in store.segments() if it.file}
        assert {file.name for file in (tmp_path / "store" / "segments").glob("*.segment")} == named
        assert not old & named
        assert store.verify().problems == ()
