"""`cost`: how long a count takes by the number of rows that it sums.

The paper: O(k1 + l k2), since each row is an array of its own. With the cells of a column together
the rows of a key are next to each other. The first two ways are the same cells with NumPy in both
orders; the third is our segment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np
import numpy.typing as npt

from bloomtide.reference.history import Sizes
from spans.arrays import MATRIX, Numbers, Segment, positions
from spans.formulas import SEED, windows
from spans.sizes import sealed
from trials.outcome import Claim, Outcome, Row

Cells = npt.NDArray[np.uint8]
Count = Callable[[int, int], int]
"""Of the key with this number, over so many rows."""


def cost(n2: int, rows: tuple[int, ...], asked: int) -> Outcome:
    """All ways with the same keys."""
    most = rows[-1]
    planned = Sizes(n2, most, 0.01, 0.01)
    streams = list(windows("fresh", planned, SEED))
    theirs = Segment(planned)
    for keys in streams:
        theirs.add_row(keys)
    by_row: Cells = np.stack([row.astype(np.uint8) for row in theirs.rows])
    by_column: Cells = np.ascontiguousarray(by_row.T)
    segment = sealed(streams, 0.01)
    random = np.random.default_rng(SEED)
    chosen: Numbers = random.permutation(np.concatenate(streams))[:asked]
    places = positions(chosen, planned.m2, planned.k2, MATRIX)
    numbers = chosen.tolist()

    def with_rows(key: int, count: int) -> int:
        return int(by_row[:count, places[key]].min(axis=1).sum())

    def with_columns(key: int, count: int) -> int:
        return int(by_column[places[key], :count].min(axis=0).sum())

    def ours(key: int, count: int) -> int:
        return int(segment.count(numbers[key], 0, count))

    ways: dict[str, Count] = {
        "rows apart": with_rows, "columns together": with_columns, "History": ours,
    }  # fmt: skip
    table: list[Row] = [
        {"way": name, "rows": count, "query_us": _time(way, asked, count) * 1e6}
        for name, way in ways.items()
        for count in rows
    ]
    of = {(row["way"], row["rows"]): row["query_us"] for row in table}
    # What a call costs by itself is most of the time for a few rows: the slope is at the end.
    before = rows[-2]
    growth = {way: of[way, most] / of[way, before] for way in ways}
    told = ", ".join(f"{way} {times:.1f}x" for way, times in growth.items())
    linear = growth["rows apart"] > 0.5 * most / before
    claims = [
        Claim(
            f"time over {most} rows, of that over {before}: linear where rows lie apart",
            f"{most / before:.0f}x",
            told,
            linear,
        ),
        Claim(
            f"{most} rows: ours over rows that lie apart",
            "",
            f"{of['rows apart', most] / of['History', most]:.0f}x faster",
            of["History", most] < of["rows apart", most],
        ),
    ]
    return Outcome(table, claims)


def _time(way: Count, asked: int, rows: int) -> float:
    """Seconds of one count, the median; the cells are too many for the caches."""
    took = []
    for key in range(asked):
        start = time.perf_counter()
        way(key, rows)
        took.append(time.perf_counter() - start)
    return median(took)
