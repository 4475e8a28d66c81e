"""Columns beside the keys of a batch: instants, counts and changes, in whatever form they come.

The compiled core reads plain numbers and lists of them by itself. Everything else is read here, and
goes back as one number, or as a contiguous NumPy array of 64-bit numbers, checked row by row.

    instant   aware `datetime`, ISO 8601 text with its zone, seconds since 1970
    column    NumPy numbers, an Arrow column of numbers or of timestamps with a zone, a column of
              pandas or Polars of such, any iterable of instants

A date and time without a zone is refused, alone and in a column: which instant it means depends on
where the program runs. NumPy's `datetime64` never has one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bloomtide.errors import ParameterError, refusal

LAST = 253_402_300_799.0
"""The last second of the year 9999, where Python's own dates end."""

_NO_INSTANT = (
    "an instant",
    "give an aware datetime, ISO 8601 text with its zone, or seconds since 1970",
)
_NO_ZONE = (
    "an instant with its time zone",
    'say which zone: tzinfo=timezone.utc, or "Z" at the end of the text',
)
_NO_ZONES = (
    "instants with their time zone",
    'say which zone: an Arrow column of timestamp("us", "UTC"), or seconds since 1970; of '
    '`datetime64` in UTC these are at.astype("datetime64[us]").astype("int64") / 1e6',
)
_OUTSIDE = (
    "seconds since 1970, before the year 10000",
    "give seconds, not milliseconds; a missing time cannot be counted",
)
_SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of a unit of `datetime64` are a second."""


def _shown(value: object) -> str:
    return str(value) if isinstance(value, np.generic) else repr(value)


def _refused(name: str, value: object, why: tuple[str, str], row: int | None) -> ParameterError:
    place = "" if row is None else f" in row {row}"
    return refusal(name, f"{_shown(value)}{place}", *why)


def _kind(value: object) -> str:
    """What NumPy calls the kind of its numbers: "M" for dates, "m" for durations."""
    return getattr(getattr(value, "dtype", None), "kind", "")


def _is_arrow(value: object) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _from_arrow(column: Any) -> Any:
    """Through NumPy, which all of them know; what is missing becomes NaN, NaT or None."""
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:
        # pandas would make an object of each.
        return np.asarray(column, "datetime64[ns]")
    try:
        return column.to_numpy(zero_copy_only=False)
    except TypeError:
        return column.to_numpy()


# ---- instants


def read_instant(value: Any, name: str, row: int | None = None) -> float:
    """A moment as seconds since 1970; `row` is its place in a column."""
    seconds = _seconds_of(value, name, row)
    if not 0 <= seconds <= LAST:
        raise _refused(name, value, _OUTSIDE, row)
    return seconds


def _seconds_of(value: Any, name: str, row: int | None) -> float:
    kind = _kind(value)
    if isinstance(value, bool) or value is np.ma.masked or kind in {"b", "m"}:
        raise _refused(name, value, _NO_INSTANT, row)
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise _refused(name, value, _NO_INSTANT, row) from None
    if isinstance(moment, datetime):
        try:
            # A zone that answers no offset is none.
            if moment.utcoffset() is not None:
                return moment.timestamp()
        except Exception as error:
            raise _refused(name, value, _NO_ZONE, row) from error
        raise _refused(name, value, _NO_ZONE, row)
    if kind == "M":
        raise _refused(name, value, _NO_ZONES, row)
    if not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise _refused(name, value, _NO_INSTANT, row)
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        raise _refused(name, value, _NO_INSTANT, row) from None


def read_instants(value: Any, name: str) -> float | NDArray[np.float64]:
    """The instants of a batch: one for all rows, or one for each."""
    column = _column(value, name)
    return read_instant(value, name) if column is None else _seconds_of_column(column, name)


def read_whole_micros(value: Any, name: str) -> NDArray[np.int64] | None:
    """Microseconds of dates that count in these or in nanoseconds; None for anything else.

    Whole numbers stay whole: an event a nanosecond before midnight stays in its day.
    """
    if not (_is_arrow(value) or _has_zone(value)):
        return None
    column = _column(value, name)
    if _kind(column) != "M" or hasattr(column, "mask"):
        return None
    column = np.asarray(column)
    if np.datetime_data(column.dtype) not in {("us", 1), ("ns", 1)}:
        return None
    micros = column.astype("datetime64[us]").astype("int64")
    if micros.size and not 0 <= micros.min() <= micros.max() <= LAST * 1e6:
        _seconds_of_column(column, name)  # says which row, and why
    return micros


def _column(value: Any, name: str) -> Any:
    """A column as NumPy or Python has it; None for a single instant."""
    arrow = _is_arrow(value)
    if not arrow and (isinstance(value, str | bytes) or not _iterable(value)):
        return None
    why = (
        "an instant, or a column of them",
        "give seconds as a NumPy array, seconds or timestamps with a zone as an Arrow column",
    )
    zoned = _has_zone(value)
    try:
        column = _from_arrow(value) if arrow or zoned else value
    except Exception as error:
        raise refusal(name, str(error), *why) from error
    if getattr(column, "ndim", 1) != 1:
        raise refusal(name, f"an array of shape {column.shape}", *why)
    if _kind(column) == "M" and not zoned:
        raise refusal(name, f"a column of {column.dtype}", *_NO_ZONES)
    return column


def _has_zone(column: Any) -> bool:
    """Whether a column of timestamps says its zone: Arrow's, pandas' or Polars'."""
    kinds = (getattr(column, "type", None), getattr(column, "dtype", None))
    zones = (getattr(kind, name, None) for kind in kinds for name in ("tz", "time_zone"))
    return any(zone is not None for zone in zones)


