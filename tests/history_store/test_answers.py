"""What a store says about ranges, steps, fading sums and frequent keys, against all events."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from bloomtide.history import History, exponential, polynomial, sliding
from tests.history_store.exact import DAY, HOUR, START, SURE, ExactHistory, require_bounds

END = START + 40 * DAY


def fill(store: History, events: int = 6000) -> ExactHistory:
    """Skewed keys over forty days, a tenth of them hours late; sealed and rolled up."""
    draw = random.Random(3)
    exact = ExactHistory()
    rows = []
    for number in range(events):
        at = START + number * 40 * DAY / events
        late = draw.random() * 5 * HOUR if draw.random() < 0.1 else 0.0
        key = f"page {min(int(draw.expovariate(0.25)), 12)}"
        rows.append((key, max(round(at - late, 3), START)))
    for start in range(0, events, 100):
        keys, times = zip(*rows[start : start + 100], strict=True)
        store.add_many(list(keys), at=np.array(times))
        if start % 1500 == 0:
            store.compact(now=END)  # what comes for these hours is late
    for key, at in rows:
        exact.add(key, at)
    store.compact(now=END)
    return exact


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[History, ExactHistory]]:
    path = tmp_path_factory.mktemp("history") / "store"
    with History.open(
        path, "1m", error_rate=SURE, sync="no", background=False, clock=lambda: END
    ) as store:
        yield store, fill(store)


def ranges() -> list[tuple[float, float]]:
    draw = random.Random(4)
    found: list[tuple[float, float]] = [
        (START, END),
        (START + HOUR, START + HOUR),
        (START - DAY, START),
        (END, END + DAY),
    ]
    for _ in range(12):
        one, other = sorted(START + draw.random() * 40 * DAY for _ in range(2))
        found.append((one, other))
        found.append((one - one % DAY, other - other % HOUR))
    return [(one, max(one, other)) for one, other in found]


@pytest.mark.parametrize(("start", "end"), ranges())
def test_upper_is_never_below_the_truth_and_inner_has_nothing_from_outside(
    filled: tuple[History, ExactHistory], start: float, end: float
) -> None:
    """At an error rate so small that no key is counted by chance."""
    store, exact = filled
    require_bounds(store, exact, start, end)


def test_inner_is_too_high_by_chance_at_the_rate_that_was_chosen(tmp_path: Path) -> None:
    """It is no lower bound: a key that was never added may be counted, at most that often."""
    with History.open(
        tmp_path, "1m", error_rate=0.1, sync="no", background=False, clock=lambda: END
    ) as store:
        present = [f"present {number}" for number in range(500)]
        store.add_many(present, at=[START + 60.0 * number for number in range(500)])
        store.seal()
        absent = [f"absent {number}" for number in range(5000)]
        wrong = sum(store.count(key, START, END).inner > 0 for key in absent)
        assert 0 < wrong < 0.1 * len(absent) * store.stats().segments


def test_the_forest_has_all_levels_and_late_segments(filled: tuple[History, ExactHistory]) -> None:
    """Else the tests here would prove little."""
    store, _ = filled
    stats = store.stats()
    assert len(stats.levels) >= 3
    assert stats.late > 0
    assert min(stats.levels) >= 1


def test_a_range_at_the_edges_of_rows_has_no_partial_rows_and_is_exact(
    filled: tuple[History, ExactHistory],
) -> None:
    store, exact = filled
    for start, end in ((START + DAY, START + 31 * DAY), (START + 60, START + 35 * DAY + 120)):
        for key in exact.all_keys():
            found = store.count(key, start, end)
            assert (found.partial, found.upper) == (0, exact.count(key, start, end))
            assert found.upper == found.inner == found.estimate


def test_a_long_range_reads_a_few_nodes_only(filled: tuple[History, ExactHistory]) -> None:
    store, _ = filled
    start, end = START + 3 * HOUR + 60, START + 39 * DAY + 7 * HOUR
    whole = store.count("page 0", start, end)
    leaves = store.count("page 0", start, end, rollups=False)
    assert whole.upper == leaves.upper
    assert whole.rows * 20 < leaves.rows


def test_many_keys_are_answered_like_one_by_one(filled: tuple[History, ExactHistory]) -> None:
    store, exact = filled
    keys = exact.all_keys()
    for start, end in ranges():
        expected = [store.count(key, start, end).upper for key in keys]
        assert store.count_many(keys, start, end).tolist() == expected


@pytest.mark.parametrize("step", ["45m", "6h", "1d", "9d"])
def test_a_series_is_one_range_for_each_step(
    filled: tuple[History, ExactHistory], step: str
) -> None:
    store, _ = filled
    start, end = START + 100, START + 20 * DAY + 1000
    found = store.series("page 1", start, end, step)
    edges = [*(found.start.astype(np.int64) / 1e6).tolist(), end]
    assert edges[0] == start
    for number in range(len(found)):
        single = store.count("page 1", edges[number], edges[number + 1])
        assert found.upper[number] == single.upper
        assert found.inner[number] == single.inner
        assert found.estimate[number] == pytest.approx(single.estimate)


def test_a_series_without_a_range_spans_all_events(filled: tuple[History, ExactHistory]) -> None:
    store, exact = filled
    found = store.series("page 0", step="1d")
    assert found.start[0] == np.datetime64(START, "s")
    assert found.upper.sum() == exact.count("page 0")


@pytest.mark.parametrize(
    "weigh",
    [exponential("1d"), sliding("10d"), polynomial(1.5, "1h"), lambda age: 1 / (1 + age**0.5)],
    ids=["exponential", "sliding", "polynomial", "own"],
)
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_a_fading_sum_lies_between_its_bounds(
    filled: tuple[History, ExactHistory], weigh: object, tolerance: float
) -> None:
    store, exact = filled
    assert callable(weigh)
    for now in (END, START + 17 * DAY + 12_345):
        for key in exact.all_keys()[::4]:
            truth = sum(
                weigh(now - at) * n for name, at, n in exact.events if name == key and at <= now
            )
            found = store.decayed(key, weigh, now=now, tolerance=tolerance)
            assert found.inner <= truth * (1 + 1e-9)
            assert truth <= found.upper * (1 + 1e-9)
            assert found.inner <= found.estimate <= found.upper


def test_a_fading_sum_reads_wide_rows_where_the_weight_hardly_changes(
    filled: tuple[History, ExactHistory],
) -> None:
    store, _ = filled
    fine = store.decayed("page 0", exponential("10d"), now=END, tolerance=0.0)
    coarse = store.decayed("page 0", exponential("10d"), now=END, tolerance=0.5)
    assert coarse.rows * 5 < fine.rows
    assert coarse.upper <= fine.upper * 2


def test_the_top_of_a_range_has_the_right_keys_and_honest_bounds(
    filled: tuple[History, ExactHistory],
) -> None:
    store, exact = filled
    for start, end in ranges():
        found = store.top(start, end, n=5)
        listed = {str(item.key) if isinstance(item.key, str) else item.key for item in found.items}
        for item in found.items:
            key = item.key if isinstance(item.key, str) else bytes(item.key).decode()
            assert item.lower <= exact.count(key, start, end) <= item.count
        for key in exact.all_keys():
            if key not in listed and key.encode() not in listed:
                assert exact.count(key, start, end) <= found.unlisted
    whole = store.top(n=3)
    truth = sorted(exact.all_keys(), key=lambda key: -exact.count(key))[:3]
    names = [k if isinstance(k, str) else bytes(k).decode() for k in (i.key for i in whole.items)]
    assert names == truth
    assert [item.lower for item in whole.items] == [item.count for item in whole.items]


def test_last_ends_now_and_is_the_same_as_a_range(filled: tuple[History, ExactHistory]) -> None:
    store, _ = filled
    now = START + 20 * DAY + 77
    assert store.count("page 0", last="1d", now=now) == store.count("page 0", now - DAY, now)
    assert store.count("page 0", last="3d") == store.count("page 0", END - 3 * DAY, END)
    day = datetime.fromtimestamp(START, UTC)
    assert store.total(last=timedelta(days=2), now=day + timedelta(days=9)) == store.total(
        (day + timedelta(days=7)).isoformat(), START + 9 * DAY
    )


def test_rows_by_arrivals_hold_the_same_bounds(tmp_path: Path) -> None:
    exact = ExactHistory()
    draw = random.Random(5)
    with History.open(
        tmp_path / "store", arrivals=25, rows=4, error_rate=SURE, background=False
    ) as store:
        for number in range(2000):
            at = START + number * 60 - draw.randint(0, 100)
            key = f"key {draw.randint(0, 9)}"
            store.add(key, at=at)
            exact.add(key, at)
        store.compact()
        assert len(store.stats().levels) >= 3
        for _ in range(10):
            start, end = sorted(START + draw.randint(0, 2000) * 60 for _ in range(2))
            require_bounds(store, exact, start, end)
        require_bounds(store, exact, START - DAY, START + 10 * DAY)
    with History.open(tmp_path / "store") as store:
        require_bounds(store, exact, START - DAY, START + 10 * DAY)


def test_a_last_longer_than_all_time_is_all_time(tmp_path: Path) -> None:
    with History.open(tmp_path, "1m", background=False) as store:
        store.add("a", at=START)
        for last in (1e30, timedelta.max):
            assert store.count("a", last=last, now=START + 1).upper == 1
