"""Fixtures of the guard's tests."""

from tests.guard.shop import engine, shop_url, url

__all__ = ["engine", "shop_url", "url"]
