"""What the core reads for a range, of sealed segments and open ones, beside every event."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bloomtide.history import History, forest
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory, require_bounds

DAYS = 70
KEYS = ["hot", *(f"page {i}" for i in range(12)), "never seen"]
Filled = tuple[History, ExactHistory]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Rows of minutes, hours and days under two roots, late events over them, an open segment."""
    draw, exact = random.Random(70), ExactHistory()
    path = tmp_path_factory.mktemp("plans") / "store"
    with History.open(path, "1m", error_rate=SURE, lateness="1h") as history:

        def add(key: str, at: float, count: int = 1) -> None:
            history.add(key, count, at=at)
            exact.add(key, at, count)

        for day in range(DAYS):
            for _ in range(40):
                at = round(START + day * DAY + draw.random() * DAY, 3)
                add(draw.choice(KEYS[: 2 + day % 12]), at, draw.choice((1, 1, 5)))
            if day % 30 == 29:
                add("page 0", START + (day - 20) * DAY + 7 * HOUR)  # very late
        history.seal()
        history.compact(now=START + DAYS * DAY)
        for minute in (1, 1.5, 2, 4, 30):
            add("hot", START + DAYS * DAY + minute * 60)
        yield history, exact


def _ranges(seed: int, number: int) -> Iterator[tuple[int, int]]:
    draw = random.Random(seed)
    for _ in range(number):
        grain = draw.choice((1, 60, HOUR, DAY))
        start, end = sorted(draw.randrange(-DAY, (DAYS + 2) * DAY) // grain * grain for _ in "ab")
        yield START + start, START + end


def test_any_range_is_answered_within_its_bounds(filled: Filled) -> None:
    store, exact = filled
    assert all(store.stats().levels)
    assert len(store.stats().levels) == 4
    for start, end in _ranges(1, 150):
        require_bounds(store, exact, start, end)


def test_what_is_open_is_cut_as_what_is_sealed(filled: Filled) -> None:
    store, exact = filled
    opened = START + DAYS * DAY
    assert store.stats().open_segments == 1
    for start, end, rows, partial in (
        (60, 120, 1, 0),  # one row
        (60, 240, 2, 0),  # two rows and an empty one behind them
        (60, 241, 4, 0),  # an empty row between covered ones ends no run
        (75, 121, 2, 1),  # a row that is cut and one that is covered
        (-DAY, DAY, None, 0),
    ):
        found = store.count("hot", opened + start, opened + end)
        assert found.partial == partial
        assert rows is None or found.rows == rows
        assert found.upper >= exact.count("hot", opened + start, opened + end) >= found.inner
        assert found.partial or found.upper == exact.count("hot", opened + start, opened + end)
        assert store.total(opened + start, opened + end).partial == partial


def test_segments_that_cannot_be_asked_are_gone_round_or_told_as_missing(filled: Filled) -> None:
    store, exact = filled
    trees, draw = store._view._state.forest, random.Random(2)
    told = 0
    for start, end in _ranges(3, 60):
        # Small trouble and large: a few of the leaves, a coarse one, now and then a root.
        broken = draw.sample(list(trees.entries.values()), draw.choice((1, 3, 40)))
        broken += draw.sample(trees.roots, draw.choice((0, 0, 1)))
        for entry in broken:
            trees.set_damaged(entry, "a test says so")
        for key in KEYS:
            for rollups in (True, False):
                found = store.count(key, start, end, rollups=rollups)
                lost = sum(
                    exact.count(key, max(begin, start), min(stop, end))
                    for begin, stop in found.missing
                )
                assert found.upper >= exact.count(key, start, end) - lost
                assert found.inner <= exact.count(key, start, end)
                told += bool(found.missing)
        for entry in broken:
            trees.set_damaged(entry, None)
    assert trees.damaged == {}
    assert store.total().missing == ()
    assert told > 10


def test_a_range_over_more_files_than_may_be_mapped_is_answered_piece_by_piece(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = filled
    state = store._view._state
    cut = START + 100, START + 40 * DAY + 100

    def answers() -> list[object]:
        found: list[object] = [
            store.count(key, *cut, rollups=rollups) for key in KEYS for rollups in (True, False)
        ]
        series = store.series("hot", *cut, step="1h")
        return [*found, store.count_many(KEYS, *cut).tolist(), store.top(*cut), series.upper.sum()]

    expected, before = answers(), state.forest
    assert before.core.mapped > 100
    monkeypatch.setattr(forest, "MAPPED", 2)
    state.forest = forest.Forest(before._place, before.entries.values(), by_order=False)
    try:
        assert answers() == expected
        assert state.forest.core.mapped == 2
    finally:
        state.forest = before


def test_in_a_time_that_cannot_be_read_any_key_may_have_been_seen(filled: Filled) -> None:
    store, _ = filled
    trees = store._view._state.forest
    range_ = START + 3 * DAY, START + 4 * DAY
    assert not store.contains("never seen", *range_)
    for entry in trees.entries.values():
        trees.set_damaged(entry, "a test says so")
    assert store.contains("never seen", *range_)
    assert not store.contains("never seen", START - 2 * DAY, START - DAY)
    for entry in trees.entries.values():
        trees.set_damaged(entry, None)
    assert not store.contains("never seen", *range_)
