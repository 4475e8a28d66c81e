"""Django, set up once, with SQLite in a file and PostgreSQL where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("django", reason="Django is not installed")

import django
from django.conf import settings
from django.db import connections

if not settings.configured:
    settings.configure(
        INSTALLED_APPS=["bloomery.integrations.django", "tests.integrations.django.shop"],
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
            "sqlite": {
                "ENGINE": "django.db.backends.sqlite3",
                "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE"},
            },
            "postgresql": {"ENGINE": "django.db.backends.postgresql", "USER": "postgres"},
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()


@pytest.fixture(params=["sqlite", "postgresql"])
def using(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The alias of a database with empty tables."""
    from tests.integrations.django.shop.models import MODELS

    alias: str = request.param
    if alias == "sqlite":
        place: dict[str, Any] = {"NAME": str(tmp_path / "shop.db")}
    else:
        url = urlsplit(request.getfixturevalue("postgres").new_database())
        place = {"NAME": url.path[1:], "HOST": parse_qs(url.query)["host"][0]}
    connections.settings[alias].update(place)
    with suppress(AttributeError):
        del connections[alias]  # made for the database of another test
    with connections[alias].schema_editor() as editor:
        for model in MODELS:
            editor.create_model(model)
    yield alias
    connections[alias].close()
