"""Compaction, retention, the paper's compressions, merging and verifying."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomtide.errors import IncompatibleError
from bloomtide.history import History, seal
from bloomtide.history import store as store_module
from bloomtide.history.state import State
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory, require_bounds

Opener = Callable[..., History]


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    stores: list[History] = []

    def open_store(name: str = "store", **words: Any) -> History:
        settings: dict[str, Any] = {"error_rate": SURE, "background": False, "sync": "no"}
        settings |= {"clock": lambda: START + 1000 * DAY} | words
        stores.append(History.open(tmp_path / name, **settings))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def fill(store: History, days: int, shift: float = 0.0, *, apart: bool = False) -> ExactHistory:
    """Every hour one event of the key `often`, and one of the hour's own key. `apart`: each hour is
    sealed into files of its own."""
    exact = ExactHistory()
    for hour in range(days * 24):
        for key in ("often", f"at {hour % 24}"):
            at = START + hour * HOUR + shift
            store.add(key, at=at)
            exact.add(key, at)
        if apart:
            store.seal()
    return exact


def test_retention_drops_fine_rows_and_keeps_every_count(opened: Opener) -> None:
    store = opened(window="1m", retention="1m for 1d, 1h for 3d, 1d for 10y")
    exact = fill(store, 35)
    store.seal()
    before = {key: store.count(key).upper for key in exact.all_keys()}
    report = store.compact()
    assert report.dropped > 32 * 24
    assert report.bytes_after < report.bytes_before
    for key in exact.all_keys():
        assert store.count(key).upper == before[key] == exact.count(key)
    # Old hours are gone: a range that cuts a day has a partial row, and still the right bounds.
    found = store.count("at 3", START + 3 * HOUR, START + 4 * HOUR)
    assert (found.partial, found.inner, found.missing) == (1, 0, ())
    assert found.upper >= 1
    recent = START + 35 * DAY - 20 * HOUR
    assert store.count("often", recent, recent + 60).upper == 1
    assert store.count("often", recent, recent + 60).partial == 0
    require_bounds(store, exact, START + 7 * DAY, START + 21 * DAY)


def test_what_is_dropped_for_good_is_told_as_missing(opened: Opener) -> None:
    store = opened(window="1m", retention="1m for 2d")
    fill(store, 9)
    store.compact()
    found = store.count("often", START, START + 9 * DAY)
    assert list(found.missing) == [(START, START + 6 * DAY)]
    assert found.upper == 3 * 24
    assert store.count("often", START + 8 * DAY, START + 9 * DAY).missing == ()
    assert store.total().missing[0][0] == float("-inf")


def test_a_clock_that_jumps_ahead_drops_nothing_that_is_young_by_its_events(
    opened: Opener,
) -> None:
    store = opened(window="1m", retention="1m for 2d")
    exact = fill(store, 1)
    assert store.compact(now=START + 100_000 * DAY).dropped == 0
    assert store.count("often").upper == exact.count("often")


def test_an_event_from_the_future_seals_nothing(opened: Opener) -> None:
    store = opened(window="1m", clock=lambda: START + HOUR / 2)
    store.add("now", at=START + 10)
    store.add("far ahead", at=START + 900 * DAY)
    store.add("now", at=START + 20)
    assert store.stats().segments == 0
    assert store.count("now", last="1h").upper == 2
    assert store.count("far ahead").upper == 1


def test_a_clock_that_goes_back_is_counted_and_loses_nothing(opened: Opener) -> None:
    times = iter([START + HOUR, START + 3 * HOUR, START + 100, START + 4 * HOUR])
    last = START + 4 * HOUR
    store = opened(window="1m", clock=lambda: next(times, last))
    for _ in range(4):
        store.add("tick")
    assert store.count("tick").upper == 4
    assert store.stats().clock_jumps == 1


def test_events_of_the_future_wait_for_the_clock_and_nothing_is_looked_for_meanwhile(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    due = seal.due_segments

    def look(state: State, now: int, **words: bool) -> list[int]:
        looks.append(now)
        return due(state, now, **words)

    monkeypatch.setattr(store_module, "due_segments", look)
    now = [START + 0.0]
    store = opened(window="1m", clock=lambda: now[0])
    for hour in range(24):
        store.add("later", at=START + hour * HOUR)
    assert len(looks) <= 2
    assert store.stats().segments == 0
    now[0] = START + 4 * DAY
    store.add("later")
    assert store.stats().segments == 24
    assert store.count("later").upper == 25


def test_one_wrong_time_seals_nothing_and_is_found_at_its_own_time(opened: Opener) -> None:
    store = opened(window="1m", clock=lambda: START + 400 * DAY)
    for minute in range(30):
        store.add("/a", at=START + minute * 60)
    store.add("/wrong", at=START + 300 * DAY)
    store.add("/ahead", at=START + 500 * DAY)
    for minute in range(30, 50):
        store.add("/a", at=START + minute * 60)
    told = store.stats()
    assert (told.segments, told.aside, told.ahead) == (0, 2, 1)
    assert store.count("/wrong", START + 299 * DAY, START + 301 * DAY).upper == 1
    assert store.count("/ahead", START + 399 * DAY, START + 401 * DAY).upper == 1
    assert store.count("/a", START, START + HOUR).upper == 50


def test_late_events_are_found_in_their_own_window(opened: Opener) -> None:
    store = opened(window="1m", lateness="10m")
    exact = fill(store, 3)
    store.compact()
    for hour in (0, 5, 30, 71):
        store.add("late", at=START + hour * HOUR + 30)
        exact.add("late", START + hour * HOUR + 30)
    for _ in range(2):
        for hour in range(72):
            found = store.count("late", START + hour * HOUR, START + (hour + 1) * HOUR)
            assert found.upper == (hour in (0, 5, 30, 71))
        store.seal()
        store.compact()
    require_bounds(store, exact, START, START + 3 * DAY)


def test_too_many_entries_in_memory_are_sealed_early_and_counted_once(opened: Opener) -> None:
    store = opened(window="1m", entries=100)
    keys = [f"key {number % 150}" for number in range(300)]
    for _ in range(3):
        store.add_many(keys, at=START + 5)
    assert store.stats().segments >= 3
    assert store.stats().entries <= 150
    assert store.count("key 7", START, START + 60).upper == 6
    store.compact(now=START + DAY)
    assert store.count("key 7").upper == 6


def test_merged_stores_count_what_both_saw(opened: Opener) -> None:
    store, other = opened("one", window="1m"), opened("other", window="1m")
    exact, more = fill(store, 2), fill(other, 3, shift=17.0)
    store.compact()
    other.compact()
    before = other.segments()
    assert store.merge(other) >= len(before)
    assert other.segments() == before
    exact.events += more.events
    for _ in range(2):
        require_bounds(store, exact, START, START + 3 * DAY)
        require_bounds(store, exact, START + 50, START + 29 * HOUR + 17)
        store.compact()
    assert store.verify().problems == ()


@pytest.mark.parametrize(
    ("words", "field"),
    [({"window": "5m"}, "window"), ({"arrivals": 10}, "window"), ({"seed": 1}, "seed")],
)
def test_stores_of_another_kind_are_not_merged(
    opened: Opener, words: dict[str, Any], field: str
) -> None:
    store, other = opened("one", window="1m"), opened("other", **words)
    with pytest.raises(IncompatibleError) as caught:
        store.merge(other)
    assert caught.value.field == field
    with pytest.raises(IncompatibleError):
        store.merge(store)


def test_a_missing_or_damaged_file_is_named_and_the_rest_still_answers(
    opened: Opener, tmp_path: Path
) -> None:
    store = opened(window="1m")
    exact = ExactHistory()
    for day in range(3):
        exact.events += fill(store, 1, day * DAY, apart=True).events
        store.compact()
    roots = [
        r for r in store.segments() if r.parent is None and r.file is not None and r.level == 1
    ]
    lost, flipped = roots[0], roots[1]
    store.close()
    segments = tmp_path / "store" / "segments"
    assert lost.file is not None
    assert flipped.file is not None
    (segments / lost.file).unlink()
    data = bytearray((segments / flipped.file).read_bytes())
    data[len(data) // 2] ^= 0x10
    (segments / flipped.file).write_bytes(data)
    store = opened(window="1m")
    report = store.verify()
    assert len(report.problems) == 2
    assert lost.file in "".join(report.problems)
    assert flipped.file in "".join(report.problems)
    # The children of both are still there, but nothing says that they are complete.
    found = store.count("often")
    assert found.missing == ((lost.begin, flipped.end),)
    assert found.upper == exact.count("often", flipped.end)
    assert store.count("often", flipped.end).missing == ()
    series = store.series("often", START, START + 3 * DAY, "1d")
    assert series.missing == found.missing
    assert len(store.stats().damaged) == 2


def test_damage_in_a_child_is_covered_by_its_parent(opened: Opener, tmp_path: Path) -> None:
    store = opened(window="1m")
    exact = fill(store, 2, apart=True)
    store.add("often", at=START + 1800)
    exact.add("often", START + 1800)
    store.seal()
    store.compact()
    child = next(r for r in store.segments() if r.parent is not None)
    assert child.file is not None
    store.close()
    (tmp_path / "store" / "segments" / child.file).unlink()
    store = opened(window="1m")
    found = store.count("often", child.begin, child.begin + 30)
    assert found.missing == ()
    assert found.partial == 1
    assert found.upper >= exact.count("often", child.begin, child.begin + 30)
    assert store.count("often").upper == exact.count("often")


@pytest.mark.parametrize("lost", [True, False], ids=["missing", "damaged"])
def test_a_segment_whose_items_are_lost_stays_a_root_and_the_others_are_rolled_up(
    opened: Opener, tmp_path: Path, lost: bool
) -> None:
    store = opened(window="1m")
    exact = fill(store, 2, apart=True)
    first = min(store._state.forest.entries.values(), key=lambda entry: entry.begin)
    file = tmp_path / "store" / "segments" / (first.items or "")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x01
    file.write_bytes(data)
    if lost:
        file.unlink()
    report = store.compact()
    assert report.rolled_up == 23 + 24
    assert file.name in (store.stats().failure or "")
    require_bounds(store, exact, START, START + 2 * DAY)
    require_bounds(store, exact, START + 90, START + 27 * HOUR)
    assert len(store.verify().problems) == 1
    assert store.count("often").missing == ()


def test_rows_by_arrivals_that_overlap_in_time_keep_their_own_children(opened: Opener) -> None:
    """The times of the rows are as tangled as can be: every row spans everything."""
    store = opened(arrivals=10, rows=3)
    exact = ExactHistory()
    for number in range(400):
        at = START + (number * 7919) % 100_000
        key = f"key {number % 11}"
        store.add(key, at=at)
        exact.add(key, at)
    store.compact()
    assert len(store.stats().levels) >= 3
    for start in range(0, 100_000, 9_000):
        require_bounds(store, exact, START + start, START + start + 5_000)


def test_too_many_single_events_in_memory_are_sealed_early_too(opened: Opener) -> None:
    store = opened(window="1m", entries=100, sync="always")
    for number in range(350):
        store.add(f"key {number}", at=START)
    assert store.stats().segments == 3
    assert store.total().upper == 350
