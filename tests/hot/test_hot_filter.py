"""A filter that decays and a hot list, in step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomtide import HotFilter, HotList, TimeDecayingBloomFilter
from bloomtide.errors import (
    BloomtideError,
    IncompatibleError,
    KeyTypeError,
    KindError,
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
