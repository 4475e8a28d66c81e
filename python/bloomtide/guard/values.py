"""`KeyMaker`: from a value to the key of a filter, as the database compares values.

All keys are made of what the driver gets and gives: the parameter of a statement, the value in a
row, and a question after the column's type has made a parameter of it. So it does not matter which
type a program describes the column with. Two values that the database calls equal must have the
same key. The opposite may fail: two values that share a key cost a query now and then. So where a
database folds case, trims blanks or compares as floating point, the key folds at least as much; and
where nobody can say how it compares, the column is refused, unless the caller brings a function.

A value that the database may change when it stores it makes no key: `Unseen`. None is never a key:
in SQL it equals nothing.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Column, bindparam, type_coerce, types
from sqlalchemy.engine import Dialect

from bloomtide.errors import KeyTypeError, ParameterError, require
from bloomtide.guard.key_parts import (
    Normalizer,
    Unseen,
    bytes_key,
    date_key,
    decimal_key,
    float_key,
    fold,
    framed,
    instant_key,
    integer_key,
    text_key,
    time_key,
    trimmed_key,
    unwrapped,
    uuid_key,
    wall_clock_key,
    wrong_type,
)
from bloomtide.guard.writes.transaction import Key

_BINARY_COLLATIONS = frozenset({"", "BINARY", "C", "POSIX", "UCS_BASIC", "DEFAULT"})
_OVERRIDES = frozenset({"coerce_compared_value", "comparator_factory"})
"""What a type may define in order to compare in its own way."""


def base_type(kind: types.TypeEngine[Any], dialect: Dialect) -> types.TypeEngine[Any]:
    """The type as the database has it: of this dialect, and without decoration."""
    found = kind.dialect_impl(dialect)
    while isinstance(kind, types.TypeDecorator):
        kind = kind.load_dialect_impl(dialect)
    while isinstance(found, types.TypeDecorator):
        found = found.impl_instance
    # What a dialect makes of these has forgotten their blanks and their digits.
    is_char = isinstance(kind, (types.CHAR, types.NCHAR)) and not isinstance(found, types.TEXT)
    has_digits = getattr(kind, "precision", None) is not None and isinstance(
        found, (types.DateTime, types.Time)
    )
    return kind if is_char or has_digits else found


def _all_classes(kind: types.TypeEngine[Any], dialect: Dialect) -> Iterator[type]:
    found: Any = kind
    while True:
        yield from type(found).__mro__
        found = found.dialect_impl(dialect)
        yield from type(found).__mro__
        if not isinstance(found, types.TypeDecorator):
            return
        found = found.impl_instance


def _compares_specially(kind: types.TypeEngine[Any], dialect: Dialect) -> bool:
    value = bindparam("value", type_=kind)
    own = (
        each
        for each in _all_classes(kind, dialect)
        if not each.__module__.startswith(("sqlalchemy.", "builtins"))
    )
    return (
        any(not _OVERRIDES.isdisjoint(vars(each)) for each in own)
        or kind.bind_expression(value) is not None
        or kind.column_expression(Column("x", kind)) is not None
    )


def _of_string(kind: types.String, sqlite: bool) -> Normalizer | None:
    collation = (kind.collation or "").upper()
    if type(kind).__name__.upper() == "CITEXT" or (sqlite and collation == "NOCASE"):
        return fold
    if sqlite and collation == "RTRIM":
        return trimmed_key
    if isinstance(kind, (types.CHAR, types.NCHAR)) and not isinstance(kind, types.Enum):
        return trimmed_key if not collation else None
    # Deterministic collations of PostgreSQL compare for equality byte by byte. Named ones may not.
    return text_key if collation in _BINARY_COLLATIONS else None


def _of_moment(kind: types.TypeEngine[Any], sqlite: bool) -> Normalizer | None:
    if sqlite:
        return float_key  # they are text, or numbers in a format of one's own
    if isinstance(kind, types.Date):
        return date_key
    zone = bool(getattr(kind, "timezone", False))
    if getattr(kind, "precision", None) is not None:
        return None  # a column with fewer digits than microseconds rounds
    if isinstance(kind, types.DateTime):
        return instant_key if zone else wall_clock_key
    return None if zone else time_key


def normalizer(kind: types.TypeEngine[Any], dialect: Dialect) -> Normalizer:
    """Makes keys of what the driver gets for a column of that type; raises if nobody can."""
    base, sqlite = base_type(kind, dialect), dialect.name == "sqlite"
    found: Normalizer | None = None
    if _compares_specially(kind, dialect) or isinstance(
        kind, (types.Interval, types.PickleType, types.Float)
    ):
        found = None
    elif isinstance(base, (types.Integer, types.Boolean)):
        found = integer_key
    elif dialect.name not in ("sqlite", "postgresql"):
        found = bytes_key if isinstance(base, types.LargeBinary) else None
    elif isinstance(base, types.String):
        found = _of_string(base, sqlite)
    elif isinstance(base, types.Uuid):
        found = text_key if sqlite else uuid_key
    elif isinstance(base, types.LargeBinary):
        found = bytes_key
    elif isinstance(base, types.Numeric) and not isinstance(base, types.Float):
        found = float_key if sqlite else decimal_key(base.scale)
    elif isinstance(base, (types.Date, types.DateTime, types.Time)):
        found = _of_moment(base, sqlite)
    if found is None:
        raise ParameterError(
            f"nobody can tell here how {dialect.name} compares a column of type `{kind!r}`",
            hint="give `normal`, a function from a value to a `str`, `bytes` or `int` that is the"
            " same for all values that the database calls equal",
            name="column", got=repr(kind),
            allowed="integers, strings, bytes, UUIDs, decimals, dates and enumerations",
        )  # fmt: skip
    return found


_KNOWN: dict[Normalizer, tuple[str, tuple[type, ...]]] = {
    integer_key: ("integer|bigint|smallint|int[248]?|boolean", (int,)),
    text_key: ("varchar|text|character varying", (str,)),
    trimmed_key: ("varchar|text|character varying", ()),
    fold: ("varchar|text|character varying|citext", ()),
    uuid_key: ("uuid", (uuid.UUID, str)),
    bytes_key: ("bytea", (bytes, bytearray, memoryview)),
    date_key: ("date", (dt.date,)),
    instant_key: ("timestamp with time zone|timestamptz", (dt.datetime,)),
    wall_clock_key: ("timestamp without time zone|timestamp", (dt.datetime,)),
    time_key: ("time without time zone|time", (dt.time,)),
}
"""Types that a parameter may be cast to in a statement and stays as it is; and of which values no
two share a key that the database tells apart."""
_EXACT_FLOAT = 2.0**53
"""From here on several integers are one floating point number."""


def _accepts(part: Normalizer, kind: types.TypeEngine[Any], cast: str) -> bool:
    if not cast or cast.removesuffix("[]") == getattr(kind, "name", None):
        return True
    cast = cast.removesuffix("[]")
    if part in _KNOWN:
        return re.fullmatch(_KNOWN[part][0], cast) is not None
    decimal = re.fullmatch(r"(?:numeric|decimal)(?:\(\d+(?:,(\d+))?\))?", cast)
    if decimal is None:
        return False
    wanted = getattr(kind, "scale", None)
    return "(" not in cast or (wanted is not None and int(decimal[1] or 0) >= wanted)


class KeyMaker:
    """The keys of one column, or of several together."""

    def __init__(
        self, columns: Sequence[Column[Any]], dialect: Dialect, normal: Normalizer | None = None,
        *, in_tuples: bool = False,
    ) -> None:  # fmt: skip
        """`normal` replaces the rules; with several columns it gets a tuple. With `in_tuples` a
        key of one column may be given as a tuple, too."""
        require(
            "normal", normal, "a function", normal is None or callable(normal),
            hint="give one that returns the same `str`, `bytes` or `int` for equal values",
        )  # fmt: skip
        self._own = normal
        self._width = len(columns)
        self._in_tuples = in_tuples
        self.kinds = [base_type(column.type, dialect) for column in columns]
        """The types of the columns as the database should have them."""
        self.parts = [] if normal else [normalizer(column.type, dialect) for column in columns]
        impls = [column.type.dialect_impl(dialect) for column in columns]
        self._bind = [impl.bind_processor(dialect) for impl in impls]
        self._result = [_result_processor(impl, dialect) for impl in impls] if normal else []
        plain: dict[Normalizer, type] = {text_key: str, integer_key: int}
        first = self.parts[0] if len(self.parts) == 1 and self._bind[0] is None else None
        self.plain = plain.get(first) if first else None
        """Values of exactly this type are keys as they are."""
        self.read = [type_coerce(column, types.NullType()) for column in columns]
        """What to select in order to read keys back, for `stored`."""
        self._cuts = dialect.name == "postgresql"
        self._longest: dict[int, int | None] = {}
        """By its place, how long a text may be; while that is not known, none ends with a blank."""

    @property
    def is_own(self) -> bool:
        """Whether the caller has brought a function of his own."""
        return self._own is not None

    def is_one_key(self, place: int, first: str, second: str) -> bool:
        """Whether two strings in that column make the same key."""
        return self.parts[place](first) == self.parts[place](second)

    def is_exact(self, values: Sequence[Any]) -> bool:
        """Whether a row with the key of what the driver gets is a row that these values find.

        Where the key is coarser than the database's equality, another row may have it, too.
        """
        return not self.is_own and all(
            isinstance(unwrapped(value), _KNOWN.get(part, ("", ()))[1])
            for part, value in zip(self.parts, values, strict=True)
        )

    def limit(self, place: int, length: int | None) -> None:
        """Strings in that column are no longer than this; PostgreSQL cuts blanks at the end."""
        self._longest[place] = length

    def accepts(self, place: int, cast: str) -> bool:
        """Whether a parameter that a statement casts to that type is stored as it is."""
        return self.is_own or _accepts(self.parts[place], self.kinds[place], cast)

    def key(self, value: Any) -> Key | None:
        """The key of a value that a program asks for, of a tuple if there are several columns.

        None if the value, or one of them, is None. Raises `Unseen` if the database may compare
        another value than this one, and `KeyTypeError` if the column cannot hold such a value.
        """
        values = self.values_of(value)
        if None in values:
            return None
        if self._own is not None:
            return self._by_own(values)
        bound = []
        for bind, each in zip(self._bind, values, strict=True):
            try:
                bound.append(each if bind is None else bind(each))
            except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
                raise wrong_type(each, "a value of its type") from error
        if None in bound:
            raise Unseen
        for part, each in zip(self.parts, bound, strict=True):
            # PostgreSQL compares an integer with it as floating point, so it equals several.
            if part is integer_key and isinstance(each, float) and abs(each) >= _EXACT_FLOAT:
                raise Unseen
        return self.written(bound)

    def values_of(self, value: Any) -> tuple[Any, ...]:
        """One value for each column."""
        if self._width == 1:
            unwrap = self._in_tuples and isinstance(value, tuple) and len(value) == 1
            return (value[0],) if unwrap else (value,)
        try:
            values = tuple(value)
        except TypeError as error:
            raise wrong_type(value, f"a tuple of {self._width} values") from error
        if isinstance(value, (str, bytes)) or len(values) != self._width:
            raise wrong_type(value, f"a tuple of {self._width} values")
        return values

    def written(self, values: Sequence[Any]) -> Key | None:
        """The key of what the driver gets for the columns; raises as `key` does."""
        if self._own is not None:
            return self._by_own(self._as_read(values)) if None not in values else None
        keys: list[Key] = []
        for place, (part, value) in enumerate(zip(self.parts, values, strict=True)):
            if value is None:
                return None
            key = part(unwrapped(value))
            if self._cuts and part is text_key:
                self._check_length(place, key)
            keys.append(key)
        return keys[0] if self._width == 1 else b"".join(map(framed, keys))

    def _check_length(self, place: int, key: Key) -> None:
        if place not in self._longest:
            if str(key).endswith(" "):
                raise Unseen
        elif (longest := self._longest[place]) is not None and len(str(key)) > longest:
            raise Unseen

    def stored(self, values: Sequence[Any]) -> Key | None:
        """The key of what was read from the columns `read`.

        None also for values that `key` refuses: who asks for such a one is sent to the database.
        """
        if None in values:
            return None
        if self._own is not None:
            return self._by_own(self._as_read(values))
        try:
            keys = [part(unwrapped(v)) for part, v in zip(self.parts, values, strict=True)]
        except (Unseen, KeyTypeError):
            return None
        return keys[0] if self._width == 1 else b"".join(map(framed, keys))

    def _as_read(self, values: Sequence[Any]) -> list[Any]:
        """As a program gets them that reads the columns."""
        pairs = zip(self._result, map(unwrapped, values), strict=True)
        return [value if read is None else read(value) for read, value in pairs]

    def _by_own(self, values: Sequence[Any]) -> Key:
        assert self._own is not None
        key = self._own(values[0] if self._width == 1 else tuple(values))
        if not isinstance(key, (str, bytes, int)):
            raise wrong_type(key, "what `normal` returns: a `str`, `bytes` or `int`")
        return key


def _result_processor(impl: types.TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    try:
        return impl.result_processor(dialect, None)
    except Exception:  # noqa: BLE001 - some want to know what the driver calls the type
        return None
