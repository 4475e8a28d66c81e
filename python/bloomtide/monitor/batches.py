"""Batches cut into parts: each part is one record of the ledger, and a record stays small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

ROWS = 65_536
"""Rows of a part."""


def in_parts(keys: Any, counts: Any, at: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Keys, counts and instants of each part; what is one value for all rows stays that."""
    try:
        rows = len(keys)
    except TypeError:
        if hasattr(keys, "__arrow_c_stream__") or _is_column(counts) or _is_column(at):
            yield keys, counts, at  # compared and counted as a whole
            return
        source = iter(keys)
        while part := list(islice(source, ROWS)):
            yield part, counts, at
        return
    if rows <= ROWS or not (hasattr(keys, "slice") or hasattr(keys, "__getitem__")):
        yield keys, counts, at
        return
    for first in range(0, rows, ROWS):
        yield tuple(_cut(column, first) for column in (keys, counts, at))


def _cut(column: Any, first: int) -> Any:
    if not _is_column(column):
        return column
    # Arrow and Polars cut columns and tables by `slice`; lists, NumPy and pandas by brackets.
    cut = getattr(column, "slice", None)
    return cut(first, ROWS) if callable(cut) else column[first : first + ROWS]


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)