def _iterable(value: object) -> bool:
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def _seconds_of_column(column: Any, name: str) -> NDArray[np.float64]:
    # A masked array shows what is missing only item by item.
    if not hasattr(column, "mask") and _kind(column) in {"M", "i", "u", "f"}:
        column = np.asarray(column)
        dates = _kind(column) == "M"
        seconds = _seconds_of_dates(column) if dates else np.ascontiguousarray(column, np.float64)
        # Of NaN both are NaN.
        if seconds.size and not (seconds.min() >= 0 and seconds.max() <= LAST):
            row = int(np.argmin((seconds >= 0) & (seconds <= LAST)))
            raise _refused(name, column[row], _OUTSIDE, row)
        return seconds
    each = (read_instant(item, name, row) for row, item in enumerate(column))
    return np.fromiter(each, np.float64)


def _seconds_of_dates(dates: NDArray[Any]) -> NDArray[np.float64]:
    """Of `datetime64` in UTC; what is not a time comes out long before 1970."""
    unit, step = np.datetime_data(dates.dtype)
    if unit not in _SECONDS:
        # Days and the like; what is finer than nanoseconds loses what nobody can see.
        dates, unit, step = dates.astype("datetime64[s]"), "s", 1
    return dates.astype("int64") * (step / _SECONDS[unit])


# ---- counts and changes


def split_table(table: Any) -> tuple[Any, Any] | None:
    """Keys and counts of a table of two columns, be it pyarrow's, Polars' or pandas'."""
    # pyarrow's `columns` are arrays, the others' are names.
    names = getattr(table, "column_names", None)
    if names is None and hasattr(table, "__arrow_c_stream__"):
        names = getattr(table, "columns", None)
    if names is None or not _iterable(names):
        return None
    names = list(names)
    return (table[names[0]], table[names[1]]) if len(names) == 2 else None


