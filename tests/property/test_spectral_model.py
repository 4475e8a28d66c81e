"""The spectral Bloom filter's own invariants, on its model: fields, slack, growth."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import ceil, log2

import pytest

from bloomtide.reference import ReferenceSpectralBloomFilter
from bloomtide.reference.spectral import SpectralCells, width
from tests.property.streams import mixed, spread

CELLS, HASHES, KEYS = 60, 3, 25


def fields_hold_their_values(store: SpectralCells) -> bool:
    pairs = zip(store.widths, store.values, strict=True)
    return all(field >= max(1, len(f"{value:b}")) for field, value in pairs)


def test_the_example_of_the_essay() -> None:
    store = SpectralCells(5, 9, 0.0)
    store.values, store.widths = [7, 1, 0, 2, 1], [3, 2, 1, 2, 1]
    store[0] = 8
    assert store.values == [8, 1, 0, 2, 1]
    assert store.widths == [4, 1, 1, 2, 1]
    assert store.moved == 2, "l - j + 1 counters for a spare bit on the right"


def test_the_spare_bit_on_the_left_is_taken_before_one_as_near_on_the_right() -> None:
    store = SpectralCells(3, 5, 0.0)
    store.values, store.widths = [0, 1, 0], [2, 1, 2]
    store[1] = 2
    assert store.widths == [1, 2, 2]
    assert store.moved == 1, "j - l counters for a spare bit on the left"


def test_widths_add_up_to_the_base_array_until_it_is_laid_out_anew() -> None:
    filled = ReferenceSpectralBloomFilter(
        spread(CELLS, HASHES), CELLS, HASHES, base_bits=150, slack=0.1
    )
    laid_out, grown = sum(filled.store.widths), 0
    assert laid_out == 150 + 6
    for verb, key, count in mixed(1_500, KEYS, seed=1):
        getattr(filled, verb)(key, count)
        assert fields_hold_their_values(filled.store)
        if sum(filled.store.widths) != laid_out:
            laid_out, grown = sum(filled.store.widths), grown + 1
            assert laid_out >= sum(map(width, filled.cells))
    assert 0 < grown < 30


def test_growth_lays_out_what_the_values_need_and_fresh_slack() -> None:
    store = SpectralCells(10, 10, 0.2)
    assert sum(store.widths) == 12
    store[3] = 2**9  # needs nine bits more, two are there
    assert sum(store.widths) == 9 + 10 + 2
    assert store.rebuilds == 2 + 1
    for value in range(1, 200):
        store[value % 10] = value * value
        assert fields_hold_their_values(store)


def test_slack_is_spread_evenly() -> None:
    store = SpectralCells(100, 125, 0.0)
    spare = [cell for cell, field in enumerate(store.widths) if field == 2]
    assert {b - a for a, b in pairwise(spare)} == {4}
    assert len(spare) == 25


@pytest.mark.parametrize("cells", [1, 2, 7, 300])
def test_the_index_finds_every_field_with_offsets_of_their_own_width(cells: int) -> None:
    store = SpectralCells(cells, cells, 0.5)
    for cell in range(cells):
        store[cell] = cell * cell % 1_009
    group, _, _, cv2, ov = store.index()
    bits = 3 * ceil(log2(log2(max(4, sum(store.widths)))))
    starts = [0, *accumulate(store.widths)]
    assert [store.locate(cell) for cell in range(cells)] == starts[:-1]
    assert max(cv2 + ov) < 2**bits
    assert 64 * group <= 2**bits or cells < 300, "the widest fields would fit as well"
