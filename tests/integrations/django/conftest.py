"""A database with empty tables: SQLite in a file, or PostgreSQL where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("django", reason="Django is not installed")

from django.db import connections

from tests.integrations.django.configured import configure
from tests.services.postgres import Postgres

configure()

if TYPE_CHECKING:
    from bloomtide.integrations.django import ModelGuard


@pytest.fixture(scope="session")
def postgres_place(postgres: Postgres) -> dict[str, str]:
    """One database for all tests: each costs eight megabytes."""
    url = urlsplit(postgres.new_database())
    return {"NAME": url.path[1:], "HOST": parse_qs(url.query)["host"][0]}


@pytest.fixture(params=["sqlite", "postgresql"])
def using(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The alias of a database with empty tables."""
    from tests.integrations.django.shop.models import MODELS

    alias: str = request.param
    if alias == "sqlite":
        place: dict[str, Any] = {"NAME": str(tmp_path / "shop.db"), "HOST": ""}
    else:
        place = request.getfixturevalue("postgres_place")
    connections.settings[alias].update(place)
    with suppress(AttributeError):
        del connections[alias]  # made for the database of another test
    with connections[alias].schema_editor() as editor:
        for model in MODELS:
            editor.create_model(model)
    try:
        yield alias
    finally:
        connections[alias].close()
        with connections[alias].schema_editor() as editor:
            for model in reversed(MODELS):
                editor.delete_model(model)
        connections[alias].close()


@pytest.fixture
def guard(using: str) -> Iterator[ModelGuard]:
    """Of a table with the customers 0 to 49."""
    from bloomtide.integrations.django import ModelGuard
    from tests.integrations.django.shop.models import Basket

    Basket.objects.using(using).bulk_create(Basket(customer=i) for i in range(50))
    with ModelGuard(Basket, "customer", using=using, build=False) as guard:
        assert guard.build()
        yield guard
