"""Transactions, builds beside them and threads: no committed key is called absent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connections, transaction

from bloomtide.errors import ParameterError
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
