"""Guards on engines of their own, for the tests of other writers and other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine

from bloomtide import DatabaseGuard
from tests.guard.databases import BASKET, Database

ABSENT = -1
NEVER = "1h"
"""Between two readings that no test waits for."""


@pytest.fixture
def guarded(basket: Database) -> Iterator[Callable[..., DatabaseGuard]]:
    """Makes a guard on an engine of its own, and builds it."""
    made: list[DatabaseGuard] = []

    def make(*, build: bool = True, **options: Any) -> DatabaseGuard:
        guard = DatabaseGuard(create_engine(basket.url), BASKET.c.customer, 1e-6, **options)
        made.append(guard)
        if build:
            assert guard.build()
        return guard

    yield make
    for guard in made:
        guard.close()
        guard.engine.dispose()


Make = Callable[..., DatabaseGuard]
