"""Any sequence of verbs on `ScalableBloomFilter` leaves the layers that the model has."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bloomtide import ScalableBloomFilter
from bloomtide.reference import ReferenceScalableBloomFilter
from tests.property.cells import scalable_bits
from tests.property.keys import batches, keys, threads

PARAMETERS: list[dict[str, Any]] = [
    {"capacity": 1, "error_rate": 0.05, "growth": 2.0},
    {"capacity": 5, "error_rate": 0.1, "growth": 1.0},
    {"capacity": 7, "error_rate": 0.01, "growth": 1.3, "tightening": 0.9},
    {"capacity": 10, "error_rate": 0.2, "growth": 2.5, "paper": {"derivation": "double"}},
    {"capacity": 8, "error_rate": 0.01, "paper": {"derivation": "slices"}},
    {"capacity": 3, "error_rate": 0.1, "growth": 100.0},
    {"capacity": 8, "error_rate": 0.01, "hash": "keyed", "secret": bytes(range(16))},
]


class ScalableMachine(RuleBasedStateMachine):
    """The core moves first: a layer's size and positions are the core's, when it opens is not."""

    @initialize(parameters=st.sampled_from(PARAMETERS))
    def start(self, parameters: dict[str, Any]) -> None:
        self.core = ScalableBloomFilter(**parameters)
        self.model = ReferenceScalableBloomFilter(
            self.positions,
            self.size_of,
            self.core.capacity,
            self.core.error_rate,
            growth=self.core.growth,
            tightening=self.core.tightening,
        )

    def positions(self, key: Any, layer: int) -> Sequence[int]:
        return self.core.positions(key)[layer]

    def size_of(self, layer: int) -> tuple[int, int]:
        stats = self.core.stats().layers[layer]
        return stats.cells, stats.hashes

    @rule(key=keys)
    def add(self, key: Any) -> None:
        added = self.core.add(key)
        assert added == self.model.add(key)

    @rule(batch=batches, threads=threads)
    def add_many(self, batch: list[Any], threads: int) -> None:
        added = self.core.add_many(batch, threads=threads).tolist()
        assert added == self.model.add_many(batch)

    @rule(batch=batches, threads=threads)
    def contains_many(self, batch: list[Any], threads: int) -> None:
        found = self.core.contains_many(batch, threads=threads).tolist()
        assert found == self.model.contains_many(batch)
        assert [key in self.core for key in batch] == found

    @rule()
    def clear(self) -> None:
        self.core.clear()
        self.model.clear()

    @rule(how=st.sampled_from(["copy", "deepcopy", "bytes", "pickle"]))
    def replace_by_a_copy(self, how: str) -> None:
        match how:
            case "copy":
                self.core = self.core.copy()
            case "deepcopy":
                self.core = copy.deepcopy(self.core)
            case "bytes":
                self.core = ScalableBloomFilter.from_bytes(self.core.to_bytes())
            case _:
                self.core = pickle.loads(pickle.dumps(self.core))

    @invariant()
    def layers_are_those_of_the_model(self) -> None:
        self.core.validate()
        assert scalable_bits(self.core) == [layer.cells for layer in self.model.layers]

    @invariant()
    def stats_are_those_of_the_model(self) -> None:
        stats = self.core.stats()
        count = len(self.model.layers)
        assert len(stats.layers) == count
        assert [layer.fill for layer in stats.layers] == [x.saturation for x in self.model.layers]
        assert [layer.capacity for layer in stats.layers] == [
            self.model.layer_capacity(i) for i in range(count)
        ]
        assert [layer.error_rate for layer in stats.layers] == pytest.approx(
            [self.model.layer_error(i) for i in range(count)], 1e-12
        )


TestScalableMachine = ScalableMachine.TestCase
TestScalableMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
