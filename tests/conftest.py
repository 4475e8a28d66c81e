"""Fixtures for every test, and the markers that say what a test needs.

A test that uses a service is marked with its name, whether or not its author thought of it:
`postgres`, `browser` and `spark` by the fixtures it uses. `test_markers.py` has the rest of the
promise: a test that starts one of them without its marker fails. `slow` is written by hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.browser import browser
from tests.services.postgres import postgres

__all__ = ["browser", "postgres"]

SERVICES = ("postgres", "browser", "spark")
"""Names of fixtures, and of the markers of all tests that use them."""
_ROOT = Path(__file__).parent
_FOLDERS = {_ROOT / "integrations" / "spark": "spark"}
"""Tests that start the service themselves."""
_VALUES = {"postgresql": "postgres"}
"""Values of parameters that make a fixture ask for a service while it runs."""


def pytest_configure() -> None:
    """Commands print as into a pipe, however wide the terminal is; workers are told its width."""
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(tryfirst=True)  # the choice by `-m` comes after it
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with the services that it uses."""
    for item in items:
        for name in services_of(item):
            item.add_marker(name)


def services_of(item: pytest.Item) -> set[str]:
    """Known before the test runs."""
    found = {name for name in getattr(item, "fixturenames", ()) if name in SERVICES}
    found |= {name for folder, name in _FOLDERS.items() if item.path.is_relative_to(folder)}
    if call := getattr(item, "callspec", None):
        values = [value for value in call.params.values() if isinstance(value, str)]
        found |= {_VALUES[value] for value in values if value in _VALUES}
    return found


@pytest.fixture(autouse=True)
def services_are_marked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that has used a service without its marker: `-m "not postgres"` would lie."""
    yield
    used = {name for name in request.fixturenames if name in SERVICES}
    unmarked = {name for name in used if request.node.get_closest_marker(name) is None}
    assert not unmarked, f"add what tells of {unmarked} to tests/conftest.py"
