"""The spectral Bloom filter's own invariants, on its model: fields, slack, saturation, marking."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise
from math import ceil, log2

import pytest

from bloomtide.reference import (
    ReferencePartitionedSpectralBloomFilter,
    ReferenceSpectralBloomFilter,
)
from bloomtide.reference.spectral import SpectralCells
from tests.property.streams import mixed, spread

CELLS, HASHES, KEYS = 60, 3, 25


def fields_hold_their_values(store: SpectralCells) -> bool:
    pairs = zip(store.widths, store.values, strict=True)
    return all(field >= max(1, len(f"{value:b}")) for field, value in pairs)


def test_the_example_of_the_essay() -> None:
    store = SpectralCells(5, 9, 0.0, "saturate")
    store.values, store.widths = [7, 1, 0, 2, 1], [3, 2, 1, 2, 1]
    store[0] = 8
    assert store.values == [8, 1, 0, 2, 1]
    assert store.widths == [4, 1, 1, 2, 1]
    assert store.moved == 2, "l - j + 1 counters for a spare bit on the right"


def test_the_spare_bit_on_the_left_is_taken_before_one_as_near_on_the_right() -> None:
    store = SpectralCells(3, 5, 0.0, "saturate")
    store.values, store.widths = [0, 1, 0], [2, 1, 2]
    store[1] = 2
    assert store.widths == [1, 2, 2]
    assert store.moved == 1, "j - l counters for a spare bit on the left"


def test_widths_add_up_to_the_base_array_for_ever_when_it_saturates() -> None:
    filled = ReferenceSpectralBloomFilter(
        spread(CELLS, HASHES), CELLS, HASHES, base_bits=150, slack=0.1, on_full="saturate"
    )
    for verb, key, count in mixed(1_500, KEYS, seed=1):
        getattr(filled, verb)(key, count)
        assert sum(filled.store.widths) == 150 + 6
        assert fields_hold_their_values(filled.store)
    assert filled.saturated > 0, "the stream was too short to fill it"


def test_growth_lays_out_what_the_values_need_and_fresh_slack() -> None:
    store = SpectralCells(10, 10, 0.2, "grow")
    assert sum(store.widths) == 12
    store[3] = 2**9  # needs nine bits more, two are there
    assert sum(store.widths) == 9 + 10 + 2
    assert store.rebuilds == 2 + 1
    for value in range(1, 200):
        store[value % 10] = value * value
        assert fields_hold_their_values(store)


def test_slack_is_spread_evenly() -> None:
    store = SpectralCells(100, 125, 0.0, "grow")
    spare = [cell for cell, field in enumerate(store.widths) if field == 2]
    assert {b - a for a, b in pairwise(spare)} == {4}
    assert len(spare) == 25


@pytest.mark.parametrize("cells", [1, 2, 7, 300])
def test_the_index_finds_every_field_with_offsets_of_their_own_width(cells: int) -> None:
    store = SpectralCells(cells, cells, 0.5, "grow")
    for cell in range(cells):
        store[cell] = cell * cell % 1_009
    group, _, _, cv2, ov = store.index()
    bits = 3 * ceil(log2(log2(max(4, sum(store.widths)))))
    starts = [0, *accumulate(store.widths)]
    assert [store.locate(cell) for cell in range(cells)] == starts[:-1]
    assert max(cv2 + ov) < 2**bits
    assert 64 * group <= 2**bits or cells < 300, "the widest fields would fit as well"


def test_a_stuck_counter_stays_and_answers_that_lean_on_it_are_flagged() -> None:
    filled = ReferenceSpectralBloomFilter(
        lambda key: [key, key + 1], 4, 2, base_bits=7, slack=0.0, on_full="saturate"
    )
    filled.add(0, 100)  # takes three spare bits for its first cell, none are left for the second
    assert filled.store.stuck == {0, 1}
    assert filled.cells == [15, 1, 0, 0]
    assert filled.undercount_possible(0)
    filled.add(2, 1)
    assert filled.count(1) == 1
    assert not filled.undercount_possible(1), "the live counter beside the stuck one is as small"
    filled.remove(0, 100)
    assert filled.cells == [15, 1, 1, 1], "nobody knows how much a stuck counter stands for"


@pytest.mark.parametrize("change", ["merge", "repartition", "split"])
def test_a_counter_stays_stuck_when_it_moves_to_another_array(change: str) -> None:
    def new() -> ReferencePartitionedSpectralBloomFilter:
        return ReferencePartitionedSpectralBloomFilter(
            lambda key: [key], 6, 1, partitions=2, base_bits=12, slack=0.0, on_full="saturate"
        )

    filled, other = new(), new()
    filled.add(1, 100)
    filled.add(4, 1)
    assert filled.cells == [0, 15, 0, 0, 1, 0]
    match change:
        case "merge":
            other.merge(filled)
            filled = other
        case "repartition":
            filled.repartition(1)
        case _:
            filled.store.split(0, 1)
    assert filled.cells == [0, 15, 0, 0, 1, 0]
    assert filled.undercount_possible(1)
    assert not filled.undercount_possible(4)
    filled.add(1)
    assert filled.count(1) == 15


def test_every_undercount_is_flagged() -> None:
    filled = ReferenceSpectralBloomFilter(
        spread(CELLS, HASHES), CELLS, HASHES, base_bits=200, on_full="saturate"
    )
    truth = Counter[int]()
    for verb, key, count in mixed(1_500, KEYS, seed=2):
        getattr(filled, verb)(key, count)
        truth[key] += count if verb == "add" else -count
        assert filled.undercount_possible(key) or filled.count(key) >= truth[key]
    assert any(filled.count(key) < count for key, count in truth.items())
    assert not all(filled.undercount_possible(key) for key in truth)


def test_pieces_saturate_before_the_whole_does() -> None:
    """Slack is not shared between partitions."""

    def first_stuck(partitions: int) -> int:
        filled = ReferencePartitionedSpectralBloomFilter(
            spread(CELLS, HASHES),
            CELLS,
            HASHES,
            partitions=partitions,
            base_bits=180,
            on_full="saturate",
        )
        added = 0
        while not filled.saturated:
            filled.add(added * 7 % KEYS)
            added += 1
        return added

    assert first_stuck(1) > first_stuck(6) > first_stuck(30)
