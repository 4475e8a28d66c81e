"""The rows that an INSERT .. RETURNING gives back, read before the program reads them.

If a program asks for rows itself, SQLAlchemy tells nobody else the keys that the database made. So
the rows are fetched here, and put where the program's own reading finds them, as SQLAlchemy does
for rows that it has to fetch early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Column
from sqlalchemy.engine.cursor import CursorFetchStrategy, FullyBufferedCursorFetchStrategy

_STREAMS = ("yield_per", "stream_results")


def returned_rows(
    result: Any,
    columns: Sequence[Column[Any]],
    kinds: Sequence[Any],
    is_ours: Callable[[Any], bool],
) -> list[list[Any]] | None:
    """The values of the columns, in each row; None if the rows do not have them all.

    `kinds` are the types as which they are read.
    """
    context = result.context
    if type(result.cursor_strategy) is not CursorFetchStrategy:
        return None  # no rows at all, or not for the program
    if any(context.execution_options.get(name) for name in _STREAMS):
        return None
    places = [_place(context.compiled._result_columns, column, is_ours) for column in columns]
    if None in places:
        return None
    rows = result.cursor.fetchall()
    result.cursor_strategy = FullyBufferedCursorFetchStrategy(result.cursor, initial_buffer=rows)
    found = []
    for place, kind in zip(places, kinds, strict=True):
        read = kind.dialect_impl(context.dialect).result_processor(context.dialect, None)
        found.append([row[place] if read is None else read(row[place]) for row in rows])
    return [list(values) for values in zip(*found, strict=True)]


def _place(entries: Sequence[Any], column: Column[Any], is_ours: Callable[[Any], bool]) -> Any:
    """Which of the columns that come back it is."""
    for place, entry in enumerate(entries):
        for each in entry.objects:
            if isinstance(each, Column) and each.name == column.name and is_ours(each.table):
                return place
    return None
