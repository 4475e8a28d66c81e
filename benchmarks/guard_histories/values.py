"""Kinds of columns: the mapped type, what the database has, and values to write.

The last three values of a kind are reserved: what a client default, a trigger and a server default
write. So such a key comes from nowhere else, and a guard that has it has seen that way of writing.
"""
# ruff: noqa: E501  one line for each kind

from __future__ import annotations

import enum
import json
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.engine import Dialect

CLIENT, TRIGGER, SERVER = -3, -2, -1
"""Positions of the reserved values."""


class Mood(enum.Enum):
    """An enumeration whose values are not its names."""

    A = "happy"
    B = "sad"
    C = "C"
    D = "B"
    E = "e"
    F = "f"
    G = "g"
    H = "h"
    I = "i"  # noqa: E741
    J = "j"


class Lower(sa.types.TypeDecorator[str]):
    """Stores text in lower case."""

    impl = sa.String(30)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.lower()


class Prefixed(sa.types.TypeDecorator[str]):
    """Stores `x-` in front, and takes it away."""

    impl = sa.String(30)
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else "x-" + value

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.removeprefix("x-")


class Cents(sa.types.TypeDecorator[Decimal]):
    """Decimals with two digits, stored as integers."""

    impl = sa.Integer
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value * 100)

    def process_result_value(self, value: int | None, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value) / 100


class ReadOnly(sa.types.TypeDecorator[str]):
    """Changes only what it reads."""

    impl = sa.String(30)
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.upper()


class ByDatabase(sa.types.TypeDecorator[str]):
    """The database changes each value in an expression of the statement."""

    impl = sa.String(30)
    cache_ok = True

    def bind_expression(self, bindvalue: Any) -> Any:
        return sa.func.upper(bindvalue)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of column."""

    name: str
    make: Callable[[], Any]
    values: tuple[Any, ...]
    weight: float = 1.0
    database: str | None = None
    """None: both."""
    ddl: str | None = None
    """The column's type in the database, if it is not what the mapped type compiles to."""
    before: tuple[str, ...] = ()
    """DDL that the type needs."""

    def compiled(self, dialect: Dialect) -> str:
        return self.ddl or str(self.make().compile(dialect=dialect))


def number(start: int = 0) -> tuple[Any, ...]:
    return (*range(start, start + 24), -1, -70, 300, 9000, 77, 78, 79)


TEXTS: tuple[Any, ...] = (
    "a", "A", "b", "B", "", "a ", " a", "ä", "Ä", "a\u0308", "ß", "ss", "é", "1", "01", "1.0", "x-a",
    "I", "i", "\u0130", "ǆ", "Straße", "STRASSE", "x'y", "50%", "z:k", "back\\s", "client", "trigger",
    "server",
)  # fmt: skip
DECIMALS: tuple[Any, ...] = tuple(
    Decimal(text)
    for text in (
        "1", "1.00", "1.5", "0.1", "0", "-0", "2.50", "100", "1E2", "0.30", "-7.25", "3", "4", "5.01",
        "12345.67", "8.99", "77.10", "78.25", "79.33",
    )
)  # fmt: skip
FINE = (
    Decimal("0.123456789012"),
    Decimal("1.10000000000000000001"),
    Decimal("12345678901234.567"),
    Decimal("0.3333333333333333333"),
    *DECIMALS,
)
FLOATS = (0.1, 0.5, 1.0, 1e300, -0.0, 0.0, 0.30000000000000004, 1 / 3, 2.5, 7.0, 8.125, 77.5, 78.5, 79.5)  # fmt: skip
DATES = tuple(date(2024, 1, 1) + timedelta(days=40 * number) for number in range(16))
EAST, WEST = timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))
MOMENTS = tuple(
    datetime(2024, 3, 30, 23, 30) + timedelta(hours=7 * number, microseconds=number % 3)  # noqa: DTZ001
    for number in range(16)
)
INSTANTS = tuple(
    moment.replace(tzinfo=zone)
    for moment, zone in zip(MOMENTS, [UTC, EAST, WEST] * 6, strict=False)
)
TIMES = tuple(time(number, 30, microsecond=number * 1000) for number in range(16))
ZONED_TIMES = tuple(value.replace(tzinfo=UTC) for value in TIMES)
SPANS = tuple(timedelta(days=number, seconds=90 * number) for number in range(16))
IDS = tuple(
    uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128) for number in range(1, 17)
)
ID_TEXTS = tuple(str(value) for value in IDS)
BLOBS = (
    *tuple(bytes([number, 0, 255 - number]) for number in range(12)),
    b"",
    b"a",
    b"A",
    b"\x00",
    b"1",
)
WORDS = (
    "red",
    "Red",
    "green",
    "blue",
    "black",
    "white",
    "grey",
    "pink",
    "client",
    "trigger",
    "server",
)
SHORTS = (*tuple(text for text in TEXTS if len(text) <= 4), "cli", "tri", "ser")
CENTS = tuple(Decimal(number) / 100 for number in range(5, 500, 33))
NO_ZERO = tuple(text for text in TEXTS if text)

