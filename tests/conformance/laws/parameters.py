"""Laws of construction: plans, limits of every parameter."""

from __future__ import annotations

import dataclasses
import inspect
import math

import pytest

from bloomtide.errors import BloomtideError, CapacityError, ParameterError
from tests.conformance.law import law
from tests.conformance.limits import ABSURD, BAD, EDGE
from tests.conformance.registry import HASHING, Subject


@law(unless=("mapped",))
def a_filter_from_a_plan_equals_one_made_directly(subject: Subject) -> None:
    structure = subject.structure
    plan = structure.cls.plan(**structure.sizing)
    planned = structure.cls.from_plan(plan, **structure.hashing)
    direct = subject.new()
    assert planned.to_bytes() == direct.to_bytes()
    assert planned == direct
    assert (
        planned.add_many(subject.mixed(2000)).tolist()
        == direct.add_many(subject.mixed(2000)).tolist()
    )
    assert planned.to_bytes() == direct.to_bytes()


@law()
def a_new_filter_has_the_sizes_that_its_plan_says(subject: Subject) -> None:
    plan = subject.structure.cls.plan(**subject.structure.sizing)
    stats = subject.new().stats()
    for name in ("kind", "hashes", "counter_bits", "capacity", "error_rate"):
        assert getattr(stats, name) == getattr(plan, name), name
    assert stats.cells == plan.cells - sum(layer.cells for layer in plan.layers)
    assert stats.bytes <= plan.bytes <= plan.bytes_at_most


@law(unless=("mapped",))
def a_plan_shows_the_parameters_of_its_own_class(subject: Subject) -> None:
    own = inspect.signature(subject.structure.cls).parameters
    planned = inspect.signature(subject.structure.cls.plan).parameters
    shared = [name for name in own if name not in {*HASHING, "clock"}]
    assert [name for name in planned if name != "skew"] == shared
    assert all(planned[name].default == own[name].default for name in shared)
    for name in planned.keys() - subject.structure.parameters.keys():
        subject.structure.cls.plan(**subject.structure.sizing | {name: planned[name].default})


@law()
def a_plan_meets_its_error_rate_and_gets_worse_when_overfull(subject: Subject) -> None:
    plan = subject.structure.cls.plan(**subject.structure.sizing)
    if plan.error_rate is None:
        assert plan.predicted_error is None
        return
    assert 0 < plan.predicted_error <= plan.error_rate
    assert plan.predicted_error_overfull > 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.cells = 1


@law()
def a_filter_shows_the_parameters_it_was_made_with(subject: Subject) -> None:
    made = subject.new()
    for name, value in subject.structure.shown.items():
        if name == "cells":  # on the filter that is the verb that gives them all
            assert (len(made.cells()), made.stats().cells) == (value, value)
        elif name != "secret":
            assert getattr(made, name) == value, name
    assert not hasattr(made, "secret")


@law(unless=("mapped",))
def a_parameter_outside_its_limits_is_named(subject: Subject) -> None:
    for names, parameters in BAD[subject.structure.cls]:
        with pytest.raises(ParameterError) as caught:
            subject.structure.cls(**parameters)
        assert caught.value.name in names, parameters
        assert caught.value.allowed, parameters
        assert isinstance(caught.value, ValueError)


@law(unless=("mapped",))
def a_plan_refuses_what_the_constructor_refuses(subject: Subject) -> None:
    for names, parameters in BAD[subject.structure.cls]:
        if not parameters.keys() & {"hash", "seed", "secret"}:
            with pytest.raises(ParameterError) as caught:
                subject.structure.cls.plan(**parameters)
            assert caught.value.name in names, parameters


@law("mapped")
def a_refused_parameter_makes_no_file(subject: Subject) -> None:
    for names, parameters in BAD[subject.structure.cls]:
        if "secret" in parameters and "hash" not in parameters:
            continue  # to `open`, a secret alone says which hash it belongs to
        path = subject.path()
        with pytest.raises(ParameterError) as caught:
            subject.structure.cls.open(path, mode="c", **parameters)
        assert caught.value.name in names, parameters
        assert not path.exists()


@law(unless=("mapped",))
def a_parameter_at_its_limit_makes_a_working_filter(subject: Subject) -> None:
    for parameters in EDGE[subject.structure.cls]:
        made = subject.structure.cls(**parameters)
        made.add_many(subject.words(20))
        assert made.contains_many(subject.words(20)).all(), parameters
        made.validate()
        twin = type(made).from_bytes(made.to_bytes())
        assert twin == made, parameters
        assert not math.isnan(made.estimated_items()), parameters
        repr(made)
        made.stats()


@law(unless=("mapped",))
def an_absurd_size_is_refused_and_not_allocated(subject: Subject) -> None:
    for parameters in ABSURD[subject.structure.cls]:
        with pytest.raises(BloomtideError) as caught:
            subject.structure.cls(**parameters)
        assert isinstance(caught.value, (CapacityError, ParameterError)), parameters
        assert caught.value.hint, parameters
