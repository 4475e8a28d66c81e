"""`ModelGuard` never says "absent" of a key that is committed, however Django wrote it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connections, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from bloomery.errors import KeyTypeError, NullKeyError, ParameterError
from bloomery.guard.state import State
from bloomery.integrations.django import ModelGuard, watch
from tests.integrations.django.shop.models import Basket, BasketArchive, Coupon, Customer, Folded

ABSENT = 1_000_000
"""No test writes it, and with so few keys no filter here takes it for one of them."""


@pytest.fixture
def guard(using: str) -> Iterator[ModelGuard]:
    Basket.objects.using(using).bulk_create(Basket(customer=i) for i in range(50))
    with ModelGuard(Basket, "customer", using=using, build=False) as guard:
        assert guard.build()
        yield guard


def baskets(guard: ModelGuard) -> Any:
    return Basket.objects.using(guard.using)


def execute(guard: ModelGuard, sql: str, params: Any = None) -> None:
    with connections[guard.using].cursor() as cursor:
        cursor.execute(sql, params)


def check(guard: ModelGuard) -> None:
    """The rule that never breaks."""
    for customer in baskets(guard).values_list("customer", flat=True):
        assert guard.may_exist(customer)


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


def write_and_fail(guard: ModelGuard, write: Callable[[ModelGuard], None]) -> None:
    with transaction.atomic(using=guard.using):
        write(guard)
        raise ZeroDivisionError


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


def update_by_an_expression(guard: ModelGuard) -> None:
    baskets(guard).update(customer=F("customer") + 100)


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


def test_a_question_about_an_absent_key_runs_no_query(guard: ModelGuard) -> None:
    with CaptureQueriesContext(connections[guard.using]) as queries:
        assert not guard.exists(ABSENT)
        assert guard.get(ABSENT) is None
        assert guard.filter_many([3, ABSENT, 4]) == [3, 4]
    assert len(queries) == 0
    with CaptureQueriesContext(connections[guard.using]) as queries:
        assert guard.exists("3")
        found = guard.get(3)
    assert len(queries) == 2
    assert isinstance(found, Basket)
    stats = guard.stats()
    assert (stats.asked, stats.avoided, stats.passed, stats.true_keys) == (7, 3, 4, 2)
    assert stats.false_true == 0
    assert json.dumps(stats.as_dict())


def test_rows_that_were_deleted_cost_a_query_until_the_next_build(guard: ModelGuard) -> None:
    baskets(guard).filter(customer__lt=20).delete()
    assert not guard.exists(3)
    assert guard.stats().false_true == 1
    assert guard.stats().stale == 20
    assert guard.build()
    assert not guard.may_exist(3)
    assert guard.stats().stale == 0


def test_other_tables_do_not_disturb_it(guard: ModelGuard) -> None:
    archive = BasketArchive.objects.using(guard.using)
    archive.create(customer=ABSENT)
    archive.update(customer=F("customer") + 1)
    execute(
        guard,
        "insert into shop_basketarchive (customer) select customer from shop_basket",
    )
    assert guard.state is State.READY
    assert not guard.may_exist(ABSENT)


def test_a_refused_row_does_no_harm(guard: ModelGuard) -> None:
    with pytest.raises(IntegrityError):
        baskets(guard).bulk_create([Basket(customer=500), Basket(customer=3)])
    assert guard.state is State.READY
    check(guard)
    assert guard.build()
    assert not guard.may_exist(500)


def test_a_build_beside_an_open_transaction_misses_nothing(guard: ModelGuard) -> None:
    written, built = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic(using=guard.using):
            baskets(guard).create(customer=700)
            written.set()
            assert built.wait(30)
        connections[guard.using].close()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(30)
    assert guard.build()
    assert not baskets(guard).filter(customer=700).exists()
    built.set()
    writer.join()
    assert baskets(guard).filter(customer=700).exists()
    assert guard.may_exist(700)


def test_no_build_is_trusted_beside_an_open_transaction_with_unseen_keys(
    guard: ModelGuard,
) -> None:
    written, built = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic(using=guard.using):
            update_by_an_expression(guard)
            written.set()
            assert built.wait(30)
        connections[guard.using].close()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(30)
    assert not guard.build()
    built.set()
    writer.join()
    check(guard)
    assert guard.build()
    check(guard)
    assert not guard.may_exist(ABSENT)


def test_a_guard_that_comes_late_waits_for_transactions_that_were_open_before(using: str) -> None:
    written, built = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic(using=using):
            Basket.objects.using(using).create(customer=700)
            written.set()
            assert built.wait(30)
        connections[using].close()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(30)
    with ModelGuard(Basket, "customer", using=using, build=False) as guard:
        assert not guard.build()
        assert guard.may_exist(700)
        built.set()
        writer.join()
        assert guard.build()
        assert guard.may_exist(700)
        assert not guard.may_exist(ABSENT)


def test_a_guard_that_comes_while_a_statement_is_sent_waits_for_it(using: str) -> None:
    """The wrapper that is innermost makes the guard, so the statement is under way already."""
    made: list[ModelGuard] = []

    def late(execute: Any, *given: Any) -> Any:
        if not made:
            made.append(ModelGuard(Basket, "customer", using=using, build=False))
            build = threading.Thread(target=builds_nothing, args=(made[0],))
            build.start()
            build.join()
        return execute(*given)

    with connections[using].execute_wrapper(late):
        Basket.objects.using(using).create(customer=700)
    (guard,) = made
    assert guard.may_exist(700)
    assert guard.build()
    assert guard.may_exist(700)
    assert not guard.may_exist(ABSENT)
    guard.close()


def builds_nothing(guard: ModelGuard) -> None:
    assert not guard.build()
    connections[guard.using].close()


def test_a_transaction_that_is_begun_by_hand_is_followed_too(guard: ModelGuard) -> None:
    execute(guard, "BEGIN")
    baskets(guard).create(customer=800)
    done = threading.Thread(target=build_in_a_thread, args=(guard,))
    done.start()
    done.join()
    assert guard.state is State.READY
    execute(guard, "COMMIT")
    assert guard.may_exist(800)
    baskets(guard).filter(customer=800).delete()
    assert guard.build()
    assert not guard.may_exist(800), "the end of the transaction was noticed"


def test_transactions_without_autocommit_are_followed_too(guard: ModelGuard) -> None:
    transaction.set_autocommit(False, using=guard.using)
    try:
        baskets(guard).create(customer=800)
        done = threading.Thread(target=build_in_a_thread, args=(guard,))
        done.start()
        done.join()
        transaction.commit(using=guard.using)
        assert guard.may_exist(800)
        baskets(guard).create(customer=801)
        transaction.rollback(using=guard.using)
        with pytest.raises(ParameterError, match="transaction"):
            guard.build()
    finally:
        transaction.set_autocommit(True, using=guard.using)
    assert guard.build()
    assert guard.may_exist(800)
    assert not guard.may_exist(801)


def build_in_a_thread(guard: ModelGuard) -> None:
    assert guard.build()
    connections[guard.using].close()


def test_the_keys_of_a_commit_that_broke_off_stay(
    guard: ModelGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connections[guard.using]
    commit = connection._commit

    def break_off() -> None:
        commit()
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(connection, "_commit", break_off)
    with pytest.raises(OperationalError), transaction.atomic(using=guard.using):
        baskets(guard).create(customer=900)
    monkeypatch.undo()
    assert baskets(guard).filter(customer=900).exists()
    assert guard.may_exist(900)
    baskets(guard).filter(customer=900).delete()
    assert guard.build()
    assert guard.may_exist(900), "nobody knows whether it will still be committed"


def test_a_transaction_that_is_rolled_back_is_forgotten(guard: ModelGuard) -> None:
    with pytest.raises(ZeroDivisionError):
        write_and_fail(guard, update_by_an_expression)
    assert guard.build()
    assert not guard.may_exist(105)


def test_the_watch_survives_a_wrapper_in_which_the_connection_was_made(guard: ModelGuard) -> None:
    connection = connections.create_connection(guard.using)

    def other(execute: Any, *given: Any) -> Any:
        return execute(*given)

    with connection.execute_wrapper(other):
        connection.connect()
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into shop_basket (customer, slot, note) values (%s, 0, %s)", [100, ""]
        )
    connection.close()
    check(guard)


@pytest.mark.parametrize("builds", [False, True])
def test_writers_readers_and_builds_at_once_give_no_wrong_answer(
    guard: ModelGuard, builds: bool
) -> None:
    wrong: list[int] = []
    failed: list[BaseException] = []
    writing = threading.Event()
    writing.set()

    def write(first: int) -> None:
        for customer in range(first, first + 40):
            with transaction.atomic(using=guard.using):
                baskets(guard).create(customer=customer)
            if not guard.may_exist(customer):
                wrong.append(customer)

    def read() -> None:
        while writing.is_set():
            for customer in baskets(guard).values_list("customer", flat=True):
                if not guard.may_exist(customer):
                    wrong.append(customer)

    def build() -> None:
        while writing.is_set():
            guard.build()

    def run(work: Callable[..., None], *given: int) -> None:
        try:
            work(*given)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)
        finally:
            connections[guard.using].close()

    writers = [threading.Thread(target=run, args=(write, 1000 * i)) for i in range(1, 5)]
    others = [threading.Thread(target=run, args=(each,)) for each in (read, read)]
    if builds:
        others.append(threading.Thread(target=run, args=(build,)))
    for thread in (*writers, *others):
        thread.start()
    for thread in writers:
        thread.join()
    writing.clear()
    for thread in others:
        thread.join()
    assert not failed
    assert not wrong
    assert baskets(guard).count() == 210
    check(guard)


def test_texts_and_uuids_are_keys_as_the_database_compares_them(using: str) -> None:
    coupons = Coupon.objects.using(using)
    tokens = [uuid.UUID(int=7 * i) for i in range(3)]
    coupons.bulk_create([Coupon(code="Spring", token=tokens[0]), Coupon(code="Žluť")])
    with (
        ModelGuard(Coupon, "code", using=using, build=False) as codes,
        ModelGuard(Coupon, "token", using=using, build=False) as by_token,
    ):
        assert codes.build()
        assert by_token.build()
        coupons.create(code="42", token=tokens[1])
        assert codes.exists("Spring")
        assert codes.exists("Žluť")
        assert codes.exists(42)
        assert not codes.may_exist("spring")
        assert by_token.exists(tokens[0])
        assert by_token.exists(str(tokens[1]).upper())
        assert not by_token.may_exist(tokens[2])
        assert codes.state is by_token.state is State.READY
        with pytest.raises(KeyTypeError):
            by_token.may_exist("no UUID")


def test_a_foreign_key_is_guarded_by_what_it_leads_to(using: str) -> None:
    owner = Customer.objects.using(using).create(name="ann")
    with ModelGuard(Coupon, "owner", using=using, build=False) as guard:
        assert guard.build()
        Coupon.objects.using(using).create(code="a", owner=owner)
        Coupon.objects.using(using).create(code="b")
        assert guard.exists(owner.pk)
        assert not guard.may_exist(owner.pk + 1)
        assert guard.state is State.READY


def test_a_key_that_no_integer_column_holds_is_left_to_the_database(guard: ModelGuard) -> None:
    assert guard.may_exist(1 << 70)
    with pytest.raises(NullKeyError):
        guard.may_exist(None)
    with pytest.raises(KeyTypeError) as refused:
        guard.may_exist("ann")
    assert "IntegerField" in refused.value.hint


@pytest.mark.parametrize(
    ("model", "field", "reason"),
    [
        (Basket, "nothing", "no such field"),
        (Basket, "id", "the database makes its values"),
        (Customer, "tags", "no column of its own"),
        (Coupon, "price", "DecimalField"),
        (Folded, "code", "how `nocase` compares"),
    ],
)
def test_a_column_that_cannot_be_guarded_is_refused(model: Any, field: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        ModelGuard(model, field, using="sqlite")


@pytest.mark.parametrize(
    ("missing", "told"), [("sqlalchemy", "ModelGuard'>"), ("django", "bloomery[django]")]
)
def test_it_needs_django_and_nothing_else(missing: str, told: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "try:\n    from bloomery.integrations.django import ModelGuard\n    print(ModelGuard)\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert told in done.stdout


def test_without_the_app_there_is_no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_watching", False)
    with pytest.raises(ParameterError, match="not watched"):
        ModelGuard(Basket, "customer", using="sqlite")


def test_a_build_inside_a_transaction_is_refused(guard: ModelGuard) -> None:
    with transaction.atomic(using=guard.using), pytest.raises(ParameterError, match="transaction"):
        guard.build()


def test_the_first_question_starts_a_build_beside_it(using: str) -> None:
    Basket.objects.using(using).create(customer=1)
    with ModelGuard(Basket, "customer", using=using) as guard:
        assert guard.may_exist(1)
        for thread in threading.enumerate():
            if thread.name == "bloomery-guard":
                thread.join()
        assert guard.state is State.READY
        assert not guard.may_exist(ABSENT)
        assert guard.may_exist(1)


def test_a_forked_process_starts_anew(guard: ModelGuard) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        # No database here: the connection belongs to the parent.
        os.write(writer, guard.state.value.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"degraded"
    os.close(reader)
    os.close(writer)
    assert guard.state is State.READY


def test_a_closed_guard_lets_everything_pass(guard: ModelGuard) -> None:
    guard.close()
    baskets(guard).create(customer=100)
    assert guard.may_exist(100)
    assert guard.may_exist(ABSENT)
