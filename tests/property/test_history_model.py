"""The laws of multi-Bloom filters, on their model: against exact counts, and the paper's formulas.

The compiled history keeps the same laws with other cells; `tests/history` holds it against them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.binomial import interval
from bloomtide.reference.history import (
    ReferenceHistory,
    ReferenceMultiBloomFilter,
    Sizes,
    p_cm,
    p_filter,
    p_mbf,
)

Policy = Literal["plain", "largest"]


def drawn(hashes: int, cells: int, salt: str) -> Callable[[Any], list[int]]:
    """Positions of a key that are independent of each other and of another salt's."""
    return lambda key: random.Random(f"{salt}:{key}").choices(range(cells), k=hashes)


def history(policy: Policy, arrivals: int = 4, rows: int = 3) -> ReferenceHistory:
    """So small that keys collide all the time."""
    return ReferenceHistory(
        (drawn(2, 16, "gate"), 16, 2),
        (drawn(2, 12, "matrix"), 12, 2),
        arrivals=arrivals,
        rows=rows,
        policy=policy,
    )


Events = list[tuple[int, int]]
EVENTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=80).map(
    # keys, and the time since the event before: several events may share an instant
    lambda steps: [(key, sum(s for _, s in steps[: i + 1])) for i, (key, _) in enumerate(steps)]
)
POLICY = pytest.mark.parametrize("policy", ["plain", "largest"])


def fed(policy: Policy, events: Events) -> ReferenceHistory:
    made = history(policy)
    for key, at in events:
        made.add(key, at)
    return made


def truth(events: Events, key: int, start: float, end: float) -> int:
    return sum(k == key and start <= at < end for k, at in events)


@POLICY
@settings(max_examples=60, deadline=None)
@given(events=EVENTS, key=st.integers(0, 12), start=st.integers(0, 90), length=st.integers(0, 90))
def test_upper_is_never_below_the_truth_and_inner_never_above_whole_rows(
    policy: Policy, events: Events, key: int, start: int, length: int
) -> None:
    made = fed(policy, events)
    answer = made.count(key, start, start + length)
    assert answer.upper >= truth(events, key, start, start + length)
    assert answer.inner <= answer.estimate <= answer.upper
    assert answer.inner <= made.total(start, start + length)
    if not answer.partial:
        assert answer.inner == answer.upper


@POLICY
@settings(max_examples=40, deadline=None)
@given(events=EVENTS, key=st.integers(0, 12), cut=st.integers(0, 19))
def test_a_range_is_the_sum_of_its_parts_where_they_meet_between_rows(
    policy: Policy, events: Events, key: int, cut: int
) -> None:
    # Each instant once, so that every boundary of rows is one between instants.
    made = fed(policy, [(k, i) for i, (k, _) in enumerate(events)])
    whole = made.count(key, 0, 1000)
    left, right = made.count(key, 0, 4 * cut), made.count(key, 4 * cut, 1000)
    assert (left.partial, right.partial) == (0, 0)
    assert left.upper + right.upper == whole.upper
    assert left.rows + right.rows == whole.rows


@settings(max_examples=40, deadline=None)
@given(events=EVENTS, key=st.integers(0, 12))
def test_the_largest_count_in_a_cell_is_never_worse_than_the_sum(events: Events, key: int) -> None:
    plain, largest = fed("plain", events), fed("largest", events)
    for start in range(0, 60, 7):
        answers = [made.count(key, start, start + 20) for made in (plain, largest)]
        assert answers[0].upper >= answers[1].upper >= truth(events, key, start, start + 20)


@POLICY
@settings(max_examples=40, deadline=None)
@given(events=EVENTS, key=st.integers(0, 12))
def test_neither_compression_lowers_a_count(policy: Policy, events: Events, key: int) -> None:
    made = fed(policy, events)
    before = [made.count(key, start, start + 15).upper for start in range(0, 60, 5)]
    total, rows = made.total(0, 1000), sum(len(mbf.rows) for mbf in made.table)
    for mbf in made.table:
        mbf.merge_rows()
    while len(made.table) > 1:
        made.join(0)
    after = [made.count(key, start, start + 15).upper for start in range(0, 60, 5)]
    assert all(a >= b for a, b in zip(after, before, strict=True))
    assert made.total(0, 1000) == total == len(events)
    assert sum(row.windows for mbf in made.table for row in mbf.rows) == rows


