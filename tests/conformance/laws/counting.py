"""Laws of counters: counts, removals, saturation and the estimate's bounds."""

from __future__ import annotations

import pytest

from bloomtide.errors import AbsentKeyError, ParameterError, UnsupportedError
from tests.conformance.law import law
from tests.conformance.registry import Subject
from tests.conformance.streams import mixed, words


@law("count")
def a_count_is_never_too_small(subject: Subject) -> None:
    filled = subject.new()
    for times, key in enumerate(words(12), start=1):
        for _ in range(times):
            filled.add(key)
    assert all(filled.count(key) >= times for times, key in enumerate(words(12), start=1))


@law("count")
def adding_a_count_equals_adding_that_often(subject: Subject) -> None:
    at_once, one_by_one = subject.new(), subject.new()
    for times, key in enumerate(mixed(200), start=1):
        at_once.add(key, times)
        one_by_one.add_many([key] * times)
    assert at_once.to_bytes() == one_by_one.to_bytes()


@law("remove", unless=("conservative",))
def remove_undoes_add(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300))
    before = filled.to_bytes()
    filled.add_many(words(300, "later"))
    filled.add("thrice", 3)
    assert all(filled.remove(key) is None for key in words(300, "later"))
    filled.remove("thrice", 2)
    filled.remove("thrice")
    assert filled.to_bytes() == before


@law("remove", unless=("conservative",))
def removing_too_much_changes_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300))
    before = filled.to_bytes()
    absent = next(key for key in words(100, "absent") if key not in filled)
    for key, count in ((absent, 1), ("key-0", filled.count("key-0") + 1), ("key-0", 2**31)):
        with pytest.raises(AbsentKeyError) as caught:
            filled.remove(key, count)
        assert isinstance(caught.value, KeyError)
        assert (caught.value.estimate, caught.value.requested) == (filled.count(key), count)
        assert filled.to_bytes() == before


@law("remove", "conservative")
def a_conservative_filter_refuses_to_remove_and_changes_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300))
    before = filled.to_bytes()
    for key in ("key-0", "absent"):
        with pytest.raises(UnsupportedError) as caught:
            filled.remove(key)
        assert (caught.value.verb, caught.value.policy) == ("remove", "conservative")
        assert filled.to_bytes() == before


@law("count")
def a_bad_count_is_named_and_changes_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(words(300))
    before = filled.to_bytes()
    verbs = [filled.add, filled.remove] if subject.removes else [filled.add]
    for verb in verbs:
        for count in (0, -1):
            with pytest.raises(ParameterError) as caught:
                verb("key-0", count)
            assert caught.value.name == "count"
        with pytest.raises((TypeError, ValueError)):
            verb("key-0", 1.5)
    for confidence in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(ParameterError) as caught:
            filled.estimate("key-0", confidence=confidence)
        assert caught.value.name == "confidence"
    assert filled.to_bytes() == before


@law("count", unless=("decays",))
def a_full_counter_sticks_and_says_so(subject: Subject) -> None:
    filled = subject.new()
    full = subject.limit
    filled.add("hot", full - 1)
    assert filled.count("hot") == full - 1
    assert not filled.estimate("hot").saturated
    filled.add("hot", 10)
    assert filled.count("hot") == full
    assert filled.stats().saturated == len(set(filled.positions("hot")))
    estimate = filled.estimate("hot")
    assert (estimate.value, estimate.upper, estimate.saturated) == (full, None, True)
    if subject.removes:
        before = filled.to_bytes()
        filled.remove("hot", 3)  # nobody knows how often "hot" was added: its counters stay
        assert filled.to_bytes() == before
    filled.validate()


@law("estimate")
def an_estimate_is_the_count_with_bounds_around_it(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(mixed(2000))
    for key in (*mixed(200), *words(200, "absent")):
        estimate = filled.estimate(key, confidence=0.9)
        assert estimate.value == filled.count(key)
        assert estimate.confidence == 0.9
        # Nothing has faded yet, so nothing was taken too much.
        assert estimate.upper is None if estimate.saturated else estimate.upper == estimate.value
        assert 0 <= estimate.lower <= estimate.value


@law("cells")
def cells_are_the_counters_that_stats_describe(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(mixed(2000))
    cells, stats = filled.cells(), filled.stats()
    assert len(cells) == stats.cells
    assert (cells > 0).sum() == round(stats.fill * stats.cells)
    assert (cells == subject.limit).sum() == stats.saturated
    assert all(filled.count(key) == cells[filled.positions(key)].min() for key in words(100))
