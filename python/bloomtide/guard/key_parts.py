"""Parts of keys: from a value, as the driver has it, to what is the same for all equal values.

Two values that a database calls equal must have the same key; where it folds case, trims blanks or
compares as floating point, the key folds at least as much. Knows neither SQLAlchemy nor Django.
"""

from __future__ import annotations

import datetime as dt
import operator
import unicodedata
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from bloomtide.errors import KeyTypeError
from bloomtide.guard.writes.transaction import Key

SMALLEST, LARGEST = -(1 << 63), (1 << 64) - 1
"""What an `int` key may be; any other is spelled out."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
_FLOAT_DIGITS = 15
"""PostgreSQL keeps this many of a floating point number that becomes a decimal."""

Normalizer = Callable[[Any], Key]


class Unseen(Exception):
    """The value may be stored as another one, so its key is not known. Never leaves the guard."""


def wrong_type(value: object, wanted: str) -> KeyTypeError:
    return KeyTypeError(
        f"a key of this column is {wanted}, got: `{type(value).__name__}`",
        hint="ask with a value that the column could hold",
        got=type(value).__name__,
        index=None,
        added=None,
    )


def integer_key(value: Any) -> Key:
    try:
        whole = operator.index(value)
    except TypeError:
        if not isinstance(value, (str, float, Decimal)):
            raise wrong_type(value, "an integer") from None
        try:
            whole = int(value)
        except (ValueError, OverflowError):
            raise Unseen from None
        if value != (str(whole) if isinstance(value, str) else whole):
            raise Unseen from None  # `" 1e3"` or 1.5: databases differ in what they make of it
    return whole if SMALLEST <= whole <= LARGEST else str(whole)


def text_key(value: Any) -> Key:
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    raise wrong_type(value, "a string")


def trimmed_key(value: Any) -> Key:
    return str(text_key(value)).rstrip(" ")


def fold(value: Any) -> Key:
    """At least as coarse as the lower case of any locale: without marks, and without dotless i."""
    plain = unicodedata.normalize("NFKD", str(text_key(value)).partition("\0")[0])
    bare = "".join(char for char in plain if not unicodedata.combining(char))
    return unicodedata.normalize("NFKC", bare.casefold().replace("ı", "i")).rstrip(" ")


def bytes_key(value: Any) -> Key:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise wrong_type(value, "bytes")


def uuid_key(value: Any) -> Key:
    if isinstance(value, uuid.UUID):
        return value.bytes
    try:
        return uuid.UUID(value).bytes
    except (ValueError, TypeError, AttributeError) as error:
        raise wrong_type(value, "a UUID") from error


def float_key(value: Any) -> Key:
    """For SQLite: what looks like a number is one, in a column that is no text."""
    if isinstance(value, (int, float, Decimal, str)):
        try:
            return repr(float(value) + 0.0)  # minus zero is zero
        except (ValueError, OverflowError):
            return str(value).casefold().rstrip(" ")
    raise wrong_type(value, "a number")


def decimal_key(scale: int | None) -> Normalizer:
    """For PostgreSQL: as floating point, so that all spellings of a number are one key."""

    def number(value: Any) -> Key:
        if not isinstance(value, (int, float, Decimal, str)):
            raise wrong_type(value, "a number")
        try:
            exact = Decimal(str(value))
            digits = exact.normalize().as_tuple()
            if not isinstance(digits.exponent, int) or (
                scale is not None and -digits.exponent > scale
            ):
                raise Unseen
            if isinstance(value, float) and len(digits.digits) > _FLOAT_DIGITS:
                raise Unseen
            return repr(float(exact) + 0.0)
        except (ArithmeticError, ValueError) as error:
            raise Unseen from error

    return number


def date_key(value: Any) -> Key:
    if isinstance(value, dt.datetime):
        raise Unseen  # whether its time is dropped is up to the driver
    if isinstance(value, dt.date):
        return value.isoformat()
    raise wrong_type(value, "a date")


def instant_key(value: Any) -> Key:
    """Of a column with a time zone: the microsecond, wherever it was written."""
    if not isinstance(value, dt.datetime):
        raise wrong_type(value, "a datetime")
    if value.tzinfo is None:
        raise Unseen  # the zone of the session decides, and that is not known here
    return (value - _EPOCH) // _MICRO


def _local_key(kind: type[dt.datetime] | type[dt.time], wanted: str) -> Normalizer:
    def key(value: Any) -> Key:
        if not isinstance(value, kind):
            raise wrong_type(value, wanted)
        if value.tzinfo is not None:
            raise Unseen
        return value.replace(fold=0).isoformat()

    return key


wall_clock_key = _local_key(dt.datetime, "a datetime")
"""Of a column without a time zone: what stands there."""
time_key = _local_key(dt.time, "a time")


def unwrapped(value: Any) -> Any:
    """The value in `psycopg.Binary`."""
    return value.obj if type(value).__name__ == "Binary" and hasattr(value, "obj") else value


def framed(key: Key) -> bytes:
    """A part of a longer key, with its kind and length, so that parts never run together."""
    kind = type(key).__name__[:1].encode()
    data = key if isinstance(key, bytes) else str(key).encode()
    return kind + len(data).to_bytes(8, "little") + data
