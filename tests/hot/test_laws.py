"""The laws of every structure, as far as a list of keys has them."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bloomtide
from bloomtide import HotItem, HotList
from bloomtide.errors import BloomtideError, IncompatibleError, ParameterError
from tests.hot.exact import Event, fed

START = 1.7e9
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decaying": {"half_life": "10m"},
    "fast": {"half_life": 0.5},
    "keyed": {"half_life": 60, "hash": "keyed", "secret": bytes(range(16))},
    "seeded": {"seed": 9},
}


def clock() -> float:
    return START + 5000


def stream(length: int = 600, seed: int = 1) -> list[Event]:
    draw = np.random.default_rng(seed)
    ranks = draw.zipf(1.4, length) % 200
    late = draw.integers(0, 30, length)
    return [
        (f"key {rank}" if rank % 3 else int(rank), int(1 + rank % 4), START + 5.0 * i - int(gap))
        for i, (rank, gap) in enumerate(zip(ranks, late, strict=True))
    ]


@pytest.fixture(params=VARIANTS, name="make")
def _make(request: pytest.FixtureRequest) -> Callable[[], HotList]:
    return lambda: HotList(20, clock=clock, **VARIANTS[request.param])


@pytest.fixture(name="hot")
def _hot(make: Callable[[], HotList]) -> HotList:
    return fed(make(), stream())


def both_evolve_alike(one: HotList, other: HotList) -> None:
    assert one == other
    for key, count, at in stream(300, seed=2):
        one.add(key, count, at)
        other.add(key, count, at)
    assert one == other
    assert one.top(at=START + 1e4) == other.top(at=START + 1e4)


def test_what_is_saved_and_loaded_goes_on_alike(hot: HotList, tmp_path: Path) -> None:
    hot.save(tmp_path / "hot")
    both_evolve_alike(HotList.load(tmp_path / "hot"), hot.copy())
    loaded = bloomtide.load(tmp_path / "hot")
    assert isinstance(loaded, HotList)
    assert loaded == hot
    loaded.validate()


def test_bytes_pickles_and_copies_go_on_alike(hot: HotList) -> None:
    for again in (
        HotList.from_bytes(hot.to_bytes(), clock=clock),
        bloomtide.from_bytes(hot.to_bytes()),
        pickle.loads(pickle.dumps(hot)),
        copy(hot),
        deepcopy(hot),
    ):
        assert isinstance(again, HotList)
        both_evolve_alike(again, hot.copy())


def test_a_copy_is_independent(hot: HotList) -> None:
    before = hot.copy()
    hot.copy().add("another", 10**6, START)
    assert hot == before
    hot.add("another", 10**6, START)
    assert hot != before


@pytest.mark.parametrize("form", ["list", "tuple", "iterator", "Arrow", "dictionary", "objects"])
def test_a_batch_is_the_same_as_one_by_one(make: Callable[[], HotList], form: str) -> None:
    events: list[Event] = [(str(key), count, at) for key, count, at in stream()]
    keys: Any = [key for key, _, _ in events]
    counts = [count for _, count, _ in events]
    instants = np.array([at for _, _, at in events])
    forms: dict[str, Callable[[], Any]] = {
        "list": lambda: keys,
        "tuple": lambda: tuple(keys),
        "iterator": lambda: iter(keys),
        "Arrow": lambda: pa.chunked_array([keys[:100], keys[100:]]),
        "dictionary": lambda: pa.array(keys).dictionary_encode(),
        "objects": lambda: np.array(keys, dtype=object),
    }
    hot = make()
    hot.add_many(forms[form](), counts, instants)
    assert hot == fed(make(), events)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int16", ">i4"])
def test_arrays_of_numbers_are_the_same_as_one_by_one(
    make: Callable[[], HotList], dtype: str
) -> None:
    numbers = np.random.default_rng(3).zipf(1.3, 2000) % 300
    hot = make()
    hot.add_many(numbers.astype(dtype), at=START)
    assert hot == fed(make(), [(int(number), 1, START) for number in numbers])


def test_nulls_are_skipped_with_their_counts_and_instants_or_refused() -> None:
    keys = ["a", None, "b", None, "c"]
    counts, instants = [1, 50, 2, 50, 3], [10, 990, 20, 990, 30]
    forms = [keys, pa.array(keys), pa.array(keys).dictionary_encode(), iter(keys)]
    for given in forms:
        hot = HotList(9, half_life=10, clock=lambda: 30)
        hot.add_many(given, counts, instants, nulls="skip")
        expected = fed(HotList(9, half_life=10), [("a", 1, 10), ("b", 2, 20), ("c", 3, 30)])
        assert hot == expected
    for given in forms[:3]:
        hot = HotList(9, clock=lambda: 0)
        with pytest.raises(BloomtideError):
            hot.add_many(given)
        assert [item.key for item in hot.top()] == ["a"]


def test_questions_change_nothing(hot: HotList) -> None:
    before = hot.to_bytes()
    hot.count("key 1")
    hot.estimate("nobody")
    hot.top(3)
    hot.top(at=START + 1e8)
    hot.total()
    hot.stats()
    hot.validate()
    assert "nobody" not in hot
    assert len(hot) == 20
    assert repr(hot).startswith("<HotList k=20")
    assert hot.to_bytes() == before


ERRORS: dict[str, Callable[[HotList], object]] = {
    "a key that is none": lambda hot: hot.add(1.5),  # type: ignore[arg-type]
    "a count of zero": lambda hot: hot.add("a", 0),
    "a negative count": lambda hot: hot.add("a", -1),
    "a naive time": lambda hot: hot.add("a", at="2026-01-01T00:00"),
    "milliseconds": lambda hot: hot.add("a", at=START * 1000),
    "a century ahead": lambda hot: hot.add("a", at=START + 101 * 365.25 * 86400),
    "not a number": lambda hot: hot.add("a", at=float("nan")),
    "one bad instant": lambda hot: hot.add_many(["a", "b"], at=[START, -1]),
    "one far instant": lambda hot: hot.add_many(["a", "b"], at=[START, START + 4e9]),
    "instants for others": lambda hot: hot.add_many(["a", "b"], at=[START]),
    "counts for others": lambda hot: hot.add_many(["a", "b"], [1]),
    "one key for many": lambda hot: hot.add_many("ab"),
    "an array of floats": lambda hot: hot.add_many(np.array([1.5])),
    "the past": lambda hot: hot.count("a", at=START - 10**6),
    "top of the past": lambda hot: hot.top(at=START - 10**6),
    "top of none": lambda hot: hot.top(0),
    "back in time": lambda hot: hot.advance("1969-01-01T00:00Z"),
    "another k": lambda hot: hot.merge(HotList(3)),
    "no list at all": lambda hot: hot.merge({}),  # type: ignore[arg-type]
    "an odd word": lambda hot: hot.add_many(["a"], nulls="drop"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_changes_nothing(hot: HotList, name: str) -> None:
    # The clock is behind the list, so a count of its jumps would show.
    hot.advance(START + 9000)
    before = hot.to_bytes()
    with pytest.raises((BloomtideError, TypeError)):
        ERRORS[name](hot)
    assert hot.to_bytes() == before
    hot.validate()


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("k", HotList(21, half_life=60)),
        ("half_life", HotList(20, half_life=61)),
        ("half_life", HotList(20)),
        ("seed", HotList(20, half_life=60, seed=1)),
        ("hash", HotList(20, half_life=60, hash="keyed", secret=bytes(16))),
    ],
)
def test_lists_that_do_not_go_together_name_the_field(field: str, other: HotList) -> None:
    hot = HotList(20, half_life=60)
    with pytest.raises(IncompatibleError) as caught:
        hot.merge(other)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("k", {"k": 0}),
        ("k", {"k": -1}),
        ("k", {"k": 2**30 + 1}),
        ("k", {"k": 1.5}),
        ("k", {"k": True}),
        ("half_life", {"k": 1, "half_life": 0}),
        ("half_life", {"k": 1, "half_life": "soon"}),
        ("half_life", {"k": 1, "half_life": 1e-9}),
        ("half_life", {"k": 1, "half_life": float("inf")}),
        ("clock", {"k": 1, "clock": 5}),
        ("hash", {"k": 1, "hash": "md5"}),
        ("seed", {"k": 1, "seed": -1}),
    ],
)
def test_a_bad_parameter_is_named(field: str, words: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        HotList(**words)
    assert caught.value.name == field


def test_merging_is_the_same_either_way_and_leaves_the_other_alone(
    make: Callable[[], HotList],
) -> None:
    one, other = fed(make(), stream(300, 5)), fed(make(), stream(400, 6))
    before = other.to_bytes()
    merged = one | other
    assert merged == other | one
    assert other.to_bytes() == before
    one |= other
    assert one == merged
    assert one.total(at=START + 1e4) == pytest.approx(
        fed(make(), stream(300, 5) + stream(400, 6)).total(at=START + 1e4)
    )


def test_a_list_merges_with_itself(make: Callable[[], HotList]) -> None:
    hot = make()
    hot.add_many(["a", "b", "a"], at=START)
    hot.merge(hot)
    assert [item.key for item in hot.top()] == ["a", "b"]
    assert hot.count("a", at=START + 5000) == pytest.approx(
        4 * 0.5 ** (5000 / hot.half_life) if hot.half_life else 4
    )


def test_clear_is_a_fresh_list(hot: HotList, make: Callable[[], HotList]) -> None:
    hot.clear()
    assert hot == make()
    assert len(hot) == 0
    assert hot.top() == []
    assert hot.total() == 0
    assert hot.time is None
    both_evolve_alike(hot, make())


def test_keys_come_back_as_they_first_went_in() -> None:
    hot = HotList(20)
    keys = ["text", b"bytes", 0, -1, 2**64 - 1, -(2**63), "", "ü€😀", b"\xff\x00"]
    hot.add_many(keys)
    hot.add_many([b"text", "bytes", bytearray(b"text")])
    top = hot.top()
    assert {(type(item.key), item.key) for item in top} == {(type(key), key) for key in keys}
    assert hot.count("text") == hot.count(b"text") == 3
    assert "5" not in hot
    assert hot.top(1) == [HotItem("text", 3.0, 3.0, 3 / 12)]


def test_a_clock_that_goes_back_counts_as_of_the_lists_time_and_is_shown() -> None:
    now = [START]
    hot = HotList(5, half_life=60, clock=lambda: now[0])
    hot.add("a")
    now[0] -= 600
    hot.add("b")
    hot.add_many(["c", "d"])
    assert hot.time == START
    assert hot.stats().clock_jumps == 2
    assert hot.stats().late == 0
    assert hot.count("b") == pytest.approx(1)
    now[0] += 660
    assert hot.count("b") == pytest.approx(0.5)


def test_an_instant_may_be_said_in_every_form() -> None:
    forms: list[Any] = [
        "2026-01-01T00:00:00Z",
        1767225600,
        np.float64(1767225600),
        1767225600.0,
    ]
    made = []
    for form in forms:
        hot = HotList(5, half_life="1d")
        hot.add("a", at=form)
        hot.add_many(["b"], at=form)
        made.append(hot)
    assert all(hot == made[0] for hot in made)


def test_memory_follows_the_keys_not_k() -> None:
    hot = HotList(2**30)
    assert hot.stats().bytes < 1000
    hot.add(b"x" * 10**6)
    assert 10**6 <= hot.stats().bytes < 2 * 10**6
    small = HotList(1)
    small.add(b"x" * 10**6)
    small.add("y")
    assert small.stats().bytes < 2000


def test_threads_may_add_and_ask_at_once() -> None:
    hot = HotList(50, half_life=60, clock=clock)
    keys = [f"key {i % 40}" for i in range(4000)]

    def work() -> None:
        for start in range(0, 4000, 500):
            hot.add_many(keys[start : start + 500])
            hot.add(keys[start])
            hot.top(5)
            hot.merge(HotList(50, half_life=60))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hot.validate()
    assert hot.total() == pytest.approx(4 * (4000 + 8))
    assert hot.count("key 1") == pytest.approx(400)


def test_a_count_that_no_number_of_64_bits_holds_is_refused_and_changes_nothing() -> None:
    made = HotList(3)
    made.add("a", 2**64 - 2, at=START)
    before = made.to_bytes()
    with pytest.raises(ParameterError, match="`count`"):
        made.add("b", 2**70, at=START)
    with pytest.raises(ParameterError, match=r"`count`.*row 1"):
        made.add_many(["b", "c"], [1, 2**64 - 1], at=START)
    assert made.to_bytes() == before
    estimate = made.estimate("a", at=START)
    assert estimate.upper is not None
    assert estimate.lower <= 2**64 - 2 <= estimate.upper
