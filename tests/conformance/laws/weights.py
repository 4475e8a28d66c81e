"""Laws of growing counters: counts beside a batch, removals in batches, other partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bloomtide.errors import AbsentKeyError, ParameterError, UnsupportedError
from tests.conformance.law import law
from tests.conformance.registry import Subject
from tests.conformance.streams import mixed, words

LARGE = 25_000
"""Enough keys to make three threads worth starting."""


def weighted(n: int) -> tuple[list[Any], list[int]]:
    """Keys that come again, and how often each row counts: mostly little, now and then a lot."""
    keys = mixed(n)
    return keys, [1 + row % 5 * (1000 if row % 97 == 0 else 1) for row in range(len(keys))]


def one_by_one(subject: Subject, keys: list[Any], counts: list[int]) -> tuple[list[bool], Any]:
    """The answers, and the filter that a batch must leave."""
    expected = subject.new()
    answers = [expected.add(key, count) for key, count in zip(keys, counts, strict=True)]
    return answers, expected


@law("remove_many")
def a_weighted_batch_equals_adding_one_by_one_in_order(subject: Subject) -> None:
    keys, counts = weighted(LARGE)
    answers, expected = one_by_one(subject, keys, counts)
    for threads in (1, 2, 3):
        filled = subject.new()
        assert filled.add_many(keys, counts, threads=threads).tolist() == answers, threads
        assert filled.to_bytes() == expected.to_bytes(), threads
        filled.validate()


@law("remove_many", unless=("conservative",))
def removing_a_weighted_batch_leaves_nothing(subject: Subject) -> None:
    # A counter that is full sticks, so narrow ones get counts that fit.
    narrow = subject.limit < 2**32 - 1
    keys, counts = (words(300), [3] * 300) if narrow else weighted(5000)
    filled = subject.new()
    filled.add_many(keys, counts)
    assert filled.remove_many(keys, counts) is None
    assert not filled.cells().any()
    assert not filled.contains_many(keys).any()
    filled.validate()


@law("remove_many", unless=("conservative",))
def removing_a_batch_stops_at_the_first_absent_key(subject: Subject) -> None:
    filled, expected = subject.new(), subject.new()
    for made in (filled, expected):
        made.add_many(words(300), [3] * 300)
    for key in words(200):
        expected.remove(key, 2)
    with pytest.raises(AbsentKeyError) as caught:
        filled.remove_many([*words(200), "absent", *words(100)], [2] * 301)
    assert (caught.value.estimate, caught.value.requested) == (0, 2)
    assert any("200" in note for note in caught.value.__notes__)
    assert filled.to_bytes() == expected.to_bytes()


@law("change_many", unless=("conservative",))
def a_batch_of_changes_equals_adding_and_removing_one_by_one_in_order(subject: Subject) -> None:
    keys = words(200)
    signs = [1, 0, -1, 1, 0, -1, 3]
    rows = [(key, 5000) for key in keys]  # enough for all that is taken away
    rows += [(keys[row % 200], signs[row % 7] * (1 + row % 90)) for row in range(3000)]
    filled, expected, answers = subject.new(), subject.new(), []
    for key, change in rows:
        if change > 0:
            expected.add(key, change)
        elif change < 0:
            expected.remove(key, -change)
        answers.append(expected.count(key))
    names, changes = map(list, zip(*rows, strict=True))
    assert min(changes) < 0
    counted = filled.change_many(names, np.array(changes))
    assert counted.dtype == np.uint64
    assert counted.tolist() == answers
    assert filled.to_bytes() == expected.to_bytes()
    filled.validate()


@law("change_many", unless=("conservative",))
def a_batch_of_changes_stops_at_the_first_absent_key(subject: Subject) -> None:
    filled, expected = subject.new(), subject.new()
    expected.add_many(["a", "b"], [3, 1])
    expected.remove("a", 2)
    with pytest.raises(AbsentKeyError) as caught:
        filled.change_many(["a", "b", "a", "absent", "b"], [3, 1, -2, -1, 5])
    assert (caught.value.estimate, caught.value.requested) == (0, 1)
    assert filled.to_bytes() == expected.to_bytes()


@law("change_many")
def bad_changes_are_named_and_change_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(3), [3] * 3)
    before = filled.to_bytes()
    bad: list[Any] = [[1], [1] * 4, [1, 1.5, 1], [1, None, 1], ["1", "1", "1"], [1, 2**63, 1]]
    bad += [[True] * 3, np.array([1.0, 2.0, 3.0]), np.array([[1, 2, 3]]), 7]
    for changes in bad:
        with pytest.raises(ParameterError) as caught:
            filled.change_many(words(3), changes)
        assert caught.value.name == "changes"
        assert filled.to_bytes() == before
    assert filled.change_many([], []).tolist() == []


@law("remove_many", "conservative")
def a_conservative_filter_refuses_to_remove_a_batch_and_changes_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300))
    before = filled.to_bytes()
    with pytest.raises(UnsupportedError) as caught:
        filled.remove_many(words(10), [1] * 10)
    assert (caught.value.verb, caught.value.policy) == ("remove", "conservative")
    assert filled.to_bytes() == before


@law("remove_many")
def bad_counts_of_a_batch_are_named_and_change_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300), [3] * 300)
    before = filled.to_bytes()
    bad: list[Any] = [[1, 1], [1, 1, 1, 1], [1, 0, 1], [1, -1, 1], [1, 1.5, 1], [1, None, 1]]
    bad += [np.array([1, 0, 1]), np.array([1.0, 2.0, 3.0]), ["1", "1", "1"]]
    for counts in bad:
        for verb in (filled.add_many, filled.remove_many):
            with pytest.raises(ParameterError) as caught:
                verb(words(3), counts)
            assert caught.value.name == "counts"
            assert filled.to_bytes() == before


@law("remove_many")
def a_skipped_null_takes_its_count_with_it(subject: Subject) -> None:
    filled, expected = subject.new(), subject.new()
    keys, counts = [None, "a", None, "b", "a"], [100, 2, 200, 3, 4]
    assert filled.add_many(keys, counts, nulls="skip").tolist() == [False, True, False, True, False]
    for key, count in (("a", 2), ("b", 3), ("a", 4)):
        expected.add(key, count)
    assert filled.to_bytes() == expected.to_bytes()
    assert filled.count_many(keys, nulls="skip").tolist() == [0, 6, 0, 3, 6]


@law("repartition")
def repartitioning_changes_no_answer(subject: Subject) -> None:
    keys, counts = weighted(3000)
    filled = subject.new()
    filled.add_many(keys, counts)
    cells, answers = filled.cells().tolist(), filled.count_many(keys).tolist()
    cuts: list[Any] = [1, 3, 50, "auto", 11]
    for cut in cuts:
        filled.repartition(cut)
        assert filled.partitions == filled.stats().partitions
        # Whole blocks, or whole m' = ceil(m / c): a few partitions less may be enough.
        assert cut == "auto" or 0.9 * cut <= filled.partitions <= cut
        assert filled.cells().tolist() == cells
        assert filled.count_many(keys).tolist() == answers
        filled.validate()
    same = subject.new(partitions=11)
    same.add_many(keys, counts)
    assert filled.to_bytes() == same.to_bytes()


@law("repartition")
def a_bad_partition_is_named_and_changes_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300))
    before = filled.to_bytes()
    cells = filled.stats().cells
    for cut in (0, -1, cells + 1, 2**70, 1.5, "many", None, True):
        with pytest.raises(ParameterError) as caught:
            filled.repartition(cut)
        assert caught.value.name == "partitions"
        assert filled.to_bytes() == before
