"""Sizes, rates, names and secrets that make no filter."""

from __future__ import annotations

import dataclasses
import errno
import math
import pickle
from functools import partial
from typing import Any

import pytest

import bloomtide
from bloomtide import BloomFilter, CountingBloomFilter, ScalableBloomFilter, errors
from tests.bad_input.refusal import refused

KINDS: list[Any] = [BloomFilter, ScalableBloomFilter, CountingBloomFilter]
SIZED: list[Any] = [(BloomFilter, "bits"), (CountingBloomFilter, "cells")]
"""What their sizes are called."""
SECRET = bytes(range(16))
NAN, INF = math.nan, math.inf


def _name(value: object) -> str:
    return repr(value)[:30]


NO_CAPACITY = [0, -1, -(2**70)]
NO_RATE = [0.0, -0.5, 1.0, 1.5, NAN, INF, -INF]


@pytest.mark.parametrize("make", [*KINDS, *[kind.plan for kind in KINDS]])
@pytest.mark.parametrize("capacity", NO_CAPACITY)
def test_a_capacity_is_at_least_one(make: Any, capacity: int) -> None:
    found = refused(errors.ParameterError, lambda: make(capacity, 0.01), name="capacity")
    assert isinstance(found, ValueError)
    assert str(capacity) in str(found)


@pytest.mark.parametrize("make", [*KINDS, *[kind.plan for kind in KINDS]])
@pytest.mark.parametrize("rate", NO_RATE)
def test_an_error_rate_is_between_zero_and_one(make: Any, rate: float) -> None:
    refused(errors.ParameterError, lambda: make(1000, rate), name="error_rate")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capacity", ["1000", 10.5, NAN, INF, True, [1000], b"7"], ids=_name)
def test_a_capacity_that_is_no_whole_number_is_refused(kind: Any, capacity: object) -> None:
    with pytest.raises((errors.ParameterError, TypeError), match="capacity"):
        kind(capacity, 0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate", ["0.01", [0.01], b"1"], ids=_name)
def test_an_error_rate_that_is_no_number_is_refused(kind: Any, rate: object) -> None:
    with pytest.raises((errors.ParameterError, TypeError), match="error_rate"):
        kind(1000, rate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capacity", [10**15, 2**62, 2**63, 2**64, 10**30], ids=_name)
def test_an_absurd_capacity_is_refused_before_anything_is_allocated(
    kind: Any, capacity: int
) -> None:
    with pytest.raises(errors.BloomtideError) as caught:
        kind(capacity, 0.01)
    found = caught.value
    assert found.hint
    if isinstance(found, errors.CapacityError):
        assert found.needed > found.limit > 0
        assert isinstance(found, MemoryError)
    else:
        assert isinstance(found, errors.ParameterError)
        assert found.name == "capacity"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capacity", [2**64, 10**30])
def test_a_number_beyond_64_bits_is_told_as_it_was_given(kind: Any, capacity: int) -> None:
    refused(errors.ParameterError, kind, capacity, name="capacity", got=str(capacity))
    refused(errors.ParameterError, lambda: BloomFilter(bits=64, hashes=2**40), got=str(2**40))


@pytest.mark.parametrize("rate", [1e-300, 5e-324], ids=_name)
@pytest.mark.parametrize("kind", KINDS)
def test_an_absurdly_small_error_rate_never_crashes(kind: Any, rate: float) -> None:
    """Refused by name, or the plan says honestly that it is met."""
    try:
        plan = kind.plan(1000, rate)
    except errors.ParameterError:
        refused(errors.ParameterError, lambda: kind.plan(1000, rate), name="error_rate")
    else:
        assert plan.predicted_error <= rate


@pytest.mark.parametrize(("kind", "size"), SIZED)
@pytest.mark.parametrize("cells", [2**49, 2**51])
def test_cells_that_do_not_fit_memory(kind: Any, size: str, cells: int) -> None:
    found = refused(errors.CapacityError, lambda: kind(**{size: cells}, hashes=5))
    assert found.needed >= cells // 8
    assert 0 < found.limit < found.needed


@pytest.mark.parametrize(("kind", "size"), SIZED)
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"bits": 0, "hashes": 3}, "bits"),
        ({"bits": -64, "hashes": 3}, "bits"),
        ({"bits": 2**64, "hashes": 3}, "bits"),
        ({"bits": 2**80, "hashes": 3}, "bits"),
        ({"bits": 1024, "hashes": 0}, "hashes"),
        ({"bits": 1024, "hashes": -1}, "hashes"),
        ({"bits": 1024, "hashes": 65}, "hashes"),
        ({"bits": 1024, "hashes": 2**70}, "hashes"),
        ({"bits": 1024, "hashes": 3, "seed": -1}, "seed"),
        ({"bits": 1024, "hashes": 3, "seed": 2**64}, "seed"),
        ({"bits": 1024, "hashes": 3, "paper": {"derivation": "triple"}}, "derivation"),
        ({"bits": 1000, "hashes": 3, "paper": {"derivation": "slices"}}, "bits"),
        ({"bits": 1024, "hashes": 3, "hash": "md5"}, "hash"),
        ({"bits": 1024}, "hashes"),
        ({"hashes": 3}, "bits"),
        ({"capacity": 10, "error_rate": 0.1, "bits": 1024, "hashes": 3}, "bits"),
    ],
    ids=lambda value: _name(value) if isinstance(value, dict) else "",
)
def test_sizes_names_and_combinations(
    kind: Any, size: str, options: dict[str, Any], name: str
) -> None:
    options = {size if word == "bits" else word: value for word, value in options.items()}
    name = size if name == "bits" else name
    refused(errors.ParameterError, lambda: kind(**options), name=name)


