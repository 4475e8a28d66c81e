"""Lists and tuples with `threads=`: many threads read the keys, and no answer tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter
from bloomtide.errors import ClosedError, KeyTypeError, NullKeyError
from tests.ids import shown

# More than one chunk of two threads, and the last one is short.
ROWS = 150_000
KINDS: list[Callable[[], Any]] = [
    lambda: BloomFilter(20_000, 0.1),
    lambda: BloomFilter(20_000, 0.1, layout="classic"),
    lambda: ScalableBloomFilter(1000, 0.1),
    lambda: CountingBloomFilter(20_000, 0.1),
    lambda: CountingBloomFilter(20_000, 0.1, policy="conservative"),
]


def _keys(kinds: list[Callable[[int], Any]]) -> list[Any]:
    """Repeated keys of all kinds in turn: each answer depends on the rows before it."""
    numbers = np.random.default_rng(11).integers(0, 40_000, size=ROWS).tolist()
    return [kinds[row % len(kinds)](number) for row, number in enumerate(numbers)]


def _text(number: int) -> str:
    return f"https://example.org/{number}"


STREAMS: dict[str, list[Callable[[int], Any]]] = {
    "text": [_text],
    "integers": [lambda n: n - 20_000],
    "bytes": [lambda n: _text(n).encode()],
    "all kinds": [
        _text,
        lambda n: _text(n).encode(),
        lambda n: n - 20_000,
        lambda n: 2**64 - 1 - n,
        lambda n: f"/straße/{n}",
        lambda n: f"/ключ/{n}",
        lambda n: f"/😀/{n}",
        lambda n: "",
    ],
    "nulls": [_text, lambda n: None if n % 3 else n, lambda n: f"€{n}"],
}


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("stream", STREAMS)
def test_two_threads_answer_and_leave_what_one_does(make: Callable[[], Any], stream: str) -> None:
    keys = _keys(STREAMS[stream])
    one, two, of_tuple = make(), make(), make()
    options = {"nulls": "skip"}
    expected = one.add_many(keys, **options)
    assert expected.any()
    assert not expected.all()
    assert np.array_equal(two.add_many(keys, threads=2, **options), expected)
    assert np.array_equal(of_tuple.add_many(tuple(keys), threads=3, **options), expected)
    assert two.to_bytes() == one.to_bytes() == of_tuple.to_bytes()
    verbs = ["contains_many", "count_many"] if hasattr(one, "count_many") else ["contains_many"]
    asked = [*keys[::3], *_keys([lambda n: f"other {n}"])]
    for verb in verbs:
        answers = getattr(one, verb)(asked, **options)
        assert np.array_equal(getattr(two, verb)(asked, threads=2, **options), answers)


@pytest.mark.parametrize("place", [0, 1, 30_000, 65_536, 70_000, ROWS - 1])
@pytest.mark.parametrize("bad", [None, 2.5, "a\ud800b", 2**64, True, object()], ids=shown)
def test_a_bad_key_stops_all_threads_where_it_stands(bad: object, place: int) -> None:
    keys = _keys([_text, lambda n: n])
    made, expected = BloomFilter(40_000, 0.01), BloomFilter(40_000, 0.01)
    expected.add_many(keys[:place])
    keys[place] = bad
    with pytest.raises((KeyTypeError, NullKeyError)) as caught:
        made.add_many(keys, threads=2)
    error: Any = caught.value
    assert (error.index, error.added) == (place, place)
    assert made.to_bytes() == expected.to_bytes()
    with pytest.raises((KeyTypeError, NullKeyError)) as caught:
        made.contains_many(keys, threads=2)
    error = caught.value
    assert error.index == place


class Acting:
    """A key with code of its own, which runs when it is hashed."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def __index__(self) -> int:
        self.act()
        return 1


@pytest.mark.parametrize("place", [0, 40_000, 100_000])
def test_a_key_that_empties_the_list_ends_the_batch(place: int) -> None:
    keys = _keys([_text])
    before = keys[:place]
    keys[place] = Acting(keys.clear)
    made = BloomFilter(40_000, 0.01)
    with pytest.raises(RuntimeError, match="changed size") as caught:
        made.add_many(keys, threads=2)
    # The acting key itself went in too: its code ran before anybody looked at the list again.
    assert getattr(caught.value, "added") == place + 1  # noqa: B009 - only this error has it
    expected = BloomFilter(40_000, 0.01)
    expected.add_many([*before, 1])
    assert made.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("place", [0, 40_000, 100_000])
def test_keys_after_one_that_changes_them_are_taken_as_changed(place: int) -> None:
    keys = _keys([_text])

    def exchange() -> None:
        keys[place + 1 :] = [f"new {row}" for row in range(place + 1, ROWS)]

    expected = BloomFilter(ROWS, 0.01)
    expected.add_many([*keys[:place], 1, *[f"new {row}" for row in range(place + 1, ROWS)]])
    keys[place] = Acting(exchange)
    made = BloomFilter(ROWS, 0.01)
    made.add_many(keys, threads=2)
    assert made.to_bytes() == expected.to_bytes()


def test_a_key_may_use_the_filter_that_it_goes_into() -> None:
    made, expected = BloomFilter(ROWS, 0.01), BloomFilter(ROWS, 0.01)
    keys = _keys([_text])
    expected.add_many([*keys[:70_000], 1, *keys[70_001:], "single", *["more"] * 20_000])
    keys[70_000] = Acting(lambda: (made.add("single"), made.add_many(["more"] * 20_000, threads=2)))
    made.add_many(keys, threads=2)
    assert made.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize("place", [0, 40_000, 100_000])
def test_a_key_that_closes_the_filter_ends_the_batch_and_the_count_is_right(
    tmp_path: Path, place: int
) -> None:
    path = tmp_path / "closed.bloom"
    shared = BloomFilter.open(path, 40_000, 0.01, mode="c")
    keys = _keys([_text])
    plain = list(keys)
    keys[place] = Acting(shared.close)
    with pytest.raises(ClosedError) as caught:
        shared.add_many(keys, threads=2)
    added = getattr(caught.value, "added")  # noqa: B009 - only errors of batches have it
    assert added <= place
    expected = BloomFilter(40_000, 0.01)
    expected.add_many(plain[:added])
    assert BloomFilter.load(path) == expected


def test_a_list_may_change_under_the_batch_and_no_key_is_read_after_its_end() -> None:
    """Another thread replaces keys, so that old ones die while the batch goes on."""
    keys = _keys([_text])
    made = BloomFilter(ROWS, 0.01)
    enough = Event()

    def replace() -> Iterator[None]:
        for row in range(0, ROWS, 7):
            keys[row] = f"https://example.org/replaced/{row}"
            yield

    def work() -> None:
        while not enough.is_set():
            for _ in replace():
                if enough.is_set():
                    return

    other = Thread(target=work)
    other.start()
    try:
        for _ in range(20):
            assert len(made.add_many(keys, threads=2)) == ROWS
    finally:
        enough.set()
        other.join()
    made.validate()
    made.add_many(keys, threads=2)
    assert made.contains_many(keys, threads=2).all()
