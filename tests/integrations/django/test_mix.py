"""Any mix of Django's writes on two connections, with builds in between, against the real table."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import IntegrityError, connections, transaction
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bloomtide.guard.stats import State
from bloomtide.integrations.django import ModelGuard
from tests.integrations.django.shop.models import Basket

KEYS = st.integers(0, 30)
WRITES = st.one_of(
    st.tuples(st.just("create"), KEYS),
    st.tuples(st.just("bulk"), st.lists(KEYS, min_size=1, max_size=5, unique=True)),
    st.tuples(st.just("upsert"), st.lists(KEYS, min_size=1, max_size=5, unique=True)),
    st.tuples(st.just("move"), st.tuples(KEYS, KEYS)),
    st.tuples(st.just("shift"), KEYS),
    st.tuples(st.just("bulk_update"), KEYS),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("literal"), KEYS),
    st.tuples(st.just("other connection"), KEYS),
)
STEPS = st.one_of(
    WRITES,
    st.tuples(st.sampled_from(["build", "commit of the other", "rollback of the other"])),
    st.tuples(st.sampled_from(["build beside the other", "write during a build"]), KEYS),
    st.tuples(st.just("transaction"), st.lists(WRITES, max_size=3), st.booleans()),
)
INSERT = "insert into shop_basket (customer, slot, note) values"


class Machine:
    """The guard and the table under it."""

    def __init__(self, using: str, guard: ModelGuard) -> None:
        self.using = using
        self.guard = guard
        self.rows: Any = Basket.objects.using(using)
        self.other: Any = connections.create_connection(using)
        self.slot = 0
        """Each row of the other connection has one of its own, so that none waits for another."""

    def step(self, what: str, *given: Any) -> None:
        match what:
            case "build":
                built = self.guard.build()
                assert built or self.other.in_atomic_block or self.guard.state is not State.READY
            case "build beside the other":
                self.write_elsewhere(given[0])
                self.step("build")
                self.end(self.other.commit)
            case "write during a build":
                # All rows have been read then, and the new filter is not yet in use.
                with suppress(IntegrityError):
                    self.guard.build(lambda *_: self.rows.create(customer=given[0]))
            case "commit of the other":
                self.end(self.other.commit)
            case "rollback of the other":
                self.end(self.other.rollback)
            case "transaction":
                writes, fails = given
                with suppress(ZeroDivisionError, IntegrityError):
                    self.together(writes, fails)
            case _:
                # Of the rows of one statement that is refused none is there.
                with suppress(IntegrityError), transaction.atomic(using=self.using):
                    self.write(what, *given)
                    self.check()

    def together(self, writes: list[tuple[str, Any]], fails: bool) -> None:
        with transaction.atomic(using=self.using):
            for write in writes:
                with suppress(IntegrityError), transaction.atomic(using=self.using):
                    self.write(*write)
                self.check()
            if fails:
                raise ZeroDivisionError

    def write(self, what: str, given: Any) -> None:
        match what:
            case "create":
                self.rows.create(customer=given)
            case "bulk":
                rows = [Basket(customer=key) for key in given]
                self.rows.bulk_create(rows, ignore_conflicts=True)
            case "upsert":
                self.rows.bulk_create(
                    [Basket(customer=key, note="again") for key in given],
                    update_conflicts=True,
                    unique_fields=["customer", "slot"],
                    update_fields=["note"],
                )
            case "move":
                self.rows.filter(customer=given[0]).update(customer=given[1])
            case "shift":
                self.rows.filter(customer=given).update(customer=F("customer") + 100)
            case "bulk_update":
                rows = list(self.rows.filter(customer__lte=given))
                for row in rows:
                    row.customer += 200
                self.rows.bulk_update(rows, ["customer"])
            case "delete":
                self.rows.filter(customer=given).delete()
            case "literal":
                with connections[self.using].cursor() as cursor:
                    cursor.execute(f"{INSERT} ({given}, 0, '')")
            case "other connection":
                self.write_elsewhere(given)

    def write_elsewhere(self, key: int) -> None:
        """In a transaction that stays open; SQLite has one writer at a time, so it ends at once."""
        with self.other.cursor() as cursor:
            if self.using == "postgresql" and self.other.get_autocommit():
                self.other.set_autocommit(False)
            self.slot += 1
            if self.using == "postgresql" or not connections[self.using].in_atomic_block:
                cursor.execute(f"{INSERT} (%s, %s, %s)", [key, 1000 + self.slot, ""])

    def end(self, ending: Any) -> None:
        if not self.other.get_autocommit():
            ending()

    def check(self) -> None:
        """The rule that never breaks."""
        for key in set(self.rows.values_list("customer", flat=True)):
            assert self.guard.may_exist(key)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, max_size=12))
def test_no_mix_of_writes_makes_a_wrong_absent(using: str, steps: list[Any]) -> None:
    Basket.objects.using(using).all().delete()
    Basket.objects.using(using).create(customer=0)
    with ModelGuard(Basket, "customer", using=using, build=False) as guard:
        machine = Machine(using, guard)
        try:
            assert guard.build()
            for step in steps:
                machine.step(*step)
                machine.check()
            machine.end(machine.other.commit)
            machine.check()
            assert guard.build()
            machine.check()
            assert not guard.may_exist(10**6)
        finally:
            machine.other.close()
