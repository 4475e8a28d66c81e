"""`CountFilter` makes the paper's four structures, and its class methods look at their class."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import bloomtide
from bloomtide import (
    BloomFilter,
    CountFilter,
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    PartitionedSpectralBloomFilter,
    SpectralBloomFilter,
)
from bloomtide.errors import KindError, ParameterError

GOAL: dict[str, Any] = {"capacity": 500, "error_rate": 0.02, "seed": 5}
NAMES: list[tuple[Any, dict[str, Any]]] = [
    (DynamicCountFilter, {}),
    (DynamicCountFilter, {"storage": "dynamic", "partitions": 1, "counter_bits": 3}),
    (PartitionedDynamicCountFilter, {"partitions": "auto"}),
    (PartitionedDynamicCountFilter, {"partitions": "auto", "shrink": 0.25}),
    (SpectralBloomFilter, {"storage": "spectral", "slack": 0.5}),
    (PartitionedSpectralBloomFilter, {"storage": "spectral", "partitions": 7}),
]
CLASSES: list[Any] = [
    DynamicCountFilter,
    PartitionedDynamicCountFilter,
    SpectralBloomFilter,
    PartitionedSpectralBloomFilter,
]


@pytest.mark.parametrize(("name", "words"), NAMES)
def test_it_makes_what_the_papers_name_makes(name: Any, words: dict[str, Any]) -> None:
    made = CountFilter(**GOAL, **words)
    own = {word: value for word, value in words.items() if word != "storage"}
    if not name.__name__.startswith("Partitioned"):
        own.pop("partitions", None)
    assert type(made) is name
    assert made == name(**GOAL, **own)
    assert made.storage == words.get("storage", "dynamic")
    made.add_many(["a", "b"], [3, 1])
    copied = pickle.loads(pickle.dumps(made))
    assert (type(copied), copied.count("a")) == (name, 3)
    assert copied == made


@pytest.mark.parametrize(("name", "words"), NAMES)
def test_its_plan_is_the_plan_of_the_papers_name(name: Any, words: dict[str, Any]) -> None:
    plan = CountFilter.plan(500, 0.02, **words)
    made = CountFilter(500, 0.02, **words)
    assert plan.kind == made.stats().kind
    assert plan.storage == made.storage
    for maker in (CountFilter, name):
        again = maker.from_plan(plan, seed=5)
        assert type(again) is name
        assert again == CountFilter(**GOAL, **words)
    for other in set(CLASSES) - {name}:
        with pytest.raises(ParameterError) as caught:
            other.from_plan(plan)
        assert caught.value.name == "plan"


@pytest.mark.parametrize("name", CLASSES)
def test_files_are_read_by_the_base_and_by_their_own_name(name: Any, tmp_path: Path) -> None:
    made = name(**GOAL)
    made.add("a", 5)
    made.save(tmp_path / "f")
    for reader in (CountFilter, name, bloomtide):
        for found in (reader.load(tmp_path / "f"), reader.from_bytes(made.to_bytes())):
            assert type(found) is name
            assert found == made
    for other in set(CLASSES) - {name}:
        with pytest.raises(KindError):
            other.load(tmp_path / "f")
        with pytest.raises(KindError):
            other.from_bytes(made.to_bytes())


def test_it_reads_no_other_filter(tmp_path: Path) -> None:
    seen = BloomFilter(10)
    seen.save(tmp_path / "f")
    with pytest.raises(KindError, match="bloom"):
        CountFilter.load(tmp_path / "f")
    with pytest.raises(KindError, match="bloom"):
        CountFilter.from_bytes(seen.to_bytes())
    with pytest.raises(ParameterError) as caught:
        CountFilter.from_plan(BloomFilter.plan(10))
    assert caught.value.name == "plan"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"storage": "static"}, "storage"),
        ({"storage": ""}, "storage"),
        ({"slack": 0.1}, "slack"),
        ({"storage": "dynamic", "slack": 0.5}, "slack"),
        ({"storage": "spectral", "counter_bits": 3}, "counter_bits"),
        ({"storage": "spectral", "shrink": 0.5}, "shrink"),
        ({"policy": "recurring_minimum"}, "policy"),
        ({"partitions": 0}, "partitions"),
        ({"partitions": "some"}, "partitions"),
    ],
)
def test_a_word_that_does_not_fit_is_named(words: dict[str, Any], name: str) -> None:
    for make in (CountFilter, CountFilter.plan):
        with pytest.raises(ParameterError) as caught:
            make(100, 0.01, **words)
        assert caught.value.name == name
        assert caught.value.hint


def test_a_name_has_chosen_its_storage() -> None:
    for name in CLASSES:
        for make in (name, name.plan):
            with pytest.raises(TypeError, match="storage"):
                make(100, 0.01, storage="dynamic")


def test_it_is_not_inherited_from() -> None:
    class Mine(CountFilter):
        pass

    for act in (lambda: Mine(100), lambda: Mine.plan(100), lambda: Mine.from_bytes(b"")):
        with pytest.raises(ParameterError, match="Mine"):
            act()


def test_a_getter_of_the_other_storage_is_none() -> None:
    dynamic, spectral = CountFilter(10), CountFilter(10, storage="spectral")
    assert dynamic.slack is None
    assert (spectral.counter_bits, spectral.shrink) == (None, None)
    assert (dynamic.shrink, spectral.slack) == (0.5, 0.1)


@pytest.mark.parametrize("policy", ["plain", "conservative"])
def test_a_count_below_a_full_counter_is_certain(policy: str) -> None:
    made = DynamicCountFilter(cells=16, hashes=3, policy=policy)  # type: ignore[arg-type]
    full = set(made.positions("/full"))
    pages = [f"/{number}" for number in range(1000)]
    other = next(page for page in pages if len(full & set(made.positions(page))) == 1)
    made.add(other)
    made.add("/full", 2**64 - 1)
    estimate = made.estimate(other)
    assert (estimate.value, estimate.upper, estimate.saturated) == (1, 1, False)
    assert made.estimate("/full").saturated