def test_nothing_given_at_all() -> None:
    refused(errors.ParameterError, lambda: BloomFilter(), name="capacity")
    refused(errors.ParameterError, lambda: CountingBloomFilter(), name="capacity")
    refused(errors.ParameterError, lambda: BloomFilter(error_rate=0.01), name="capacity")


@pytest.mark.parametrize("kind", [BloomFilter, CountingBloomFilter])
@pytest.mark.parametrize("layout", ["Blocked", "", "bogus", "register"])
def test_unknown_layouts(kind: Any, layout: str) -> None:
    refused(errors.ParameterError, lambda: kind(10, 0.1, layout=layout), name="layout")


def test_a_layout_that_does_not_go_with_the_sizes() -> None:
    refused(
        errors.ParameterError,
        lambda: BloomFilter(layout="blocked", bits=1024, hashes=9),
        name="hashes",
    )
    for hashes in (3, 5, 6, 7, 9, 64):
        options: dict[str, Any] = {"layout": "blocked", "cells": 1024, "hashes": hashes}
        refused(errors.ParameterError, lambda o=options: CountingBloomFilter(**o), name="hashes")


@pytest.mark.parametrize("derivation", ["double", "slices"])
@pytest.mark.parametrize("size", [{"capacity": 10}, {"cells": 1024, "hashes": 4}], ids=_name)
def test_blocks_of_counters_have_their_own_derivation(size: Any, derivation: Any) -> None:
    for make in (CountingBloomFilter, CountingBloomFilter.plan):
        refused(
            errors.ParameterError,
            lambda make=make: make(**size, layout="blocked", paper={"derivation": derivation}),
            name="derivation",
        )
    assert CountingBloomFilter(**size, paper={"derivation": derivation}).layout == "classic"


@pytest.mark.parametrize(
    ("asked", "width", "cells"),
    [(1, 4, 128), (127, 4, 128), (128, 4, 128), (129, 4, 256), (128, 8, 128), (1, 32, 128)],
)
def test_blocks_of_counters_are_whole_and_the_filter_says_so(
    asked: int, width: Any, cells: int
) -> None:
    options: dict[str, Any] = {"cells": asked, "hashes": 4, "counter_bits": width}
    made = CountingBloomFilter(**options, layout="blocked")
    plan = CountingBloomFilter.plan(**options, layout="blocked")
    assert made.stats().cells == len(made.cells()) == plan.cells == cells
    assert made.stats().bytes == plan.bytes == cells * width // 8


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"cells": 767}, "cells"),
        ({"hashes": 3}, "hashes"),
        ({"derivation": "double"}, "derivation"),
    ],
)
def test_a_plan_that_was_changed_by_hand_is_checked_again(
    changes: dict[str, Any], name: str
) -> None:
    plan = CountingBloomFilter.plan(60, 0.02)
    assert (plan.layout, plan.cells, plan.hashes) == ("blocked", 768, 4)
    changed = dataclasses.replace(plan, **changes)
    refused(errors.ParameterError, CountingBloomFilter.from_plan, changed, name=name)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_hashes_and_derivations(kind: Any) -> None:
    refused(errors.ParameterError, lambda: kind(10, 0.1, hash="XXH3"), name="hash")
    for name, paper in (
        ("derivation", {"derivation": ""}),
        ("paper", {"bind": "xor"}),
        ("paper", {"derivation": 5}),
        ("paper", {5: "double"}),
        ("paper", "double"),
    ):
        for make in (kind, kind.plan):
            act = partial(make, 10, 0.1, paper=paper)
            refused(errors.ParameterError, act, name=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"hash": "keyed", "secret": b""},
        {"hash": "keyed", "secret": bytes(15)},
        {"hash": "keyed", "secret": bytes(17)},
        {"hash": "xxh3", "secret": SECRET},
        {"secret": SECRET},
    ],
    ids=["empty", "15", "17", "with-xxh3", "without-hash"],
)
def test_secrets(kind: Any, options: dict[str, Any]) -> None:
    found = refused(errors.ParameterError, lambda: kind(10, 0.1, **options), name="secret")
    assert repr(SECRET) not in str(found), "a secret is never shown"


