"""A key is remembered for `within`, and hardly longer: against a dictionary of instants."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bloomtide
from bloomtide import BloomFilter, RecentFilter, ScalableBloomFilter
from bloomtide.errors import (
    BloomtideError,
    ChecksumError,
    InvariantError,
    KeyTypeError,
    KindError,
    NotASnapshotError,
    NullKeyError,
    ParameterError,
    SnapshotError,
    StorageError,
    TruncatedError,
    VersionError,
)
from bloomtide.format import seal, unseal

TINY = 1e-12
"""So small an error that a false answer within a test would be a fault."""

START = 1_700_000_000.0


def made(within: object = "8h", generations: int = 4, clock: float = START) -> RecentFilter:
    return RecentFilter(1000, TINY, within=within, generations=generations, clock=lambda: clock)


events = st.lists(
    st.tuples(st.integers(0, 5), st.floats(0, 9_000), st.booleans()), min_size=1, max_size=60
)


@given(events=events, generations=st.integers(1, 9), within=st.floats(0.001, 50_000))
def test_a_key_is_remembered_for_the_time_and_at_most_one_piece_longer(
    events: list[tuple[int, float, bool]], generations: int, within: float
) -> None:
    recent = RecentFilter(100, TINY, within=within, generations=generations)
    added: dict[int, float] = {}
    at = START
    longest = within * (1 + 1 / generations) + generations * 2e-6
    for key, step, refresh in events:
        at += step
        age = at - added.get(key, -1e18)
        if age <= within:
            assert recent.contains(key, at)
        elif age > longest:
            assert not recent.contains(key, at)
        seen = recent.contains(key, at)
        assert recent.add(key, at, refresh=refresh) is not seen
        if refresh or not seen:
            added[key] = at
        recent.validate()


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.integers(-30_000, 30_000)), min_size=1, max_size=50
    ),
    refresh=st.booleans(),
    container=st.sampled_from([list, np.array, pa.array, pl.Series, pd.Series]),
)
def test_a_batch_answers_as_its_keys_one_by_one(
    rows: list[tuple[int, int]], refresh: bool, container: type
) -> None:
    one, many = made(), made()
    names = [key for key, _ in rows]
    instants = [START + second for _, second in rows]
    single = [one.add(key, at, refresh=refresh) for key, at in zip(names, instants, strict=True)]
    batch = many.add_many(container(names), np.array(instants), refresh=refresh)
    assert batch.tolist() == single
    assert many.to_bytes() == one.to_bytes()
    asked = many.contains_many(container(names), instants[-1]).tolist()
    assert asked == [one.contains(key, instants[-1]) for key in names]


def test_without_refresh_a_key_is_new_again_after_the_time_however_often_it_comes() -> None:
    often, kept = (made(clock=START + 48 * 3600) for _ in range(2))
    news = [kept.add("page", START + hour * 3600, refresh=False) for hour in range(48)]
    assert 4 <= sum(news) <= 6  # every 8 to 10 hours
    assert [often.add("page", START + hour * 3600) for hour in range(48)] == [True] + [False] * 47


def test_a_batch_of_one_instant_knows_its_own_repeats() -> None:
    recent = made()
    assert recent.add_many(["a", "b", "a"]).tolist() == [True, True, False]
    assert recent.add_many(iter(["a", "c"]), START + 3600).tolist() == [False, True]
    assert recent.add_many([]).tolist() == []
    assert recent.add_many([], np.array([])).tolist() == []


def test_copies_pickles_and_files_keep_what_was_late_and_are_independent(tmp_path: Path) -> None:
    now = [START]
    recent = RecentFilter(100, 0.01, within="8h", clock=lambda: now[0])
    recent.add("a")
    recent.add("late", START - 3600)
    now[0] -= 60
    recent.add("behind")
    before = recent.stats()
    assert (before.late, before.clock_jumps) == (1, 1)
    recent.save(tmp_path / "recent")
    for twin in (
        recent.copy(),
        copy.copy(recent),
        copy.deepcopy(recent),
        pickle.loads(pickle.dumps(recent)),
        RecentFilter.from_bytes(recent.to_bytes()),
        RecentFilter.load(tmp_path / "recent"),
    ):
        assert twin.stats() == before
        assert twin.to_bytes() == recent.to_bytes()
        assert twin.add("twin", START)
        assert not recent.contains("twin", START)
    assert recent.copy().contains("a"), "a copy has the clock"


def test_late_events_are_kept_in_their_own_time_and_counted() -> None:
    recent = made()
    recent.add("now", START)
    assert recent.add("late", START - 7 * 3600)
    assert recent.contains("late", START)
    assert not recent.contains("late", START + 3 * 3600 + 1)
    assert recent.contains("now", START + 3 * 3600 + 1)
    assert recent.add("ancient", START - 99 * 3600)
    assert recent.add("ancient", START - 99 * 3600), "forgotten before it came"
    assert recent.stats().late == 3
    assert recent.time == START


def test_a_clock_that_goes_back_forgets_nothing() -> None:
    now = [START]
    recent = RecentFilter(100, TINY, within=60, clock=lambda: now[0])
    recent.add("a")
    now[0] -= 3600
    assert "a" in recent
    assert not recent.add("a")
    assert recent.time == START
    assert recent.stats().clock_jumps == 1


def test_a_question_changes_nothing_and_advance_forgets() -> None:
    recent = made(clock=START + 1e6)
    recent.add("a", START)
    before = recent.to_bytes()
    assert not recent.contains("a", START + 1e6)
    assert recent.contains("a", START)
    assert recent.to_bytes() == before
    assert recent.stats().bytes > 0
    recent.advance(START + 1e6)
    assert recent.stats().bytes == 0
    assert not recent.contains("a", START), "time does not go back"
    with pytest.raises(ParameterError, match="later than the clock"):
        recent.advance(START + 1e6 + 90_000)


def test_a_piece_of_time_that_overfills_grows_and_keeps_its_error() -> None:
    recent = RecentFilter(800, 0.01, within="8h", generations=8)
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 2**63, 100_000)
    recent.add_many(keys[:50_000], START)  # 500 times what a piece expects
    assert recent.contains_many(keys[:50_000], START).all()
    wrong = int(recent.contains_many(keys[50_000:], START).sum())
    assert wrong <= 500
    stats = recent.stats()
    assert stats.kind == "recent"
    assert stats.predicted_error <= 0.01
    assert stats.items == pytest.approx(50_000, rel=0.02)
    assert len(stats.layers) == 1
    assert 0 < stats.fill < 1
    assert stats.rebuilds == stats.layers[0].rebuilds


def test_the_error_of_all_pieces_together_keeps_the_target() -> None:
    recent = RecentFilter(9000, 0.02, within="8h", generations=8)
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**63, 59_000)
    for piece in range(9):
        recent.add_many(keys[piece * 1000 : piece * 1000 + 1000], START + piece * 3600)
    wrong = int(recent.contains_many(keys[9000:], START + 8 * 3600).sum())
    assert 0 < wrong <= 50_000 * 0.02


def test_nulls_are_skipped_when_asked() -> None:
    recent = made()
    rows = recent.add_many(["a", None, "a"], nulls="skip")
    assert rows.tolist() == [True, False, False]
    rows = recent.add_many(["b", None, "a"], START + 3 * 3600, refresh=False, nulls="skip")
    assert rows.tolist() == [True, False, False]
    assert recent.add_many([None, "x"], START - 1e6, nulls="skip").tolist() == [False, True]
    assert recent.contains_many([None, "a"], nulls="skip").tolist() == [False, True]


def test_a_bad_row_is_refused_before_anything_changes() -> None:
    recent = made(clock=START + 1e6)
    recent.add("a", START)
    before = recent.to_bytes()
    with pytest.raises(KeyTypeError) as caught:
        recent.add_many(["x", 2.5], [START + 1, START + 1e6])
    assert caught.value.index == 1
    with pytest.raises(NullKeyError):
        recent.add_many(["x", None])
    with pytest.raises(ParameterError, match="`at`"):
        recent.add_many(["x", "y"], [START])
    with pytest.raises(ParameterError, match="`at`"):
        recent.add("x", float("nan"))
    with pytest.raises(KeyTypeError):
        recent.add(2.5, START + 1e6)  # type: ignore[arg-type]
    with pytest.raises(KeyTypeError):
        recent.contains(None)  # type: ignore[arg-type]
    assert recent.to_bytes() == before


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"capacity": 0}, "capacity"),
        ({"error_rate": 2}, "error_rate"),
        ({"within": "soon"}, "within"),
        ({"within": 0}, "within"),
        ({"generations": 0}, "generations"),
        ({"generations": 2000}, "generations"),
        ({"generations": 2.5}, "generations"),
        ({"generations": True}, "generations"),
    ],
)
def test_a_bad_parameter_is_named(words: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        RecentFilter(**{"capacity": 10, "error_rate": 0.01} | words)  # type: ignore[arg-type]
    assert caught.value.name == name


def test_a_file_keeps_everything_and_time_goes_on(tmp_path: Path) -> None:
    recent = made()
    recent.add("early", START - 5 * 3600)
    recent.add("now")
    recent.save(tmp_path / "recent")
    recent.save(tmp_path / "recent")
    again = RecentFilter.load(tmp_path / "recent", clock=lambda: START + 4 * 3600)
    assert again.to_bytes() == recent.to_bytes()
    assert "now" in again
    assert "early" in again or not recent.contains("early", START + 4 * 3600)
    assert again.add("early", START + 9 * 3600)
    assert [path.name for path in tmp_path.iterdir()] == ["recent"]
    assert (again.capacity, again.error_rate) == (1000, TINY)
    assert (again.within, again.generations) == (8 * 3600, 4)


def test_a_damaged_or_foreign_file_is_refused(tmp_path: Path) -> None:
    recent = made()
    recent.add_many(range(100))
    data = recent.to_bytes()
    for cut in (0, 5, 10, 30, len(data) // 2, len(data) - 1):
        with pytest.raises((NotASnapshotError, TruncatedError)):
            RecentFilter.from_bytes(data[:cut])
    with pytest.raises(TruncatedError):
        RecentFilter.from_bytes(data + b"x")
    for place in range(8, len(data), 97):
        with pytest.raises((ChecksumError, TruncatedError, VersionError)):
            RecentFilter.from_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
    with pytest.raises(KindError, match="this is a `bloom` filter, not a `recent` filter"):
        RecentFilter.from_bytes(BloomFilter(10, 0.1).to_bytes())
    with pytest.raises(KindError, match="this is a `recent` filter, not a filter that") as caught:
        bloomtide.from_bytes(data)
    assert "RecentFilter.load" in caught.value.hint
    with pytest.raises(StorageError):
        RecentFilter.load(tmp_path / "nowhere")
    with pytest.raises(BloomtideError):
        recent.save(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"within": 28800.0', b'"within": -8800.0'),
        (b'"capacity": 1000,', b'"capacity": 1e99,'),
        (b'"generations": 4', b'"generations": {}'),
        (b'"time": [17', b'"time": [null, 17'),
        (b"[0, 0, 0]", b"[0, 0, -1]"),
        (b'"parts": [[', b'"parts": 7 ['),
    ],
)
def test_a_made_up_file_with_a_right_checksum_is_refused(old: bytes, new: bytes) -> None:
    recent = made()
    recent.add("a")
    about, body = unseal(recent.to_bytes(), "recent")
    assert old in about
    with pytest.raises(SnapshotError):
        RecentFilter.from_bytes(seal("recent", about.replace(old, new), bytes(body)))
    with pytest.raises(SnapshotError):
        RecentFilter.from_bytes(seal("recent", about, bytes(body), b"more"))


def _with_parts(recent: RecentFilter, parts: list[tuple[object, ScalableBloomFilter]]) -> bytes:
    """A file with these pieces of time, whose checksum is right."""
    about, _ = unseal(recent.to_bytes(), "recent")
    written = [(number, part.to_bytes()) for number, part in parts]
    fields = json.loads(about) | {"parts": [[number, len(data)] for number, data in written]}
    return seal("recent", json.dumps(fields).encode(), *(data for _, data in written))


def test_pieces_of_time_that_no_filter_has_are_refused() -> None:
    """The same number twice, an order that goes back, and filters of other goals."""
    recent = made()
    recent.add("early", START - 3 * 3600)
    recent.add("now")
    (one, early), (two, now) = sorted(recent._filters.items())
    assert _with_parts(recent, [(one, early), (two, now)]) == recent.to_bytes()
    wrong: tuple[list[tuple[object, ScalableBloomFilter]], ...] = (
        [(two, early), (two, now)],
        [(two, now), (one, early)],
        [(one, early), (two, ScalableBloomFilter(999, now.error_rate))],
        [(one, early), (two, ScalableBloomFilter(now.capacity, 0.5))],
        [(one, early), (two, ScalableBloomFilter(now.capacity, now.error_rate, seed=1))],
        [(one, early), ("2", now)],
        [(None, now)],
    )
    for parts in wrong:
        with pytest.raises(SnapshotError):
            RecentFilter.from_bytes(_with_parts(recent, parts))


def test_validate_finds_a_filter_of_no_remembered_time() -> None:
    recent = made()
    recent.add("a")
    recent.validate()
    recent._filters[0] = next(iter(recent._filters.values()))
    with pytest.raises(InvariantError):
        recent.validate()


def test_clear_forgets_every_key() -> None:
    recent = made()
    recent.add("a")
    recent.clear()
    assert "a" not in recent
    assert recent.time == START