KINDS: tuple[Kind, ...] = (
    Kind("integer", sa.Integer, number(), 6),
    Kind("small", sa.SmallInteger, number(), 1),
    Kind("big", sa.BigInteger, (2**40, -(2**63), 2**63 - 1, *number()), 2),
    Kind("string", lambda: sa.String(30), TEXTS, 6),
    Kind("text", sa.Text, TEXTS, 2),
    Kind("unicode", lambda: sa.Unicode(30), TEXTS, 1),
    Kind("char", lambda: sa.CHAR(4), SHORTS, 2),
    Kind("numeric", lambda: sa.Numeric(10, 2), DECIMALS, 2),
    Kind("bare numeric", sa.Numeric, FINE, 1.5),
    Kind("numeric 20, 12", lambda: sa.Numeric(20, 12), FINE[:2] + DECIMALS, 0.7),
    Kind("numeric floats", lambda: sa.Numeric(10, 2, asdecimal=False), tuple(map(float, DECIMALS)), 0.7),
    Kind("float", sa.Float, FLOATS, 0.8),
    Kind("double", sa.Double, FLOATS, 0.5),
    Kind("date", sa.Date, DATES, 1.5),
    Kind("datetime", sa.DateTime, MOMENTS, 1.5),
    Kind("time", sa.Time, TIMES, 1),
    Kind("interval", sa.Interval, SPANS, 0.4),
    Kind("uuid", sa.Uuid, IDS, 1.5),
    Kind("uuid text", lambda: sa.Uuid(as_uuid=False), ID_TEXTS, 0.7),
    Kind("uuid char", lambda: sa.Uuid(native_uuid=False), IDS, 0.7),
    Kind("enum", lambda: sa.Enum(Mood, native_enum=False, length=9), tuple(Mood), 1),
    Kind("enum values", lambda: sa.Enum(Mood, native_enum=False, length=9,
         values_callable=lambda kind: [one.value for one in kind]), tuple(Mood), 1),
    Kind("enum words", lambda: sa.Enum(*WORDS, native_enum=False, length=9), WORDS, 1),
    Kind("bytes", sa.LargeBinary, BLOBS, 1),
    Kind("boolean", sa.Boolean, (True, False, True, False), 0.2),
    Kind("lower", Lower, TEXTS, 1),
    Kind("prefixed", Prefixed, TEXTS, 1),
    Kind("cents", Cents, CENTS, 0.8),
    Kind("read only", ReadOnly, TEXTS, 0.4),
    Kind("by database", ByDatabase, TEXTS, 0.3),
    Kind("variant", lambda: sa.String(30).with_variant(sa.Text(), "postgresql"), TEXTS, 0.5),
    Kind("json", sa.JSON, ({"a": 1}, [1], 5, "x", {"a": 1.0}, [2], [3], [4], [5]), 0.15),
    # SQLite: collations, affinities, types that it does not know
    Kind("nocase", lambda: sa.String(30, collation="NOCASE"), TEXTS, 1.5, "sqlite"),
    Kind("rtrim", lambda: sa.String(30, collation="RTRIM"), TEXTS, 0.4, "sqlite"),
    Kind("undeclared nocase", lambda: sa.String(30), TEXTS, 0.3, "sqlite", "VARCHAR(30) COLLATE NOCASE"),
    Kind("text as integer", sa.Integer, number(), 0.2, "sqlite", "TEXT"),
    Kind("integer as text", lambda: sa.String(30), TEXTS, 0.2, "sqlite", "INTEGER"),
    Kind("numeric as text", lambda: sa.String(30), TEXTS, 0.2, "sqlite", "NUMERIC"),
    Kind("no type as integer", sa.Integer, number(), 0.2, "sqlite", "ANYTHING"),
    Kind("real as integer", sa.Integer, number(), 0.2, "sqlite", "REAL"),
    Kind("stored date", lambda: sa.DateTime(timezone=True), MOMENTS, 0.3, "sqlite"),
    # PostgreSQL
    Kind("instant", lambda: sa.DateTime(timezone=True), INSTANTS, 1.5, "postgresql"),
    Kind("undeclared instant", sa.DateTime, MOMENTS, 0.2, "postgresql", "TIMESTAMPTZ"),
    Kind("zoned time", lambda: sa.Time(timezone=True), ZONED_TIMES, 0.4, "postgresql"),
    Kind("seconds", lambda: pg.TIMESTAMP(precision=0), MOMENTS, 0.4, "postgresql"),
    Kind("collate C", lambda: sa.String(30, collation="C"), TEXTS, 0.7, "postgresql"),
    Kind("collate ignoring case", lambda: sa.String(30), TEXTS, 0.3, "postgresql",
         'VARCHAR(30) COLLATE "nocase"',
         ("CREATE COLLATION nocase (provider=icu, locale='und-u-ks-level2', deterministic=false)",)),
    Kind("citext", pg.CITEXT, TEXTS, 0.8, "postgresql"),
    Kind("native enum", lambda: pg.ENUM(Mood, name="mood", create_type=False), tuple(Mood), 0.8,
         "postgresql", None,
         (f"CREATE TYPE mood AS ENUM ({', '.join(repr(mood.name) for mood in Mood)})",)),
    Kind("domain", lambda: sa.String(30), TEXTS, 0.3, "postgresql", "short",
         ("CREATE DOMAIN short AS VARCHAR(30)",)),
    Kind("array", lambda: pg.ARRAY(sa.Integer), ([1], [1, 2], [], [3], [4], [5], [6], [7]), 0.15, "postgresql"),
    Kind("jsonb", pg.JSONB, ({"a": 1}, [1], 5, {"a": 1.0}, [2], [3], [4], [5]), 0.15, "postgresql"),
    Kind("inet", pg.INET, ("10.0.0.1", "10.0.0.1/32", "::1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"), 0.15, "postgresql"),
    Kind("bit", lambda: pg.BIT(4), ("0001", "0010", "0011", "0100", "0101", "0110", "0111"), 0.1, "postgresql"),
    Kind("padded as text", lambda: sa.String(4), SHORTS, 0.3, "postgresql", "CHAR(4)"),
    Kind("text as padded", lambda: sa.CHAR(4), SHORTS, 0.3, "postgresql", "VARCHAR(4)"),
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}


