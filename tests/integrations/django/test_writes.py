"""However Django writes a key, the guard knows it, or knows that it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connections, transaction

from bloomtide.guard.stats import State
from bloomtide.integrations.django import ModelGuard
from tests.integrations.django.shop.models import Basket
from tests.integrations.django.table import (
    ABSENT,
    baskets,
    check,
    execute,
    update_by_an_expression,
    write_and_fail,
)


def save(guard: ModelGuard) -> None:
    Basket(customer=100).save(using=guard.using)


def create_and_move(guard: ModelGuard) -> None:
    basket = baskets(guard).create(customer=100)
    basket.customer = 101
    basket.save()


def save_one_field(guard: ModelGuard) -> None:
    basket = baskets(guard).first()
    basket.customer = 101
    basket.save(update_fields=["customer"])


def bulk_create(guard: ModelGuard) -> None:
    baskets(guard).bulk_create([Basket(customer=i) for i in range(100, 400)], batch_size=150)


def bulk_create_or_ignore(guard: ModelGuard) -> None:
    rows = [Basket(customer=i) for i in range(40, 110)]
    baskets(guard).bulk_create(rows, ignore_conflicts=True)


def upsert(guard: ModelGuard) -> None:
    baskets(guard).bulk_create(
        [Basket(customer=i, note="again") for i in range(40, 110)],
        update_conflicts=True,
        unique_fields=["customer", "slot"],
        update_fields=["note"],
    )


def update(guard: ModelGuard) -> None:
    baskets(guard).filter(customer=7).update(customer=107, note="moved")


def get_or_create(guard: ModelGuard) -> None:
    baskets(guard).get_or_create(customer=100, defaults={"note": "new"})
    baskets(guard).update_or_create(customer=101, defaults={"note": "new"})


def plain_sql(guard: ModelGuard) -> None:
    execute(guard, "insert into shop_basket (customer, slot, note) values (%s, 0, %s)", [100, "x"])


def many_rows_of_sql(guard: ModelGuard) -> None:
    with connections[guard.using].cursor() as cursor:
        cursor.executemany(
            "insert into shop_basket (customer, slot, note) values (%s, %s, %s)",
            ((i, 0, "x") for i in range(100, 120)),
        )


def in_a_transaction(guard: ModelGuard) -> None:
    with transaction.atomic(using=guard.using):
        save(guard)
        with pytest.raises(ZeroDivisionError):
            write_and_fail(guard, update)  # a savepoint
        baskets(guard).create(customer=201)


SEEN = (
    save,
    create_and_move,
    save_one_field,
    bulk_create,
    bulk_create_or_ignore,
    upsert,
    update,
    get_or_create,
    plain_sql,
    many_rows_of_sql,
    in_a_transaction,
)


@pytest.mark.parametrize("write", SEEN)
def test_what_django_writes_is_seen(guard: ModelGuard, write: Callable[[ModelGuard], None]) -> None:
    before = baskets(guard).filter(customer__gte=100).count()
    write(guard)
    assert baskets(guard).filter(customer__gte=100).count() > before
    assert guard.state is State.READY
    check(guard)
    assert not guard.may_exist(ABSENT)


@pytest.mark.parametrize("write", SEEN)
def test_what_django_writes_is_known_before_its_commit(
    guard: ModelGuard, write: Callable[[ModelGuard], None]
) -> None:
    with transaction.atomic(using=guard.using):
        write(guard)
        check(guard)
    check(guard)


def sql_with_a_literal(guard: ModelGuard) -> None:
    execute(guard, "insert into shop_basket (customer, slot, note) values (100, 0, '')")


def sql_with_a_text_for_a_number(guard: ModelGuard) -> None:
    execute(guard, "insert into shop_basket (customer, slot, note) values (%s, 0, %s)", ["100", ""])


def insert_from_a_query(guard: ModelGuard) -> None:
    execute(
        guard,
        "insert into shop_basket (customer, slot, note)"
        " select customer + %s, 0, note from shop_basket",
        [100],
    )


def bulk_update(guard: ModelGuard) -> None:
    rows = list(baskets(guard).all())
    for row in rows:
        row.customer += 100
    baskets(guard).bulk_update(rows, ["customer"])


def ddl(guard: ModelGuard) -> None:
    execute(guard, "alter table shop_basket rename to elsewhere")
    execute(guard, "alter table elsewhere rename to shop_basket")
    baskets(guard).create(customer=100)


UNSEEN = (
    sql_with_a_literal,
    sql_with_a_text_for_a_number,
    insert_from_a_query,
    update_by_an_expression,
    bulk_update,
    ddl,
)


@pytest.mark.parametrize("write", UNSEEN)
def test_after_what_cannot_be_seen_everything_passes_until_a_build(
    guard: ModelGuard, write: Callable[[ModelGuard], None]
) -> None:
    write(guard)
    assert guard.state is State.DEGRADED
    assert guard.stats().reason
    assert guard.may_exist(ABSENT)
    check(guard)
    assert guard.build()
    assert baskets(guard).filter(customer__gte=100).exists()
    check(guard)
    assert not guard.may_exist(ABSENT)


def test_a_temporary_trigger_ends_the_trust_at_each_write_of_its_connection(
    guard: ModelGuard,
) -> None:
    if connections[guard.using].vendor != "sqlite":
        pytest.skip("its triggers of temporary tables are in the catalogue")
    execute(guard, "create table other (x integer)")
    execute(guard, "insert into other values (1)")
    execute(
        guard,
        "create temp trigger later after update on other begin"
        " insert into shop_basket (customer, slot, note) values (700, new.x, ''); end",
    )
    assert guard.may_exist(ABSENT)
    built: list[bool] = []

    def build() -> None:
        built.append(guard.build())
        connections[guard.using].close()

    try:
        for x in (2, 3):
            builder = threading.Thread(target=build)  # it has another connection
            builder.start()
            builder.join()
            assert built.pop()
            assert not guard.may_exist(ABSENT)
            execute(guard, f"update other set x = {x}")
            check(guard)
            assert baskets(guard).filter(customer=700).exists()
    finally:
        execute(guard, "drop trigger later")
        execute(guard, "drop table other")
