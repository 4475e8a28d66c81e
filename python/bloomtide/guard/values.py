"""`Normal`: from the value of a column to the key of a filter, as the database compares values.

Two values that the database calls equal must have the same key, whichever way they come: written by
a program, asked for by another, or read back. The opposite may fail: two values that share a key
cost a query now and then. So where a database folds case, trims blanks or compares as floating
point, the key folds at least as much; and where nobody can say how it compares, the column is
refused, unless the caller brings a function of his own.

A value that the database changes when it stores it, such as a decimal with more digits than its
column has, makes no key: `key` raises `Unseen`, and the guard lets the database answer.

None is never a key: in SQL it equals nothing.
"""

from __future__ import annotations

import datetime as dt
import operator
import unicodedata
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import Column, type_coerce, types
from sqlalchemy.engine import Dialect

from bloomtide.errors import KeyTypeError, ParameterError
from bloomtide.guard.pending import Key

_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
"""What an `int` key may be; any other is spelled out."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
_BINARY_COLLATIONS = frozenset({"BINARY", "C", "POSIX", "UCS_BASIC", "DEFAULT"})

Normalizer = Callable[[Any], Key]
Reader = Callable[[Mapping[str, Any]], Key | None]
"""Takes a key out of the parameters of a statement; raises as `Normal.key` does."""


class Unseen(Exception):
    """The value may be stored as another one, so its key is not known. Never leaves the guard."""


def _refuse(value: object, wanted: str) -> KeyTypeError:
    return KeyTypeError(
        f"a key of this column is {wanted}, got: `{type(value).__name__}`",
        hint="ask with a value that the column could hold",
        got=type(value).__name__,
        index=None,
        added=None,
    )


def _integer(value: Any) -> Key:
    try:
        whole = operator.index(value)
    except TypeError:
        if not isinstance(value, (str, float, Decimal)):
            raise _refuse(value, "an integer") from None
        try:
            whole = int(value)
        except (ValueError, OverflowError):
            raise Unseen from None
        if value != (str(whole) if isinstance(value, str) else whole):
            raise Unseen from None  # `" 1e3"` or 1.5: databases differ in what they make of it
    return whole if _SMALLEST <= whole <= _LARGEST else str(whole)


def _text(value: Any) -> Key:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(int(value))
    raise _refuse(value, "a string")


def _trimmed(value: Any) -> Key:
    return str(_text(value)).rstrip(" ")


def fold(value: Any) -> Key:
    """At least as coarse as the lower case of any locale: without marks, and without dotless i."""
    plain = unicodedata.normalize("NFKD", str(_text(value)))
    bare = "".join(char for char in plain if not unicodedata.combining(char))
    return unicodedata.normalize("NFKC", bare.casefold().replace("ı", "i")).rstrip(" ")


def _binary(value: Any) -> Key:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _refuse(value, "bytes")


def _uuid(value: Any) -> Key:
    if isinstance(value, uuid.UUID):
        return value.bytes
    try:
        return uuid.UUID(value).bytes
    except (ValueError, TypeError, AttributeError) as error:
        raise _refuse(value, "a UUID") from error


def _number(scale: int | None) -> Normalizer:
    """Numbers as floating point: a database compares them so as soon as one side is a float."""

    def number(value: Any) -> Key:
        if not isinstance(value, (int, float, Decimal, str)):
            raise _refuse(value, "a number")
        try:
            exact = Decimal(str(value))
            exponent = exact.normalize().as_tuple().exponent
            if not isinstance(exponent, int) or (scale is not None and -exponent > scale):
                raise Unseen
            return repr(float(exact) + 0.0)  # minus zero is zero
        except (ArithmeticError, ValueError) as error:
            raise Unseen from error

    return number


def _date(value: Any) -> Key:
    if isinstance(value, dt.datetime):
        raise Unseen  # whether its time is dropped is up to the driver
    if isinstance(value, dt.date):
        return value.isoformat()
    raise _refuse(value, "a date")


def _instant(value: Any) -> Key:
    """Of a column with a time zone: the microsecond, wherever it was written."""
    if not isinstance(value, dt.datetime):
        raise _refuse(value, "a datetime")
    if value.tzinfo is None:
        raise Unseen  # the zone of the session decides, and that is not known here
    return (value - _EPOCH) // _MICRO


def _wall_clock(*, drops_zone: bool) -> Normalizer:
    """Of a column without one: what stands there. SQLite drops a zone, others convert it."""

    def wall_clock(value: Any) -> Key:
        if not isinstance(value, dt.datetime):
            raise _refuse(value, "a datetime")
        if value.tzinfo is not None and not drops_zone:
            raise Unseen
        return value.replace(tzinfo=None, fold=0).isoformat()

    return wall_clock


def _time(value: Any) -> Key:
    if not isinstance(value, dt.time):
        raise _refuse(value, "a time")
    if value.tzinfo is not None:
        raise Unseen
    return value.replace(fold=0).isoformat()


def _enum(kind: types.Enum, dialect: Dialect) -> Normalizer:
    process = kind.dialect_impl(dialect).bind_processor(dialect)

    def member(value: Any) -> Key:
        try:
            return _text(value if process is None else process(value))
        except LookupError as error:
            raise _refuse(value, "a member of its enumeration") from error

    return member


def _decorated(kind: types.TypeDecorator[Any], dialect: Dialect) -> Normalizer:
    """A type made of another: the database sees what comes out of its `process_bind_param`."""
    if type(kind).bind_processor is not types.TypeDecorator.bind_processor:
        raise _unknown(kind, dialect)  # `Interval` and `PickleType` of SQLAlchemy
    inner = _of_type(kind.load_dialect_impl(dialect), dialect)
    if type(kind).process_bind_param is types.TypeDecorator.process_bind_param:
        return inner

    def decorated(value: Any) -> Key:
        stored = kind.process_bind_param(value, dialect)
        if stored is None:
            raise Unseen
        return inner(stored)

    return decorated


def _no_longer(length: int, text: Normalizer) -> Normalizer:
    """A string too long for its column is refused by some databases and cut by others."""

    def no_longer(value: Any) -> Key:
        key = text(value)
        if isinstance(key, str) and len(key) > length:
            raise Unseen
        return key

    return no_longer


def _of_string(kind: types.String, dialect: Dialect) -> Normalizer:
    collation = (kind.collation or "").upper()
    name = type(kind).__name__.upper()
    if name == "CITEXT" or collation == "NOCASE":
        return fold
    if collation == "RTRIM" or (isinstance(kind, (types.CHAR, types.NCHAR)) and not collation):
        return _trimmed
    if dialect.name == "sqlite" and collation in ("", "BINARY"):
        return _text
    # Deterministic collations of PostgreSQL compare for equality byte by byte. Named ones may not.
    if dialect.name == "postgresql" and (not collation or collation in _BINARY_COLLATIONS):
        return _text if kind.length is None else _no_longer(kind.length, _text)
    if collation.endswith("_BIN") and kind.length is not None:
        return _no_longer(kind.length, _trimmed)  # MySQL, with or without the blanks at the end
    raise _unknown(kind, dialect)


def _of_moment(kind: types.TypeEngine[Any], dialect: Dialect) -> Normalizer:
    sqlite = dialect.name == "sqlite"
    if isinstance(kind, types.Date):
        return _date
    # A column with fewer digits than microseconds rounds; other databases do so without being told.
    if getattr(kind, "precision", None) is not None or dialect.name not in ("sqlite", "postgresql"):
        raise _unknown(kind, dialect)
    zone = bool(getattr(kind, "timezone", False)) and not sqlite
    if isinstance(kind, types.DateTime):
        return _instant if zone else _wall_clock(drops_zone=sqlite)
    if zone:
        raise _unknown(kind, dialect)
    return _time


_WAYS = frozenset(
    {
        "bind_expression",
        "bind_processor",
        "coerce_compared_value",
        "column_expression",
        "comparator_factory",
        "result_processor",
    }
)
"""What a type may define in order to change values, or their comparison, on the way."""


def _has_own_ways(kind: types.TypeEngine[Any]) -> bool:
    """Whether somebody's class does more than SQLAlchemy's; `process_bind_param` is read here."""
    classes = (each for each in type(kind).__mro__ if not each.__module__.startswith("sqlalchemy."))
    return any(not _WAYS.isdisjoint(vars(each)) for each in classes) or (
        "_storage_format" in vars(kind)  # of SQLite: two moments may be stored as one
    )


def _of_type(kind: types.TypeEngine[Any], dialect: Dialect) -> Normalizer:
    kind = kind._variant_mapping.get(dialect.name, kind)  # `with_variant` has no other reader
    if _has_own_ways(kind):
        raise _unknown(kind, dialect)
    if isinstance(kind, types.TypeDecorator):
        return _decorated(kind, dialect)
    if isinstance(kind, types.Enum):  # before String, which it is too
        return _enum(kind, dialect)
    if isinstance(kind, (types.Integer, types.Boolean)):
        return _integer
    if isinstance(kind, types.String):
        return _of_string(kind, dialect)
    if isinstance(kind, types.Uuid):
        return _uuid
    if isinstance(kind, types.LargeBinary):
        return _binary
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return _number(kind.scale)
    if isinstance(kind, (types.Date, types.DateTime, types.Time)):
        return _of_moment(kind, dialect)
    raise _unknown(kind, dialect)


def _unknown(kind: types.TypeEngine[Any], dialect: Dialect) -> ParameterError:
    return ParameterError(
        f"nobody can tell here how {dialect.name} compares a column of type `{kind!r}`",
        hint="give `normal`, a function from a value to a `str`, `bytes` or `int` that is the same"
        " for all values that the database calls equal",
        name="column",
        got=repr(kind),
        allowed="integers, strings, bytes, UUIDs, decimals, dates and enumerations",
    )


def _undecorated(kind: types.TypeEngine[Any], dialect: Dialect) -> types.TypeEngine[Any]:
    kind = kind._variant_mapping.get(dialect.name, kind)
    if isinstance(kind, types.TypeDecorator):
        return _undecorated(kind.load_dialect_impl(dialect), dialect)
    return kind


def _own(function: Normalizer) -> Normalizer:
    def own(value: Any) -> Key:
        key = function(value)
        if not isinstance(key, (str, bytes, int)):
            raise _refuse(key, "what `normal` returns: a `str`, `bytes` or `int`")
        return key

    return own


class Normal:
    """The keys of one column, or of several together."""

    def __init__(
        self,
        columns: Sequence[Column[Any]],
        dialect: Dialect,
        normal: Normalizer | None = None,
    ) -> None:
        """`normal` replaces the rules; with several columns it gets a tuple."""
        self._own = None if normal is None else _own(normal)
        self._width = len(columns)
        kinds = [column.type for column in columns]
        self._parts = [] if normal else [_of_type(kind, dialect) for kind in kinds]
        plain: dict[Normalizer, type] = {_text: str, _integer: int}
        self.plain = plain.get(self._parts[0]) if len(self._parts) == 1 else None
        """Values of exactly this type are keys as they are."""
        # Read back, a value is taken as the database has it: the way back through the functions of
        # a decorated type may lead elsewhere.
        self.kinds = kinds if normal else [_undecorated(kind, dialect) for kind in kinds]
        """The types of the columns as the database should have them."""
        self.read = [type_coerce(*each) for each in zip(columns, self.kinds, strict=True)]
        """What to select in order to read keys back, for `stored`."""
        self._bare = [] if normal else [_of_type(kind, dialect) for kind in self.kinds]
        self._limits: dict[int, int] = {}

    @property
    def is_own(self) -> bool:
        """Whether the caller has brought a function of his own."""
        return self._own is not None

    def is_one_key(self, place: int, first: str, second: str) -> bool:
        """Whether two strings in that column make the same key, or one of them makes none."""
        try:
            return self._bare[place](first) == self._bare[place](second)
        except Unseen:
            return True

    def limit(self, place: int, length: int) -> None:
        """Strings in that column are no longer than this; PostgreSQL cuts blanks at the end."""
        if length < self._limits.get(place, length + 1):
            self._limits[place] = length
            self._parts[place] = _no_longer(length, self._parts[place])

    def key(self, value: Any) -> Key | None:
        """The key of a value, of a tuple of values if there are several columns.

        None if the value, or one of them, is None. Raises `Unseen` if the database may store
        another value than this one, and `KeyTypeError` if the column cannot hold such a value.
        """
        if self._width == 1 and self._own is None:
            return None if value is None else self._parts[0](value)
        return self._key((value,) if self._width == 1 else self._tuple(value), self._parts)

    def reader(self, names: Sequence[str]) -> Reader:
        """For statements whose parameters of these names are the value of each column."""
        if self.plain is not int:
            value = operator.itemgetter(*names)
            return lambda given: self.key(value(given))
        name = names[0]

        def integer(given: Mapping[str, Any]) -> Key | None:
            whole = given[name]
            if type(whole) is int and _SMALLEST <= whole <= _LARGEST:
                return whole  # as a rule, and without a call
            return self.key(whole)

        return integer

    def stored(self, values: Sequence[Any]) -> Key | None:
        """The key of what was read from the columns `read`.

        None also for values that `key` refuses: who asks for such a one is sent to the database.
        """
        try:
            return self._key(values, self._bare)
        except (Unseen, KeyTypeError):
            return None

    def _key(self, values: Sequence[Any], parts: list[Normalizer]) -> Key | None:
        if any(value is None for value in values):
            return None
        if self._own:
            return self._own(values[0] if self._width == 1 else tuple(values))
        if self._width == 1:
            return parts[0](values[0])
        return b"".join(_framed(part(value)) for part, value in zip(parts, values, strict=True))

    def _tuple(self, value: Any) -> tuple[Any, ...]:
        try:
            values = tuple(value)
        except TypeError as error:
            raise _refuse(value, f"a tuple of {self._width} values") from error
        if isinstance(value, (str, bytes)) or len(values) != self._width:
            raise _refuse(value, f"a tuple of {self._width} values")
        return values


def _framed(key: Key) -> bytes:
    """A part of a longer key, with its kind and length, so that parts never run together."""
    if isinstance(key, int):
        data, kind = str(key).encode(), b"i"
    elif isinstance(key, str):
        data, kind = key.encode(), b"s"
    else:
        data, kind = key, b"b"
    return kind + len(data).to_bytes(8, "little") + data
