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


def _made(url: str) -> Iterator[Database]:
    engine = create_engine(url)
    METADATA.create_all(engine)
    yield Database(engine)
    engine.dispose()


@pytest.fixture
def sqlite_basket(tmp_path: Path) -> Iterator[Database]:
    yield from _made(f"sqlite:///{tmp_path}/shop.db")


@pytest.fixture
def postgres_basket(postgres: Postgres) -> Iterator[Database]:
    yield from _made(postgres.new_database())


@pytest.fixture(params=["sqlite", "postgresql"])
def basket(request: pytest.FixtureRequest) -> Database:
    name = "sqlite_basket" if request.param == "sqlite" else "postgres_basket"
    found: Database = request.getfixturevalue(name)
    return found
