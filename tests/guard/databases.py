"""Databases for the tests of other writers: a SQLite file, and a database of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, create_engine, text

from tests.services.postgres import Postgres

METADATA = MetaData()
BASKET = Table(
    "basket",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("customer", Integer, unique=True),
    Column("note", String, nullable=True),
)


@dataclass
class Database:
    """A database with an empty table `basket`."""

    engine: Engine

    @property
    def url(self) -> str:
        return self.engine.url.render_as_string(hide_password=False)

    @property
    def kind(self) -> str:
        return self.engine.dialect.name

    def run(self, *statements: str) -> None:
        """Somebody who knows nothing of a guard writes and commits."""
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def insert(self, customers: Sequence[int]) -> None:
        self.run(f"INSERT INTO basket (customer) VALUES {', '.join(f'({c})' for c in customers)}")


def _made(url: str, *clean: str) -> Iterator[Database]:
    engine = create_engine(url)
    database = Database(engine)
    database.run(*clean)
    METADATA.create_all(engine)
    yield database
    engine.dispose()


@pytest.fixture
def sqlite_basket(tmp_path: Path) -> Iterator[Database]:
    yield from _made(f"sqlite:///{tmp_path}/shop.db")


@pytest.fixture(scope="session")
def basket_url(postgres: Postgres) -> str:
    """One database for all tests: each new one is 8 MB that have to be written and deleted."""
    return postgres.new_database()


@pytest.fixture
def postgres_basket(basket_url: str) -> Iterator[Database]:
    yield from _made(
        basket_url,
        "SET LOCAL lock_timeout = '20s'",  # an earlier test may have left something open
        "DROP SCHEMA IF EXISTS shop CASCADE",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
        "GRANT USAGE ON SCHEMA public TO PUBLIC",
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def basket(request: pytest.FixtureRequest) -> Database:
    name = "sqlite_basket" if request.param == "sqlite" else "postgres_basket"
    found: Database = request.getfixturevalue(name)
    return found
