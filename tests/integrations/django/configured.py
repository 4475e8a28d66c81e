"""Django's settings. Where its databases are is said later, by the fixtures."""

from __future__ import annotations

import django
from django.conf import settings


def configure() -> None:
    """Sets Django up, once."""
    if settings.configured:
        return
    settings.configure(
        INSTALLED_APPS=["bloomtide.integrations.django", "tests.integrations.django.shop"],
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
            "sqlite": {
                "ENGINE": "django.db.backends.sqlite3",
                "OPTIONS": {
                    "timeout": 30,
                    "transaction_mode": "IMMEDIATE",
                    # Nobody needs the file after a crash of the machine.
                    "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF",
                },
            },
            "postgresql": {"ENGINE": "django.db.backends.postgresql", "USER": "postgres"},
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()