def test_digest_refuses_the_same_options() -> None:
    digest: Any = bloomtide.digest
    refused(errors.ParameterError, lambda: digest("a", hash="crc"), name="hash")
    refused(errors.ParameterError, lambda: digest("a", secret=SECRET), name="secret")
    refused(
        errors.ParameterError, lambda: digest("a", hash="keyed", secret=b"short"), name="secret"
    )
    refused(errors.ParameterError, lambda: digest("a", seed=-1), name="seed")
    refused(errors.KeyTypeError, lambda: digest(1.5))


@pytest.mark.parametrize("bits", [0, 1, 3, 5, 64, -4])
def test_counter_widths(bits: Any) -> None:
    refused(
        errors.ParameterError,
        lambda: CountingBloomFilter(10, 0.1, counter_bits=bits),
        name="counter_bits",
    )


def test_policies() -> None:
    policy: Any = "minimal"
    refused(
        errors.ParameterError, lambda: CountingBloomFilter(10, 0.1, policy=policy), name="policy"
    )


@pytest.mark.parametrize("value", [0.99, 0.0, -2.0, 1e9, NAN, INF])
def test_growth(value: float) -> None:
    refused(errors.ParameterError, lambda: ScalableBloomFilter(growth=value), name="growth")


@pytest.mark.parametrize("value", [1.0, 1.5, 0.0, -0.5, NAN, INF])
def test_tightening(value: float) -> None:
    refused(errors.ParameterError, lambda: ScalableBloomFilter(tightening=value), name="tightening")


@pytest.mark.parametrize("number", [2**127, -(2**127) - 1, 10**400])
def test_a_number_that_no_type_holds_is_refused_by_name(number: int) -> None:
    for kind in KINDS:
        refused(errors.ParameterError, partial(kind, 100, 0.01, seed=number), name="seed")
    growing = partial(ScalableBloomFilter, growth=number)
    refused(errors.ParameterError, growing, name="growth")


def test_a_plan_of_another_kind_is_refused() -> None:
    for kind in KINDS:
        for other in KINDS:
            if other is not kind:
                plan = other.plan(100, 0.01)
                with pytest.raises(errors.BloomtideError) as caught:
                    kind.from_plan(plan)
                assert caught.value.hint
                assert plan.kind in str(caught.value)
        with pytest.raises((errors.BloomtideError, TypeError)):
            kind.from_plan("a plan")


def test_errors_survive_pickling_with_their_fields() -> None:
    """A worker process sends its error home whole."""
    bad: Any = 1.5
    snapshot = BloomFilter(10, 0.1).to_bytes()
    found: list[errors.BloomtideError] = [
        refused(errors.ParameterError, BloomFilter, 0, 0.01, name="capacity"),
        refused(errors.KeyTypeError, BloomFilter(10, 0.1).add_many, ["a", bad], index=1, added=1),
        refused(errors.KindError, CountingBloomFilter.from_bytes, snapshot, got="bloom"),
        refused(errors.TruncatedError, bloomtide.from_bytes, snapshot[:-1], got=len(snapshot) - 1),
        refused(errors.StorageError, bloomtide.load, "/missing/file", path="/missing/file"),
    ]
    for error in found:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        for name in type(error).__annotations__:
            assert getattr(again, name) == getattr(error, name), name
        if isinstance(again, errors.StorageError):
            assert again.errno == errno.ENOENT
