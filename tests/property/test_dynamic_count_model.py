"""The dynamic count filter's own invariants, on its model: the level table and the width of OFV."""

from __future__ import annotations

import pytest

from bloomtide.reference import ReferenceDynamicCountFilter
from bloomtide.reference.dynamic_count import DynamicCells
from bloomtide.reference.policies import LIMIT
from tests.property.streams import mixed, spread

SHRINKS = (0.0, 0.3, 0.5, 1.0)


def recount(store: DynamicCells) -> dict[int, dict[str, int]]:
    """The level table by its definition, from nothing but the values."""
    table = {level: {"below": 0, "above": 0} for level in range(store.y + 1)}
    for cell in range(len(store)):
        value, level = store[cell], 0
        while value >= 2 ** (store.x + level):
            level += 1
        bound = 2 ** (store.x + level - 1) * (1 + store.shrink)
        if level == 0:
            bound = store.shrink * (2**store.x - 1)
        table[level]["above" if value >= bound else "below"] += 1
    return table


def test_1026_in_counters_of_8_bits_is_an_overflow_of_4_and_a_rest_of_2() -> None:
    store = DynamicCells(3, counter_bits=8, shrink=0.5)
    for step in range(1, 1027):
        store[1] = step
    assert (store.ofv, store.cbfv) == ([0, 4, 0], [0, 2, 0])
    assert store.y == 3
    assert store[1] == 1026
    assert store.rebuilds == 3, "one for each bit, at 256, 512 and 1024"
    assert store.bits == 3 * (8 + 3)


@pytest.mark.parametrize("shrink", SHRINKS)
@pytest.mark.parametrize("counter_bits", [1, 2, 5])
def test_the_level_table_equals_a_recount_and_the_width_is_at_most_one_bit_too_large(
    counter_bits: int, shrink: float
) -> None:
    filled = ReferenceDynamicCountFilter(
        spread(30, 3), 30, 3, counter_bits=counter_bits, shrink=shrink
    )
    store, widths = filled.store, set()
    for verb, key, count in mixed(3_000, 30, seed=counter_bits):
        getattr(filled, verb)(key, count)
        assert store.levels == recount(store)
        needed = max(store.ofv).bit_length()
        assert needed <= store.y <= needed + 1
        widths.add(store.y - needed)
    assert filled.rebuilds > 10
    # With 1 the reserve is given up at once, except at the foot: T_0 is one below the overflow.
    assert widths == {0, 1} or shrink == 1.0


@pytest.mark.parametrize(("shrink", "rebuilds"), [(1.0, 2_000), (0.5, 0), (0.0, 0)])
def test_a_counter_that_swings_across_a_power_of_two_rebuilds_every_time_without_hysteresis(
    shrink: float, rebuilds: int
) -> None:
    store = DynamicCells(50, counter_bits=2, shrink=shrink)
    store[0] = 16
    before = store.rebuilds
    for _ in range(1_000):
        store[0] = 15
        store[0] = 16
    assert store.rebuilds - before == rebuilds


@pytest.mark.parametrize("shrink", SHRINKS)
def test_a_shrink_and_the_next_growth_are_far_apart(shrink: float) -> None:
    """At least (1 - s) 2^(x+y-2) increments, where y is the width before the shrink."""
    x = 3
    store = DynamicCells(1, counter_bits=x, shrink=shrink)
    store[0] = 1_000
    while store[0]:
        wide = store.y
        store[0] -= 1
        if store.y < wide and wide > 1:
            first_that_grows = 2 ** (x + store.y)
            assert first_that_grows - store[0] >= (1 - shrink) * 2 ** (x + wide - 2)
    assert store.y == (1 if shrink == 0.0 else 0), "without T_0 the last bit is never given up"


def test_a_large_removal_gives_several_bits_back_in_one_rebuild() -> None:
    store = DynamicCells(2, counter_bits=4, shrink=0.5)
    store[0] = 2**20
    before = store.rebuilds
    store[0] = 1
    assert store.y == 0
    assert store.rebuilds - before == 1


def test_a_counter_that_reaches_64_bits_is_stuck() -> None:
    filled = ReferenceDynamicCountFilter(lambda _: [0, 1], 2, 2, counter_bits=8)
    filled.add("a", LIMIT - 1)
    assert filled.saturated == 0
    filled.add("a", 5)
    assert filled.cells == [LIMIT, LIMIT]
    assert filled.store.y == 56
    assert filled.saturated == 2
    filled.remove("a", 7)
    assert filled.cells == [LIMIT, LIMIT]
