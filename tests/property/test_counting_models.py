"""PDCF = DCF = PSBF = SBF = counters without a limit: one truth in five layouts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bloomtide.reference import (
    ReferenceCountingBloomFilter,
    ReferenceDynamicCountFilter,
    ReferencePartitionedDynamicCountFilter,
    ReferencePartitionedSpectralBloomFilter,
    ReferenceSpectralBloomFilter,
)
from tests.property.streams import mixed, spread

Model = Any
COUNTS = st.integers(1, 6) | st.sampled_from([15, 16, 255, 256, 1026, 2**32, 2**63, 2**64 - 1])


def family(
    cells: int = 40,
    hashes: int = 3,
    *,
    partitions: int = 4,
    counter_bits: int = 2,
    shrink: float = 0.5,
    slack: float = 0.1,
    policy: Any = "plain",
) -> dict[str, Model]:
    """One of each, all with the same positions."""
    positions = spread(cells, hashes)
    common = (positions, cells, hashes)
    dynamic: Any = {"counter_bits": counter_bits, "shrink": shrink, "policy": policy}
    spectral: Any = {"slack": slack, "policy": policy}
    return {
        "cbf": ReferenceCountingBloomFilter(*common, counter_bits=64, policy=policy),
        "dcf": ReferenceDynamicCountFilter(*common, **dynamic),
        "sbf": ReferenceSpectralBloomFilter(*common, **spectral),
        "pdcf": ReferencePartitionedDynamicCountFilter(*common, partitions=partitions, **dynamic),
        "psbf": ReferencePartitionedSpectralBloomFilter(*common, partitions=partitions, **spectral),
    }


def outcomes(models: dict[str, Model], verb: str, *arguments: Any) -> set[Any]:
    """What the models answer; agreement is one element."""
    found = set()
    for model in models.values():
        try:
            found.add(getattr(model, verb)(*arguments))
        except (KeyError, TypeError) as refusal:
            found.add(type(refusal).__name__)
    return found


class FamilyMachine(RuleBasedStateMachine):
    """Two families of equal parameters."""

    @initialize(
        cells=st.integers(1, 40),
        hashes=st.integers(1, 4),
        partitions=st.integers(1, 50),
        counter_bits=st.sampled_from([1, 2, 8, 64]),
        shrink=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        slack=st.sampled_from([0.0, 0.1, 1.0]),
        policy=st.sampled_from(["plain", "conservative"]),
    )
    def start(self, cells: int, hashes: int, **parameters: Any) -> None:
        self.policy = parameters["policy"]
        self.models = family(cells, hashes, **parameters)
        self.others = family(cells, hashes, **parameters)

    @rule(key=st.integers(0, 30), count=COUNTS)
    def add(self, key: int, count: int) -> None:
        assert len(outcomes(self.models, "add", key, count)) == 1

    @rule(key=st.integers(0, 30), count=COUNTS)
    def remove(self, key: int, count: int) -> None:
        assert len(outcomes(self.models, "remove", key, count)) == 1

    @precondition(lambda self: self.policy == "plain")
    @rule(key=st.integers(0, 30), count=COUNTS)
    def add_and_remove_again(self, key: int, count: int) -> None:
        """A plain `remove` alone is refused too often to make anything shrink."""
        before = list(self.models["cbf"].cells)
        self.add(key, count)
        sticks = 2**64 - 1 in self.models["cbf"].cells
        self.remove(key, count)
        assert sticks or self.models["cbf"].cells == before

    @rule(key=st.integers(0, 60))
    def ask(self, key: int) -> None:
        assert len(outcomes(self.models, "count", key)) == 1
        assert len(outcomes(self.models, "__contains__", key)) == 1

    @rule()
    def swap(self) -> None:
        self.models, self.others = self.others, self.models

    @rule()
    def merge(self) -> None:
        for name, model in self.models.items():
            model.merge(self.others[name])

    @rule()
    def clear(self) -> None:
        outcomes(self.models, "clear")

    @rule(name=st.sampled_from(["pdcf", "psbf"]), partitions=st.integers(1, 50))
    def repartition(self, name: str, partitions: int) -> None:
        self.models[name].repartition(partitions)

    @rule(name=st.sampled_from(["pdcf", "psbf"]), at=st.integers(0, 49), pieces=st.integers(1, 9))
    def split(self, name: str, at: int, pieces: int) -> None:
        store = self.models[name].store
        store.split(at % len(store.parts), pieces)

    @invariant()
    def cells_agree(self) -> None:
        for models in (self.models, self.others):
            truth = models["cbf"]
            for model in models.values():
                assert model.cells == truth.cells
                assert model.saturated == truth.saturated


TestFamilyMachine = FamilyMachine.TestCase
TestFamilyMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("seed", range(3))
def test_all_models_answer_alike_through_thousands_of_adds_and_removes(seed: int) -> None:
    models, keys = family(shrink=(0.0, 0.5, 1.0)[seed]), 40
    for step, (verb, key, count) in enumerate(mixed(4_000, keys, seed)):
        assert len(outcomes(models, verb, key, count)) == 1
        if step % 50 == 0:
            assert len({tuple(model.count_many(range(2 * keys))) for model in models.values()}) == 1
    assert all(model.rebuilds > 5 for name, model in models.items() if name != "cbf")


def test_batches_with_counts_are_the_single_verbs_in_order() -> None:
    keys, counts = [1, 2, 1, 3], [5, 1, 300, 2]
    for name, batch in family().items():
        if name == "cbf":
            continue
        single = family()[name]
        assert batch.add_many(keys, counts) == [
            single.add(key, count) for key, count in zip(keys, counts, strict=True)
        ]
        assert batch.cells == single.cells
        batch.remove_many(keys, counts)
        assert batch.cells == [0] * len(batch.cells)


def test_a_hot_counter_widens_its_own_partition_only() -> None:
    models = family(cells=10, hashes=1, partitions=4, counter_bits=2)
    for model in models.values():
        model.positions = lambda key: [key]
        model.add(4, 20)
        model.add(9, 4)
    assert models["dcf"].store.y == 3
    assert models["pdcf"].partition_vector == [0, 3, 0, 1]
    models["pdcf"].store.split(1, 3)
    assert models["pdcf"].partition_vector == [0, [0, 3, 0], 0, 1]


def test_counts_are_never_too_small_without_saturation() -> None:
    models, truth = family(cells=25), Counter[int]()
    for verb, key, count in mixed(1_500, 30, seed=8):
        outcomes(models, verb, key, count)
        truth[key] += count if verb == "add" else -count
    for model in models.values():
        assert all(model.count(key) >= count for key, count in truth.items())
        assert any(model.count(key) > count for key, count in truth.items()), "too few collisions"


@pytest.mark.parametrize("name", ["pdcf", "psbf"])
def test_a_new_cut_keeps_the_values_the_number_of_rebuilds_and_lasts(name: str) -> None:
    filled = family(partitions=3)[name]
    filled.add_many(range(20), range(1, 21))
    cells, rebuilds = filled.cells, filled.rebuilds
    assert rebuilds > 0
    filled.repartition(7)
    filled.store.split(2, 3)
    assert (filled.cells, filled.rebuilds) == (cells, rebuilds)
    filled.clear()
    assert len(filled.partition_vector) == 7
    assert filled.rebuilds == 0
