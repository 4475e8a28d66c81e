"""Calls that are not what was meant: a count where none is taken, a time in its place, nothing."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomtide import (
    BloomFilter,
    CountingBloomFilter,
    DynamicCountFilter,
    History,
    HotList,
    Monitor,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    RecentFilter,
    ScalableBloomFilter,
    SpectralBloomFilter,
    TimeDecayingBloomFilter,
    UrlFilter,
    errors,
)
from bloomtide.errors import CapacityError
from tests.bad_input.refusal import refused

Call = Callable[[Any], object]

FORMS: list[tuple[Call, int]] = [
    (lambda f: f.add("k"), 1),
    (lambda f: f.add("k", 1), 1),
    (lambda f: f.add("k", 2), 2),
    (lambda f: f.add("k", count=2), 2),
    (lambda f: f.add(key="k"), 1),
    (lambda f: f.add(key="k", count=3), 3),
    (lambda f: f.add(count=3, key="k"), 3),
    (lambda f: CountingBloomFilter.add(f, "k"), 1),
    (lambda f: CountingBloomFilter.add(f, "k", 5), 5),
    (lambda f: CountingBloomFilter.add(f, key="k", count=5), 5),
]

WRONG: list[tuple[Call, str]] = [
    (lambda f: f.add(), "missing 1 required positional argument: 'key'"),
    (lambda f: f.add(count=2), "missing 1 required positional argument: 'key'"),
    (lambda f: f.add("k", 2, 3), "from 1 to 2 positional arguments but 3 were given"),
    (lambda f: f.add("k", bogus=1), "unexpected keyword argument 'bogus'"),
    (lambda f: f.add("k", 2, count=2), "multiple values for argument 'count'"),
    (lambda f: f.add("k", key="k"), "multiple values for argument 'key'"),
    (lambda f: CountingBloomFilter.add("k", "k"), "descriptor 'add'"),  # type: ignore[arg-type]
    (lambda f: CountingBloomFilter.add(), "needs an argument"),  # type: ignore[call-arg]
]


@pytest.fixture(params=["blocked", "classic"])
def counting(request: pytest.FixtureRequest) -> CountingBloomFilter:
    return CountingBloomFilter(100, 0.01, layout=request.param)


@pytest.mark.parametrize(("call", "times"), FORMS)
def test_every_form_of_the_call_adds_that_often(
    counting: CountingBloomFilter, call: Call, times: int
) -> None:
    assert call(counting) is True
    assert call(counting) is False
    assert counting.count("k") == 2 * times
    assert counting.estimated_items() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_a_wrong_form_of_the_call_is_a_type_error_and_adds_nothing(
    counting: CountingBloomFilter, call: Call, message: str
) -> None:
    before = counting.to_bytes()
    with pytest.raises(TypeError, match=message):
        call(counting)
    assert counting.to_bytes() == before


@pytest.mark.parametrize("count", [0, -1, 1.5, "2"])
def test_a_count_is_checked_however_it_is_given(counting: CountingBloomFilter, count: Any) -> None:
    before = counting.to_bytes()
    refused(errors.ParameterError, counting.add, "k", count, name="count")
    refused(errors.ParameterError, lambda: counting.add("k", count=count), name="count")
    refused(errors.ParameterError, lambda: counting.add(key="k", count=count), name="count")
    assert counting.to_bytes() == before


def test_a_wrong_key_is_refused_on_either_way(counting: CountingBloomFilter) -> None:
    wrong: Any = 1.5
    before = counting.to_bytes()
    refused(errors.KeyTypeError, counting.add, wrong)
    refused(errors.KeyTypeError, counting.add, wrong, 2)
    refused(errors.KeyTypeError, lambda: counting.add(key=wrong))
    assert counting.to_bytes() == before


GOAL: Any = {"capacity": 100, "error_rate": 0.01}
SETS: tuple[Any, ...] = (BloomFilter, ScalableBloomFilter, UrlFilter)
COUNTERS: tuple[Any, ...] = (
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    SpectralBloomFilter,
    PartitionedSpectralBloomFilter,
)
KEY = "http://a.example/b"


def _timed(folder: Path) -> list[Any]:
    decaying = TimeDecayingBloomFilter(**GOAL, half_life="1h")
    return [
        decaying,
        HotList(5),
        TimeDecayingBloomFilter(**GOAL, half_life="1h").with_hot_list(5),
        History.open(folder / "history", background=False),
        Monitor.open(),
    ]


def _close(made: Any) -> None:
    if hasattr(made, "close"):
        made.close()


@pytest.mark.parametrize("wrong", [None, 3, "2", 1_700_000_000])
@pytest.mark.parametrize("cls", SETS)
def test_a_count_where_nothing_is_counted_is_refused_by_name(cls: Any, wrong: Any) -> None:
    made = cls(**GOAL)
    before = made.to_bytes()
    for act in (
        lambda: made.add(KEY, wrong),
        lambda: made.add_many([KEY], wrong),
        lambda: made.add_many([KEY], counts=wrong),
    ):
        found = refused(errors.ParameterError, act)
        assert found.name in {"count", "counts"}
        assert "CountingBloomFilter" in found.hint
    assert made.to_bytes() == before
    with pytest.raises(TypeError, match="'bogus'"):
        made.add_many([KEY], bogus=1)
    with pytest.raises(TypeError, match="missing"):
        made.add()


@pytest.mark.parametrize("cls", COUNTERS)
def test_nothing_is_no_count(cls: Any) -> None:
    made = cls(**GOAL)
    made.add(KEY, 2)
    before = made.to_bytes()
    for verb in (made.add, made.remove):
        refused(errors.ParameterError, verb, KEY, None, name="count")
        refused(errors.ParameterError, lambda verb=verb: verb(KEY, count=None), name="count")
    assert made.to_bytes() == before
    assert made.add_many([KEY], None).tolist() == [False], "counts that are left out are ones"


def test_nothing_is_no_count_where_a_time_is_taken(tmp_path: Path) -> None:
    for made in _timed(tmp_path):
        refused(errors.ParameterError, made.add, KEY, None, name="count")
        refused(errors.ParameterError, made.add, KEY, None, 1_700_000_000, name="count")
        made.add(KEY, 1, None)
        _close(made)


def test_one_count_for_many_keys_is_refused_with_what_to_write(tmp_path: Path) -> None:
    for made in (*(cls(**GOAL) for cls in COUNTERS), *_timed(tmp_path)):
        for verb in ("add_many", "remove_many"):
            if hasattr(made, verb):
                found = refused(errors.ParameterError, getattr(made, verb), [KEY], 3, name="counts")
                assert "counts=[3] * len(keys)" in found.hint
        _close(made)
    found = refused(
        errors.ParameterError, DynamicCountFilter(**GOAL).change_many, [KEY], 3, name="changes"
    )
    assert "changes=[3] * len(keys)" in found.hint


NOW = 1_700_000_000


@pytest.mark.parametrize("count", [100_000_000, NOW, NOW * 1000, NOW * 10**9, 2**70])
def test_a_time_in_the_place_of_a_count_is_refused(count: int, tmp_path: Path) -> None:
    for made in _timed(tmp_path):
        asked = (lambda made=made: made.count(KEY)) if hasattr(made, "count") else made.stats
        before = asked()
        found = refused(errors.ParameterError, made.add, KEY, count, name="count")
        assert "at=" in found.hint
        refused(errors.ParameterError, lambda made=made: made.add(KEY, count=count), name="count")
        assert asked() == before
        _close(made)


def test_a_count_as_large_as_a_time_is_taken_beside_its_instant(tmp_path: Path) -> None:
    for made in _timed(tmp_path):
        made.add(KEY, 99_999_999)
        made.add(KEY, NOW, at=time.time())
        made.add_many([KEY], [NOW])
        _close(made)
    hot = HotList(5)
    hot.add(KEY, NOW, at=NOW)
    assert hot.count(KEY, at=NOW) == NOW
    large = DynamicCountFilter(**GOAL)
    large.add(KEY, NOW)
    assert large.count(KEY) == NOW, "a class without instants has no doubt"


@pytest.mark.parametrize("cls", COUNTERS)
@pytest.mark.parametrize("count", [2**63, 2**64 - 1, 2**64, 2**70])
def test_a_removal_that_is_refused_says_the_number_that_was_given(cls: Any, count: int) -> None:
    made = cls(**GOAL)
    made.add(KEY, 2)
    refused(errors.AbsentKeyError, made.remove, KEY, count, requested=count, estimate=2)
    found = refused(errors.AbsentKeyError, lambda: made.remove(KEY, count=count))
    assert str(count) in found.message
    assert made.count(KEY) == 2


def test_a_batch_that_does_not_fit_says_how_many_keys_went_in() -> None:
    """Each layer has a tenth of the error of the one before, until its cells are too many."""
    growing = ScalableBloomFilter(1, 1e-8, growth=1.0, tightening=0.1)
    with pytest.raises(errors.CapacityError) as caught:
        growing.add_many(range(1_000))
    added = caught.value.added
    assert added is not None
    assert 0 < added < 1_000
    assert growing.contains_many(range(added)).all()
    assert added not in growing
    with pytest.raises(errors.CapacityError) as caught:
        growing.add(added)
    assert caught.value.added is None


def test_an_instant_is_what_a_recent_filter_takes_behind_a_key() -> None:
    recent = RecentFilter(**GOAL)
    recent.add(KEY, NOW)
    assert recent.time == NOW


def test_help_shows_the_whole_call() -> None:
    assert str(inspect.signature(BloomFilter.add)) == "(self, key, /)"
    assert str(inspect.signature(CountingBloomFilter.add)) == "(self, /, key, count=1)"
    assert str(inspect.signature(CountingBloomFilter.count)) == "(self, key, /)"
    assert inspect.getdoc(CountingBloomFilter.add)


def test_a_scalable_filter_that_runs_out_of_cells_says_so_and_not_of_memory() -> None:
    filter = ScalableBloomFilter(1000, 0.01, growth=1)
    with pytest.raises(CapacityError, match=r"a digest tells 4\.6e18 apart") as caught:
        filter.add_many(range(60_000))
    assert "machine" not in str(caught.value)
    assert "`capacity`" in caught.value.hint
    assert "`growth`" in caught.value.hint
    assert caught.value.needed > caught.value.limit == 2**62
    added = caught.value.added
    assert added is not None
    assert filter.contains_many(range(added)).all(), "it is as it was"
