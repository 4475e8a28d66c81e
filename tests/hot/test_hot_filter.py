"""A filter that decays and a hot list, in step."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bloomtide import HotFilter, HotList, TimeDecayingBloomFilter
from bloomtide.errors import (
    BloomtideError,
    IncompatibleError,
    KeyTypeError,
    KindError,
    NullKeyError,
    OverfullWarning,
    ParameterError,
    SnapshotError,
    StorageError,
)

KEYS = ["a", "b", "a", b"c", 7, "a"]


def made(k: int = 5) -> HotFilter:
    fading = TimeDecayingBloomFilter(1000, 0.001, half_life="1h", clock=lambda: 100_000)
    both: HotFilter = fading.with_hot_list(k)
    both.add_many(iter(KEYS))
    return both


def test_every_event_reaches_both_parts() -> None:
    both = made()
    assert both.hot.half_life == 3600
    assert both.add("b", 2) is False
    assert both.add("new") is True
    assert both.filter.count("b") == both.count("b") == 3
    assert both.hot.count("b") == pytest.approx(3)
    assert {item.key for item in both.top(2)} == {"a", "b"}
    both.add("b", at=90_000)
    assert both.hot.stats().late == both.filter.stats().late == 1
    assert b"c" in both
    assert "absent" not in both
    assert both.rate("a") == both.filter.rate("a") > 0
    assert both.estimate("a").lower == pytest.approx(3)


def test_many_questions_are_answered_by_the_filter() -> None:
    both = made()
    both.add("b", 4, at=100_000)
    keys: list[Any] = ["a", "b", "absent", b"c", 7]
    for at in (None, 100_000, 200_000, [100_000, 120_000, 140_000, 160_000, 180_000]):
        assert both.count_many(keys, at).tolist() == both.filter.count_many(keys, at).tolist()
        assert both.contains_many(keys, at).tolist() == both.filter.contains_many(keys, at).tolist()
        rates = both.rate_many(keys, "10m", at)
        assert rates.tolist() == both.filter.rate_many(keys, "10m", at).tolist()
    assert both.count_many(keys).tolist() == [both.count(key) for key in keys]
    assert both.contains_many(keys).tolist() == [True, True, False, True, True]
    assert both.rate_many(keys).tolist() == [both.rate(key) for key in keys]
    assert both.count_many(["a", None], nulls="skip", threads=2).tolist() == [both.count("a"), 0]


def test_a_bad_row_stops_both_parts_at_the_same_place() -> None:
    both, other = made(), made()
    with pytest.raises(KeyTypeError):
        both.add_many(["x", "y", 2.5, "z"])
    other.add_many(["x", "y"])
    assert both == other


NOW = 100_000
YEAR = 365.25 * 86_400
LATER = 1_780_000_000


def at_now(clock: float = LATER) -> HotFilter:
    fading = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", clock=lambda: clock)
    both: HotFilter = fading.with_hot_list(10)
    return both


def parts(both: HotFilter) -> tuple[bytes, bytes]:
    """Everything that is in both, byte for byte."""
    return both.filter.to_bytes(), both.hot.to_bytes()


def refused_calls() -> dict[str, Callable[[HotFilter], object]]:
    keys = ["a", "b", "c"]
    return {
        "a count that the list cannot take": lambda h: h.add("k", 2**64 - 1, LATER),
        "the same in a batch": lambda h: h.add_many(keys, [1, 2**64, 1], LATER),
        "the same in an iterator": lambda h: h.add_many(keys, iter([1, 2**64 - 1, 1]), LATER),
        "the same in a mapping": lambda h: h.add_many({"a": 1, "b": 2**64}),
        "the same in a table": lambda h: h.add_many(
            pa.table({"k": ["a"], "n": pa.array([2**64 - 1], pa.uint64())})
        ),
        "a count of zero": lambda h: h.add("k", 0),
        "a time in the place of a count": lambda h: h.add("k", LATER),
        "too few counts": lambda h: h.add_many(keys, [1, 2]),
        "too few of an iterator": lambda h: h.add_many(keys, iter([1, 2])),
        "one count": lambda h: h.add_many(keys, 5),
        "a time far ahead": lambda h: h.add("k", 1, LATER + 150 * YEAR),
        "the same of a batch": lambda h: h.add_many(keys, None, LATER + 150 * YEAR),
        "the same in a column": lambda h: h.add_many(
            keys, None, [LATER, LATER + 150 * YEAR, LATER]
        ),
        "milliseconds": lambda h: h.add_many(keys, None, iter([LATER, LATER, LATER * 1000])),
        "a time without a zone": lambda h: h.add("k", 1, "2026-01-31T12:00:00"),
        "a column for one key": lambda h: h.add("k", 1, [LATER]),
        "too few instants": lambda h: h.add_many(keys, None, [LATER]),
        "a bad key": lambda h: h.add(2.5),
        "no keys": lambda h: h.add_many(None),
        "a number of keys": lambda h: h.add_many(5),
        "no keys beside counts": lambda h: h.add_many(None, [1]),
        "no keys beside instants": lambda h: h.add_many(None, None, [LATER]),
        "one key": lambda h: h.add_many("abc"),
        "no threads": lambda h: h.add_many(keys, threads=0),
        "unknown nulls": lambda h: h.add_many(keys, nulls="drop"),
        "an unknown word": lambda h: h.add_many(keys, count=1),
        "a time that the clock does not allow": lambda h: h.advance(LATER + 86_400 + 200),
        "a time that is none": lambda h: h.advance("now"),
    }


@pytest.mark.parametrize("name", refused_calls())
@pytest.mark.parametrize("empty", [True, False])
def test_what_is_refused_changes_neither_part(name: str, empty: bool) -> None:
    both = at_now()
    if not empty:
        both.add("old", 3, LATER)
    before = parts(both)
    with pytest.raises(BloomtideError):
        refused_calls()[name](both)
    assert parts(both) == before


@pytest.mark.parametrize("empty", [True, False])
def test_a_column_that_spans_more_than_a_century_goes_to_both_or_neither(empty: bool) -> None:
    both = at_now()
    if not empty:
        both.add("old", 3, LATER)
    before = parts(both)
    try:
        both.add_many(["a", "b", "c"], None, [LATER, LATER + 50 * YEAR, 1.0])
    except ParameterError:
        assert parts(both) == before
    else:
        listed = {item.key for item in both.top()} - {"old"}
        assert listed == {"a", "b", "c"}
        assert all(key in both for key in listed)


def test_an_empty_filter_refuses_what_its_clock_makes_a_slip() -> None:
    """The list has no time yet, so it would take any."""
    both = at_now(clock=5e9)
    before = parts(both)
    for call in (
        lambda: both.add("a", 1, 5),
        lambda: both.add_many(["a"], None, 5),
        lambda: both.add_many(["a"], None, [5]),
        lambda: both.advance(5),
    ):
        with pytest.raises(ParameterError, match="within 100 years"):
            call()
        assert parts(both) == before


@pytest.mark.parametrize(
    "arguments",
    [
        (["a", "b", "c"], iter([1, 2, 3]), LATER),
        (["a", "b", "c"], None, iter([LATER, LATER + 1, LATER + 2])),
        (iter(["a", "b", "c"]), iter([1, 2, 3]), iter([LATER] * 3)),
        (pa.RecordBatchReader.from_batches(
            pa.schema([("k", pa.string())]),
            [pa.record_batch({"k": ["a", "b"]}), pa.record_batch({"k": ["c"]})],
        ),),
        ({"a", "b", "c"},),
    ],
    ids=["counts", "instants", "all", "arrow", "set"],
)  # fmt: skip
def test_what_can_be_read_only_once_reaches_both(arguments: Any) -> None:
    both = at_now()
    assert both.add_many(*arguments).tolist() == [True] * 3
    for key in ("a", "b", "c"):
        assert both.hot.count(key) == pytest.approx(both.count(key))
        assert both.hot.count(key) > 0.9


@pytest.mark.parametrize(
    ("keys", "counts", "kind"),
    [
        (["a", "b", 2.5, "d"], None, KeyTypeError),
        (iter(["a", "b", 2.5, "d"]), None, KeyTypeError),
        (["a", "b", 2.5, "d"], [1, 2, 3, 4], KeyTypeError),
        (["a", "b", None, "d"], iter([1, 2, 3, 4]), NullKeyError),
        (pa.array(["a", "b", None, "d"]), [1, 2, 3, 4], NullKeyError),
        (pa.table({"k": ["a", "b", None, "d"], "n": [1, 2, 3, 4]}), None, NullKeyError),
        (np.array(["a", "b", 2.5, "d"], object), None, KeyTypeError),
    ],
)
def test_a_bad_row_leaves_those_before_it_in_both(
    keys: Any, counts: Any, kind: type[BloomtideError]
) -> None:
    both, other = at_now(), at_now()
    weighted = counts is not None or isinstance(keys, pa.Table)
    with pytest.raises(kind) as caught:
        both.add_many(keys, counts, LATER)
    assert vars(caught.value)["added"] == vars(caught.value)["index"] == 2
    other.add_many(["a", "b"], [1, 2] if weighted else None, LATER)
    assert parts(both) == parts(other)


def interrupted(error: BaseException) -> Iterator[str]:
    yield "a"
    yield "b"
    raise error


@pytest.mark.parametrize("error", [RuntimeError("gone"), KeyboardInterrupt()])
def test_an_iterator_that_raises_says_how_many_went_in(error: BaseException) -> None:
    both, other, alone = at_now(), at_now(), at_now().filter
    with pytest.raises(type(error)) as caught:
        both.add_many(interrupted(error))
    other.add_many(["a", "b"])
    assert parts(both) == parts(other)
    with pytest.raises(type(error)) as of_filter:
        alone.add_many(interrupted(type(error)(*error.args)))
    assert getattr(caught.value, "__notes__", []) == getattr(of_filter.value, "__notes__", [])


def test_beside_counts_an_iterator_that_raises_leaves_nothing() -> None:
    both = at_now()
    before = parts(both)
    for counts, at in (([1, 2, 3], None), (None, [LATER] * 3)):
        with pytest.raises(RuntimeError) as caught:
            both.add_many(interrupted(RuntimeError("gone")), counts, at)
        assert caught.value.__notes__ == ["0 keys of the batch were processed before this"]
        assert parts(both) == before


def test_a_warning_that_is_an_error_leaves_the_parts_in_step() -> None:
    """The keys of that call are inside all the same."""
    small = TimeDecayingBloomFilter(10, 0.01, half_life="1h", clock=lambda: NOW).with_hot_list(200)
    keys = [f"key {n}" for n in range(100)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfullWarning)
        with pytest.raises(OverfullWarning):
            small.add_many(keys)
    assert {item.key for item in small.top()} == set(keys)
    assert small.contains_many(keys).all()
    one = TimeDecayingBloomFilter(10, 0.01, half_life="1h", clock=lambda: NOW).with_hot_list(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfullWarning)
        with pytest.raises(OverfullWarning):
            one.merge(small)
    assert {item.key for item in one.top()} == set(keys)
    assert one.contains_many(keys).all()


def test_only_a_hot_filter_is_merged() -> None:
    both = at_now()
    both.add("a")
    before = parts(both)
    with pytest.raises(TypeError, match="'int' object is not an instance of 'HotFilter'"):
        both.merge(5)  # type: ignore[arg-type]
    with pytest.raises(IncompatibleError, match="HotFilter here, TimeDecayingBloomFilter there"):
        both.merge(both.filter)  # type: ignore[arg-type]
    assert parts(both) == before


def test_what_is_read_takes_a_clock(tmp_path: Path) -> None:
    both = at_now()
    both.add("a", 8)
    both.save(tmp_path / "hot")
    for again in (
        HotFilter.load(tmp_path / "hot", clock=lambda: LATER + 3600),
        HotFilter.from_bytes(both.to_bytes(), clock=lambda: LATER + 3600),
    ):
        assert 3.9 < again.count("a") < 4.3
        assert again.hot.count("a") == pytest.approx(again.count("a"), rel=0.01)


def test_a_copy_is_independent() -> None:
    both = at_now()
    for other in (both.copy(), copy.copy(both), copy.deepcopy(both)):
        other.add("later")
        assert "later" not in both
        assert both.top() == []


def test_the_bounds_hold_for_what_came_since_the_list_was_made() -> None:
    fading = TimeDecayingBloomFilter(1000, 0.01, half_life="1h", clock=lambda: LATER)
    fading.add("a", 5)
    both: HotFilter = fading.with_hot_list(10)
    assert both.count("a") == 5
    assert both.estimate("a").upper == 0
    both.add("a", 2)
    found = both.estimate("a")
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 2 <= found.upper < 2.1


@pytest.mark.parametrize(("decay", "half_life"), [(0.5, 60.0), (0.25, 30.0), (1.0, None)])
def test_the_list_fades_as_fast_as_the_filter(decay: float, half_life: float | None) -> None:
    both = TimeDecayingBloomFilter(100, 0.01, decay=decay, epoch="1m").with_hot_list(3)
    assert both.hot.half_life == half_life


def test_counts_of_one_epoch_alone_have_no_list() -> None:
    with pytest.raises(ParameterError) as caught:
        TimeDecayingBloomFilter(100, 0.01, decay=0, epoch="1m").with_hot_list(3)
    assert caught.value.name == "decay"


def test_time_moves_on_in_both() -> None:
    both = made()
    both.advance(108_000)
    assert both.filter.time == both.hot.time == 108_000


def test_a_merge_takes_both_parts_or_neither() -> None:
    both, other = made(), made()
    both.merge(other)
    assert both.count("a") == 6
    before = both.copy()
    with pytest.raises(BloomtideError):
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
    assert again.filter == both.filter
    assert [path.name for path in tmp_path.iterdir()] == ["hot"]
    assert HotFilter.from_bytes(both.to_bytes()).hot == both.hot


def test_a_file_keeps_its_permissions_and_a_failed_save_leaves_it_as_it_was(tmp_path: Path) -> None:
    both, path = made(), tmp_path / "hot"
    both.save(path)
    path.chmod(0o640)
    both.add("later")
    both.save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert HotFilter.load(path) == both
    with pytest.raises(StorageError):
        both.save(tmp_path)
    with pytest.raises(StorageError):
        both.save(tmp_path / "nowhere" / "hot")
    assert [entry.name for entry in tmp_path.iterdir()] == ["hot"]


def test_half_a_file_is_refused() -> None:
    data = made().to_bytes()
    with pytest.raises(KindError, match="not a hot filter"):
        HotFilter.from_bytes(made().filter.to_bytes())
    for cut in (0, 10, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(BloomtideError):
            HotFilter.from_bytes(data[:cut])


@pytest.mark.parametrize(
    ("field", "value"),
    [("half_life", None), ("half_life", "59m"), ("half_life", "2h"), ("epoch", "1m"),
     ("epoch", None), ("origin", 1.0)],
)  # fmt: skip
def test_a_list_that_fades_unlike_its_filter_is_refused(
    field: str, value: Any, tmp_path: Path
) -> None:
    """Both are sound, and so is the checksum of the whole."""
    both = made()
    alike = {name: getattr(both.filter, name) for name in ("half_life", "epoch", "origin")}
    unlike = alike | {field: value}
    if value is None and field == "epoch":
        del unlike["origin"]
    both.hot = HotList(5, **unlike)
    (tmp_path / "hot").write_bytes(both.to_bytes())
    with pytest.raises(IncompatibleError, match=field):
        HotFilter(both.filter, both.hot)
    with pytest.raises(SnapshotError, match=field) as caught:
        HotFilter.load(tmp_path / "hot")
    assert caught.value.path == str(tmp_path / "hot")
    assert caught.value.hint


@pytest.mark.parametrize("decay", [0.3, 0.999, 1.0])
def test_a_filter_of_any_decay_comes_back(decay: float) -> None:
    both = TimeDecayingBloomFilter(100, 0.01, decay=decay, epoch="7s").with_hot_list(3)
    assert HotFilter.from_bytes(both.to_bytes()) == both
