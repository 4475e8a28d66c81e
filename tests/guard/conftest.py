"""Fixtures of the guard's tests."""

from tests.guard.databases import basket, postgres_basket, sqlite_basket

__all__ = ["basket", "postgres_basket", "sqlite_basket"]
