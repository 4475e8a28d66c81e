"""Any sequence of verbs and times on `TimeDecayingBloomFilter` leaves the cells of the model."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bloomtide import TimeDecayingBloomFilter
from bloomtide.errors import ParameterError
from bloomtide.reference import ReferenceTimeDecayingBloomFilter
from tests.property.keys import batches, keys, threads

SIZES: list[dict[str, Any]] = [
    {"cells": 300, "hashes": 3},
    {"cells": 3, "hashes": 5},
    {"cells": 256, "hashes": 4, "paper": {"derivation": "double"}},
    {"cells": 512, "hashes": 9, "paper": {"derivation": "slices"}},
    {"cells": 128, "hashes": 8, "layout": "blocked"},
    {"cells": 1300, "hashes": 2, "layout": "blocked"},
    {"capacity": 60, "error_rate": 0.05},
    {"capacity": 60, "error_rate": 0.05, "hash": "keyed", "secret": bytes(range(16))},
]
DECAYS = [0.0, 0.25, 0.5, 0.9, 0.933_032_991_536_807_4, 0.9999, 1.0]
# Mostly small, and sometimes enough to fill a cell.
COUNTS = st.integers(1, 6) | st.sampled_from([200, 255, 256, 2**24 - 1, 2**24, 2**33])
ORIGIN, EPOCH = 1_000_000, 10
STEPS = st.sampled_from([-300, -11, -1, 0, 0, 0, 3, 10, 25, 100, 4000, 80_000])
"""Seconds from the filter's time to an event."""


