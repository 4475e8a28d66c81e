"""Fixtures of the guard's tests."""

from tests.guard.databases import basket, basket_url, postgres_basket, sqlite_basket
from tests.guard.shop import engine, shop_url, url

__all__ = ["basket", "basket_url", "engine", "postgres_basket", "shop_url", "sqlite_basket", "url"]
