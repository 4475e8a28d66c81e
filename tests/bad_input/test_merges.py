"""Filters that do not go together: the first field that differs is named, neither changes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bloomtide import BloomFilter, CountFilter, CountingBloomFilter, ScalableBloomFilter, errors
from tests.bad_input.refusal import refused

SECRET = bytes(range(16))

BLOOM: dict[str, Any] = {"bits": 4096, "hashes": 5}
COUNTING: dict[str, Any] = {"cells": 1024, "hashes": 5, "counter_bits": 4}
BLOCKED: dict[str, Any] = {"cells": 1024, "hashes": 4, "layout": "blocked"}
GOAL: dict[str, Any] = {"capacity": 100, "error_rate": 0.01}
MISMATCHES = [
    (BloomFilter, BLOOM, {**BLOOM, "bits": 8192}, "bits"),
    (BloomFilter, BLOOM, {**BLOOM, "hashes": 6}, "hashes"),
    (BloomFilter, BLOOM, {**BLOOM, "paper": {"derivation": "double"}}, "derivation"),
    (BloomFilter, BLOOM, {**BLOOM, "seed": 1}, "seed"),
    (BloomFilter, BLOOM, {**BLOOM, "layout": "blocked"}, "layout"),
    (BloomFilter, BLOOM, {**BLOOM, "hash": "keyed", "secret": SECRET}, "hash"),
    (
        BloomFilter,
        {**BLOOM, "hash": "keyed", "secret": bytes(16)},
        {**BLOOM, "hash": "keyed", "secret": SECRET},
        "secret",
    ),
    (CountingBloomFilter, COUNTING, {**COUNTING, "cells": 2048}, "cells"),
    (CountingBloomFilter, COUNTING, {**COUNTING, "hashes": 4}, "hashes"),
    (CountingBloomFilter, COUNTING, {**COUNTING, "seed": 5}, "seed"),
    (CountingBloomFilter, COUNTING, {**COUNTING, "paper": {"derivation": "slices"}}, "derivation"),
    (CountingBloomFilter, COUNTING, {**COUNTING, "policy": "conservative"}, "policy"),
    (CountingBloomFilter, BLOCKED, {**BLOCKED, "layout": "classic"}, "layout"),
    (CountingBloomFilter, GOAL, {**GOAL, "layout": "classic"}, "layout"),
    (CountingBloomFilter, GOAL, {**GOAL, "paper": {"derivation": "double"}}, "layout"),
    (CountingBloomFilter, BLOCKED, {**BLOCKED, "hashes": 8}, "hashes"),
    (CountingBloomFilter, BLOCKED, {**BLOCKED, "cells": 1025}, "cells"),
    (CountingBloomFilter, COUNTING, {**COUNTING, "counter_bits": 8}, "counter_bits"),
]


@pytest.mark.parametrize(
    ("kind", "left", "right", "field"),
    MISMATCHES,
    ids=[f"{kind.__name__}-{field}" for kind, _, _, field in MISMATCHES],
)
def test_a_merge_names_the_field_that_differs(
    kind: Any, left: dict[str, Any], right: dict[str, Any], field: str
) -> None:
    a, b = kind(**left), kind(**right)
    a.add_many(["a", "b"])
    b.add_many(["c", "d"])
    before = a.to_bytes(), b.to_bytes()
    acts: list[Callable[[Any, Any], object]] = [kind.merge, operator.or_, operator.ior]
    if kind is BloomFilter:
        acts += [operator.and_, operator.iand]
    for act in acts:
        found = refused(errors.IncompatibleError, act, a, b, field=field)
        assert isinstance(found, ValueError)
        assert field in str(found)
        assert repr(SECRET) not in str(found)
    assert (a.to_bytes(), b.to_bytes()) == before


@pytest.mark.parametrize("other", [None, 5, "abc", {"a"}, [1]], ids=repr)
def test_only_a_filter_of_its_kind_can_be_merged(other: Any) -> None:
    for kind in (BloomFilter, CountingBloomFilter):
        made = kind(100, 0.01)
        made.add("a")
        before = made.to_bytes()
        acts: list[Callable[[Any], object]] = [
            made.merge,
            partial(operator.or_, made),
            partial(operator.ior, made),
        ]
        for act in acts:
            with pytest.raises(TypeError):
                act(other)
        assert made.to_bytes() == before


def test_kinds_do_not_mix_in_a_merge() -> None:
    bloom, counting = BloomFilter(100, 0.01), CountingBloomFilter(100, 0.01)
    wrong: Any = counting
    kinds = {"field": "kind", "expected": "BloomFilter", "got": "CountingBloomFilter"}
    refused(errors.IncompatibleError, bloom.merge, wrong, **kinds)
    with pytest.raises(TypeError):
        bloom |= wrong
    refused(errors.IncompatibleError, counting.merge, bloom, field="kind", got="BloomFilter")
    grows = CountFilter(100, 0.01)
    refused(errors.IncompatibleError, grows.merge, counting, field="kind", expected="CountFilter")
    refused(errors.IncompatibleError, counting.merge, grows, got="DynamicCountFilter")
    assert not hasattr(ScalableBloomFilter, "merge")


def test_a_secret_is_not_shown() -> None:
    one, other = (
        BloomFilter(**BLOOM, hash="keyed", secret=secret) for secret in (b"1" * 16, b"2" * 16)
    )
    with pytest.raises(errors.IncompatibleError) as refusal:
        one.merge(other)
    shown = f"{refusal.value} {vars(refusal.value)}"
    assert "secret" in shown
    assert "11" not in shown
    assert "49, 49" not in shown
