"""Growing counters: what their verbs and constructors refuse, and that nothing changes then."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bloomtide import (
    CountingBloomFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
    errors,
)
from bloomtide.partitions import EvenModel
from tests.bad_input.refusal import refused
from tests.ids import shown

KINDS: list[Any] = [
    SpectralBloomFilter,
    DynamicCountFilter,
    PartitionedSpectralBloomFilter,
    PartitionedDynamicCountFilter,
]
SPECTRAL: list[Any] = [SpectralBloomFilter, PartitionedSpectralBloomFilter]
DYNAMIC: list[Any] = [DynamicCountFilter, PartitionedDynamicCountFilter]
PARTITIONED: list[Any] = [PartitionedSpectralBloomFilter, PartitionedDynamicCountFilter]
LAYOUTS = ("blocked", "classic")
STUCK = 2**64 - 1

each = partial(pytest.mark.parametrize, ids=lambda value: getattr(value, "__name__", shown(value)))


@pytest.fixture(params=[(kind, layout) for kind in KINDS for layout in LAYOUTS], ids=str)
def filled(request: pytest.FixtureRequest) -> Any:
    """Compared with itself afterwards: the test must have changed nothing."""
    kind, layout = request.param
    made = kind(100, 0.01, layout=layout)
    made.add_many(["a", "b", "c"], [3, 200, 70_000])
    before = made.to_bytes()
    yield made
    assert made.to_bytes() == before
    made.validate()


# --- Removing ---------------------------------------------------------------------------------


def test_removing_more_than_was_added(filled: Any) -> None:
    for key, there in (("a", 3), ("b", 200), ("c", 70_000), ("absent", 0)):
        for count in (there + 1, there + 1000, 2**63, STUCK):
            refused(
                errors.AbsentKeyError, filled.remove, key, count, estimate=there, requested=count
            )


def test_removing_a_batch_that_begins_with_an_absent_key(filled: Any) -> None:
    refused(errors.AbsentKeyError, filled.remove_many, ["absent", "a"], estimate=0, requested=1)
    refused(errors.AbsentKeyError, filled.remove_many, ["a", "b"], [4, 1], estimate=3, requested=4)


def test_a_batch_is_removed_up_to_the_key_that_fails_and_the_error_says_so() -> None:
    for kind in KINDS:
        made = kind(100, 0.01)
        made.add_many(["a", "b", "c"], [3, 3, 3])
        with pytest.raises(errors.AbsentKeyError) as caught:
            made.remove_many(["a", "b", "absent", "c"], [1, 2, 1, 3])
        assert any("2" in note for note in caught.value.__notes__)
        assert made.count_many(["a", "b", "c"]).tolist() == [2, 1, 3]


@each("kind", KINDS)
def test_a_conservative_filter_removes_nothing(kind: Any) -> None:
    made = kind(100, 0.01, policy="conservative")
    made.add("a", 5)
    before = made.to_bytes()
    for act in (lambda: made.remove("a"), lambda: made.remove_many(["a"], [2])):
        refused(errors.UnsupportedError, act, verb="remove", policy="conservative")
    assert made.to_bytes() == before


# --- Counts -----------------------------------------------------------------------------------


@each("count", [0, -1, -(2**70), 1.5, math.nan, "1", True, [1]])
def test_a_count_is_a_whole_number_of_at_least_one(filled: Any, count: Any) -> None:
    for verb in (filled.add, filled.remove):
        refused(errors.ParameterError, verb, "a", count, name="count")


BAD_COUNTS: list[Any] = [
    [],
    [1],
    [1, 2, 3],
    [1, 0],
    [1, -1],
    [1, 1.0],
    [1, math.nan],
    [1, None],
    [1, "1"],
    [1, True],
    np.array([1, 0]),
    np.array([1, -1], dtype=np.int8),
    np.array([1.0, 2.0]),
    np.array([1.0, np.nan]),
    np.array([True, True]),
    np.array(["1", "2"]),
    np.array([1, 2, 3]),
    np.array([], dtype=np.int64),
]


@each("counts", BAD_COUNTS)
def test_counts_are_as_many_whole_numbers_as_keys(filled: Any, counts: Any) -> None:
    for verb in (filled.add_many, filled.remove_many):
        refused(errors.ParameterError, verb, ["a", "b"], counts, name="counts")


@each("counts", [{"a": 1, "b": 2}, {1, 2}, frozenset({1, 2}), {1: 5, 2: 6}.keys()])
def test_counts_without_an_order_are_refused(filled: Any, counts: Any) -> None:
    for verb in (filled.add_many, filled.remove_many):
        found = refused(errors.ParameterError, verb, ["a", "b"], counts, name="counts")
        assert "instead of both" in found.hint


@each("counts", [5, 1.5, object()])
def test_what_cannot_be_iterated_is_no_counts(filled: Any, counts: Any) -> None:
    for verb in (filled.add_many, filled.remove_many):
        with pytest.raises((TypeError, errors.ParameterError)):
            verb(["a", "b"], counts)


@each(
    ("counts", "got", "hint"),
    [
        (pa.array([1, None]), "null in row 1", "nulls"),
        (pa.chunked_array([[3], [None]], pa.uint64()), "null in row 1", "nulls"),
        (np.ma.masked_array([1, 2], [False, True]), "null in row 1", "nulls"),
        ([1, None], "null in row 1", "nulls"),
        ([1, 0], "0 in row 1", "zero"),
        (np.array([1, -5]), "-5 in row 1", "remove_many"),
        ([1, 1.5], "1.5 in row 1", "a whole number"),
    ],
)
def test_a_count_that_cannot_be_is_told_with_its_row_and_a_way_out(
    counts: Any, got: str, hint: str
) -> None:
    made = DynamicCountFilter(100, 0.01)
    found = refused(errors.ParameterError, made.add_many, ["a", "b"], counts, name="counts")
    assert (found.got, hint in found.hint) == (got, True)
    assert made.count("a") == 0


@each("kind", [*KINDS, CountingBloomFilter])
def test_a_conservative_filter_refuses_to_remove_nothing(kind: Any) -> None:
    made = kind(100, 0.01, policy="conservative")
    for batch in ([], ["a"]):
        refused(errors.UnsupportedError, made.remove_many, batch, verb="remove", added=0)


def test_counts_of_two_dimensions() -> None:
    made = DynamicCountFilter(100, 0.01)
    refused(errors.ParameterError, made.add_many, ["a", "b"], np.ones((2, 1), int), name="counts")


@each("counts", [[1], [1, 2, 3]])
def test_an_iterator_of_keys_has_as_many_counts(counts: list[int]) -> None:
    for kind in KINDS:
        made = kind(100, 0.01)
        act = partial(made.add_many, iter(["a", "b"]), counts)
        refused(errors.ParameterError, act, name="counts")


def test_unsigned_counts_from_2_63_on_are_taken() -> None:
    made = DynamicCountFilter(100, 0.01)
    made.add_many(["a", "b"], np.array([2**63, 1], dtype=np.uint64))
    assert made.count("a") == 2**63


def test_a_skipped_null_keeps_the_weights_with_their_rows() -> None:
    for kind in KINDS:
        made = kind(100, 0.001)
        made.add_many([None, "a", None, "b"], [7, 2, 9, 3], nulls="skip")
        assert made.count_many(["a", "b"]).tolist() == [2, 3]
        made.remove_many(["b", None, "a"], [1, 50, 2], nulls="skip")
        assert made.count_many(["a", "b"]).tolist() == [0, 2]
        before = made.to_bytes()
        refused(errors.NullKeyError, made.add_many, [None, "a"], [1, 2], index=0)
        assert made.to_bytes() == before


@each("confidence", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_confidence(filled: Any, confidence: float) -> None:
    refused(
        errors.ParameterError,
        lambda: filled.estimate("a", confidence=confidence),
        name="confidence",
    )


# --- Overflow ---------------------------------------------------------------------------------


@each("kind", KINDS)
@each("policy", ["plain", "conservative"])
@each("layout", LAYOUTS)
def test_a_counter_past_64_bits_sticks_and_says_so(kind: Any, policy: str, layout: str) -> None:
    made = kind(100, 0.01, policy=policy, layout=layout)
    made.add("hot", 2**63)
    assert not made.estimate("hot").saturated
    assert made.stats().saturated == 0
    made.add("hot", 2**63)
    found = made.estimate("hot")
    assert (found.value, found.upper, found.saturated) == (STUCK, None, True)
    assert made.stats().saturated == len(set(made.positions("hot")))
    made.add("hot", 5)
    assert made.count("hot") == STUCK
    if policy == "plain":
        made.remove("hot", 2**63)
        assert made.count("hot") == STUCK, "nobody knows how often it was added"
    other = made.copy()
    other.merge(made)
    for twin in (other, kind.from_bytes(made.to_bytes())):
        twin.validate()
        assert twin.estimate("hot").saturated
        assert twin.stats().saturated == made.stats().saturated
    made.validate()


@each("kind", KINDS)
@each("layout", LAYOUTS)
def test_a_key_that_is_there_is_not_new_beside_a_full_counter(kind: Any, layout: str) -> None:
    for number in range(100):
        made = kind(cells=128, hashes=4, layout=layout)
        made.add("hot", STUCK)
        made.add(number)
        assert not made.copy().add(number, STUCK)
        assert not made.add_many([number], [STUCK])[0]


@each("kind", KINDS)
def test_a_count_of_more_than_64_bits_sticks_at_once(kind: Any) -> None:
    made = kind(100, 0.01)
    made.add("hot", 2**200)
    assert made.estimate("hot").saturated
    made.validate()


# --- Constructors -----------------------------------------------------------------------------


class Nonsense:
    """A partition model that answers anything."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def choose(self, cells: int) -> Any:
        """What it was told."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def _makers(kind: Any) -> list[Callable[..., object]]:
    return [partial(kind, 100, 0.01), partial(kind.plan, 100, 0.01)]


@each("kind", PARTITIONED)
@each("cut", [0, -1, 10**6, 2**64, 2**200, 1.5, math.nan, "many", "", "7", True, [7], b"7"])
def test_partitions(kind: Any, cut: Any) -> None:
    for make in _makers(kind):
        refused(errors.ParameterError, lambda make=make: make(partitions=cut), name="partitions")


@each("kind", PARTITIONED)
@each("answer", [0, 10**6])
def test_a_model_that_gives_too_few_or_too_many(kind: Any, answer: int) -> None:
    for make in _makers(kind):
        act = partial(make, partitions=Nonsense(answer))
        refused(errors.ParameterError, act, name="partitions")


@each("kind", PARTITIONED)
@each("answer", [-1, 2**64, 1.5, "seven", None])
def test_a_model_that_gives_no_number(kind: Any, answer: Any) -> None:
    for make in _makers(kind):
        act = partial(make, partitions=Nonsense(answer))
        refused(errors.ParameterError, act, name="partitions")


@each("kind", PARTITIONED)
def test_the_error_of_a_model_comes_out_as_it_is(kind: Any) -> None:
    for make in _makers(kind):
        with pytest.raises(LookupError, match="no idea"):
            make(partitions=Nonsense(LookupError("no idea")))


@each("kind", PARTITIONED)
def test_a_model_chooses(kind: Any) -> None:
    model = EvenModel(rebuild_seconds=1.0, requests_per_second=1e5, element_bytes=8)
    made = kind(10_000, 0.05, layout="classic", partitions=model)
    assert made.partitions == model.choose(made.stats().cells) > 1
    assert kind(100, 0.01, layout="classic", partitions=Nonsense(5)).partitions == 5


@each("kind", PARTITIONED)
def test_as_many_partitions_as_whole_blocks_allow_are_stored(kind: Any) -> None:
    """97 blocks cannot be cut into 80 equal pieces: 49 of two blocks are what it gets."""
    asked: Any = {"capacity": 1_000, "error_rate": 0.01, "layout": "blocked", "partitions": 80}
    made, planned = kind(**asked), kind.from_plan(kind.plan(**asked))
    assert made.partitions == planned.partitions == 49
    assert made == planned
    assert made.to_bytes() == planned.to_bytes()


@each("kind", PARTITIONED)
def test_a_filter_that_is_cut_later_is_as_one_that_was_cut_at_once(kind: Any) -> None:
    made = kind(5_000, 0.01, partitions=3)
    made.repartition("auto")
    assert made == kind(5_000, 0.01)
    assert made.partitions == kind(5_000, 0.01).partitions != 3
    refused(errors.ParameterError, lambda: made.repartition("adaptive"), name="partitions")


SIZING = {"capacity": 1_000, "error_rate": 0.01, "cells": 20_000, "hashes": 4, "total": 50_000}
"""Each is given or not: every choice is made or refused by name."""


def _refusal(given: set[str]) -> str | None:
    """The field that is refused; None where the filter is made."""
    if "cells" not in given:
        return None if "capacity" in given else "capacity"
    if "error_rate" in given:
        return "cells"
    return None if "hashes" in given else "hashes"


@each("kind", KINDS)
def test_every_choice_of_goals_and_sizes_is_made_or_refused_by_name(kind: Any) -> None:
    for number in range(len(SIZING) + 1):
        for names in itertools.combinations(SIZING, number):
            given: dict[str, Any] = {name: SIZING[name] for name in names}
            name = _refusal(set(names))
            if name is not None:
                refused(errors.ParameterError, lambda given=given: kind(**given), name=name)
                refused(errors.ParameterError, lambda given=given: kind.plan(**given), name=name)
                continue
            made = kind(**given)
            assert made.capacity == given.get("capacity"), "a goal that was not given is none"
            sized = "cells" in given
            assert made.error_rate == (None if sized else 0.01)
            assert made.stats().cells == (20_000 if sized else kind.plan(**given).cells)
            assert f"capacity={given.get('capacity')} " in repr(made) or "capacity" not in given


@each("kind", KINDS)
def test_a_total_below_the_keys_that_sizes_are_for_is_refused_with_what_to_give(kind: Any) -> None:
    """20,000 cells of 4 hashes are half full of 3,466 keys, if nothing else is said."""
    sizes: dict[str, Any] = {"cells": 20_000, "hashes": 4}
    assert kind(**sizes, total=3_466).total == 3_466
    refusal = refused(errors.ParameterError, lambda: kind(**sizes, total=3_465), name="total")
    assert "half fill" in refusal.allowed
    assert "`capacity`" in refusal.hint
    assert kind(**sizes, total=10, capacity=10).total == 10


@each("kind", DYNAMIC)
def test_counters_of_given_sizes_begin_with_the_bits_of_the_expected_mean(kind: Any) -> None:
    sizes: dict[str, Any] = {"cells": 20_000, "hashes": 4, "total": 34_660}
    assert kind(**sizes).counter_bits == 4, "ten occurrences for each of 3,466 keys"
    assert kind(**sizes, capacity=100).counter_bits == 9, "346 for each of 100"
    assert kind(**sizes, counter_bits=2).counter_bits == 2


@each("kind", KINDS)
@each("total", [0, 1, 99, -5, 1.5, "many", math.nan])
def test_total(kind: Any, total: Any) -> None:
    for make in _makers(kind):
        refused(errors.ParameterError, lambda make=make: make(total=total), name="total")


OUT_OF_RANGE: list[tuple[list[Any], str, list[Any]]] = [
    (SPECTRAL, "slack", [-0.1, math.nan, math.inf, 1e300]),
    (KINDS, "policy", ["liberal", "", "recurring_minimum"]),
    (DYNAMIC, "shrink", [-0.1, 1.1, math.nan, math.inf]),
    (DYNAMIC, "counter_bits", [0, -1, 33, 64, 2**40, 1.5, "4", True]),
    (KINDS, "hashes", [0, -1, 65, 2**40, 1.5]),
    (KINDS, "cells", [0, 1000, 2**80]),
    (KINDS, "layout", ["striped", "", "Blocked"]),
]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (kind, name, value)
        for kinds, name, values in OUT_OF_RANGE
        for kind in kinds
        for value in values
    ],
)
def test_a_parameter_out_of_range_is_named(kind: Any, name: str, value: Any) -> None:
    """`cells` beside an error rate is one: either the goal or the sizes."""
    for make in _makers(kind):
        refused(errors.ParameterError, lambda make=make: make(**{name: value}), name=name)


@each("kind", KINDS)
def test_cells_beside_an_error_rate(kind: Any) -> None:
    for make in (kind, kind.plan):
        act = partial(make, cells=1000, hashes=3, error_rate=0.01)
        refused(errors.ParameterError, act, name="cells")
        refused(errors.ParameterError, partial(make, cells=1000), name="hashes")
        assert make(cells=1000, hashes=3, capacity=200) is not None


@each("kind", [SpectralBloomFilter, DynamicCountFilter])
def test_a_filter_in_one_piece_knows_no_partitions(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind(100, 0.01, partitions=7)
    made = kind(100, 0.01)
    refused(errors.ParameterError, lambda: made.repartition(7), name="partitions")
    assert made.partitions == 1


# --- Merging ----------------------------------------------------------------------------------

SIZES: dict[str, Any] = {"cells": 1024, "hashes": 4, "layout": "classic"}
DIFFERENT: list[tuple[list[Any], dict[str, Any], str]] = [
    (KINDS, {"layout": "blocked"}, "layout"),
    (KINDS, {"policy": "conservative"}, "policy"),
    (KINDS, {"cells": 1025}, "cells"),
    (KINDS, {"hashes": 5}, "hashes"),
    (KINDS, {"paper": {"derivation": "slices"}}, "derivation"),
    (KINDS, {"seed": 1}, "seed"),
    (KINDS, {"hash": "keyed", "secret": bytes(16)}, "hash"),
    (PARTITIONED, {"partitions": 8}, "partitions"),
]


@pytest.mark.parametrize(
    ("kind", "change", "field"),
    [(kind, change, field) for kinds, change, field in DIFFERENT for kind in kinds],
)
def test_a_merge_names_the_field_that_differs(kind: Any, change: Any, field: str) -> None:
    cut = {"partitions": 7} if kind in PARTITIONED else {}
    left, right = kind(**(SIZES | cut)), kind(**(SIZES | cut | change))
    left.add_many(["a", "b"])
    right.add_many(["c", "d"])
    before = left.to_bytes(), right.to_bytes()
    for act in (left.merge, left.__or__, left.__ior__):
        found = refused(errors.IncompatibleError, act, right, field=field)
        assert field in str(found)
    assert (left.to_bytes(), right.to_bytes()) == before


@pytest.mark.parametrize(
    ("kind", "other"),
    [(kind, other) for kind in KINDS for other in KINDS if kind is not other],
)
@each("cut", [1, 7])
def test_kinds_do_not_mix_in_a_merge(kind: Any, other: Any, cut: int) -> None:
    left, right = (
        one(**SIZES, **({"partitions": cut} if one in PARTITIONED else {})) for one in (kind, other)
    )
    left.add("a")
    right.add("b")
    before = left.to_bytes(), right.to_bytes()
    for act in (left.merge, left.__or__, left.__ior__):
        refused(errors.IncompatibleError, act, right, field="kind")
    assert (left.to_bytes(), right.to_bytes()) == before
    assert left != right


@each("kind", KINDS)
@each("other", [None, 5, "abc", {"a"}])
def test_only_a_filter_of_growing_counters_can_be_merged(kind: Any, other: Any) -> None:
    made = kind(100, 0.01)
    made.add("a")
    before = made.to_bytes()
    with pytest.raises(TypeError):
        made.merge(other)
    with pytest.raises(TypeError):
        made | other
    assert made.to_bytes() == before
    act = partial(made.merge, CountingBloomFilter(100, 0.01))
    refused(errors.IncompatibleError, act, field="kind", got="CountingBloomFilter")
    assert made.to_bytes() == before


@pytest.mark.parametrize("kind", [PartitionedSpectralBloomFilter, PartitionedDynamicCountFilter])
def test_numbers_of_numpy_are_numbers_of_partitions(kind: Any) -> None:
    for four in (np.int64(4), np.uint8(4)):
        assert kind(10_000, 0.05, partitions=four) == kind(10_000, 0.05, partitions=4)


def test_a_wrong_word_beside_a_plan_is_not_blamed_on_the_plan() -> None:
    plan = DynamicCountFilter.plan(100, 0.01)
    with pytest.raises(TypeError, match="'hash'"):
        DynamicCountFilter.from_plan(plan, hash=5)  # type: ignore[arg-type]
