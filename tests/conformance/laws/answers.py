"""Laws of one key at a time, and of the questions about a whole filter."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import pytest

from tests.conformance.law import law
from tests.conformance.registry import HASHING, Subject


@law()
def an_empty_filter_has_no_key(subject: Subject) -> None:
    empty = subject.new()
    assert not any(key in empty for key in subject.edges)
    assert not empty.contains_many(subject.edges).any()
    assert empty.estimated_items() == 0
    stats = empty.stats()
    assert (stats.items, stats.fill, stats.predicted_error, stats.saturated) == (0, 0, 0, 0)
    empty.validate()


@law("count")
def an_empty_filter_counts_nothing(subject: Subject) -> None:
    empty = subject.new()
    assert [empty.count(key) for key in subject.edges] == [0] * len(subject.edges)
    assert not empty.count_many(subject.edges).any()


@law()
def add_says_true_exactly_when_the_key_was_absent(subject: Subject) -> None:
    filled = subject.new()
    answers = []
    for key in subject.mixed(3000):
        absent = key not in filled
        answers.append(filled.add(key) is absent)
        assert key in filled
    assert all(answers)


@law()
def an_added_key_stays_present(subject: Subject) -> None:
    filled = subject.new()
    keys = subject.mixed(3000)
    for key in keys:
        filled.add(key)
    assert all(key in filled for key in keys)


@law(unless=("urls",))
def text_is_its_utf8_bytes_and_a_number_is_another_key(subject: Subject) -> None:
    filled = subject.new()
    assert filled.add("5")
    same = [b"5", bytearray(b"5"), memoryview(b"5")]
    assert [key in filled for key in same] == [True] * len(same)
    assert 5 not in filled
    assert filled.positions("ü") == filled.positions("ü".encode())
    assert filled.positions(-1) != filled.positions(2**64 - 1)


@law()
def a_query_changes_nothing(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(subject.mixed(2000))
    before = filled.to_bytes()
    probes = [*subject.words(200, "absent"), *subject.mixed(200)]
    questions = {
        "in": lambda: [key in filled for key in probes],
        "contains_many": lambda: filled.contains_many(probes).tolist(),
        "positions": lambda: [filled.positions(key) for key in probes],
        "estimated_items": filled.estimated_items,
        "stats": filled.stats,
        "validate": filled.validate,
        "repr": lambda: repr(filled),
        "==": lambda: filled == filled.copy(),
        "copy": lambda: filled.copy().to_bytes(),
        "deepcopy": lambda: copy.deepcopy(filled).to_bytes(),
        "pickle": lambda: pickle.dumps(filled),
        "save": lambda: filled.save(subject.path()),
    }
    if "count" in subject.structure.traits:
        questions |= {
            "count": lambda: [filled.count(key) for key in probes],
            "count_many": lambda: filled.count_many(probes).tolist(),
            "estimate": lambda: [filled.estimate(key) for key in probes],
            "cells": lambda: filled.cells().tolist(),
        }
    for name, ask in questions.items():
        first = ask()
        assert ask() == first, name
        assert filled.to_bytes() == before, name


@law()
def clear_equals_new(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(subject.mixed(3000))
    filled.clear()
    assert filled.to_bytes() == subject.new().to_bytes()
    filled.validate()
    again = subject.new()
    assert (
        filled.add_many(subject.mixed(500)).tolist() == again.add_many(subject.mixed(500)).tolist()
    )
    assert filled.to_bytes() == again.to_bytes()


@law(unless=("keyed",))
def the_seed_determines_the_state(subject: Subject) -> None:
    one, same, other = (subject.new(seed=seed) for seed in (7, 7, 8))
    for filled in (one, same, other):
        filled.add_many(subject.mixed(500))
    assert one.to_bytes() == same.to_bytes()
    assert one.positions(subject.spell("key")) == same.positions(subject.spell("key"))
    assert one.positions(subject.spell("key")) != other.positions(subject.spell("key"))
    assert (one.seed, other.seed) == (7, 8)


@law("keyed")
def the_secret_determines_the_state(subject: Subject) -> None:
    secrets = (bytes(16), bytes(16), bytes([*range(15), 99]))
    one, same, other = (subject.new(secret=secret) for secret in secrets)
    for filled in (one, same, other):
        filled.add_many(subject.mixed(500))
    assert one.to_bytes() == same.to_bytes()
    assert one.positions(subject.spell("key")) != other.positions(subject.spell("key"))


@law("keyed")
def a_secret_that_is_not_given_is_random(subject: Subject) -> None:
    one, other = subject.new(secret=None), subject.new(secret=None)
    assert one.positions(subject.spell("key")) != other.positions(subject.spell("key"))


@law()
def equal_filters_are_those_with_the_same_parameters_and_cells(subject: Subject) -> None:
    one, same, other = subject.new(), subject.new(), subject.new()
    one.add_many(subject.words(300))
    same.add_many(subject.words(300))
    other.add_many(subject.words(301))
    assert one == same
    assert one != other
    assert one != subject.new()
    assert one != "a filter"
    with pytest.raises(TypeError):
        hash(one)


@law()
def repr_names_the_class_and_its_parameters(subject: Subject) -> None:
    shown = repr(subject.new())
    assert subject.structure.cls.__name__ in shown
    for name, value in subject.structure.shown.items():
        if name not in ("derivation", *HASHING):  # details
            assert f"{name}={value}" in shown


@law("keyed")
def repr_and_stats_keep_the_secret(subject: Subject) -> None:
    filled = subject.new(secret=b"open sesame 1234")
    for shown in (repr(filled), str(filled.stats())):
        assert "sesame" not in shown
        assert "secret" not in shown


@law()
def stats_are_a_frozen_record_that_fits_the_filter(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(subject.mixed(400))
    stats = filled.stats()
    assert stats.items == filled.estimated_items()
    assert 0 < stats.fill < 1
    assert 0 < stats.predicted_error < 1
    assert math.isfinite(stats.items)
    assert stats.items > 0
    assert (stats.capacity, stats.error_rate) == (filled.capacity, filled.error_rate)
    borrows = "optimized" in subject.structure.traits
    assert borrows or stats.bytes * 8 >= stats.cells * stats.counter_bits
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.items = 1


@law()
def validate_passes_after_everything(subject: Subject) -> None:
    filled = subject.new()
    filled.add_many(subject.mixed(3000), threads=2)
    filled.validate()
    for key in subject.words(100, "single"):
        filled.add(key)
    filled.validate()
    if subject.removes:
        for key in subject.words(50, "single"):
            filled.remove(key)
        filled.validate()
    if "merge" in subject.structure.traits:
        filled.merge(filled)
        filled.validate()
    filled.clear()
    filled.validate()
