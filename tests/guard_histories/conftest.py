"""Grounds that all tests of a process share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.guard_histories.ground import Ground, PostgresGround, SqliteGround
from benchmarks.guard_histories.play import quiet
from tests.services.postgres import Postgres


@pytest.fixture(scope="session")
def sqlite_ground() -> Iterator[Ground]:
    with SqliteGround() as ground:
        yield ground


@pytest.fixture(scope="session")
def postgres_ground(postgres: Postgres) -> Iterator[Ground]:
    with PostgresGround(postgres.new_database()) as ground:
        yield ground


@pytest.fixture(params=["sqlite", "postgresql"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    name = "sqlite_ground" if request.param == "sqlite" else "postgres_ground"
    found: Ground = request.getfixturevalue(name)
    with quiet():
        yield found
