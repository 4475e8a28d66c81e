"""A text that may write to a table is never called harmless."""

from __future__ import annotations

import pytest

from bloomtide.guard.writes.sql import NOTHING, Effect, Reader, Special, Target
from bloomtide.guard.writes.tokens import Parameter

HARMLESS = [
    "SELECT * FROM basket",
    "  -- about the basket\n/* really */ SELECT 1",
    "INSERT INTO log VALUES (1)",
    "INSERT INTO log VALUES (1) /* route=/basket */",
    "INSERT INTO log VALUES ('a b')  -- it's so",
    "SELECT ';--' FROM basket",
    "/* it's */ SELECT 1",
    "PRAGMA journal_mode = WAL",
    "",
    ";",
]
UNKNOWN = [
    "INSERT INTO basket VALUES (1)",
    'insert into "Basket" values (1)',
    "/* SELECT */ INSERT INTO basket VALUES (1)",
    "/* a /* b */ SELECT */ INSERT INTO basket VALUES (1)",
    "SELECT 1; INSERT INTO basket VALUES (1)",
    "SELECT '--'; INSERT INTO basket VALUES (1)",
    "INSERT INTO log VALUES ('--'); INSERT INTO basket VALUES (1)",
    "SELECT '/*'; INSERT INTO basket VALUES ('*/')",
    "SELECT $$--$$; INSERT INTO basket VALUES (1)",
    "WITH x AS (SELECT '; SELECT') INSERT INTO basket SELECT 1",
    "/* a; b */ INSERT INTO basket VALUES (1)",
    "SELECT E'\\'' ; INSERT INTO basket VALUES ('x')",
    "CALL fill()",
    "DO $$ BEGIN END $$",
    "COMMIT PREPARED 'x'",
    "EXECUTE fill",
]


