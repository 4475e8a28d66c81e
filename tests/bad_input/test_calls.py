"""`CountingBloomFilter.add` with the key alone has a short way; it is the same method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from bloomtide import CountingBloomFilter, errors
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


def test_help_shows_the_whole_call() -> None:
    assert str(inspect.signature(CountingBloomFilter.add)) == "(self, /, key, count=1)"
    assert str(inspect.signature(CountingBloomFilter.count)) == "(self, key, /)"
    assert inspect.getdoc(CountingBloomFilter.add)
