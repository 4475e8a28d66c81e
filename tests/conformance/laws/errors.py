"""Laws of bad input: a named error, and no state changed but what the error says went in."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bloomtide.errors import (
    BloomtideError,
    KeyTypeError,
    NullKeyError,
    ParameterError,
    StorageError,
)
from tests.conformance.law import law
from tests.conformance.registry import Subject


def started(subject: Subject) -> tuple[Any, bytes]:
    """A filter with some keys, and its state."""
    filled = subject.new()
    filled.add_many(subject.words(300))
    return filled, filled.to_bytes()


def batch_verbs(subject: Subject, filled: Any) -> list[Callable[..., Any]]:
    """Every verb that takes a batch."""
    verbs = ("add_many", "contains_many", "count_many")
    return [getattr(filled, verb) for verb in verbs if verb in subject.structure.traits]


@law()
def a_bad_key_is_a_type_error_that_changes_nothing(subject: Subject) -> None:
    filled, before = started(subject)
    names = ("add", "__contains__", "positions", "count", "estimate", "remove")
    verbs = [getattr(filled, name) for name in names if name in subject.structure.traits]
    for verb in verbs:
        for key in subject.bad_keys:
            with pytest.raises(KeyTypeError) as caught:
                verb(key)
            assert isinstance(caught.value, TypeError)
            assert caught.value.got == type(key).__qualname__
            assert caught.value.hint
            assert filled.to_bytes() == before


@law()
def a_bad_key_in_a_batch_says_where_it_is_and_what_went_in(subject: Subject) -> None:
    good = subject.words(700, "good")
    for bad in subject.bad_keys:
        if bad is None:
            continue
        for threads in (1, 2):
            filled, _ = started(subject)
            expected, _ = started(subject)
            expected.add_many(good[:500])
            with pytest.raises(KeyTypeError) as caught:
                filled.add_many([*good[:500], bad, *good[500:]], threads=threads)
            assert (caught.value.index, caught.value.added) == (500, 500)
            assert filled.to_bytes() == expected.to_bytes()


@law()
def a_null_in_a_batch_says_where_it_is_and_what_went_in(subject: Subject) -> None:
    filled, _ = started(subject)
    expected, _ = started(subject)
    expected.add_many(subject.words(10, "good"))
    with pytest.raises(NullKeyError) as caught:
        filled.add_many([*subject.words(10, "good"), None, *subject.words(1, "after")])
    assert (caught.value.index, caught.value.added) == (10, 10)
    assert filled.to_bytes() == expected.to_bytes()


@law()
def a_bad_key_in_a_question_changes_nothing(subject: Subject) -> None:
    filled, before = started(subject)
    for ask in batch_verbs(subject, filled)[1:]:
        with pytest.raises(KeyTypeError) as caught:
            ask([*subject.words(2), 1.5])
        assert caught.value.index == 2
        with pytest.raises(NullKeyError):
            ask([*subject.words(1), None])
        assert filled.to_bytes() == before


@law()
def a_batch_that_is_no_batch_is_refused(subject: Subject) -> None:
    filled, before = started(subject)
    texts: list[Any] = ["text", b"bytes", bytearray(b"bytes")]
    others: list[Any] = [None, 5, np.array([1.5]), np.array([True]), np.zeros((2, 2), np.int64)]
    for verb in batch_verbs(subject, filled):
        for keys in texts:
            with pytest.raises(BloomtideError) as caught:
                verb(keys)
            assert isinstance(caught.value, (KeyTypeError, ParameterError))
            assert caught.value.hint
        for keys in others:
            with pytest.raises((TypeError, ValueError)):
                verb(keys)
        assert filled.to_bytes() == before


@law()
def an_iterator_that_fails_leaves_a_note_of_what_went_in(subject: Subject) -> None:
    good = subject.words(700, "good")

    def failing() -> Iterator[str]:
        yield from good
        raise LookupError("the source broke")

    filled, _ = started(subject)
    expected, _ = started(subject)
    expected.add_many(good)
    with pytest.raises(LookupError, match="the source broke") as caught:
        filled.add_many(failing())
    assert any("700" in note for note in caught.value.__notes__)
    assert filled.to_bytes() == expected.to_bytes()


@law()
def a_bad_option_of_a_batch_is_named_and_changes_nothing(subject: Subject) -> None:
    filled, before = started(subject)
    for verb in batch_verbs(subject, filled):
        for name, value in (("threads", 0), ("threads", -1), ("nulls", "ignore")):
            with pytest.raises(ParameterError) as caught:
                verb(subject.words(1), **{name: value})
            assert caught.value.name == name
            assert caught.value.allowed
        assert filled.to_bytes() == before


@law()
def a_file_that_cannot_be_written_changes_nothing(subject: Subject) -> None:
    filled, before = started(subject)
    with pytest.raises(StorageError) as caught:
        filled.save(subject.folder / "missing" / "filter.bloom")
    assert caught.value.errno == errno.ENOENT
    assert filled.to_bytes() == before
    assert not (subject.folder / "missing").exists()
