"""Laws of filters that hold more than they were made for: they say so, once, and not too early."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import bloomtide
from bloomtide.errors import OverfullWarning
from tests.conformance.law import law
from tests.conformance.registry import Subject

MADE_FOR = 2000


def warned(act: Callable[[], object]) -> list[OverfullWarning]:
    """The warnings that an action gives."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", OverfullWarning)
        act()
    return [each.message for each in found if isinstance(each.message, OverfullWarning)]


def small(subject: Subject) -> Any:
    """A filter of the structure for few keys."""
    return subject.new(capacity=MADE_FOR)


@law("goal")
def a_filter_far_beyond_its_capacity_warns_once(subject: Subject) -> None:
    filled = small(subject)
    keys = subject.words(6 * MADE_FOR)
    found = warned(lambda: [filled.add_many(keys[i : i + 500]) for i in range(0, len(keys), 500)])
    assert len(found) == 1
    [warning] = found
    assert (warning.capacity >= 1, warning.items > 1.9 * warning.capacity) == (True, True)
    assert warning.predicted_error > filled.error_rate
    assert f"{warning.capacity}" in str(warning)
    assert warned(lambda: filled.add_many(subject.words(MADE_FOR, "more"))) == []
    assert warned(filled.stats) == []
    assert len(filled.stats().warnings) >= 1
    filled.clear()
    assert filled.stats().warnings == ()
    assert len(warned(lambda: filled.add_many(keys))) == 1, "an emptied filter begins anew"


@law("goal")
def single_additions_far_beyond_the_capacity_warn_once(subject: Subject) -> None:
    filled = small(subject)
    found = warned(lambda: [filled.add(key) for key in subject.words(8 * MADE_FOR)])
    assert len(found) == 1


@law("goal")
def a_filter_that_holds_what_it_was_made_for_does_not_warn(subject: Subject) -> None:
    filled = small(subject)
    keys = subject.words(MADE_FOR)

    def use() -> None:
        filled.add_many(keys[:1000])
        for key in keys[1000:]:
            filled.add(key)
        for _ in range(5):
            filled.add_many(keys)  # no key is new
        filled.copy().merge(filled)
        filled.save(subject.path())
        assert "urls" in subject.structure.traits or filled.stats().warnings == ()

    assert warned(use) == []


@law("goal")
def an_overfull_file_warns_when_it_is_loaded(subject: Subject) -> None:
    filled = small(subject)
    filled.add_many(subject.words(6 * MADE_FOR))
    path = subject.path()
    filled.save(path)
    assert len(warned(lambda: bloomtide.load(path))) == 1
    assert len(warned(lambda: type(filled).load(path))) == 1


@law("goal", "merge")
def the_union_of_filters_that_were_full_warns(subject: Subject) -> None:
    parts = [small(subject) for _ in range(3)]
    for number, part in enumerate(parts):
        part.add_many(subject.words(MADE_FOR, f"part{number}-"))
    one, two, three = parts

    def join() -> None:
        one.merge(two)
        one.merge(three)

    assert len(warned(join)) == 1


@law("goal")
def a_warning_that_is_made_an_error_leaves_the_keys_inside(subject: Subject) -> None:
    filled = small(subject)
    keys = subject.words(6 * MADE_FOR)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverfullWarning)
        try:
            filled.add_many(keys)
        except OverfullWarning:
            pass
        else:
            raise AssertionError("nothing was raised")
        assert filled.contains_many(keys).all()
        filled.add_many(keys)  # said once
