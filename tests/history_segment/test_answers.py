"""A sealed segment against the exact counts it was made of."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomtide._core import Digests, HistorySegment, history_formulas, history_paper_sizes
from tests.statistical.binomial import interval

ROWS = 12
Policy = Literal["largest", "plain"]
POLICIES: tuple[Policy, ...] = ("largest", "plain")
events = st.lists(
    st.tuples(
        st.one_of(st.integers(-20, 20), st.text(max_size=3)),
        st.integers(0, ROWS - 1),
        st.one_of(st.just(1), st.integers(1, 2**40)),
    ),
    max_size=60,
)


def segment_of(
    pairs: dict[tuple[int | str, int], int],
    *,
    rows: int = ROWS,
    policy: Policy = "largest",
    error_rate: float = 0.05,
    gate_error: float | None = None,
    sizes: dict[str, int] | None = None,
    seed: int = 0,
) -> HistorySegment:
    """The segment of so many of each key in each row."""
    data = HistorySegment.build(
        [key for key, _ in pairs],
        [row for _, row in pairs],
        list(pairs.values()),
        row_count=rows,
        window=60_000_000,
        policy=policy,
        error_rate=error_rate,
        gate_error=gate_error,
        sizes=sizes,
        seed=seed,
    )
    segment = HistorySegment.from_bytes(data)
    segment.validate()
    return segment


def fresh_keys(per_row: int, rows: int, *, first: int = 0) -> dict[tuple[int | str, int], int]:
    """Every row has keys of its own, each once."""
    return {(first + row * per_row + i, row): 1 for row in range(rows) for i in range(per_row)}


@given(events, st.sampled_from(POLICIES), st.integers(0, ROWS), st.integers(0, ROWS + 3))
def test_no_range_is_counted_below_the_truth(
    came: list[tuple[int | str, int, int]], policy: Policy, first: int, last: int
) -> None:
    truth: Counter[tuple[int | str, int]] = Counter()
    for key, row, count in came:
        truth[key, row] += count
    segment = segment_of(truth, policy=policy, error_rate=0.5)
    for key in {key for key, _ in truth}:
        assert segment.contains(key)
        exact = sum(truth[key, row] for row in range(first, min(last, ROWS)))
        assert segment.count(key, first, last) >= exact
        by_row = segment.rows_of(key)
        assert segment.count(key, first, last) == by_row[first:last].sum()


def test_answers_are_the_least_of_the_keys_cells_to_the_letter() -> None:
    rng = np.random.default_rng(3)
    pairs: dict[tuple[int | str, int], int] = {
        (int(rng.integers(400)), int(rng.integers(ROWS))): int(rng.integers(1, 50))
        for _ in range(900)
    }
    sizes = history_paper_sizes(60, ROWS, gate_error=0.1, row_error=0.2)
    for policy in POLICIES:
        segment = segment_of(pairs, policy=policy, sizes=sizes)
        cells: defaultdict[tuple[int, int], int] = defaultdict(int)
        gate: set[int] = set()
        for (key, row), count in pairs.items():
            bits, columns = segment.positions(key)
            gate.update(bits)
            for column in columns:
                held = cells[column, row]
                cells[column, row] = max(held, count) if policy == "largest" else held + count
        for key in range(1000):
            bits, columns = segment.positions(key)
            assert segment.contains(key) == gate.issuperset(bits)
            for row, count in enumerate(segment.rows_of(key)):
                least = min(cells[column, row] for column in columns)
                assert count == (least if gate.issuperset(bits) else 0)


def test_the_largest_count_never_answers_more_than_the_sum() -> None:
    rng = np.random.default_rng(4)
    pairs: dict[tuple[int | str, int], int] = {
        (int(rng.integers(300)), int(rng.integers(ROWS))): int(rng.integers(1, 9))
        for _ in range(2000)
    }
    sizes = history_paper_sizes(100, ROWS, row_error=0.3)
    largest = segment_of(pairs, policy="largest", sizes=sizes)
    plain = segment_of(pairs, policy="plain", sizes=sizes)
    keys = np.arange(600, dtype=np.uint64)
    ours, papers = largest.count_many(keys), plain.count_many(keys)
    assert (ours <= papers).all()
    assert (ours < papers).any()


def test_strangers_are_counted_as_often_as_predicted() -> None:
    # Without a gate, so that the matrix alone errs.
    segment = segment_of(fresh_keys(1500, 20), rows=20, error_rate=0.02, gate_error=1.0)
    strangers = np.arange(10**9, 10**9 + 60_000, dtype=np.uint64)
    wrong = int((segment.count_many(strangers) > 0).sum())
    low, high = interval(len(strangers), segment.info.predicted_error)
    assert low <= wrong <= high
    assert segment.info.predicted_error <= 0.02 * 1.03


def test_too_few_columns_would_be_noticed() -> None:
    right = segment_of(fresh_keys(1500, 20), rows=20, error_rate=0.02, gate_error=1.0).info
    sizes = {"gate_hashes": 1, "gate_bits": 64, "hashes": right.hashes}
    small = segment_of(
        fresh_keys(1500, 20), rows=20, sizes={**sizes, "columns": right.columns * 9 // 10}
    )
    strangers = np.arange(10**9, 10**9 + 60_000, dtype=np.uint64)
    wrong = int((small.count_many(strangers) > 0).sum())
    assert wrong > interval(len(strangers), 0.02)[1]


def test_gate_and_matrix_err_independently_of_each_other() -> None:
    sizes = history_paper_sizes(1000, 10, gate_error=0.25, row_error=0.05)
    segment = segment_of(fresh_keys(1000, 10), rows=10, policy="plain", sizes=sizes)
    info = segment.info
    strangers = np.arange(10**9, 10**9 + 60_000, dtype=np.uint64)
    wrong = int((segment.count_many(strangers) > 0).sum())
    low, high = interval(len(strangers), info.predicted_gate_error * info.predicted_error)
    assert low <= wrong <= high


@pytest.mark.parametrize("recurring", [False, True])
def test_the_papers_formula_holds_for_fresh_keys_and_bounds_recurring_ones(
    *, recurring: bool
) -> None:
    per_row, rows = 2000, 10
    sizes = history_paper_sizes(per_row, rows)
    pairs: dict[tuple[int | str, int], int] = fresh_keys(per_row, rows)
    if recurring:
        pairs = {(i, row): 1 for row in range(rows) for i in range(per_row)}
    segment = segment_of(pairs, rows=rows, policy="plain", sizes=sizes)
    keys = np.array([key for key, row in pairs if row == 0], dtype=np.uint64)
    exact = rows if recurring else 1
    wrong = int((segment.count_many(keys) != exact).sum())
    formulas = history_formulas(elements=len(pairs), row_elements=per_row, rows=rows, **sizes)
    p = formulas["p_cbf"] if recurring else formulas["p_ff"]
    low, high = interval(len(keys), p)
    assert low <= wrong <= high
    assert p <= formulas["p_ff"]


def test_many_keys_are_answered_as_one_by_one() -> None:
    pairs = fresh_keys(50, ROWS)
    segment = segment_of(pairs)
    keys = list(range(0, 900, 7))
    alone = [segment.count(key, 2, 7) for key in keys]
    digests = Digests(keys)
    assert len(digests) == len(keys)
    assert segment.count_many(digests, 2, 7).tolist() == alone
    assert segment.count_many(keys, 2, 7).tolist() == alone
    assert segment.count_many(np.array(keys), 2, 7).dtype == np.uint64
    with_nulls = segment.count_many(Digests([*keys, None], nulls="skip"), 2, 7)
    assert with_nulls.tolist() == [*alone, 0]


def test_what_is_known_of_the_rows_comes_back() -> None:
    segment = segment_of({("a", 0): 3, ("b", 0): 2, ("a", 5): 1})
    records = segment.row_records()
    minute = 60_000_000
    assert records["begin"].tolist() == [row * minute for row in range(ROWS)]
    assert records["end"].tolist() == [(row + 1) * minute for row in range(ROWS)]
    assert records["events"].tolist() == [5, 0, 0, 0, 0, 1, *[0] * 6]
    assert records["windows"].tolist() == [1] * ROWS
    assert segment.names() == ([], 4)
    info = segment.info
    assert (info.rows, info.events, info.keys, info.items) == (ROWS, 6, 2, 3)
    assert info.as_dict()["policy"] == "largest"


def test_rare_keys_need_few_bytes() -> None:
    # Two filters, 1.44 log2(1/e) and 1.44 log2(rows/e) bits a key: 9.6 + 18.1 bits, and a little.
    rng = np.random.default_rng(5)
    keys: npt.NDArray[np.uint64] = np.arange(60_000, dtype=np.uint64)
    data = HistorySegment.build(keys, rng.integers(0, 60, len(keys)).tolist(), row_count=60)
    assert len(data) * 8 / len(keys) < 31


def test_compressions_never_lower_an_answer() -> None:
    rng = np.random.default_rng(6)
    keys = np.arange(500, dtype=np.uint64)

    def half(begin: int) -> HistorySegment:
        data = HistorySegment.build(
            rng.integers(0, 500, 3000).astype(np.uint64),
            rng.integers(0, ROWS, 3000).tolist(),
            rng.integers(1, 20, 3000).tolist(),
            row_count=ROWS,
            begin=begin,
            window=10,
        )
        return HistorySegment.from_bytes(data)

    a, b = half(0), half(120)
    merged = HistorySegment.from_bytes(a.merge_rows(3, max_error=1.0))
    merged.validate()
    assert merged.info.rows == ROWS // 3
    assert merged.row_records()["windows"].tolist() == [3] * (ROWS // 3)
    for row in range(ROWS // 3):
        fine = a.count_many(keys, 3 * row, 3 * row + 3)
        assert (merged.count_many(keys, row, row + 1) >= fine).all()
    joined = HistorySegment.from_bytes(b.join(a, max_error=1.0))
    joined.validate()
    assert (joined.info.begin, joined.info.end) == (0, 240)
    assert (joined.count_many(keys, 0, ROWS) >= a.count_many(keys)).all()
    assert (joined.count_many(keys, ROWS) >= b.count_many(keys)).all()
