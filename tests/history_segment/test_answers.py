"""A sealed segment against the exact counts it was made of."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bloomtide._core import Digests, HistoryBuffer, HistorySegment
from tests.statistical.binomial import interval

ROWS = 12
MINUTE = 60_000_000
events = st.lists(
    st.tuples(
        st.one_of(st.integers(-20, 20), st.text(max_size=3)),
        st.integers(0, ROWS - 1),
        st.one_of(st.just(1), st.integers(1, 2**40)),
    ),
    min_size=1,
    max_size=60,
)


def segment_of(
    pairs: dict[tuple[int | str, int], int],
    *,
    rows: int = ROWS,
    error_rate: float = 0.05,
    gate_error: float | None = None,
) -> HistorySegment:
    """The segment of so many of each key in each row."""
    buffer = HistoryBuffer(window=MINUTE, rows=rows, names=0)
    for (key, row), count in pairs.items():
        buffer.add(key, count, row * MINUTE)
    sealed = buffer.seal(0, error_rate=error_rate, gate_error=gate_error)
    segment = HistorySegment.from_bytes(sealed.segment)
    segment.validate()
    return segment


def fresh_keys(per_row: int, rows: int, *, first: int = 0) -> dict[tuple[int | str, int], int]:
    """Every row has keys of its own, each once."""
    return {(first + row * per_row + i, row): 1 for row in range(rows) for i in range(per_row)}


@given(events, st.integers(0, ROWS), st.integers(0, ROWS + 3))
def test_no_range_is_counted_below_the_truth(
    came: list[tuple[int | str, int, int]], first: int, last: int
) -> None:
    truth: Counter[tuple[int | str, int]] = Counter()
    for key, row, count in came:
        truth[key, row] += count
    segment = segment_of(truth, error_rate=0.5)
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
    segment = segment_of(pairs, error_rate=0.5, gate_error=0.5)
    cells: defaultdict[tuple[int, int], int] = defaultdict(int)
    gate: set[int] = set()
    for (key, row), count in pairs.items():
        bits, columns = segment.positions(key)
        gate.update(bits)
        for column in columns:
            cells[column, row] = max(cells[column, row], count)
    wrong = 0
    for key in range(1000):
        bits, columns = segment.positions(key)
        assert segment.contains(key) == gate.issuperset(bits)
        for row, count in enumerate(segment.rows_of(key)):
            least = min(cells[column, row] for column in columns)
            assert count == (least if gate.issuperset(bits) else 0)
            wrong += count != pairs.get((key, row), 0)
    assert wrong > 100


def test_strangers_are_counted_as_often_as_predicted() -> None:
    # Without a gate, so that the matrix alone errs.
    segment = segment_of(fresh_keys(1500, 20), rows=20, error_rate=0.02, gate_error=1.0)
    strangers = np.arange(10**9, 10**9 + 60_000, dtype=np.uint64)
    wrong = int((segment.count_many(strangers) > 0).sum())
    low, high = interval(len(strangers), segment.info.predicted_error)
    assert low <= wrong <= high
    assert segment.info.predicted_error <= 0.02 * 1.03


def test_too_few_columns_would_be_noticed() -> None:
    small = segment_of(fresh_keys(1500, 20), rows=20, error_rate=0.025, gate_error=1.0)
    strangers = np.arange(10**9, 10**9 + 60_000, dtype=np.uint64)
    wrong = int((small.count_many(strangers) > 0).sum())
    assert wrong > interval(len(strangers), 0.02)[1]


def test_gate_and_matrix_err_independently_of_each_other() -> None:
    segment = segment_of(fresh_keys(1000, 10), rows=10, error_rate=0.4, gate_error=0.25)
    info = segment.info
    strangers = np.arange(10**9, 10**9 + 60_000, dtype=np.uint64)
    wrong = int((segment.count_many(strangers) > 0).sum())
    low, high = interval(len(strangers), info.predicted_gate_error * info.predicted_error)
    assert low <= wrong <= high


def test_keys_are_counted_wrongly_as_often_as_predicted() -> None:
    per_row, rows = 2000, 10
    pairs = fresh_keys(per_row, rows)
    segment = segment_of(pairs, rows=rows, error_rate=0.05)
    keys = np.array([key for key, _ in pairs], dtype=np.uint64)
    wrong = int((segment.count_many(keys) != 1).sum())
    # Its own row cannot count a key wrongly here: all counts are one.
    low, high = interval(len(keys), segment.info.predicted_error * (rows - 1) / rows)
    assert low <= wrong <= high


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
    assert info.as_dict()["hashes"] == info.hashes


def test_rare_keys_need_few_bytes() -> None:
    # Two filters, 1.44 log2(1/e) and 1.44 log2(rows/e) bits a key: 9.6 + 18.1 bits, and a little.
    rng = np.random.default_rng(5)
    pairs: dict[tuple[int | str, int], int] = {
        (key, int(rng.integers(60))): 1 for key in range(60_000)
    }
    segment = segment_of(pairs, rows=60, error_rate=0.01)
    assert segment.info.bytes * 8 / len(pairs) < 31
