"""Laws of copies: saved, pickled or copied, the copy is equal, evolves alike and is independent."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import bloomtide
from tests.conformance.law import law
from tests.conformance.registry import Subject
from tests.history import without_history


def filled_filter(subject: Subject) -> Any:
    """A filter with a history of its own."""
    filled = subject.new()
    filled.add_many(subject.mixed(3000))
    if subject.removes:
        filled.remove("key-0")
    return filled


def evolve(subject: Subject, filled: Any) -> Iterator[Any]:
    """Every verb that changes a filter, and what it answered, step by step."""
    yield filled.add_many(subject.mixed(1500, "later")).tolist()
    yield [filled.add(key) for key in subject.words(300, "single")]
    if subject.removes:
        yield [filled.remove(key) for key in subject.words(150, "single")]
    if "count" in subject.structure.traits:
        yield filled.add("many", 5)
        yield filled.count_many(subject.mixed(1500, "later")).tolist()
    if "merge" in subject.structure.traits:
        yield filled.merge(filled.copy())
    yield filled.contains_many([*subject.words(500, "absent"), *subject.mixed(500)]).tolist()
    yield without_history(filled.stats())


def both_evolve_alike(subject: Subject, make_copy: Callable[[Any], Any]) -> None:
    """The copy equals the original, and still does after each further step of both."""
    original = filled_filter(subject)
    twin = make_copy(original)
    assert type(twin) is type(original)
    assert twin.to_bytes() == original.to_bytes()
    assert twin == original
    for step in zip(evolve(subject, original), evolve(subject, twin), strict=True):
        assert step[0] == step[1]
        assert twin.to_bytes() == original.to_bytes()
    twin.validate()


def neither_sees_the_other(subject: Subject, make_copy: Callable[[Any], Any]) -> None:
    """What happens to one of the two does not happen to the other."""
    original = filled_filter(subject)
    twin = make_copy(original)
    before = original.to_bytes()
    twin.add_many(subject.words(200, "only the twin"))
    assert twin.to_bytes() != before
    assert original.to_bytes() == before
    changed = twin.to_bytes()
    original.clear()
    assert twin.to_bytes() == changed


COPIES: tuple[Callable[[Any], Any], ...] = (
    lambda original: original.copy(),
    copy.copy,
    copy.deepcopy,
    *(
        lambda original, protocol=protocol: pickle.loads(pickle.dumps(original, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ),
    lambda original: type(original).from_bytes(original.to_bytes()),
    lambda original: bloomtide.from_bytes(bytearray(original.to_bytes())),
)


@law()
def a_copy_evolves_like_its_original(subject: Subject) -> None:
    for make_copy in COPIES:
        both_evolve_alike(subject, make_copy)


@law()
def a_copy_and_its_original_do_not_see_each_other(subject: Subject) -> None:
    for make_copy in COPIES:
        neither_sees_the_other(subject, make_copy)


@law()
def a_saved_filter_is_loaded_and_both_evolve_alike(subject: Subject) -> None:
    def through_its_class(original: Any) -> Any:
        path = subject.path()
        original.save(path)
        return type(original).load(str(path))

    def through_the_package(original: Any) -> Any:
        path = subject.path()
        original.save(str(path))
        return bloomtide.load(path)

    both_evolve_alike(subject, through_its_class)
    both_evolve_alike(subject, through_the_package)
    neither_sees_the_other(subject, through_its_class)


@law()
def saving_replaces_the_file_and_leaves_no_other(subject: Subject) -> None:
    folder = subject.folder / "only"
    folder.mkdir()
    path = folder / "filter.bloom"
    filled = subject.new()
    filled.save(path)
    filled.add_many(subject.words(100))
    filled.save(path)
    assert [entry.name for entry in folder.iterdir()] == ["filter.bloom"]
    assert path.read_bytes() == filled.to_bytes()


@law()
def an_empty_filter_survives_every_copy(subject: Subject) -> None:
    empty = subject.new()
    for make_copy in COPIES:
        assert make_copy(empty) == empty
        assert make_copy(empty).to_bytes() == empty.to_bytes()


@law()
def a_copy_keeps_every_parameter(subject: Subject) -> None:
    original = subject.new()
    names = [name for name in dir(type(original)) if not name.startswith("_")]
    properties = [name for name in names if not callable(getattr(original, name))]
    kept = [name for name in properties if name != "path"]  # a copy of a mapped filter is in memory
    assert kept
    for make_copy in COPIES:
        twin = make_copy(original)
        for name in kept:
            assert getattr(twin, name) == getattr(original, name), name
