"""Batches of plain Python: sequences, sets, iterators, and iterators that break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from bloomtide.errors import KeyTypeError, NullKeyError
from tests.batches.agreement import agrees

MIXED: list[Any] = [
    "a",
    b"a",
    "",
    b"",
    0,
    -1,
    2**64 - 1,
    -(2**63),
    "ü€😀",
    "\x00",
    "a\x00",
    bytearray(b"xyz"),
    memoryview(b"view"),
    5,
    "5",
    "a",
    "x" * 5000,
]
TEXTS = [f"https://example.org/{i % 37}" for i in range(90)]


@pytest.mark.parametrize(
    "batch",
    [
        lambda: list(MIXED),
        lambda: tuple(MIXED),
        lambda: iter(MIXED),
        lambda: (key for key in MIXED),
        lambda: np.array([*MIXED, None], dtype=object)[:-1],
    ],
    ids=["list", "tuple", "iterator", "generator", "object array"],
)
def test_mixed_keys(batch: Callable[[], Any]) -> None:
    agrees(batch, MIXED)


def test_texts_and_other_collections() -> None:
    as_dict = dict.fromkeys(TEXTS, 1)
    agrees(lambda: TEXTS, TEXTS)
    agrees(as_dict.keys, list(as_dict))
    agrees(lambda: set(TEXTS), list(set(TEXTS)))
    agrees(lambda: frozenset(TEXTS), list(frozenset(TEXTS)))
    agrees(lambda: range(-20, 70, 3), list(range(-20, 70, 3)))
    agrees(lambda: (line for line in ["a\n", "b\n"]), ["a\n", "b\n"])


@pytest.mark.parametrize("batch", [list, tuple, set, lambda: iter(()), lambda: range(0)])
def test_an_empty_batch_answers_nothing(batch: Callable[[], Any]) -> None:
    agrees(batch, [])


def _with_none() -> list[Any]:
    keys = ["a", "b", None, "c", None]
    return [keys, tuple(keys), iter(keys), np.array(keys, dtype=object)]


def test_none_among_python_keys_is_a_null() -> None:
    for batch in _with_none():
        made, expected = BloomFilter(100, 0.01), BloomFilter(100, 0.01)
        expected.add_many(["a", "b"])
        with pytest.raises(NullKeyError) as caught:
            made.add_many(batch)
        assert (caught.value.index, caught.value.added) == (2, 2)
        assert "skip" in caught.value.hint
        assert made.to_bytes() == expected.to_bytes()


def test_none_among_python_keys_can_be_skipped() -> None:
    for batch in _with_none():
        made, expected = BloomFilter(100, 0.01), BloomFilter(100, 0.01)
        expected.add_many(["a", "b", "c"])
        assert made.add_many(batch, nulls="skip").tolist() == [True, True, False, True, False]
        assert made.to_bytes() == expected.to_bytes()


def test_bytes_and_text_are_one_key_and_numbers_another() -> None:
    made = BloomFilter(1000, 1e-6)
    made.add_many(["5", b"6"])
    assert made.contains_many([b"5", "6", bytearray(b"5"), 5, 6]).tolist() == [
        *[True, True, True],
        *[False, False],
    ]


@pytest.mark.parametrize("kind", [BloomFilter, ScalableBloomFilter, CountingBloomFilter])
@pytest.mark.parametrize("good", [0, 1, 300, 20_000])
def test_an_iterator_that_breaks_says_how_many_went_in(kind: Any, good: int) -> None:
    class BrokenSourceError(Exception):
        pass

    def source() -> Iterator[int]:
        yield from range(good)
        raise BrokenSourceError("line is dead")

    made, expected = kind(30_000, 0.01), kind(30_000, 0.01)
    expected.add_many(range(good))
    with pytest.raises(BrokenSourceError, match="line is dead") as caught:
        made.add_many(source())
    assert len(caught.value.__notes__) == 1
    assert str(good) in caught.value.__notes__[0].replace(",", "").replace("_", "").split()
    assert made.to_bytes() == expected.to_bytes()


def test_a_query_over_a_broken_iterator_changes_nothing() -> None:
    def source() -> Iterator[str]:
        yield "a"
        raise KeyboardInterrupt

    made = BloomFilter(100, 0.01)
    with pytest.raises(KeyboardInterrupt):
        made.contains_many(source())
    assert made.stats().fill == 0.0


@pytest.mark.parametrize("place", [0, 1, 5000])
def test_a_bad_key_stops_the_batch_where_it_stands(place: int) -> None:
    keys: list[Any] = [*range(place), 2.5, *range(place, 2 * place)]
    for batch in (keys, iter(keys), tuple(keys)):
        made, expected = BloomFilter(20_000, 0.01), BloomFilter(20_000, 0.01)
        expected.add_many(range(place))
        with pytest.raises(KeyTypeError) as caught:
            made.add_many(batch, threads=2)
        assert (caught.value.index, caught.value.added) == (place, place)
        assert "float" in caught.value.got
        assert made.to_bytes() == expected.to_bytes()


def test_a_list_that_changes_while_it_is_read_never_crashes() -> None:
    """A key whose own code empties the list: the keys before it are in, and one error says so."""
    keys: list[Any] = []

    class Clearing:
        def __index__(self) -> int:
            keys.clear()
            return 1

    keys.extend([*[f"before {i}" for i in range(100)], Clearing(), *["after"] * 100])
    made = BloomFilter(1000, 0.01)
    with pytest.raises(RuntimeError, match="changed size"):
        made.add_many(keys)
    assert made.contains_many([f"before {i}" for i in range(100)]).all()
    assert "after" not in made


@pytest.mark.parametrize("threads", [1, 2, 4, 7])
@pytest.mark.parametrize("form", ["list", "numpy", "generator"])
def test_threads_never_change_an_answer_of_a_large_batch(threads: int, form: str) -> None:
    """Repeated keys in a filter that errs often: each answer depends on all rows before it."""
    stream = np.random.default_rng(5).integers(0, 60_000, size=200_000)
    keys = stream.tolist()
    make: dict[str, Callable[[], Any]] = {
        "list": lambda: keys,
        "numpy": lambda: stream,
        "generator": lambda: iter(keys),
    }
    kinds: list[Any] = [BloomFilter, CountingBloomFilter]
    for kind in kinds:
        single, many = kind(40_000, 0.1), kind(40_000, 0.1)
        expected = np.fromiter((single.add(key) for key in keys), dtype=np.bool_, count=len(keys))
        answers = many.add_many(make[form](), threads=threads)
        assert np.array_equal(answers, expected)
        assert many.to_bytes() == single.to_bytes()
        assert many.contains_many(make[form](), threads=threads).all()


@pytest.mark.parametrize("kind", [BloomFilter, ScalableBloomFilter, CountingBloomFilter])
def test_a_batch_may_ask_and_change_the_filter_it_goes_into(kind: Any) -> None:
    """`f.add_many(key for key in keys if key not in f)` must neither fail nor wait for itself."""
    made = kind(100, 0.001)

    def source() -> Iterator[str]:
        for i in range(40_000):
            if f"key {i}" not in made:
                yield f"key {i}"
            if i % 10_000 == 0:
                made.add(f"other {i}")
                made.add_many([f"more {i}"])

    made.add_many(source())
    assert made.contains_many([f"key {i}" for i in range(40_000)]).all()
    assert made.contains_many(["other 0", "more 30000"]).all()
    made.validate()