def raw(kind: Kind, value: Any, dialect: Dialect) -> Any:
    """What the driver gets for a value."""
    if value is None:
        return None
    process = kind.make().dialect_impl(dialect).bind_processor(dialect)
    return process(value) if process else value


def literal(value: Any, dialect: Dialect) -> str:
    """A driver's value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value)) if dialect.name == "sqlite" else str(value).upper()
    if isinstance(value, int | float | Decimal):
        return str(value) if not isinstance(value, float) else repr(value)
    if isinstance(value, bytes | bytearray | memoryview):
        text = bytes(value).hex()
        return f"X'{text}'" if dialect.name == "sqlite" else f"'\\x{text}'::bytea"
    if hasattr(value, "obj"):  # psycopg's wrapper of JSON
        value = json.dumps(value.obj)
    if isinstance(value, list):
        value = "{" + ",".join(map(str, value)) + "}"
    if isinstance(value, timedelta):
        return f"INTERVAL '{value.total_seconds()} seconds'"
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'"


def spellings(value: Any) -> Iterator[Any]:
    """Other values that a database may call equal to this one."""
    if isinstance(value, bool):
        yield int(value)
    elif isinstance(value, int):
        yield from (float(value), Decimal(value), str(value), f"{value}.0")
        if value in (0, 1):
            yield bool(value)
    elif isinstance(value, float | Decimal):
        number = Decimal(value)
        yield from (number, float(number), str(number), number.normalize())
        if number == number.to_integral_value() and abs(number) < 2**63:
            yield int(number)
    elif isinstance(value, str):
        yield from (value + " ", value.rstrip(), value.upper(), value.lower(), value.swapcase())
        yield from (unicodedata.normalize("NFC", value), unicodedata.normalize("NFD", value))
    elif isinstance(value, datetime):
        yield value.isoformat()
        if value.tzinfo is not None:
            yield from (value.astimezone(EAST), value.astimezone(WEST))
        elif value.time() == time():
            yield value.date()
    elif isinstance(value, date):
        yield from (datetime.combine(value, time()), value.isoformat())
    elif isinstance(value, time):
        yield value.isoformat()
    elif isinstance(value, uuid.UUID):
        yield from (str(value), value.hex, str(value).upper())
    elif isinstance(value, bytes):
        yield from (bytearray(value), memoryview(value))
    elif isinstance(value, enum.Enum):
        yield from (value.name, value.value)
