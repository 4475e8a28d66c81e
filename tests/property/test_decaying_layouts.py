"""Layouts of the time-decaying filter: optimized equals basic but for memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bloomtide import TimeDecayingBloomFilter
from tests.property.keys import batches, keys
from tests.property.test_decaying_machine import COUNTS, DECAYS, EPOCH, SIZES

START = 2_000_000
STEPS = st.sampled_from([-30, 0, 0, 0, 10, 20, 200])


class LayoutsMachine(RuleBasedStateMachine):
    """The same verbs on a basic and an optimized filter."""

    @initialize(
        size=st.sampled_from(SIZES),
        decay=st.sampled_from(DECAYS),
        counter_bits=st.sampled_from([16, 32]),
        rounding=st.sampled_from(["strict", "expiring"]),
        policy=st.sampled_from(["plain", "conservative"]),
    )
    def start(self, size: dict[str, Any], **options: Any) -> None:
        layouts = ("basic", "optimized")
        make = [
            TimeDecayingBloomFilter(**size, **options, epoch=EPOCH, storage=layout)  # type: ignore[arg-type]
            for layout in layouts
        ]
        self.pair, self.others = make, [made.copy() for made in make]
        self.known: set[Any] = set()

    def moment(self, step: int) -> float:
        return float((START if self.pair[0].time is None else self.pair[0].time) + step)

    def both(self, verb: str, *arguments: Any, **keywords: Any) -> Any:
        basic, optimized = (getattr(made, verb)(*arguments, **keywords) for made in self.pair)
        if isinstance(basic, np.ndarray):
            basic, optimized = basic.tolist(), optimized.tolist()
        assert basic == optimized
        return basic

    @rule(key=keys, count=COUNTS, step=STEPS)
    def add(self, key: Any, count: int, step: int) -> None:
        self.both("add", key, count, at=self.moment(step))
        self.known.add(key if isinstance(key, str | int) else bytes(key))

    @rule(batch=batches, step=STEPS)
    def add_many(self, batch: list[Any], step: int) -> None:
        counts = [1 + row * row for row in range(len(batch))]
        at = [self.moment(step) + row for row in range(len(batch))]
        self.both("add_many", batch, counts, at)

    @rule(step=STEPS)
    def advance(self, step: int) -> None:
        self.both("advance", self.moment(step))

    @rule()
    def merge(self) -> None:
        for made, other in zip(self.pair, self.others, strict=True):
            made.merge(other)

    @rule()
    def swap(self) -> None:
        self.pair, self.others = self.others, self.pair

    @rule()
    def save_and_load(self) -> None:
        self.pair = [TimeDecayingBloomFilter.from_bytes(made.to_bytes()) for made in self.pair]

    @rule()
    def clear(self) -> None:
        self.both("clear")

    @invariant()
    def every_key_and_every_cell_answers_alike(self) -> None:
        for later in (0, 10, 1000):
            at = self.moment(later)
            self.both("cells", at)
            for key in self.known:
                self.both("count", key, at)
                self.both("estimate", key, at=at)
        for made in self.pair:
            made.validate()
        basic, optimized = (made.stats(self.moment(0)) for made in self.pair)
        assert (basic.fill, basic.saturated, basic.late) == (
            optimized.fill,
            optimized.saturated,
            optimized.late,
        )


TestLayoutsMachine = LayoutsMachine.TestCase
TestLayoutsMachine.settings = settings(max_examples=120, stateful_step_count=25, deadline=None)


def traffic(made: Any, epochs: int, keys: int, hits: int) -> Any:
    """Zipf traffic like a web log's, the same for every layout."""
    draw = np.random.default_rng(5)
    weights = 1 / np.arange(1, keys + 1) ** 1.1
    for epoch in range(epochs):
        pages = draw.choice(keys, hits, p=weights / weights.sum())
        made.add_many(pages, at=START + epoch * EPOCH)
    return made


@pytest.mark.parametrize(
    ("counter_bits", "fraction_bits", "most"), [(16, 3, 0.55), (16, 8, 0.8), (32, 8, 0.55)]
)
@pytest.mark.parametrize("decay", [0.1, 0.3, 0.5])
def test_on_zipf_traffic_optimized_takes_about_half_the_memory_or_a_quarter_less(
    decay: float, counter_bits: int, fraction_bits: int, most: float
) -> None:
    options: dict[str, Any] = {
        "decay": decay,
        "epoch": EPOCH,
        "counter_bits": counter_bits,
        "fraction_bits": fraction_bits,
    }
    basic, optimized = (
        traffic(TimeDecayingBloomFilter(20_000, storage=layout, **options), 12, 20_000, 40_000)
        for layout in ("basic", "optimized")
    )
    assert basic.cells(basic.time).tolist() == optimized.cells(basic.time).tolist()
    assert optimized.stats().bytes <= most * basic.stats().bytes


@pytest.mark.parametrize("counter_bits", [16, 32])
@pytest.mark.parametrize("decay", [0.9, 0.99, 1.0])
def test_at_any_decay_and_load_optimized_is_at_most_a_tenth_larger(
    decay: float, counter_bits: int
) -> None:
    options: dict[str, Any] = {"decay": decay, "epoch": EPOCH, "counter_bits": counter_bits}
    basic, optimized = (
        TimeDecayingBloomFilter(2000, storage=layout, **options)
        for layout in ("basic", "optimized")
    )
    draw = np.random.default_rng(6)
    for epoch in range(20):
        batch = draw.integers(0, 30_000, 40_000)  # far more keys than planned for, all alike
        optimized.add_many(batch, [200] * len(batch), at=START + epoch * EPOCH)
        assert optimized.stats(optimized.time).bytes <= 1.1 * basic.stats().bytes


@pytest.mark.parametrize("layout", ["blocked", "classic"])
@pytest.mark.parametrize("counter_bits", [16, 32])
def test_at_most_a_tenth_larger_from_8_kb_on_and_500_bytes_more_below(
    layout: Any, counter_bits: int
) -> None:
    """By what a plan says at most, which full filters of those sizes do not exceed."""
    options: dict[str, Any] = {"layout": layout, "counter_bits": counter_bits, "epoch": EPOCH}
    options["decay"] = 0.5
    larger = 0
    for cells in (*range(8, 600), 1000, 1999, 2001, 4000, 4999, 7777, 20_000):
        basic = TimeDecayingBloomFilter.plan(cells=cells, hashes=4, **options)
        optimized = TimeDecayingBloomFilter.plan(
            cells=cells, hashes=4, storage="optimized", **options
        )
        spare = 500 if layout == "classic" and basic.bytes < 8000 else 0
        assert optimized.bytes_at_most <= 1.1 * basic.bytes + spare, cells
        larger += optimized.bytes_at_most > 1.1 * basic.bytes
        if cells % 97 == 0:
            made = TimeDecayingBloomFilter.from_plan(optimized)
            made.add_many(np.arange(2000), [255 if counter_bits == 16 else 70_000] * 2000, START)
            assert made.stats(made.time).bytes <= optimized.bytes_at_most
    assert (larger > 0) == (layout == "classic")


def test_memory_comes_back_when_the_traffic_ends() -> None:
    made = TimeDecayingBloomFilter(2000, decay=0.5, epoch=EPOCH, storage="optimized")
    empty = made.stats().bytes
    made.add_many(range(20_000), [1000] * 20_000, at=START)
    assert made.stats(made.time).bytes > 2 * empty
    for epoch in range(40, 60):
        made.add_many(range(500), at=START + epoch * EPOCH)
        made.advance(made.time)
    assert made.stats(made.time).bytes < 1.5 * empty