def read_counts(counts: Any) -> NDArray[np.uint64]:
    """Whole numbers from 1 up: an array of integers, an Arrow column, or any other iterable."""
    if isinstance(counts, Mapping | Set):
        # Which row a number belongs to would be a guess.
        hint = "give a list, or one mapping of keys to their counts instead of both arguments"
        raise refusal("counts", f"a {type(counts).__name__}", "numbers in the order of keys", hint)
    arrow = _is_arrow(counts)
    try:
        column = _from_arrow(counts) if arrow else counts
    except Exception as error:
        raise _no_counts(str(error)) from error
    if not arrow and isinstance(column, np.ndarray) and column.dtype == object and column.ndim == 1:
        column = column.tolist()
    if hasattr(column, "dtype") and hasattr(column, "astype"):
        _require_counts(column, arrow=arrow)
        # Signed ones keep their sign, so that a negative count is shown as it is.
        unsigned = column.dtype.kind == "u"
        words = np.ascontiguousarray(column, np.uint64 if unsigned else np.int64)
        if words.size and words.min() < 1:
            row = int(np.argmax(words < 1))
            raise _no_count(int(words[row]), row)
        return words.view(np.uint64)
    if not _iterable(column):
        hint = f"give one for each key: counts=[{_shown(column)}] * len(keys)"
        raise refusal("counts", _shown(column), "a column of whole numbers", hint)
    return np.fromiter((_count(count, row) for row, count in enumerate(column)), np.uint64)


def _require_counts(column: Any, *, arrow: bool) -> None:
    if column.ndim == 1 and column.dtype.kind in "iu":
        missing = np.ma.getmaskarray(column) if hasattr(column, "mask") else np.zeros(0, bool)
    elif column.ndim == 1 and arrow and column.dtype.kind in "fO":
        # Arrow's whole numbers with nulls come as floats or as objects.
        missing = np.array([item is None or item != item for item in column.tolist()], bool)
    else:
        missing = np.zeros(0, bool)
    if missing.any():
        raise _no_count(None, int(np.argmax(missing)))
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise _no_counts(f"an array of {column.dtype}")


def _count(count: Any, row: int) -> int:
    try:
        number = operator.index(count)
    except TypeError:
        raise _no_count(count, row) from None
    if isinstance(count, bool) or number < 1:
        raise _no_count(count, row)
    # What does not fit is as many as there can be, as in a single call.
    return min(number, 2**64 - 1)


def _no_counts(got: str) -> ParameterError:
    hint = "convert it to int64, without nulls"
    return refusal("counts", got, "a column of whole numbers", hint)


def _no_count(count: Any, row: int) -> ParameterError:
    number = count if isinstance(count, int) and not isinstance(count, bool) else None
    if count is None:
        hint = "fill nulls with a number, or leave their rows out"
    elif number is None:
        hint = "convert it to a whole number"
    elif number == 0:
        hint = "leave rows of zero out"
    else:
        hint = "filters that count take occurrences away with remove_many"
    got = "null" if count is None else _shown(count)
    return refusal("counts", f"{got} in row {row}", "whole numbers, at least 1", hint)


def read_changes(changes: Iterable[int] | NDArray[Any]) -> NDArray[np.int64]:
    """By how much each key changes its count."""
    # NumPy knows all kinds of columns; only whole numbers are taken.
    column = np.asarray(
        changes if hasattr(changes, "__len__") or not _iterable(changes) else list(changes)
    )
    if column.ndim == 0:
        hint = f"give one for each key: changes=[{_shown(changes)}] * len(keys)"
        raise refusal("changes", _shown(changes), "a column of whole numbers", hint)
    why = (
        "a column of whole numbers",
        "give 1 to add, -1 to remove, 0 to ask; as int64, without nulls",
    )
    # An empty list has no kind of its own.
    if column.ndim != 1 or (column.dtype.kind not in "iu" and column.size):
        raise refusal("changes", f"an array of {column.dtype}", *why)
    words = np.ascontiguousarray(column, np.int64)
    # Of unsigned numbers the largest become negative.
    if column.dtype.kind == "u" and (words < 0).any():
        raise refusal("changes", "a number beyond 63 bits", *why)
    return words
