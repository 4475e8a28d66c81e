"""Values that a database calls equal have the same key, whichever way they come."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import (
    CHAR,
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Engine,
    Enum,
    Float,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    Numeric,
    PickleType,
    String,
    Table,
    Text,
    Time,
    TypeDecorator,
    Uuid,
    func,
    select,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.dialects.postgresql import CITEXT
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from bloomtide import DatabaseGuard
from bloomtide.errors import KeyTypeError, ParameterError
from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.values import KeyMaker

LITE: Dialect = sqlite.dialect()
POST: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
UTC, EAST = dt.UTC, dt.timezone(dt.timedelta(hours=5))
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=UTC)
ID = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Colour(enum.Enum):
    RED = "r"


class Lower(TypeDecorator[str]):
    """Stored in lower case, and shouted when it is read."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.lower()

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.upper() + "!"


class LowerInSql(String):
    """The database makes it lower case when it is written."""

    def bind_expression(self, bindparam: Any) -> Any:
        return func.lower(bindparam)


class LowerOnTheWay(String):
    """The driver gets it in lower case."""

    def bind_processor(self, dialect: Dialect) -> Any:
        return str.lower


class AnyCase(TypeDecorator[str]):
    """Compared without case."""

    impl = String
    cache_ok = True

    class comparator_factory(TypeDecorator.Comparator[str]):  # noqa: N801 - SQLAlchemy's name
        def __eq__(self, other: object) -> Any:
            return func.lower(self.expr) == func.lower(other)


SECONDS = sqlite.DATETIME(truncate_microseconds=True)  # type: ignore[no-untyped-call]


def normal(kind: Any, dialect: Dialect = POST) -> KeyMaker:
    """Of a column that is as long as its type says."""
    made = KeyMaker([Column("x", kind)], dialect)
    made.limit(0, getattr(kind, "length", None))
    return made


SAME: list[tuple[Any, Dialect, list[Any]]] = [
    (Integer(), POST, [1, 1.0, True, "1", Decimal(1), Decimal("1.00")]),
    (BigInteger(), POST, [2**70, str(2**70)]),
    (Boolean(), POST, [True, 1]),
    (String(), POST, ["a", "a"]),
    (String(), LITE, ["5", 5]),
    (CHAR(5), POST, ["a", "a  "]),
    (String(collation="NOCASE"), LITE, ["Straße", "STRASSE", "straße"]),
    (String(collation="RTRIM"), LITE, ["a", "a  "]),
    (CITEXT(), POST, ["İ", "i", "I", "ı"]),
    (String().with_variant(CITEXT(), "postgresql"), POST, ["a", "A"]),
    (Lower().with_variant(CITEXT(), "postgresql"), POST, ["a", "A"]),
    (Numeric(10, 2), POST, [1, Decimal("1.0"), Decimal("1.00"), 1.0, "1"]),
    (Numeric(), POST, [Decimal("0.1"), 0.1, Decimal("0.10000000000000000001")]),
    (Numeric(), POST, [0, Decimal("-0"), -0.0]),
    (Uuid(), POST, [ID, str(ID), str(ID).upper(), ID.hex]),
    (LargeBinary(), POST, [b"a", bytearray(b"a"), memoryview(b"a")]),
    (DateTime(timezone=True), POST, [NOON, NOON.astimezone(EAST)]),
    (DateTime(timezone=True), LITE, [NOON, NOON.replace(tzinfo=None), NOON.replace(tzinfo=EAST)]),
    (Enum(Colour), POST, [Colour.RED, "RED"]),
    (Lower(), POST, ["ABC", "abc"]),
    (LowerOnTheWay(), LITE, ["ABC", "abc"]),
    (SECONDS, LITE, [NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, microsecond=5)]),
]


