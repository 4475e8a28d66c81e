"""A column that is not what its mapping says is refused, since its keys would be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import (
    CHAR,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Enum,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    Time,
    Uuid,
    create_engine,
    select,
)
from sqlalchemy.dialects.postgresql import CITEXT

from bloomtide import DatabaseGuard
from bloomtide.errors import ParameterError
from tests.guard.databases import BASKET, Database


def made(database: Database, declared: str, kind: Any, schema: str | None = None) -> Column[Any]:
    """A column of one type, mapped as another."""
    database.run(f"CREATE TABLE probe (id integer primary key, x {declared})")
    columns = (Column("id", Integer, primary_key=True), Column("x", kind))
    return Table("probe", MetaData(), *columns, schema=schema).c.x


def refuse(database: Database, declared: str, kind: Any, why: str) -> None:
    column = made(database, declared, kind)
    with pytest.raises(ParameterError, match=why) as caught:
        DatabaseGuard(database.engine, column)
    assert "normal" in caught.value.hint
    with DatabaseGuard(database.engine, column, normal=str) as guard:
        assert guard.build(), "the caller knows"


@pytest.mark.parametrize(
    ("declared", "kind", "why"),
    [
        ("TEXT COLLATE NOCASE", String(), "'a' and 'A' are equal"),
        ("TEXT COLLATE RTRIM", String(), "'a' and 'a ' are equal"),
        ("TEXT COLLATE NOCASE", CHAR(5), "'a' and 'A' are equal"),
        ("INTEGER", String(), "INTEGER"),
        ("STRING", String(), "STRING"),  # which is a number to SQLite
        ("uuid", Uuid(), "uuid"),
    ],
)
def test_a_column_of_sqlite_that_compares_otherwise_is_refused(
    sqlite_basket: Database, declared: str, kind: Any, why: str
) -> None:
    refuse(sqlite_basket, declared, kind, why)


@pytest.mark.parametrize(
    ("declared", "kind", "why"),
    [
        ("citext", String(), "'a' and 'A' are equal"),
        ("text COLLATE any_case", String(), "'a' and 'A' are equal"),
        ("text COLLATE any_accent", CITEXT(), ""),
        ("character(5)", String(), "'a' and 'a ' are equal"),
        ("address", String(), "'a' and 'A' are equal"),
        ("timestamp with time zone", DateTime(), "with time zone"),
        ("timestamp", DateTime(timezone=True), "without time zone"),
        ("timestamp(0)", DateTime(), r"timestamp\(0\)"),
        ("timestamp", Date(), "timestamp"),
        ("date", DateTime(), "date"),
        ("time(3)", Time(), r"time\(3\)"),
        ("numeric(10,2)", Integer(), "numeric"),
        ("numeric(10,1)", Numeric(), "numeric"),
        ("numeric(10,1)", Numeric(10, 2), "numeric"),
        ("double precision", Numeric(), "double"),
        ("integer", Numeric(), "integer"),
        ("inet", String(), "inet"),
    ],
)
def test_a_column_of_postgresql_that_compares_otherwise_is_refused(
    postgres_basket: Database, declared: str, kind: Any, why: str
) -> None:
    icu = "(provider = icu, locale = '{}', deterministic = false)"
    postgres_basket.run(
        "CREATE EXTENSION citext",
        f"CREATE COLLATION any_case {icu.format('und-u-ks-level2')}",
        f"CREATE COLLATION any_accent {icu.format('und-u-ks-level1')}",
        "CREATE DOMAIN address AS citext",
    )
    if why:
        refuse(postgres_basket, declared, kind, why)
    else:
        with DatabaseGuard(postgres_basket.engine, made(postgres_basket, declared, kind)) as guard:
            assert guard.build(), "what folds as much or more is as good"


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("text", String()),
        ("text", String(20)),
        ("varchar(20)", Text()),
        ("varchar(20)", Enum("red", "green", native_enum=False)),
        ("char(32)", Uuid(native_uuid=False)),
        ("char(5)", CHAR(5)),
        ("char(5)", CHAR(1)),
        ("bigint", Integer()),
        ("smallint", BigInteger()),
        ("boolean", Boolean()),
        ("numeric(10,2)", Numeric(10, 2)),
        ("numeric(12,4)", Numeric(10, 2)),
        ("numeric", Numeric()),
        ("date", Date()),
        ("time", Time()),
        ("timestamp", DateTime()),
        ("timestamp(6)", DateTime()),
    ],
)
def test_a_column_that_is_what_its_mapping_says_is_guarded(
    basket: Database, declared: str, kind: Any
) -> None:
    with DatabaseGuard(basket.engine, made(basket, declared, kind)) as guard:
        assert guard.build()


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("uuid", Uuid()),
        ("bytea", LargeBinary()),
        ("timestamp with time zone", DateTime(timezone=True)),
        ("citext", CITEXT()),
        ("bpchar", CHAR(5)),
        ("citext", String().with_variant(CITEXT(), "postgresql")),
        ("colour", Enum("red", "green", name="colour")),
    ],
)
def test_types_that_only_postgresql_has_are_guarded(
    postgres_basket: Database, declared: str, kind: Any
) -> None:
    postgres_basket.run("CREATE EXTENSION citext", "CREATE TYPE colour AS ENUM ('red', 'green')")
    with DatabaseGuard(postgres_basket.engine, made(postgres_basket, declared, kind)) as guard:
        assert guard.build()


def test_blanks_that_the_database_cuts_off_make_another_key(postgres_basket: Database) -> None:
    """A mapping without a length does not know that the column has one."""
    column = made(postgres_basket, "varchar(4)", String())
    with DatabaseGuard(postgres_basket.engine, column, 1e-6) as guard:
        assert guard.build()
        with postgres_basket.engine.begin() as connection:
            connection.execute(column.table.insert(), {"id": 1, "x": "ab     "})
            assert connection.scalar(select(column)) == "ab  "
        assert guard.may_exist("ab  ")


@pytest.mark.parametrize(("declared", "why"), [("integer", "(?i)integer"), ("text", "")])
def test_names_that_need_quotes_and_schemas_are_looked_up(
    basket: Database, declared: str, why: str
) -> None:
    schema = "main" if basket.kind == "sqlite" else "public"
    basket.run(rf'CREATE TABLE {schema}."A b\:%" (id integer primary key, "c\:%d" {declared})')
    columns = (Column("id", Integer, primary_key=True), Column("c:%d", String))
    table = Table("A b:%", MetaData(), *columns, schema=schema)
    if why:
        with pytest.raises(ParameterError, match=why):
            DatabaseGuard(basket.engine, table.c["c:%d"])
    else:
        with DatabaseGuard(basket.engine, table.c["c:%d"]) as guard:
            assert guard.build()


def test_rows_that_a_policy_hides_are_no_base_for_a_guard(postgres_basket: Database) -> None:
    postgres_basket.run(
        "DROP ROLE IF EXISTS clerk",
        "CREATE ROLE clerk LOGIN",
        "GRANT SELECT, INSERT ON basket TO clerk",
        "ALTER TABLE basket ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY few ON basket USING (customer < 10)",
    )
    clerk = create_engine(postgres_basket.engine.url.set(username="clerk"))
    with pytest.raises(ParameterError, match="row security") as caught:
        DatabaseGuard(clerk, BASKET.c.customer)
    assert "BYPASSRLS" in caught.value.hint
    clerk.dispose()
    with DatabaseGuard(postgres_basket.engine, BASKET.c.customer) as guard:
        assert guard.build(), "the owner sees all rows"
    postgres_basket.run("DROP OWNED BY clerk", "DROP ROLE clerk")
