"""Laws of the batch verbs: a batch is nothing but its keys one by one, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.conformance.law import law
from tests.conformance.registry import Subject

LARGE = 25_000
"""Enough keys to make three threads worth starting."""
VERY_LARGE = 300_000
"""Enough keys that threads take them in more than one chunk."""


def one_by_one(subject: Subject, keys: list[Any]) -> tuple[list[bool], bytes]:
    """The answers and the state that a batch of `keys` must give."""
    expected = subject.new()
    return [expected.add(key) for key in keys], expected.to_bytes()


@law()
def a_batch_equals_adding_one_by_one_in_order(subject: Subject) -> None:
    keys = subject.mixed(LARGE)
    answers, state = one_by_one(subject, keys)
    for threads in (1, 2, 3):
        filled = subject.new()
        found = filled.add_many(keys, threads=threads)
        assert found.dtype == np.bool_
        assert found.tolist() == answers, threads
        assert filled.to_bytes() == state, threads


@law()
def a_batch_of_one_key_repeated_adds_it_once_in_front(subject: Subject) -> None:
    keys = [subject.spell("again")] * LARGE
    answers, state = one_by_one(subject, keys)
    assert answers == [True] + [False] * (LARGE - 1)
    for threads in (1, 2, 3):
        filled = subject.new()
        assert filled.add_many(keys, threads=threads).tolist() == answers
        assert filled.to_bytes() == state


@law()
def a_very_large_batch_is_the_same_with_any_number_of_threads(subject: Subject) -> None:
    draw = np.random.default_rng(20240301)
    keys = subject.spelled(draw.integers(0, VERY_LARGE // 2, VERY_LARGE))
    parameters = subject.structure.parameters
    room = {name: VERY_LARGE for name in ("capacity", "total") if name in parameters}
    one = subject.new(**room)
    answers = one.add_many(keys)
    for threads in (2, 3):
        filled = subject.new(**room)
        assert (filled.add_many(keys, threads=threads) == answers).all(), threads
        assert filled.to_bytes() == one.to_bytes(), threads


@law()
def batches_in_pieces_equal_the_whole_batch(subject: Subject) -> None:
    keys = subject.mixed(5000)
    answers, state = one_by_one(subject, keys)
    filled = subject.new()
    found: list[bool] = []
    for start in range(0, len(keys), 617):
        found.extend(filled.add_many(keys[start : start + 617]).tolist())
    assert found == answers
    assert filled.to_bytes() == state


@law()
def the_container_of_a_batch_does_not_matter(subject: Subject) -> None:
    keys = subject.mixed(2000)
    answers, state = one_by_one(subject, keys)

    def stream() -> Iterator[Any]:
        yield from keys

    for batch in (keys, tuple(keys), iter(keys), stream(), dict(enumerate(keys)).values()):
        filled = subject.new()
        assert filled.add_many(batch).tolist() == answers
        assert filled.to_bytes() == state


@law(unless=("urls",))
def a_numpy_batch_equals_its_python_keys(subject: Subject) -> None:
    draw = np.random.default_rng(20240229)
    arrays: list[Any] = [
        draw.integers(info.min, info.max, 500, dtype=kind, endpoint=True)
        for kind in (
            np.int8,
            np.uint8,
            np.int16,
            np.uint16,
            np.int32,
            np.uint32,
            np.int64,
            np.uint64,
        )
        for info in (np.iinfo(kind),)
    ]
    arrays.append(arrays[-1][::-3])
    arrays.append(arrays[-2].astype(">u8"))
    arrays.append(np.array([b"", b"a", b"abc", b"a\0b", b"abcdefgh"]))
    for array in arrays:
        answers, state = one_by_one(subject, array.tolist())
        filled = subject.new()
        assert filled.add_many(array).tolist() == answers, array.dtype
        assert filled.to_bytes() == state, array.dtype
        assert filled.contains_many(array).all(), array.dtype


@law()
def asking_in_a_batch_equals_asking_one_by_one(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(subject.mixed(LARGE // 2))
    probes = [*subject.mixed(LARGE // 2), *subject.words(LARGE // 2, "absent")]
    expected = [key in filled for key in probes]
    assert not all(expected)
    for threads in (1, 2, 3):
        found = filled.contains_many(probes, threads=threads)
        assert found.dtype == np.bool_
        assert found.tolist() == expected, threads


@law("count_many")
def counting_in_a_batch_equals_counting_one_by_one(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(subject.mixed(LARGE // 2))
    probes = [*subject.mixed(LARGE // 2), *subject.words(LARGE // 2, "absent")]
    expected = [filled.count(key) for key in probes]
    assert max(expected) > 1
    for threads in (1, 2, 3):
        found = filled.count_many(probes, threads=threads)
        whole = np.uint32 if subject.limit < 2**32 else np.uint64
        assert found.dtype == (np.float64 if "decays" in subject.structure.traits else whole)
        assert found.tolist() == expected, threads


@law()
def an_empty_batch_answers_nothing(subject: Subject) -> None:
    filled = subject.new()
    kind = "S8" if "urls" in subject.structure.traits else np.int64
    batches: list[Any] = [[], (), iter([]), np.array([], dtype=kind)]
    for batch in batches:
        added, found = filled.add_many(batch), filled.contains_many(batch)
        assert (added.shape, added.dtype) == ((0,), np.bool_)
        assert (found.shape, found.dtype) == ((0,), np.bool_)
    assert filled.to_bytes() == subject.new().to_bytes()


@law()
def a_skipped_null_is_a_row_that_answers_false(subject: Subject) -> None:
    a, b = subject.words(2)
    keys = [None, a, None, b, a, None]
    filled = subject.new()
    assert filled.add_many(keys, nulls="skip").tolist() == [False, True, False, True, False, False]
    assert filled.contains_many(keys, nulls="skip").tolist() == [key is not None for key in keys]
    assert filled.to_bytes() == one_by_one(subject, [a, b, a])[1]


@law("count_many")
def a_skipped_null_is_a_row_that_counts_zero(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(["a", "a", "b"])
    assert filled.count_many(["a", None, "b"], nulls="skip").tolist() == [2, 0, 1]
