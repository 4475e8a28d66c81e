"""Laws of filters that fade: with epochs of a hundred seconds, and every instant said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bloomtide
from bloomtide.errors import ParameterError
from tests.conformance.law import law
from tests.conformance.registry import Subject
from tests.conformance.streams import mixed, words

EPOCH = 100


def at(epoch: float) -> float:
    """An instant, so many epochs after one in 2023."""
    return (17_000_000 + epoch) * EPOCH


START = at(5)


def fresh(subject: Subject, **changes: Any) -> Any:
    """An empty filter with short epochs."""
    return subject.new(half_life=10 * EPOCH, epoch=EPOCH, **changes)


def filled_over_time(subject: Subject, **changes: Any) -> Any:
    """A filter with keys of four epochs; the last one is 8."""
    filled = fresh(subject, **changes)
    for epoch in range(5, 9):
        filled.add_many(mixed(1000, f"epoch-{epoch}"), at=at(epoch))
    return filled


@law("decays")
def a_count_halves_in_its_half_life(subject: Subject) -> None:
    filled = fresh(subject)
    filled.add("hot", 128, at=START)
    for halvings in range(4):
        later = START + halvings * filled.half_life
        assert filled.count("hot", later) == pytest.approx(128 / 2**halvings, rel=0.01)
    rate = 128 * (1 - filled.decay)
    assert filled.rate("hot", filled.epoch, START) == pytest.approx(rate)
    assert filled.rate_many(["hot"], 2 * filled.epoch, START) == pytest.approx([2 * rate])


@law("decays")
def a_later_event_moves_the_time_and_an_earlier_one_counts_by_its_age(subject: Subject) -> None:
    filled = fresh(subject)
    assert fresh(subject).time is None
    filled.add("late", 100, at=START)
    assert filled.time == START
    filled.add("other", at=START + 10.5 * EPOCH)
    assert filled.time == START + 10 * EPOCH
    on_time = filled.count("late", at=filled.time)
    filled.add("late", 100, at=START)
    assert filled.time == START + 10 * EPOCH
    assert filled.count("late", at=filled.time) == pytest.approx(2 * on_time, rel=0.02)
    assert (filled.stats(at=filled.time).late, filled.stats(at=filled.time).clock_jumps) == (1, 0)


@law("decays")
def a_clock_that_is_behind_counts_as_now_and_is_told(subject: Subject) -> None:
    filled = fresh(subject, clock=lambda: START)
    filled.add("a", at=START + 3 * EPOCH)
    filled.add("b")
    filled.add_many(["b"])
    assert filled.count("b") == filled.count("b", at=filled.time) == 2
    assert filled.time == START + 3 * EPOCH
    stats = filled.stats()
    assert (stats.late, stats.clock_jumps) == (0, 2)


@law("decays")
def a_batch_with_instants_equals_its_rows_one_by_one(subject: Subject) -> None:
    keys = mixed(3000)
    counts = [1 + row % 3 for row in range(len(keys))]
    moments = [at(5 + (row // 100 - row % 7) / 3) for row in range(len(keys))]
    expected = fresh(subject)
    rows = zip(keys, counts, moments, strict=True)
    answers = [expected.add(key, count, moment) for key, count, moment in rows]
    state = expected.to_bytes()
    milliseconds = np.ceil(np.array(moments) * 1000).astype("int64")
    zoned = pa.array(milliseconds, pa.timestamp("ms", "UTC"))
    columns = (moments, np.array(moments), zoned)
    for column in columns:
        filled = fresh(subject)
        assert filled.add_many(keys, counts, column).tolist() == answers
        assert filled.to_bytes() == state
    later = expected.time + 5 * EPOCH
    counted = [expected.count(key, at=later) for key in keys]
    assert expected.count_many(keys, later).tolist() == counted
    assert expected.count_many(keys, [later] * len(keys)).tolist() == counted
    assert expected.contains_many(keys, later).tolist() == [count > 0 for count in counted]


@law("decays")
def decay_goes_on_in_a_file(subject: Subject) -> None:
    filled = filled_over_time(subject)
    path = subject.path()
    filled.save(path)
    loaded: Any = bloomtide.load(path)
    assert loaded.time == filled.time == at(8)
    for later in (at(8), at(11), at(40)):
        assert loaded.cells(later).tolist() == filled.cells(later).tolist()
    for made in (loaded, filled):
        made.add_many(mixed(500, "later"), at=at(12))
    assert loaded.to_bytes() == filled.to_bytes()


@law("decays")
def advancing_fades_no_answer_that_was_not_faded_before(subject: Subject) -> None:
    filled, left = filled_over_time(subject), filled_over_time(subject)
    later = at(20)
    before = left.cells(later)
    filled.advance(later)
    assert filled.time == later
    assert filled.cells(later).tolist() == before.tolist()
    filled.advance(START)  # the time does not go back
    assert filled.time == later
    filled.validate()


@law("decays", "strict")
def a_strict_count_never_falls_below_the_exact_sum(subject: Subject) -> None:
    filled, truth = fresh(subject), dict.fromkeys(words(50), 0.0)
    for epoch in range(5, 60):
        for number, key in enumerate(words(50)):
            truth[key] *= filled.decay
            if (epoch * 7 + number) % 5 == 0:
                filled.add(key, at=at(epoch))
                truth[key] += 1
    for key, exact in truth.items():
        assert filled.count(key, at=at(59)) >= exact - 1e-9
        assert filled.count(key, at=at(59)) <= exact + 0.5


@law("decays", "expiring")
def an_expiring_count_ends_at_zero(subject: Subject) -> None:
    filled = filled_over_time(subject)
    assert filled.contains_many(words(100, "epoch-8"), filled.time).any()
    assert not filled.cells(filled.time + 1000 * EPOCH).any()
    assert filled.stats(filled.time + 1000 * EPOCH).items == 0


@law("decays", "strict")
def a_strict_key_stays(subject: Subject) -> None:
    filled = filled_over_time(subject)
    filled.add("hot", at=filled.time)
    assert 0 < filled.count("hot", filled.time + 10**6 * EPOCH) <= 0.01


@law("decays")
def a_merge_of_different_times_is_at_the_later_one(subject: Subject) -> None:
    left, right = fresh(subject), fresh(subject)
    left.add_many(words(300), at=START)
    right.add_many(words(300), at=START + 4 * EPOCH)
    added = left.cells(START + 4 * EPOCH) + right.cells(START + 4 * EPOCH)
    for one, other in ((left, right), (right, left)):
        both = one | other
        assert both.time == START + 4 * EPOCH
        assert both.cells(both.time).tolist() == added.tolist()
    assert (left | right).to_bytes() == (right | left).to_bytes()


@law("decays")
def a_full_cell_is_flagged_for_ever(subject: Subject) -> None:
    filled = fresh(subject)
    filled.add("hot", int(subject.limit), at=START)
    assert not filled.estimate("hot", at=START).saturated
    filled.add("hot", 1, at=START)
    assert filled.count("hot", at=START) == subject.limit
    blocks = len({position // 128 for position in filled.positions("hot")})
    for made in (filled, type(filled).from_bytes(filled.to_bytes()), filled | fresh(subject)):
        made.advance(START + 6 * EPOCH)
        estimate = made.estimate("hot", at=made.time)
        assert (estimate.saturated, estimate.upper) == (True, None)
        assert made.stats(at=made.time).saturated == blocks


@law("decays")
def what_is_before_the_filters_time_is_not_answered(subject: Subject) -> None:
    filled = filled_over_time(subject)
    before = filled.to_bytes()
    questions: tuple[Callable[[float], object], ...] = (
        lambda moment: filled.count("a", moment),
        lambda moment: filled.count_many(["a", "b"], [at(9), moment]),
        lambda moment: filled.rate("a", "1h", moment),
        lambda moment: filled.contains_many(["a"], moment),
        lambda moment: filled.estimate("a", at=moment),
        lambda moment: filled.cells(moment),
        lambda moment: filled.stats(moment),
    )
    for ask in questions:
        with pytest.raises(ParameterError, match="before the filter's own time") as caught:
            ask(at(8) - 1)
        assert caught.value.name == "at"
    assert filled.to_bytes() == before


@law("decays")
def a_bad_instant_is_named_and_changes_nothing(subject: Subject) -> None:
    filled = filled_over_time(subject)
    before = filled.to_bytes()
    century = 3_155_760_000
    bad: list[Any] = [float("nan"), -1, 1.7e12, "2020-01-01T00:00:00", "now", True]
    bad += [filled.time + 1.1 * century, filled.time - 1.1 * century]
    for moment in bad:
        for verb in (filled.add, filled.count):
            with pytest.raises(ParameterError) as caught:
                verb("a", at=moment)
            assert caught.value.name == "at"
        for verb in (filled.add_many, filled.count_many, filled.contains_many):
            with pytest.raises(ParameterError, match="in row 1") as caught:
                verb(["a", "b"], at=[filled.time, moment])
            assert caught.value.name == "at"
        with pytest.raises(ParameterError) as caught:
            filled.advance(moment)
        assert caught.value.name == "now"
    for length in ([], [filled.time], [filled.time] * 3):
        with pytest.raises(ParameterError, match="for 2 keys") as caught:
            filled.add_many(["a", "b"], at=length)
        assert caught.value.name == "at"
    for per in (0, -1, "soon", float("nan"), True):
        with pytest.raises(ParameterError) as caught:
            filled.rate("a", per)
        assert caught.value.name == "per"
    assert filled.to_bytes() == before