@pytest.mark.parametrize(("kind", "dialect", "values"), SAME)
def test_equal_values_have_one_key(kind: Any, dialect: Dialect, values: list[Any]) -> None:
    keys = {normal(kind, dialect).key(value) for value in values}
    assert len(keys) == 1
    assert None not in keys


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (Integer(), 1, 2),
        (Integer(), 1, -1),
        (String(), "a", "A"),
        (String(), "a", "a "),
        (Numeric(10, 2), Decimal("1.01"), Decimal("1.1")),
        (Uuid(), ID, uuid.UUID(int=1)),
        (Date(), dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
        (DateTime(), NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, microsecond=1)),
        (Time(), dt.time(1), dt.time(2)),
        (LargeBinary(), b"a", b"b"),
    ],
)
def test_different_values_have_different_keys(kind: Any, first: Any, second: Any) -> None:
    assert normal(kind).key(first) != normal(kind).key(second)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Integer(), 1.5),
        (Integer(), " 1"),
        (Integer(), "1e3"),
        (Integer(), float("inf")),
        (String(3), "abc   "),
        (Numeric(10, 2), Decimal("1.005")),
        (Numeric(10, 2), Decimal("NaN")),
        (Numeric(10, 2), "one"),
        (DateTime(timezone=True), NOON.replace(tzinfo=None)),
        (DateTime(), NOON),
        (Date(), NOON),
        (Time(), dt.time(1, tzinfo=UTC)),
    ],
)
def test_a_value_that_the_database_may_change_has_no_key(kind: Any, value: Any) -> None:
    with pytest.raises(Unseen):
        normal(kind).key(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Integer(), b"1"),
        (Integer(), object()),
        (String(), 1.5),
        (LargeBinary(), "text"),
        (Uuid(), "no uuid"),
        (Date(), "2026-01-01"),
        (DateTime(), 5),
        (Time(), 5),
        (Numeric(), b"1"),
        (Enum(Colour), 5),
    ],
)
def test_a_value_of_another_type_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(KeyTypeError, match="a key of this column is"):
        normal(kind).key(value)


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [
        (Float(), POST),
        (JSON(), POST),
        (Interval(), LITE),
        (PickleType(), LITE),
        (String(20), mysql.dialect()),
        (String(20, collation="de_DE"), POST),
        (DateTime(), mysql.dialect()),
        (postgresql.TIMESTAMP(precision=0), POST),
        (Time(timezone=True), POST),
        (Integer().with_variant(JSON(), "postgresql"), POST),
        (LowerInSql(), LITE),
        (AnyCase(), LITE),
    ],
)
def test_a_column_that_compares_in_an_unknown_way_is_refused(
    kind: TypeEngine[Any], dialect: Dialect
) -> None:
    with pytest.raises(ParameterError, match="compares") as caught:
        normal(kind, dialect)
    assert "normal" in caught.value.hint


def test_none_is_no_key() -> None:
    assert normal(Integer()).key(None) is None
    two = KeyMaker([Column("x", Integer), Column("y", Integer)], POST)
    assert two.key((1, None)) is None


part = st.text(alphabet="ab\0", max_size=4)


@given(st.tuples(part, part), st.tuples(part, part))
def test_the_parts_of_a_key_never_run_together(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    two = KeyMaker([Column("x", Text), Column("y", Text)], POST)
    assert (two.key(first) == two.key(second)) == (first == second)


@pytest.mark.parametrize("value", ["ab", 5, (1,), (1, 2, 3)])
def test_a_key_of_two_columns_is_a_tuple_of_two(value: Any) -> None:
    two = KeyMaker([Column("x", Text), Column("y", Text)], POST)
    with pytest.raises(KeyTypeError, match="tuple of 2"):
        two.key(value)


def test_a_function_of_the_caller_replaces_the_rules() -> None:
    rounded = KeyMaker([Column("x", Float)], POST, lambda value: round(value))
    assert rounded.key(1.2) == rounded.key(0.9) == 1
    with pytest.raises(KeyTypeError):
        KeyMaker([Column("x", Float)], POST, lambda value: [value]).key(1.0)  # type: ignore[arg-type, return-value]


STORED: list[tuple[Any, list[Any], list[Any]]] = [
    (Integer(), [5], [5, 5.0]),
    (String(20), ["Ä b"], ["Ä b"]),
    (CHAR(8), ["ab"], ["ab", "ab   "]),
    (Numeric(10, 2), [Decimal("1.50"), 2], [Decimal("1.5"), 1.5, 2, Decimal("2.00")]),
    (Uuid(), [ID], [ID]),
    (LargeBinary(), [b"\0x"], [b"\0x"]),
    (Date(), [NOON.date()], [NOON.date()]),
    (DateTime(), [NOON.replace(tzinfo=None)], [NOON.replace(tzinfo=None)]),
    (DateTime(timezone=True), [NOON], [NOON]),
    (Time(), [dt.time(1, 2, 3)], [dt.time(1, 2, 3)]),
    (Boolean(), [True], [True]),
    (Enum(Colour), [Colour.RED], [Colour.RED]),
    (Lower(), ["AbC"], ["abc", "ABC"]),
]


@pytest.mark.filterwarnings("ignore:Dialect sqlite.* does \\*not\\* support Decimal")
@pytest.mark.parametrize(("kind", "written", "asked"), STORED)
def test_a_real_database_never_finds_what_the_guard_calls_absent(
    engine: Engine, kind: Any, written: list[Any], asked: list[Any]
) -> None:
    """Both for keys seen when they were written, and for keys read by a build."""
    table = Table("stored", MetaData(), Column("id", Integer, primary_key=True), Column("x", kind))
    table.drop(engine, checkfirst=True)
    table.create(engine)
    with DatabaseGuard(engine, table.c.x, 1e-6) as guard:
        assert guard.build()
        with engine.begin() as connection:
            connection.execute(table.insert(), [{"x": value} for value in written])
        assert guard.stats().reason == ""
        for _ in range(2):
            with engine.connect() as connection:
                for value in asked:
                    there = connection.scalar(select(table.c.id).where(table.c.x == value))
                    assert guard.may_exist(value) or there is None
                assert any(guard.exists(connection, value) for value in asked)
            assert guard.build()
    table.drop(engine)
