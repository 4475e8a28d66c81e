"""The guarded table, as the tests use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections, transaction
from django.db.models import F

from bloomtide.integrations.django import ModelGuard
from tests.integrations.django.shop.models import Basket

ABSENT = 1_000_000
"""No test writes it, and with so few keys no filter here takes it for one of them."""


def baskets(guard: ModelGuard) -> Any:
    return Basket.objects.using(guard.using)


def execute(guard: ModelGuard, sql: str, params: Any = None) -> None:
    with connections[guard.using].cursor() as cursor:
        cursor.execute(sql, params)


def check(guard: ModelGuard) -> None:
    """The rule that never breaks."""
    for customer in baskets(guard).values_list("customer", flat=True):
        assert guard.may_exist(customer)


def update_by_an_expression(guard: ModelGuard) -> None:
    """The keys that it writes are in no parameter."""
    baskets(guard).update(customer=F("customer") + 100)


def write_and_fail(guard: ModelGuard, write: Callable[[ModelGuard], None]) -> None:
    """In a transaction that is rolled back."""
    with transaction.atomic(using=guard.using):
        write(guard)
        raise ZeroDivisionError
