"""The spectral Bloom filter's own invariants, on its model: fields, slack, saturation, marking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import ceil, log2
from typing import Any

import pytest

from bloomtide.reference import (
    ReferencePartitionedSpectralBloomFilter,
    ReferenceSpectralBloomFilter,
)
from bloomtide.reference.policies import Positions, distinct
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


# --- recurring minimum ---------------------------------------------------------------------------


class LiteralRecurringMinimum:
    """As published: the second filter itself is asked whether a key is already in it."""

    def __init__(self, positions: Positions, cells: int, second: tuple[Positions, int]) -> None:
        self.positions, self.primary = positions, [0] * cells
        self.second_positions, self.secondary = second[0], [0] * second[1]

    def add(self, key: int) -> None:
        cells = distinct(self.positions(key))
        for cell in cells:
            self.primary[cell] += 1
        if not self.recurs(key):
            others = distinct(self.second_positions(key))
            known = min(self.secondary[cell] for cell in others) > 0
            lowest = min(self.primary[cell] for cell in cells)
            for cell in others:
                self.secondary[cell] += 1 if known else lowest

    def recurs(self, key: int) -> bool:
        values = [self.primary[cell] for cell in distinct(self.positions(key))]
        return values.count(min(values)) > 1

    def count(self, key: int) -> int:
        first = min(self.primary[cell] for cell in self.positions(key))
        second = min(self.secondary[cell] for cell in self.second_positions(key))
        return first if self.recurs(key) or second == 0 else second


Make = Callable[[], Any]


def second_filter() -> tuple[Callable[[int], Sequence[int]], int]:
    return spread(CELLS // 2, HASHES, salt=1), CELLS // 2


def exact() -> ReferenceSpectralBloomFilter:
    return ReferenceSpectralBloomFilter(
        spread(CELLS, HASHES), CELLS, HASHES, policy="recurring_minimum", second=second_filter()
    )


def in_pieces() -> ReferencePartitionedSpectralBloomFilter:
    return ReferencePartitionedSpectralBloomFilter(
        spread(CELLS, HASHES),
        CELLS,
        HASHES,
        partitions=7,
        policy="recurring_minimum",
        second=second_filter(),
    )


def literal() -> LiteralRecurringMinimum:
    return LiteralRecurringMinimum(spread(CELLS, HASHES), CELLS, second_filter())


def undercounted(make: Make, seed: int) -> int:
    """Keys whose count is too small after a stream of single adds."""
    filled, truth = make(), Counter[int]()
    for verb, key, _ in mixed(1_200, KEYS, seed):
        if verb == "add":
            filled.add(key)
            truth[key] += 1
    return sum(filled.count(key) < count for key, count in truth.items())


def test_the_literal_recurring_minimum_undercounts_and_the_exact_marker_never_does() -> None:
    assert sum(undercounted(literal, seed) for seed in range(10)) > 0
    assert sum(undercounted(exact, seed) for seed in range(10)) == 0


@pytest.mark.parametrize("make", [exact, in_pieces])
def test_recurring_minimum_never_undercounts_when_keys_are_removed_too(make: Make) -> None:
    filled, truth = make(), Counter[int]()
    for verb, key, count in mixed(2_500, KEYS, seed=5):
        getattr(filled, verb)(key, count)
        truth[key] += count if verb == "add" else -count
        assert filled.count(key) >= truth[key]
    assert filled.recurring.marked
    assert all(filled.count(key) >= count for key, count in truth.items())


def test_the_second_filter_brings_answers_closer_to_the_truth() -> None:
    plain = ReferenceSpectralBloomFilter(spread(CELLS, HASHES), CELLS, HASHES)
    better, truth = exact(), Counter[int]()
    for verb, key, count in mixed(2_500, KEYS, seed=6):
        if verb == "add":
            plain.add(key, count)
            better.add(key, count)
            truth[key] += count
    error = {m: sum(m.count(k) - n for k, n in truth.items()) for m in (plain, better)}
    assert 0 < error[better] < error[plain]


def test_what_is_removed_leaves_both_filters() -> None:
    filled = exact()
    filled.positions = lambda key: [key]  # one cell: its minimum never recurs
    filled.add(3, 50)
    filled.add(3, 7)
    filled.remove(3, 57)
    assert filled.recurring is not None
    assert filled.recurring.marked == {3}
    assert sum(filled.cells) == 0
    assert all(filled.recurring.store[cell] == 0 for cell in range(CELLS // 2))


def test_a_refused_removal_changes_neither_filter() -> None:
    filled = exact()
    for verb, key, count in mixed(600, KEYS, seed=7):
        getattr(filled, verb)(key, count)
    assert filled.recurring is not None
    second = filled.recurring.store
    before = filled.cells, [second[cell] for cell in range(len(second))]
    for key in range(KEYS):
        with pytest.raises(KeyError):
            filled.remove(key, 10**9)
    assert before == (filled.cells, [second[cell] for cell in range(len(second))])


def test_merging_drops_the_second_filter_and_keeps_the_bound() -> None:
    filled, other, truth = exact(), exact(), Counter[int]()
    for step, (verb, key, count) in enumerate(mixed(1_000, KEYS, seed=9)):
        if verb == "add":
            (filled if step % 2 else other).add(key, count)
            truth[key] += count
    filled.merge(other)
    assert all(filled.count(key) >= count for key, count in truth.items())
    for key in range(KEYS):
        filled.add(key, 3)
        truth[key] += 3
    assert filled.recurring is not None
    assert filled.recurring.marked, "keys are marked anew"
    assert all(filled.count(key) >= count for key, count in truth.items())


def test_text_and_its_bytes_are_one_marked_key() -> None:
    filled = ReferenceSpectralBloomFilter(
        lambda _: [0], 4, 1, policy="recurring_minimum", second=(lambda _: [1], 2)
    )
    filled.add("ключ", 3)
    filled.add(bytearray("ключ".encode()), 2)
    assert filled.recurring is not None
    assert filled.recurring.marked == {"ключ".encode()}
    assert filled.recurring.store[1] == 5
