"""Any sequence of verbs on `CountingBloomFilter` leaves the counters that the model has."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bloomtide import CountingBloomFilter
from bloomtide.errors import AbsentKeyError, UnsupportedError
from bloomtide.reference import ReferenceCountingBloomFilter
from tests.property.keys import batches, keys, threads

SIZES: list[dict[str, Any]] = [
    {"cells": 61, "hashes": 3},
    {"cells": 3, "hashes": 5},
    {"cells": 64, "hashes": 4, "paper": {"derivation": "double"}},
    {"cells": 16, "hashes": 9, "paper": {"derivation": "slices"}},
    {"capacity": 25, "error_rate": 0.05, "layout": "classic"},
    {"cells": 1, "hashes": 8, "layout": "blocked"},
    {"cells": 130, "hashes": 2, "layout": "blocked"},
    {"capacity": 25, "error_rate": 0.05},
    {"capacity": 25, "error_rate": 0.05, "hash": "keyed", "secret": bytes(range(16))},
]
# Mostly small, and sometimes enough to fill the widest counter.
COUNTS = st.integers(1, 6) | st.sampled_from([14, 15, 16, 255, 65_535, 2**32 - 2, 2**32 - 1])


class CountingMachine(RuleBasedStateMachine):
    """Two filters of equal parameters, each beside its model."""

    @initialize(
        size=st.sampled_from(SIZES),
        counter_bits=st.sampled_from([4, 8, 16, 32]),
        policy=st.sampled_from(["plain", "conservative"]),
    )
    def start(self, size: dict[str, Any], counter_bits: Any, policy: Any) -> None:
        def pair() -> tuple[CountingBloomFilter, ReferenceCountingBloomFilter]:
            core = CountingBloomFilter(**size, counter_bits=counter_bits, policy=policy)
            model = ReferenceCountingBloomFilter(
                core.positions,
                core.stats().cells,
                core.hashes,
                counter_bits=counter_bits,
                policy=policy,
            )
            return core, model

        self.core, self.model = pair()
        self.other, self.other_model = pair()

    @rule(key=keys)
    def add(self, key: Any) -> None:
        assert self.core.add(key) == self.model.add(key)

    @rule(key=keys, count=COUNTS)
    def add_often(self, key: Any, count: int) -> None:
        assert self.core.add(key, count) == self.model.add(key, count)

    @rule(batch=batches, threads=threads)
    def add_many(self, batch: list[Any], threads: int) -> None:
        assert self.core.add_many(batch, threads=threads).tolist() == self.model.add_many(batch)

    @rule(key=keys, count=COUNTS)
    def remove(self, key: Any, count: int) -> None:
        assert self.outcome(self.core, key, count) == self.outcome(self.model, key, count)

    @staticmethod
    def outcome(filled: Any, key: Any, count: int) -> str:
        try:
            filled.remove(key, count)
        except (AbsentKeyError, KeyError):
            return "absent"
        except (UnsupportedError, TypeError):
            return "unsupported"
        return "removed"

    @rule(key=keys)
    def count(self, key: Any) -> None:
        assert self.core.count(key) == self.model.count(key)
        assert (key in self.core) == (key in self.model)
        estimate = self.core.estimate(key)
        assert estimate.value == self.model.count(key)
        assert estimate.saturated == (estimate.value == self.model.limit)

    @rule(batch=batches, threads=threads)
    def count_many(self, batch: list[Any], threads: int) -> None:
        counts = self.core.count_many(batch, threads=threads)
        found = self.core.contains_many(batch, threads=threads)
        assert counts.tolist() == self.model.count_many(batch)
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
                self.core = CountingBloomFilter.from_bytes(self.core.to_bytes())
            case _:
                self.core = pickle.loads(pickle.dumps(self.core))

    @invariant()
    def counters_are_those_of_the_model(self) -> None:
        self.core.validate()
        assert self.core.cells().tolist() == self.model.cells
        assert self.other.cells().tolist() == self.other_model.cells

    @invariant()
    def stats_are_those_of_the_model(self) -> None:
        stats = self.core.stats()
        assert stats.fill == self.model.saturation
        assert stats.saturated == self.model.saturated


TestCountingMachine = CountingMachine.TestCase
TestCountingMachine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
