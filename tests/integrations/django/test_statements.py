"""What is read from a statement's text: the places of its keys, or that they are not known."""

from __future__ import annotations

import pytest

from bloomtide.integrations.django.statements import NOTHING, Written, read

SEEN = {
    'INSERT INTO "basket" ("id", "customer") VALUES (%s, %s)': (1,),
    'INSERT INTO "basket" ("customer", "id") VALUES (%s, %s), (%s, %s)': (0, 2),
    'INSERT INTO "basket" ("at", "customer") VALUES (NOW() + %s, %s), (f(%s, %s), %s)': (1, 4),
    'INSERT OR IGNORE INTO "basket" ("customer") VALUES (%s)': (0,),
    'INSERT INTO public."Basket" ("customer") VALUES (%s) RETURNING "basket"."id"': (0,),
    'INSERT INTO "basket" ("customer", "n") VALUES (%s, %s) ON CONFLICT("customer") DO UPDATE'
    ' SET "customer" = EXCLUDED."customer", "n" = EXCLUDED."n"': (0,),
    'INSERT INTO "basket" ("customer") VALUES (%s) ON CONFLICT (id) DO UPDATE SET customer = %s'
    " WHERE basket.id > %s": (0, 1),
    'UPDATE "basket" SET "n" = %s, "customer" = %s WHERE "basket"."id" = %s': (1,),
    'UPDATE "basket" SET "n" = (SELECT max(n), %s FROM x), customer = %s': (1,),
    "  insert into basket(customer) values(%s)  ; ": (0,),
}

UNSEEN = [
    'INSERT INTO "basket" ("customer") VALUES (%s + 1)',
    'INSERT INTO "basket" ("customer") VALUES (%s), (DEFAULT)',
    "INSERT INTO basket (customer) VALUES (4711)",
    "INSERT INTO basket (customer, note) VALUES (%s, 'it''s (')",
    "INSERT INTO basket (customer) VALUES (%(customer)s)",
    "INSERT INTO basket VALUES (%s)",
    "INSERT INTO basket DEFAULT VALUES",
    "INSERT INTO basket (customer) SELECT customer FROM archive WHERE id = %s",
    'INSERT INTO "basket" ("customer") VALUES (%s) ON CONFLICT(id) DO UPDATE SET "customer" = 5',
    'INSERT INTO "basket" ("n", "customer") VALUES (%s, %s, %s)',
    "REPLACE INTO basket (customer) VALUES (%s)",
    'UPDATE "basket" SET "customer" = ("basket"."customer" + %s)',
    'UPDATE "basket" SET "customer" = CASE WHEN ("id" = %s) THEN %s ELSE NULL END',
    "UPDATE basket AS b SET customer = %s",
    "UPDATE basket SET (customer, n) = (%s, %s)",
    "UPDATE basket SET customer = %s -- , n = %s",
    "WITH x AS (INSERT INTO basket (customer) VALUES (%s) RETURNING 1) SELECT * FROM x",
    "SELECT 1; INSERT INTO basket (customer) VALUES (%s)",
    "ALTER TABLE basket RENAME TO other",
    "CREATE TABLE basket AS SELECT 1",
    "COPY basket FROM STDIN",
    "CALL fill(%s)",
    "DO $$ BEGIN PERFORM fill(); END $$",
]

NOT_WRITTEN = [
    'SELECT "customer" FROM "basket" WHERE "customer" = %s',
    "SAVEPOINT s1",
    "ROLLBACK TO SAVEPOINT s1",
    "COMMIT",
    'INSERT INTO "orders" ("customer") VALUES (%s + 1)',
    'INSERT INTO "basket_archive" ("customer") SELECT "customer" FROM "basket"',
    'UPDATE "basketarchive" SET "customer" = "customer" + 1',
    'UPDATE "basket" SET "n" = "n" + 1 WHERE "customer" = %s',
    "CREATE TABLE orders (id int)",
]


@pytest.mark.parametrize("sql", SEEN)
def test_plain_values_are_found_at_their_places(sql: str) -> None:
    assert read(sql, "basket", "customer") == Written(SEEN[sql])


@pytest.mark.parametrize("sql", UNSEEN)
def test_what_is_not_plain_is_not_guessed(sql: str) -> None:
    assert read(sql, "basket", "customer").unseen


@pytest.mark.parametrize("sql", NOT_WRITTEN)
def test_what_writes_no_key_is_let_be(sql: str) -> None:
    assert read(sql, "basket", "customer") == NOTHING


def test_the_lists_of_a_bulk_insert_are_found() -> None:
    sql = (
        'INSERT INTO "basket" ("n", "customer") SELECT * FROM UNNEST((%s)::integer[],'
        ' (%s)::double precision[]) ON CONFLICT DO NOTHING RETURNING "basket"."id"'
    )
    assert read(sql, "basket", "customer") == Written((1,), arrays=True)
    assert read(sql.replace("(%s)::integer[]", "f(%s)"), "basket", "n").unseen


def test_rows_without_the_column_and_deleted_rows_are_told() -> None:
    assert read('INSERT INTO "basket" ("n") VALUES (%s)', "basket", "customer").missing
    assert read('DELETE FROM "basket" WHERE "id" IN (%s)', "basket", "customer").deletes


def test_the_text_of_a_bulk_insert_of_any_size_is_read() -> None:
    rows = ", ".join(["(%s, %s)"] * 20_000)
    found = read(f'INSERT INTO "basket" ("n", "customer") VALUES {rows}', "basket", "customer")
    assert found == Written(tuple(range(1, 40_000, 2)))
