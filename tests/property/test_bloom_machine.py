"""Any sequence of verbs on `BloomFilter` leaves the bits that the plain-Python model has."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bloomtide import BloomFilter
from bloomtide.reference import ReferenceBloomFilter
from tests.property.cells import bloom_bits
from tests.property.keys import batches, keys, threads

PARAMETERS: list[dict[str, Any]] = [
    {"bits": 97, "hashes": 3},
    {"bits": 1, "hashes": 2},
    {"bits": 128, "hashes": 4, "paper": {"derivation": "double"}},
    {"bits": 256, "hashes": 20, "paper": {"derivation": "slices"}},
    {"capacity": 40, "error_rate": 0.3},
    {"capacity": 60, "error_rate": 0.01},
    {"capacity": 30, "error_rate": 1e-5},
    {"capacity": 60, "error_rate": 0.05, "hash": "keyed", "secret": bytes(range(16))},
]


class BloomMachine(RuleBasedStateMachine):
    """Two filters of equal parameters, each beside its model."""

    @initialize(parameters=st.sampled_from(PARAMETERS))
    def start(self, parameters: dict[str, Any]) -> None:
        self.core, self.other = BloomFilter(**parameters), BloomFilter(**parameters)
        bits, hashes = self.core.bits, self.core.hashes
        self.model = ReferenceBloomFilter(self.core.positions, bits, hashes)
        self.other_model = ReferenceBloomFilter(self.other.positions, bits, hashes)

    @rule(key=keys)
    def add(self, key: Any) -> None:
        assert self.core.add(key) == self.model.add(key)

    @rule(batch=batches, threads=threads)
    def add_many(self, batch: list[Any], threads: int) -> None:
        assert self.core.add_many(batch, threads=threads).tolist() == self.model.add_many(batch)

    @rule(key=keys)
    def contains(self, key: Any) -> None:
        assert (key in self.core) == (key in self.model)

    @rule(batch=batches, threads=threads)
    def contains_many(self, batch: list[Any], threads: int) -> None:
        found = self.core.contains_many(batch, threads=threads)
        assert found.tolist() == self.model.contains_many(batch)

    @rule()
    def swap(self) -> None:
        self.core, self.other = self.other, self.core
        self.model, self.other_model = self.other_model, self.model

    @rule(in_place=st.booleans())
    def merge(self, in_place: bool) -> None:
        self.model.merge(self.other_model)
        if in_place:
            self.core.merge(self.other)
        else:
            self.core = self.core | self.other

    @rule(in_place=st.booleans())
    def intersect(self, in_place: bool) -> None:
        self.model.intersect(self.other_model)
        if in_place:
            self.core &= self.other
        else:
            self.core = self.core & self.other

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
                self.core = BloomFilter.from_bytes(self.core.to_bytes())
            case _:
                self.core = pickle.loads(pickle.dumps(self.core))

    @invariant()
    def bits_are_those_of_the_model(self) -> None:
        self.core.validate()
        assert bloom_bits(self.core) == self.model.cells
        assert bloom_bits(self.other) == self.other_model.cells

    def _same_cells(self, n: float) -> float:
        """Chance beyond saturation^phase: few start values have few sets of cells."""
        m, fill = self.core.bits, self.model.saturation
        rough = all(m % d for d in range(2, min(m, 64)))
        if self.core.derivation == "enhanced":
            return 3 * n / m**4 + fill * (1 if rough else 2048) / m**3
        if self.core.derivation == "double":
            return 8 * n / m**2 + (0 if rough or m & (m - 1) == 0 else fill * 4 / m)
        return 0.0

    @invariant()
    def stats_are_those_of_the_model(self) -> None:
        stats = self.core.stats()
        assert stats.fill == self.model.saturation
        if self.core.layout == "classic":
            expected = self.model.false_positive_rate() + self._same_cells(stats.items)
            assert stats.predicted_error == pytest.approx(min(expected, 1.0), 1e-12)
            assert stats.items == pytest.approx(self.model.estimated_items(), 1e-12)


TestBloomMachine = BloomMachine.TestCase
TestBloomMachine.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
