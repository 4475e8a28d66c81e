"""How often a count over many segments is too high, beside the chance that the answer tells."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from bloomtide._core import HistoryBuffer
from bloomtide.history import History
from tests.history_store.exact import DAY, HOUR, START
from tests.statistical.binomial import check, check_at_most

KEYS = 400
ERROR = 0.04


def fill(store: History, hours: int, *, of: int = KEYS) -> npt.NDArray[np.int64]:
    """Each key once in each hour, in a minute of its own choice, which is answered; each hour is a
    segment."""
    draw = np.random.default_rng(23)
    keys = [f"key {number}" for number in range(of)]
    minutes = np.arange(hours)[:, None] * 60 + draw.integers(0, 60, (hours, of))
    for row in minutes:
        store.add_many(keys, at=START + row * 60.0)
        store.seal()
    return minutes


def open_store(path: Path, error_rate: float = ERROR) -> History:
    return History.open(
        path, "1m", error_rate=error_rate, sync="no", background=False,
        clock=lambda: START + 400 * DAY,
    )  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand segments that nothing has rolled up."""
    made = tmp_path_factory.mktemp("errors") / "store"
    with open_store(made) as store:
        fill(store, 1000)
    return made


@pytest.mark.parametrize("segments", [1, 10, 100, 1000])
def test_keys_are_counted_too_high_as_often_as_the_answer_says(path: Path, segments: int) -> None:
    with History.open(path, mode="r") as store:
        found = [
            store.count(f"key {number}", START, START + segments * HOUR) for number in range(KEYS)
        ]
    wrong = sum(answer.upper > segments for answer in found)
    assert all(answer.upper >= segments for answer in found)
    predicted = {answer.predicted_error for answer in found}
    assert len(predicted) == 1, "every gate lets every key pass"
    [most] = predicted
    assert min(1.0, segments * ERROR / 8) <= most <= min(1.0, segments * ERROR / 4 * 1.2)
    check_at_most(wrong, KEYS, most, "keys counted too high")
    # The sum counts keys twice that two segments count too high; that many are there at least.
    if most < 1:
        check(wrong, KEYS, 1 - (1 - most / segments) ** segments, "keys counted too high")


@pytest.mark.parametrize("segments", [1, 10, 100, 1000])
def test_absent_keys_are_counted_as_often_as_their_answers_say(path: Path, segments: int) -> None:
    """Most gates let no absent key pass, and then its count is certain."""
    asked = 3000
    with History.open(path, mode="r") as store:
        found = [
            store.count(f"absent {number}", START, START + segments * HOUR)
            for number in range(asked)
        ]
    assert all(answer.upper == 0 for answer in found if answer.predicted_error == 0)
    assert segments > 100 or sum(answer.predicted_error == 0 for answer in found) > asked // 3
    mean = sum(answer.predicted_error for answer in found) / asked
    check_at_most(sum(answer.upper > 0 for answer in found), asked, mean, "absent keys")


def test_what_is_rolled_up_keeps_the_error_that_was_asked_for(tmp_path: Path) -> None:
    """Whatever the range: of a store with forty days and every level."""
    days, asked = 40, 1500
    with open_store(tmp_path / "store") as store:
        minutes = fill(store, days * 24, of=100)
        store.compact()
        assert store.stats().predicted_error <= ERROR
        draw = np.random.default_rng(5)
        wrong, most = 0, 0.0
        for _ in range(asked):
            start, end = sorted(draw.integers(0, days * 24 * 60, 2).tolist())
            key = int(draw.integers(100))
            answer = store.count(f"key {key}", START + start * 60.0, START + end * 60.0)
            mine = minutes[:, key]
            wrong += answer.upper > int(((mine >= start) & (mine < end)).sum())
            most = max(most, answer.predicted_error)
        assert most <= ERROR
        check_at_most(wrong, asked, ERROR, "ranges counted too high")


def test_micro_batches_over_the_same_hours_become_few_segments(tmp_path: Path) -> None:
    """Each is a segment over its time; four of them are rolled up at once, and again with more."""
    keys = [f"key {number}" for number in range(200)]
    with open_store(tmp_path / "store", 0.01) as store:
        for number in range(12):
            at = START + np.arange(200) * 20.0
            store.add_batch("stream", number, partial(HistoryBuffer.add_many, keys=keys, at=at))
            store.compact(now=START + 3 * HOUR)
        roots = [it for it in store.segments() if it.parent is None and it.id is not None]
        assert len(roots) <= 2 + 3 + 1
        answers = [store.count(key, START, START + DAY) for key in keys]
        assert max(answer.predicted_error for answer in answers) < 0.01
        check_at_most(sum(answer.upper > 12 for answer in answers), 200, 0.01, "keys")
        assert store.verify().problems == ()


def test_a_roll_up_before_its_time_is_made_anew_and_at_last_lets_go_of_the_exact_counts(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path / "store") as store:
        for hours in range(1, 50):
            store.add_many(["a", "b", "b"], at=START + hours * HOUR - 60.0)
            store.add("c", at=START + hours * HOUR)
            store.compact()
            roots = [it for it in store.segments() if it.parent is None and it.id is not None]
            assert len(roots) <= 3 + 3 + 2
            assert store.count("b", START, START + 3 * DAY).upper == 2 * hours
            assert store.count("b", START, START + hours * HOUR).upper == 2 * hours
        entries = store._state.forest.entries
        kept = [it for it in entries.values() if it.items and it.parent is not None]
        assert kept
        assert all(entries[it.parent or 0].end > (START + 48 * HOUR) * 10**6 for it in kept)
        assert store.verify().problems == ()
