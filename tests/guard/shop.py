"""The tables that the guard's tests write to, in a SQLite file and in a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, ForeignKey, String, UniqueConstraint, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from tests.services.postgres import Postgres

ABSENT = 987_654_321
"""A key that no test writes and that the small filters here do not mistake for one."""


class Base(DeclarativeBase):
    pass


class Customer(Base):
    """Its key is made by the database."""

    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), default="somebody")


class Basket(Base):
    """Keys are given, unique, and not the primary key; the attribute is not named as the column."""

    __tablename__ = "basket"
    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[int | None] = mapped_column("customer_id", unique=True)
    items: Mapped[int] = mapped_column(default=1)


class Visit(Base):
    """A key of two columns, and not unique."""

    __tablename__ = "visit"
    id: Mapped[int] = mapped_column(primary_key=True)
    shop: Mapped[str] = mapped_column(String(20))
    day: Mapped[int]


class Address(Base):
    """Its key follows that of the customer."""

    __tablename__ = "address"
    __table_args__ = (UniqueConstraint("customer_id"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id", onupdate="CASCADE"))


@pytest.fixture(scope="session")
def shop_url(postgres: Postgres) -> str:
    """One database for all tests with these tables: a new one takes longer than its test."""
    return postgres.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database without these tables, or with those of an earlier test."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    found: str = request.getfixturevalue("shop_url")
    return found


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """With empty tables."""
    made = create_engine(url)
    Base.metadata.drop_all(made)
    Base.metadata.create_all(made)
    yield made
    made.dispose()