def read(
    text: str, dialect: str = "postgresql", columns: tuple[str, ...] = ("customer",)
) -> Effect:
    return Reader(Target(dialect, "basket", columns)).read(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_does_not_write_to_the_table_is_harmless(text: str) -> None:
    assert read(text) == NOTHING


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_may_write_to_the_table_is_unknown(text: str) -> None:
    assert read(text, "sqlite").unseen
    if '"Basket"' not in text:  # another table to PostgreSQL
        assert read(text).unseen


@pytest.mark.parametrize("text", ["COMMIT", "begin immediate", "/* x */ ROLLBACK TO a", "END;"])
def test_what_begins_or_ends_a_transaction_is_told(text: str) -> None:
    assert read(text) == Effect(ends_transaction=True)


DDL = [
    "ALTER SCHEMA shop RENAME TO old",
    "ALTER TABLE old RENAME TO new",
    "ALTER TABLE basket ADD COLUMN remark text",
    "ALTER TABLE part ATTACH PARTITION other FOR VALUES IN (1)",
    "ATTACH DATABASE 'shop.db' AS other",
    "CREATE TRIGGER t AFTER INSERT ON other EXECUTE FUNCTION fill()",
    "CREATE OR REPLACE FUNCTION fill() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
    "CREATE RULE r AS ON INSERT TO other DO ALSO NOTHING",
    "DROP TABLE basket",
    "SET search_path TO other",
    "SELECT set_config('search_path', 'other', false)",
    "SELECT set_config(%s, %s, false)",
    "PRAGMA writable_schema = 1",
]
OTHER_DDL = [
    "CREATE TABLE other (id integer)",
    "CREATE UNIQUE INDEX i ON other (id)",
    "DROP TABLE IF EXISTS other",
    "ALTER TABLE other ADD COLUMN remark text",
    "PRAGMA foreign_keys = ON",
    "SET TIME ZONE 'UTC'",
    "SELECT set_config( 'app.user', %s, false)",
]


@pytest.mark.parametrize("text", DDL)
def test_ddl_that_is_not_understood_or_names_the_table_is_unknown(text: str) -> None:
    assert read(text).unseen


@pytest.mark.parametrize("text", OTHER_DDL)
def test_ddl_that_concerns_other_tables_only_is_harmless(text: str) -> None:
    assert read(text) == NOTHING


P = Parameter
SEEN = {
    'INSERT INTO "basket" ("id", "customer") VALUES (%s, %s)': [P(1)],
    'INSERT INTO "basket" ("customer", "id") VALUES (%s, %s), (%s, %s)': [P(0), P(2)],
    'INSERT INTO "basket" ("at", "customer") VALUES (NOW() + %s, %s), (f(%s, %s), %s)': [
        P(1),
        P(4),
    ],
    'INSERT OR IGNORE INTO "basket" ("customer") VALUES (%s)': [P(0)],
    'INSERT INTO public."basket" ("customer") VALUES (%s) RETURNING "basket"."id"': [P(0)],
    'INSERT INTO "basket" ("customer", "n") VALUES (%s, %s) ON CONFLICT("customer") DO UPDATE'
    ' SET "customer" = EXCLUDED."customer", "n" = EXCLUDED."n"': [P(0)],
    "INSERT INTO basket (customer) VALUES (%(customer)s::INTEGER)": [P("customer", "integer")],
    "INSERT INTO basket (customer) VALUES (%(c)s::NUMERIC(10, 2))": [P("c", "numeric(10,2)")],
    "INSERT INTO basket (customer) VALUES ($2::BIGINT)": [P(1, "bigint")],
    "INSERT INTO basket (customer) VALUES (:customer)": [P("customer")],
    "REPLACE INTO basket (customer) VALUES (%s)": [P(0)],
    "INSERT INTO basket (customer, note) VALUES (%s, 'it''s (')": [P(0)],
    "INSERT INTO basket (customer) SELECT p0::INTEGER FROM (VALUES (%s, 0)) AS imp_sen(p0, n)"
    " ORDER BY n": [P(0, "integer")],
    'INSERT INTO "basket" ("n") VALUES (%s)': [Special.FILLED],
    "INSERT INTO basket DEFAULT VALUES": [Special.FILLED],
    "INSERT INTO basket (customer) VALUES (NULL), (DEFAULT)": [Special.NULL, Special.FILLED],
    'UPDATE "basket" SET "n" = %s, "customer" = %s WHERE "basket"."id" = %s': [P(1)],
    'UPDATE "basket" SET "n" = (SELECT max(n), %s FROM x), customer = %s': [P(1)],
    "UPDATE basket AS b SET customer = %s": [P(0)],
    "  insert into basket(customer) values(%s)  ; ": [P(0)],
}
LITERALS_AS_NAMES = [
    "INSERT INTO 'basket' (customer) VALUES (?)",
    "INSERT INTO main.'BASKET' ('customer') VALUES (?)",
    "UPDATE 'basket' SET 'customer' = ?",
]
OF_SQLITE = [
    "INSERT INTO 'basket' (customer) VALUES (1)",
    "SELECT 1; INSERT INTO 'basket' (customer) VALUES (?)",
    "INSERT INTO basket (customer, n, customer) VALUES (?, ?, ?)",  # it takes the first
    "UPDATE basket SET customer = ?, n = ?, customer = ?",  # and here the last
    "INSERT INTO basket (n, customer) VALUES (?2, ?)",  # which is the third
    "INSERT INTO basket (n, customer) VALUES (:n, ?)",
    "INSERT INTO basket (n, customer) VALUES (@n, ?)",
]
AS_DRIVERS_COUNT = [
    "INSERT INTO basket (n, customer) VALUES (%s /* %s */, %s)",
    "INSERT INTO basket (n, customer) VALUES (%s, -- %s\n %s)",
    'INSERT INTO basket ("n%s", customer) VALUES (%s, %s)',
    "INSERT INTO basket (n, customer) VALUES ('%s', %s)",
    "INSERT INTO basket (n, customer) -- \r VALUES (%s, %s) --\n VALUES (%s, %s)",
]
UNSEEN = [
    'INSERT INTO "basket" ("customer") VALUES (%s + 1)',
    "INSERT INTO basket (customer) VALUES (4711)",
    "INSERT INTO basket VALUES (%s)",
    "INSERT INTO basket (customer) SELECT customer FROM archive WHERE id = %s",
    'INSERT INTO "basket" ("customer") VALUES (%s) ON CONFLICT(id) DO UPDATE SET "customer" = 5',
    'INSERT INTO "basket" ("n", "customer") VALUES (%s, %s, %s)',
    'UPDATE "basket" SET "customer" = ("basket"."customer" + %s)',
    'UPDATE "basket" SET "customer" = CASE WHEN ("id" = %s) THEN %s ELSE NULL END',
    "UPDATE basket SET (customer, n) = (%s, %s)",
    "UPDATE basket SET customer = DEFAULT",
    "WITH x AS (INSERT INTO basket (customer) VALUES (%s) RETURNING 1) SELECT * FROM x",
    "INSERT INTO log WITH x AS (INSERT INTO basket (customer) VALUES (%s) RETURNING 1) SELECT 1",
    "SELECT 1; INSERT INTO basket (customer) VALUES (%s)",
    "CREATE TABLE basket AS SELECT 1",
    "COPY basket FROM STDIN",
]
NOT_WRITTEN = [
    'SELECT "customer" FROM "basket" WHERE "customer" = %s',
    'INSERT INTO "orders" ("customer") VALUES (%s + 1)',
    'INSERT INTO "basket_archive" ("customer") SELECT "customer" FROM "basket"',
    'UPDATE "basketarchive" SET "customer" = "customer" + 1',
    'UPDATE "basket" SET "n" = "n" + 1 WHERE "customer" = %s',
]


@pytest.mark.parametrize("sql", SEEN)
def test_plain_values_are_found_at_their_places(sql: str) -> None:
    assert [row[0] for row in read(sql).rows] == SEEN[sql]


@pytest.mark.parametrize("sql", UNSEEN)
def test_what_is_not_plain_is_not_guessed(sql: str) -> None:
    assert read(sql).unseen


@pytest.mark.parametrize("sql", LITERALS_AS_NAMES)
def test_a_literal_is_a_name_to_sqlite(sql: str) -> None:
    assert read(sql, "sqlite").rows == ((P(0),),)
    assert read(sql).unseen or read(sql) == NOTHING, "an error to PostgreSQL"
    where = "UPDATE basket SET n = ?, customer = ? WHERE 'n' = ?"
    assert read(where, "sqlite", ("n", "customer")).old is None, "but not in an expression"


@pytest.mark.parametrize("sql", OF_SQLITE)
def test_what_sqlite_reads_in_its_own_way_is_not_guessed(sql: str) -> None:
    assert read(sql, "sqlite").unseen


@pytest.mark.parametrize("sql", AS_DRIVERS_COUNT)
def test_a_parameter_that_only_drivers_count_is_not_guessed(sql: str) -> None:
    assert read(sql).unseen


def test_a_doubled_percent_sign_is_no_parameter() -> None:
    assert read("INSERT INTO basket (n, customer) VALUES (7 %%s, %s) /* %%s */").rows == ((P(0),),)


@pytest.mark.parametrize("letter", ["b", "ö"])
def test_names_that_postgresql_cuts_are_compared_as_it_keeps_them(letter: str) -> None:
    long = letter * 70
    kept = long.encode()[:63].decode(errors="ignore")
    reader = Reader(Target("postgresql", kept, (kept,)))
    for table, column in ((long, kept), (kept, long), (f'"{long}"', f'"{long}"')):
        for sql in (
            f"INSERT INTO {table} ({column}) VALUES (%s)",
            f"UPDATE {table} SET {column} = %s",
        ):
            effect = reader.read(sql)
            assert effect.rows == ((P(0),),) or (effect.unseen and letter == "ö")
    assert (
        Reader(Target("postgresql", long, (long,)))
        .read(f"INSERT INTO {kept} ({kept}) VALUES (%s)")
        .rows
        == ((P(0),),)
        or letter == "ö"
    )


def test_a_capital_that_not_every_database_makes_small_is_not_guessed() -> None:
    reader = Reader(Target("postgresql", "b\u00c4sket", ("customer",)))
    assert reader.read("INSERT INTO B\u00c4SKET (customer) VALUES (%s)").unseen


@pytest.mark.parametrize("sql", NOT_WRITTEN)
def test_what_writes_no_key_is_let_be(sql: str) -> None:
    assert read(sql) == NOTHING


def test_names_are_compared_as_the_database_does() -> None:
    sql = 'INSERT INTO basket ("Customer") VALUES (%s)'
    assert read(sql).rows == ((Special.FILLED,),), "another column"
    assert read(sql, "sqlite").rows == ((Parameter(0),),)
    other = 'INSERT INTO "Basket" (customer) VALUES (%s)'
    assert read(other) == NOTHING, "another table"
    assert read(other, "sqlite").rows == ((Parameter(0),),)


def test_the_key_of_the_rows_meant_is_found_if_it_is_certain() -> None:
    two = ("shop", "day")
    where = "UPDATE basket SET day = %s WHERE basket.shop = %s AND basket.day = %s"
    assert read(where, columns=two).rows == ((Parameter(1), Parameter(0)),)
    for doubt in (" OR n = 1", " AND n BETWEEN 1 AND 2", " AND CASE WHEN n = 1 THEN true END"):
        assert read(where + doubt, columns=two).unseen
    for other in ("shop = %s", "other.shop = %s AND basket.day = %s"):
        assert read(f"UPDATE basket SET day = %s WHERE {other}", columns=two).unseen
    assert read("DELETE FROM basket WHERE customer = %s").old == (Parameter(0),)
    assert read("DELETE FROM basket WHERE customer = %s OR n = 1").old is None


def test_the_lists_of_a_bulk_insert_are_found() -> None:
    sql = (
        'INSERT INTO "basket" ("n", "customer") SELECT * FROM UNNEST((%s)::integer[],'
        ' (%s)::double precision[]) ON CONFLICT DO NOTHING RETURNING "basket"."id"'
    )
    (row,) = read(sql).rows
    assert row == (Parameter(1, "double precision", is_list=True),)
    assert read(sql.replace("(%s)::integer[]", "f(%s)"), columns=("n",)).unseen


def test_the_text_of_a_bulk_insert_of_any_size_is_read() -> None:
    rows = ", ".join(["(%s, %s)"] * 20_000)
    found = read(f'INSERT INTO "basket" ("n", "customer") VALUES {rows}')
    assert [row[0] for row in found.rows] == [Parameter(place) for place in range(1, 40_000, 2)]
