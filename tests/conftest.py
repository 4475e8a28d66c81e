"""Fixtures for every test."""

from tests.services.postgres import postgres

__all__ = ["postgres"]
