"""Keys and batches that are none, and counts that cannot be: nothing changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter, errors
from tests.bad_input.refusal import refused
from tests.ids import shown

Filter = BloomFilter | ScalableBloomFilter | CountingBloomFilter
KINDS: list[Any] = [BloomFilter, ScalableBloomFilter, CountingBloomFilter]
NAN = math.nan


NO_KEYS: list[Any] = [
    1.5,
    NAN,
    True,
    False,
    2**64,
    -(2**63) - 1,
    10**30,
    [1],
    (1, 2),
    {"a": 1},
    object(),
    1j,
    "\ud800",
    "ab\udfffcd",
    memoryview(b"s-t-r-i-d-e")[::2],
    memoryview(b"12345678").cast("q"),
    np.float64(2.0),
    np.bool_(True),
    np.datetime64("2024-01-01"),
    np.timedelta64(5, "s"),
]


@pytest.fixture(params=KINDS, ids=lambda kind: str(kind.__name__))
def filled(request: pytest.FixtureRequest) -> Filter:
    made: Filter = request.param(100, 0.01)
    made.add_many(["a", "b", "c", 1, 2, -3])
    return made


@pytest.fixture
def unchanged(filled: Filter) -> Any:
    """Checks after the test that the filter's whole state is what it was before."""
    before = filled.to_bytes()
    yield
    assert filled.to_bytes() == before
    filled.validate()


def _single_verbs(filter: Filter) -> list[Callable[[Any], object]]:
    verbs: list[Callable[[Any], object]] = [filter.add, filter.__contains__, filter.positions]
    if isinstance(filter, CountingBloomFilter):
        verbs += [filter.count, filter.estimate, filter.remove]
    return verbs


def _batch_verbs(filter: Filter) -> list[Callable[[Any], object]]:
    verbs: list[Callable[[Any], object]] = [
        lambda key: filter.add_many([key]),
        lambda key: filter.contains_many(["a", key]),
    ]
    if isinstance(filter, CountingBloomFilter):
        counting = filter
        verbs.append(lambda key: counting.count_many([key]))
    return verbs


def _verbs(filter: Filter) -> list[Callable[[Any], object]]:
    return _single_verbs(filter) + _batch_verbs(filter)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("key", NO_KEYS, ids=shown)
def test_other_keys_are_refused_by_every_verb(filled: Filter, key: Any) -> None:
    for verb in _verbs(filled):
        found = refused(errors.KeyTypeError, verb, key)
        assert found.got == type(key).__name__


@pytest.mark.usefixtures("unchanged")
def test_none_is_no_key(filled: Filter) -> None:
    """In a batch None is a null, which has an error of its own."""
    for verb in _single_verbs(filled):
        assert refused(errors.KeyTypeError, verb, None).got == "NoneType"
    for verb in _batch_verbs(filled):
        refused(errors.NullKeyError, verb, None)


@pytest.mark.usefixtures("unchanged")
def test_a_wrong_key_in_a_batch_is_named_by_its_row(filled: Filter) -> None:
    refused(errors.KeyTypeError, filled.add_many, [1.5, "x"], index=0, added=0)
    refused(errors.KeyTypeError, filled.contains_many, ["x", 1.5], index=1)


def test_keys_before_a_bad_key_went_in_and_are_counted(filled: Filter) -> None:
    expected = filled.copy()
    expected.add_many(["x", "y"])
    refused(errors.KeyTypeError, lambda: filled.add_many(["x", "y", 1.5, "z"]), index=2, added=2)
    assert filled.to_bytes() == expected.to_bytes()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("keys", ["abc", "", b"abc", bytearray(b"abc")], ids=shown)
def test_one_text_is_not_a_batch(filled: Filter, keys: Any) -> None:
    for verb in (filled.add_many, filled.contains_many):
        with pytest.raises((errors.ParameterError, errors.KeyTypeError)) as caught:
            verb(keys)
        assert "add(key)" in caught.value.hint


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("keys", [None, 5, 1.5, object()], ids=shown)
def test_what_cannot_be_iterated_is_not_a_batch(filled: Filter, keys: Any) -> None:
    for verb in (filled.add_many, filled.contains_many):
        with pytest.raises((errors.ParameterError, errors.KeyTypeError)) as caught:
            verb(keys)
        assert caught.value.hint


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("threads", [0, -1, 1025, 2**40, 2**70, "x", 1.5, True, None])
def test_threads_are_a_sensible_number(filled: Filter, threads: Any) -> None:
    for verb in (filled.add_many, filled.contains_many):
        refused(errors.ParameterError, partial(verb, ["x"], threads=threads), name="threads")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("nulls", ["x", "", "Skip", 5, None])
def test_nulls_are_refused_or_skipped(filled: Filter, nulls: Any) -> None:
    for verb in (filled.add_many, filled.contains_many):
        refused(errors.ParameterError, partial(verb, ["x"], nulls=nulls), name="nulls")


@pytest.fixture
def counting() -> Any:
    made = CountingBloomFilter(100, 0.01)
    made.add("a", 3)
    before = made.to_bytes()
    yield made
    assert made.to_bytes() == before
    made.validate()


@pytest.mark.parametrize("count", [0, -1, -(2**70), 1.5, "1"], ids=shown)
def test_counts_are_at_least_one(counting: CountingBloomFilter, count: Any) -> None:
    for verb in (counting.add, counting.remove):
        refused(errors.ParameterError, verb, "a", count, name="count")


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, NAN])
def test_confidence(counting: CountingBloomFilter, confidence: float) -> None:
    refused(
        errors.ParameterError,
        lambda: counting.estimate("a", confidence=confidence),
        name="confidence",
    )


def test_removing_too_much(counting: CountingBloomFilter) -> None:
    found = refused(errors.AbsentKeyError, lambda: counting.remove("a", 4), requested=4)
    assert found.estimate == counting.count("a")
    assert issubclass(errors.AbsentKeyError, KeyError)
    refused(errors.AbsentKeyError, counting.remove, "absent", estimate=0, requested=1)
    refused(errors.AbsentKeyError, counting.remove, "a", 2**63)


def test_removing_under_the_conservative_policy() -> None:
    made = CountingBloomFilter(100, 0.01, policy="conservative")
    made.add("a")
    before = made.to_bytes()
    refused(errors.UnsupportedError, lambda: made.remove("a"), verb="remove", policy="conservative")
    assert made.to_bytes() == before