class DecayingMachine(RuleBasedStateMachine):
    """Two filters of equal parameters, each beside its model; a clock that anyone may set.

    Every time is believed here; `tests/decaying/test_wrong_clocks.py` has those that are not.
    """

    @initialize(
        size=st.sampled_from(SIZES),
        decay=st.sampled_from(DECAYS),
        counter_bits=st.sampled_from([16, 32]),
        rounding=st.sampled_from(["strict", "expiring"]),
        policy=st.sampled_from(["plain", "conservative"]),
        storage=st.sampled_from(["basic", "optimized"]),
    )
    def start(
        self,
        size: dict[str, Any],
        decay: float,
        counter_bits: int,
        rounding: Any,
        policy: Any,
        storage: Any,
    ) -> None:
        self.clock = 2_000_000.0

        def pair() -> tuple[TimeDecayingBloomFilter, ReferenceTimeDecayingBloomFilter]:
            core = TimeDecayingBloomFilter(
                **size,
                decay=decay,
                epoch=EPOCH,
                origin=ORIGIN,
                max_jump=math.inf,
                counter_bits=counter_bits,
                rounding=rounding,
                policy=policy,
                clock=lambda: self.clock,
                storage=storage,
            )
            model = ReferenceTimeDecayingBloomFilter(
                core.positions,
                core.stats().cells,
                core.hashes,
                decay=decay,
                counter_bits=counter_bits,
                rounding=rounding,
                policy=policy,
            )
            return core, model

        self.core, self.model = pair()
        self.other, self.other_model = pair()
        self.late = 0

    def same(self, core: Callable[[], Any], model: Callable[[], Any]) -> None:
        """Both do the same."""
        expected, found = model(), core()
        assert (found.tolist() if hasattr(found, "tolist") else found) == expected

    @staticmethod
    def epoch(seconds: float) -> int:
        return math.floor((seconds - ORIGIN) / EPOCH)

    def moment(self, step: int) -> float:
        """An instant that far from the filter's own time."""
        from_now = (self.clock if self.core.time is None else self.core.time) + step
        return max(0.0, min(from_now, self.clock + 86_000))

    @rule(key=keys)
    def add_by_the_clock(self, key: Any) -> None:
        behind = self.model.now is not None and self.epoch(self.clock) < self.model.now
        epoch = None if behind else self.epoch(self.clock)
        self.same(lambda: self.core.add(key), lambda: self.model.add(key, 1, epoch))

    @rule(key=keys, count=COUNTS, step=STEPS)
    def add(self, key: Any, count: int, step: int) -> None:
        at = self.moment(step)
        epoch = self.epoch(at)
        self.same(
            lambda: self.core.add(key, count, at=at), lambda: self.model.add(key, count, epoch)
        )

    @rule(batch=batches, step=STEPS, data=st.data())
    def add_many(self, batch: list[Any], step: int, data: st.DataObject) -> None:
        several = st.lists(STEPS, min_size=len(batch), max_size=len(batch))
        at = [self.moment(step) for step in data.draw(several)]
        counts = [1 + row % 4 for row in range(len(batch))]
        epochs = [self.epoch(moment) for moment in at]
        self.same(
            lambda: self.core.add_many(batch, counts, at),
            lambda: self.model.add_many(batch, counts, epochs),
        )

    @rule(batch=batches, step=STEPS)
    def add_many_at_once(self, batch: list[Any], step: int) -> None:
        at = self.moment(step)
        epochs = [self.epoch(at)] * len(batch)
        self.same(
            lambda: self.core.add_many(batch, at=at),
            lambda: self.model.add_many(batch, epochs=epochs),
        )

    @rule(key=keys, step=st.sampled_from([0, 7, 100, 10**6]))
    def count(self, key: Any, step: int) -> None:
        at = self.moment(0) + step
        epoch = self.epoch(at)
        value = self.model.count(key, epoch)
        assert self.core.count(key, at) == value
        assert self.core.contains_many([key], at).tolist() == [value > 0]
        estimate = self.core.estimate(key, at=at)
        assert (estimate.value, estimate.lower <= value) == (value, True)
        full = {cell // 128 for cell in self.model.positions(key)} & self.model.full
        assert estimate.saturated == bool(full)
        if self.model.decay < 1:
            rate = self.model.rate(key, epoch)
            assert self.core.rate(key, EPOCH, at) == pytest.approx(rate)

    @rule(batch=batches, threads=threads, step=st.sampled_from([0, 7, 100]))
    def count_many(self, batch: list[Any], threads: int, step: int) -> None:
        at = [self.moment(0) + step + row for row in range(len(batch))]
        counts = self.core.count_many(batch, at, threads=threads)
        expected = [self.model.count(k, self.epoch(t)) for k, t in zip(batch, at, strict=True)]
        assert counts.tolist() == expected

    @rule(step=st.integers(-5000, 5000) | st.just(10**7))
    def set_the_clock(self, step: int) -> None:
        self.clock = max(0.0, self.clock + step)

    @rule(step=STEPS)
    def advance(self, step: int) -> None:
        at = self.moment(step)
        self.core.advance(at)
        self.model.advance(self.epoch(at))

    @precondition(lambda self: self.model.now is not None)
    @rule(key=keys, back=st.integers(1, 10**4))
    def what_is_past_is_not_answered(self, key: Any, back: int) -> None:
        assert self.core.time is not None
        with pytest.raises(ParameterError) as caught:
            self.core.count(key, self.core.time - back)
        assert caught.value.name == "at"

    @rule()
    def swap(self) -> None:
        self.core, self.other = self.other, self.core
        self.model, self.other_model = self.other_model, self.model

    @rule(in_place=st.booleans())
    def merge(self, in_place: bool) -> None:
        self.model.merge(self.other_model)
        self.model.late += self.other_model.late
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
                data = self.core.to_bytes()
                self.core = TimeDecayingBloomFilter.from_bytes(data, clock=lambda: self.clock)
            case _:
                data = pickle.loads(pickle.dumps(self.core)).to_bytes()
                self.core = TimeDecayingBloomFilter.from_bytes(data, clock=lambda: self.clock)

    @invariant()
    def cells_are_those_of_the_model(self) -> None:
        self.core.validate()
        for core, model in ((self.core, self.model), (self.other, self.other_model)):
            later = (model.now or 0) * EPOCH + ORIGIN
            assert core.cells(at=later).tolist() == model.cells()
            now = None if model.now is None else later
            assert core.time == now

    @invariant()
    def stats_are_those_of_the_model(self) -> None:
        stats = self.core.stats(at=self.clock if self.core.time is None else self.core.time)
        assert stats.saturated == len(self.model.full)
        assert stats.late == self.model.late


TestDecayingMachine = DecayingMachine.TestCase
TestDecayingMachine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