def test_rows_close_after_their_arrivals_and_the_open_one_answers() -> None:
    made = history("plain", arrivals=2, rows=2)
    for at in range(7):
        made.add("a", at)
    assert [[row.events for row in mbf.rows] for mbf in made.table] == [[2, 2], [2, 1]]
    assert [(mbf.first, mbf.last) for mbf in made.table] == [(0, 3), (4, 6)]
    assert made.count("a", 0, 7).upper == 7
    assert made.count("a", 6, 7).upper == 1
    partly = made.count("a", 1, 4)
    assert (partly.upper, partly.inner, partly.rows, partly.partial) == (4, 2, 2, 1)


def test_an_empty_range_and_one_outside_hold_nothing() -> None:
    made = fed("plain", [(1, 5), (1, 6)])
    for start, end in ((5, 5), (7, 100), (-9, 5)):
        assert made.count(1, start, end).upper == 0
        assert made.total(start, end) == 0


def test_the_sizes_are_those_of_section_4() -> None:
    sizes = Sizes(n2=10_000, rows=10, p_cbf=0.01, p_bf=0.01)
    assert (sizes.n1, sizes.k1, sizes.k2) == (100_000, 7, 7)
    assert (sizes.m2, sizes.m1, sizes.d) == (100_989, 1_009_887, 14)
    assert Sizes(n2=16, rows=1, p_cbf=0.5, p_bf=0.5).d == 5  # 16 itself needs five bits
    assert p_filter(sizes.m2, sizes.k2, sizes.n2) == pytest.approx(2**-7, rel=1e-3)


# ---- section 3.3, with the keys of each row its own ("fresh") and with the same in all

SIZES = Sizes(n2=120, rows=6, p_cbf=0.06, p_bf=0.06)
ASKED, TRIALS = 400, 10
ALPHA = 1e-6


def measured(fresh: bool, merged: int = 0) -> tuple[int, int, int]:
    """Of `ASKED * TRIALS` keys each: errors inside, errors outside, and gates passed outside."""
    inside = outside = passed = 0
    for trial in range(TRIALS):
        mbf = ReferenceMultiBloomFilter(
            (drawn(SIZES.k1, SIZES.m1, f"gate {trial}"), SIZES.m1, SIZES.k1),
            (drawn(SIZES.k2, SIZES.m2, f"matrix {trial}"), SIZES.m2, SIZES.k2),
        )
        for row in range(SIZES.rows):
            mbf.open_row()
            for number in range(SIZES.n2):
                mbf.add((trial, row if fresh else 0, number), row)
        for _ in range(merged):
            mbf.merge_rows()
        keys = [(trial, 0, number) for number in range(SIZES.n2)]
        true = 1 if fresh else SIZES.rows
        for key in keys:
            inside += sum(count for _, count in mbf.counts(key, 0, 99)) != true
        for number in range(ASKED):
            key = (trial, -1, number)
            passed += key in mbf.gate
            outside += sum(mbf.in_row(row, key) for row in mbf.rows) > 0
    return inside, outside, passed


def within(found: int, trials: int, rate: float) -> bool:
    """Trials share their filters, so the interval is that of a fourth as many."""
    low, high = interval(trials // 4, rate, ALPHA)
    return low <= found / 4 <= high


def test_fresh_keys_err_as_the_formulas_say() -> None:
    p_cbf = p_filter(SIZES.m2, SIZES.k2, SIZES.n2)
    p_bf = p_filter(SIZES.m1, SIZES.k1, SIZES.n1)
    inside, outside, passed = measured(fresh=True)
    assert within(passed, ASKED * TRIALS, p_bf)
    assert within(outside, ASKED * TRIALS, p_cm(p_cbf, SIZES.rows))
    assert within(inside, SIZES.n2 * TRIALS, p_cm(p_cbf, SIZES.rows))
    assert p_mbf(p_bf, p_cm(p_cbf, SIZES.rows)) < p_bf


def test_recurring_keys_err_together_so_that_the_formula_is_only_a_bound() -> None:
    p_cbf = p_filter(SIZES.m2, SIZES.k2, SIZES.n2)
    _, outside, _ = measured(fresh=False)
    assert within(outside, ASKED * TRIALS, p_cbf)
    assert not within(outside, ASKED * TRIALS, p_cm(p_cbf, SIZES.rows))


def test_merging_rows_of_fresh_keys_raises_the_error_and_of_the_same_keys_does_not() -> None:
    doubled = p_filter(SIZES.m2, SIZES.k2, 2 * SIZES.n2)
    _, outside, _ = measured(fresh=True, merged=1)
    assert within(outside, ASKED * TRIALS, p_cm(doubled, SIZES.rows // 2))
    _, kept, _ = measured(fresh=False, merged=1)
    assert within(kept, ASKED * TRIALS, p_filter(SIZES.m2, SIZES.k2, SIZES.n2))
