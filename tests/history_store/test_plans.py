"""Two planners of ranges, one in the core and one for any kind of node: they read the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bloomtide.history import History, forest
from bloomtide.history.ladder import MICRO
from bloomtide.history.ranges import RangePlan, plan_range
from bloomtide.history.view import View
from tests.history_store.exact import DAY, HOUR, START, SURE

DAYS = 70
KEYS = ["hot", *(f"page {i}" for i in range(12)), "never seen"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """Rows of minutes, hours and days under two roots, late events over them, an open segment."""
    draw = random.Random(70)
    path = tmp_path_factory.mktemp("plans") / "store"
    with History.open(path, "1m", error_rate=SURE, lateness="1h") as history:
        for day in range(DAYS):
            for _ in range(40):
                at = START + day * DAY + draw.random() * DAY
                history.add(draw.choice(KEYS[: 2 + day % 12]), draw.choice((1, 1, 5)), at=at)
            if day % 30 == 29:
                history.add("page 0", at=START + (day - 20) * DAY + 7 * HOUR)  # very late
        history.seal()
        history.compact(now=START + DAYS * DAY)
        history.add("hot", at=START + DAYS * DAY + 90)
        yield history


def _same(view: View, start: int, end: int) -> None:
    nodes = view._nodes(start, end)
    ours, general = view._plan(start, end, True), plan_range(nodes, start, end)
    assert ours.sealed is not None
    assert (ours.rows, ours.partial) == (general.rows, general.partial)
    assert view._missing(ours.missing, start, end) == view._missing(general.missing, start, end)
    assert _finest(view, ours) == _finest(view, general)
    questions = [("count", key) for key in KEYS] + [("events",)]
    trees = view._state.forest
    for verb, *arguments in questions:
        found = ours.evaluate(trees, verb, *arguments)
        assert found == pytest.approx(general.evaluate(trees, verb, *arguments)), (verb, arguments)
    many = view._digests(KEYS, "refuse")
    for found, expected in zip(
        ours.evaluate(trees, "count_many", many), general.evaluate(trees, "count_many", many),
        strict=True,
    ):  # fmt: skip
        assert found == pytest.approx(expected)


def _finest(view: View, plan: RangePlan) -> list[tuple[int, int, bool]]:
    nodes = plan.nodes(view._state.forest)
    return sorted((node.begin, node.end, covered) for node, covered in nodes)


def _ranges(seed: int, number: int) -> Iterator[tuple[int, int]]:
    draw = random.Random(seed)
    for _ in range(number):
        grain = draw.choice((1, 60, HOUR, DAY))
        start, end = sorted(draw.randrange(-DAY, (DAYS + 2) * DAY) // grain * grain for _ in "ab")
        yield (START + start) * MICRO, (START + end) * MICRO


def test_the_core_reads_the_same_rows_and_says_the_same(store: History) -> None:
    view = store._view
    levels = {node.entry.level for node in view._state.forest.nodes.values()}
    assert levels == {0, 1, 2, 3}
    for start, end in _ranges(1, 150):
        _same(view, start, end)


def test_both_go_round_segments_that_cannot_be_asked(store: History) -> None:
    view, trees, draw = store._view, store._view._state.forest, random.Random(2)
    for start, end in _ranges(3, 60):
        # Small trouble and large: a few of the leaves, a coarse one, now and then a root.
        broken = draw.sample(list(trees.nodes.values()), draw.choice((1, 3, 40)))
        for node in broken:
            trees.set_damaged(node.entry, "a test says so")
        _same(view, start, end)
        for node in broken:
            trees.set_damaged(node.entry, None)
    assert trees.damaged == {}
    assert store.total().missing == ()


def test_a_range_over_more_files_than_may_be_mapped_is_answered_one_by_one(
    store: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = store._view._state.forest
    cut = START + 100, START + 40 * DAY + 100
    expected = [store.count(key, *cut) for key in KEYS]
    for number in list(trees._mapped):
        trees._unmap(number)
    monkeypatch.setattr(forest, "MAPPED", 2)
    assert [store.count(key, *cut) for key in KEYS] == expected
    assert len(trees._mapped) == 2


def test_a_file_that_was_unmapped_is_mapped_again_when_a_plan_needs_it(store: History) -> None:
    trees = store._view._state.forest
    before = store.count("hot", START + 90, START + 50 * DAY + 90)
    for number in list(trees._mapped):
        trees._unmap(number)
    assert store.count("hot", START + 90, START + 50 * DAY + 90) == before
    assert trees._mapped


def test_in_a_time_that_cannot_be_read_any_key_may_have_been_seen(store: History) -> None:
    trees = store._view._state.forest
    range_ = START + 3 * DAY, START + 4 * DAY
    assert not store.contains("never seen", *range_)
    for node in trees.nodes.values():
        trees.set_damaged(node.entry, "a test says so")
    assert store.contains("never seen", *range_)
    assert not store.contains("never seen", START - 2 * DAY, START - DAY)
    for node in trees.nodes.values():
        trees.set_damaged(node.entry, None)
    assert not store.contains("never seen", *range_)
