"""`ModelGuard`: its answers, what it counts, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from bloomtide.errors import KeyTypeError, NullKeyError, ParameterError
from bloomtide.guard.stats import State
from bloomtide.integrations.django import ModelGuard, watch
from tests.integrations.django.shop.models import (
    Basket,
    BasketArchive,
    Coupon,
    Customer,
    Folded,
    Nickname,
)
from tests.integrations.django.table import (
    ABSENT,
    baskets,
    check,
    execute,
)


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


@pytest.mark.parametrize(("declared", "refused"), [("{} COLLATE {}", True), ("varchar(4)", False)])
def test_text_that_the_database_compares_otherwise_is_refused(
    using: str, declared: str, refused: bool
) -> None:
    with connections[using].cursor() as cursor:
        any_case = "NOCASE"
        if using == "postgresql":
            any_case = "any_case"
            cursor.execute("DROP COLLATION IF EXISTS any_case")
            cursor.execute(
                "CREATE COLLATION any_case "
                "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        declared = declared.format("text", any_case)
        cursor.execute(f"CREATE TABLE shop_nickname (id integer primary key, name {declared})")
        try:
            with ModelGuard(Nickname, "name", using=using, build=False) as guard:
                if refused:
                    with pytest.raises(ParameterError, match="'a' and 'A' are equal"):
                        guard.build()
                    return
                assert guard.build()
                Nickname.objects.using(using).create(id=1, name="ab     ")
                stored = Nickname.objects.using(using).get().name
                assert guard.may_exist(stored), "PostgreSQL has cut it"
        finally:
            cursor.execute("DROP TABLE shop_nickname")


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
    ("missing", "told"), [("sqlalchemy", "ModelGuard'>"), ("django", "bloomtide[django]")]
)
def test_it_needs_django_and_nothing_else(missing: str, told: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "try:\n    from bloomtide.integrations.django import ModelGuard\n    print(ModelGuard)\n"
        "except ImportError as error:\n    print(error)"
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
            if thread.name == "bloomtide-guard":
                thread.join()
        assert guard.state is State.READY
        assert not guard.may_exist(ABSENT)
        assert guard.may_exist(1)


def test_a_build_beside_that_fails_is_told_in_the_log(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    with ModelGuard(Nickname, "name", using=using) as guard:  # whose table is not there
        assert guard.may_exist("a")
        for thread in threading.enumerate():
            if thread.name == "bloomtide-guard":
                thread.join()
        assert guard.may_exist("a")
    assert "shop_nickname" in caplog.text


HIDES = {
    "a temporary table": ("CREATE TEMPORARY TABLE shop_basket (id INTEGER, customer INTEGER)",),
    "another path": (
        "CREATE SCHEMA other",
        "CREATE TABLE other.shop_basket (id INTEGER, customer INTEGER)",
        "SELECT set_config('search_path', 'other', false)",
    ),
}


@pytest.mark.parametrize("hides", HIDES)
@pytest.mark.parametrize("first", [True, False])
def test_a_connection_on_which_the_name_means_another_table_builds_nothing(
    using: str, hides: str, first: bool
) -> None:
    if using == "sqlite" and hides == "another path":
        pytest.skip("SQLite has no search path")
    Basket.objects.using(using).create(customer=7)
    with ModelGuard(Basket, "customer", using=using, build=False) as guard:
        if not first:
            assert guard.build()
        try:
            with connections[using].cursor() as cursor:
                for statement in HIDES[hides]:
                    cursor.execute(statement)
            with pytest.raises(ParameterError, match="this connection reads"):
                guard.build()
            assert guard.may_exist(7)
        finally:
            connections[using].close()  # with its path and its temporary tables
            if hides == "another path":
                with connections[using].cursor() as cursor:
                    cursor.execute("DROP SCHEMA IF EXISTS other CASCADE")
        assert guard.build()
        assert guard.may_exist(7)
        assert not guard.may_exist(ABSENT)


def test_a_forked_process_passes_everything_and_builds_no_more(guard: ModelGuard) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        # No database here: the connection belongs to the parent.
        with suppress(ParameterError):
            guard.build()
            os.write(writer, b"built and ")
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
