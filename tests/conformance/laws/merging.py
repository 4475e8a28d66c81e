"""Laws of `merge`, `|` and `&`."""

from __future__ import annotations

from typing import Any

import pytest

from bloomtide.errors import IncompatibleError
from tests.conformance.law import law
from tests.conformance.registry import Subject


def pair(subject: Subject) -> tuple[Any, Any]:
    """Two filters whose streams overlap."""
    left, right = subject.new(), subject.new()
    left.add_many(subject.mixed(2000, "left"))
    right.add_many(subject.mixed(2000, "right"))
    return left, right


@law("merge", unless=("conservative",))
def a_merge_equals_the_joined_stream(subject: Subject) -> None:
    left, right = pair(subject)
    joined = subject.new()
    joined.add_many(subject.mixed(2000, "left"))
    joined.add_many(subject.mixed(2000, "right"))
    unchanged = right.to_bytes()
    assert left.merge(right) is None
    assert left.to_bytes() == joined.to_bytes()
    assert right.to_bytes() == unchanged


@law("merge", "conservative")
def a_conservative_merge_never_counts_too_little(subject: Subject) -> None:
    left, right = pair(subject)
    keys = list(dict.fromkeys(key for key in subject.mixed(2000, "left") if isinstance(key, str)))
    at_least = [left.count(key) + right.count(key) for key in keys]
    left.merge(right)
    merged = [left.count(key) for key in keys]
    assert all(m >= min(n, subject.limit) for m, n in zip(merged, at_least, strict=True))


@law("merge")
def merging_an_empty_filter_changes_nothing(subject: Subject) -> None:
    left, _ = pair(subject)
    before = left.to_bytes()
    left.merge(subject.new())
    assert left.to_bytes() == before
    empty = subject.new()
    empty.merge(left)
    assert empty.to_bytes() == before


@law("merge")
def merging_is_the_same_in_either_order(subject: Subject) -> None:
    left, right = pair(subject)
    assert (left | right).to_bytes() == (right | left).to_bytes()


@law("__or__")
def or_equals_merge_and_leaves_both_operands_alone(subject: Subject) -> None:
    left, right = pair(subject)
    before = left.to_bytes(), right.to_bytes()
    union = left | right
    assert (left.to_bytes(), right.to_bytes()) == before
    same = left
    left |= right
    assert left is same
    assert left.to_bytes() == union.to_bytes()
    union.add_many(subject.words(100, "only the union"))
    assert left.to_bytes() != union.to_bytes()
    assert right.to_bytes() == before[1]


@law("merge", unless=("count",))
def a_filter_merged_with_itself_stays_what_it_is(subject: Subject) -> None:
    left, _ = pair(subject)
    before = left.to_bytes()
    left.merge(left)
    left |= left
    assert left.to_bytes() == before
    assert (left | left).to_bytes() == before


@law("merge", "count", unless=("conservative",))
def a_counting_filter_merged_with_itself_counts_its_stream_twice(subject: Subject) -> None:
    left = subject.new()
    left.add_many(subject.mixed(2000))
    left.merge(left)
    twice = subject.new()
    twice.add_many(subject.mixed(2000) * 2)
    assert left.to_bytes() == twice.to_bytes()
    left |= left
    assert left.to_bytes() == (twice | twice).to_bytes()


@law("__and__")
def and_has_every_key_of_both_and_leaves_both_operands_alone(subject: Subject) -> None:
    left, right = subject.new(), subject.new()
    left.add_many([*subject.words(500, "left"), *subject.words(500)])
    right.add_many([*subject.words(500, "right"), *subject.words(500)])
    before = left.to_bytes(), right.to_bytes()
    both = left & right
    assert (left.to_bytes(), right.to_bytes()) == before
    assert both.contains_many(subject.words(500)).all()
    assert not both.contains_many(subject.words(500, "left")).all()
    same = left
    left &= right
    assert left is same
    assert left.to_bytes() == both.to_bytes()
    assert (right & right).to_bytes() == before[1]
    assert (right & subject.new()).to_bytes() == subject.new().to_bytes()
    both.validate()


CHANGES: dict[str, tuple[str, Any]] = {
    "seed": ("seed", 99),
    "secret": ("secret", bytes(16)),
    "derivation": ("paper", {"derivation": "double"}),
    "layout": ("layout", "classic"),
    "storage": ("storage", "optimized"),
    "rounding": ("rounding", "expiring"),
    "fraction_bits": ("fraction_bits", 7),
    "decay": ("half_life", 10**11),
    "epoch": ("epoch", 10**10),
    "origin": ("origin", 1),
    "policy": ("policy", "conservative"),
    "counter_bits": ("counter_bits", 16),
    "hashes": ("hashes", 6),
    "bits": ("bits", 100_004),
    "cells": ("cells", 100_004),
    "partitions": ("partitions", 11),
    "bind": ("paper", {"bind": "ordered"}),
    "capacity": ("capacity", 10_001),
    "error_rate": ("error_rate", 0.02),
    "max_layers": ("max_layers", 5),
    "layer_sizes": ("layer_sizes", [7]),
}
"""Field that must be named -> the parameter changed, and to what."""


def differing(subject: Subject) -> dict[str, Any]:
    """Filters that differ from the subject in exactly the field they stand under."""
    structure = subject.structure
    classic = {"bits", "cells"} & structure.parameters.keys() or "classic" in structure.traits
    fields = ["secret"] if "keyed" in structure.traits else ["seed"]
    decays = "decays" in structure.traits
    if hasattr(structure.cls, "layout") and not classic:
        fields.append("layout")
    elif "urls" in structure.traits:
        fields += ["bind", "capacity", "error_rate", "max_layers"]
        fields += [] if "xor" in structure.traits else ["layer_sizes"]
    elif not {"double", "slices"} & structure.traits:
        fields.append("derivation")
    fields += [name for name in ("policy", "counter_bits") if structure.takes(name)]
    fading = ["storage", "rounding", "fraction_bits", "decay", "epoch", "origin"]
    fields += fading if decays else []
    fields += ["partitions"] if structure.takes("partitions") else []
    fields += [name for name in ("bits", "cells") if name in structure.parameters]
    fields += ["hashes"] if {"bits", "cells"} & structure.parameters.keys() else []
    found = {}
    for name in fields:
        parameter, value = CHANGES[name]
        if structure.parameters.get(parameter) != value:
            found[name] = subject.new(**{parameter: value})
    return found


@law("merge")
def an_incompatible_merge_names_the_field_that_differs_and_changes_nothing(
    subject: Subject,
) -> None:
    left = subject.new()
    left.add_many(subject.words(200))
    before = left.to_bytes()
    others = differing(subject)
    assert others
    for name, other in others.items():
        other.add_many(subject.words(200, "other"))
        untouched = other.to_bytes()
        for join in (left.merge, left.__or__, left.__ior__):
            with pytest.raises(IncompatibleError) as caught:
                join(other)
            assert caught.value.field == name
            assert name in str(caught.value)
            assert caught.value.expected != caught.value.got
            assert left.to_bytes() == before
            assert other.to_bytes() == untouched


@law("merge")
def a_merge_with_something_else_is_a_type_error(subject: Subject) -> None:
    left = subject.new()
    left.add_many(subject.words(200))
    before = left.to_bytes()
    for other in (None, 5, "text", {"a"}, object()):
        with pytest.raises(TypeError):
            left.merge(other)
        with pytest.raises(TypeError):
            left | other
        with pytest.raises(TypeError):
            left |= other
    assert left.to_bytes() == before
