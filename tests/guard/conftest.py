"""Fixtures of the guard's tests."""

from tests.guard.databases import basket, basket_url, postgres_basket, sqlite_basket
from tests.guard.guards import guarded
from tests.guard.neighbours import attach, pair, writer_and_builder
from tests.guard.shop import engine, shop_url, url

__all__ = [
    "attach",
    "basket",
    "basket_url",
    "engine",
    "guarded",
    "pair",
    "postgres_basket",
    "shop_url",
    "sqlite_basket",
    "url",
    "writer_and_builder",
]
