"""Chromium for the tests of pages, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for a module, not for all tests: Playwright keeps an event loop running meanwhile."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if not CHROMIUM:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as started:
        args = ["--no-sandbox", "--disable-background-networking"]
        opened = started.chromium.launch(executable_path=CHROMIUM, args=args)
        yield opened
        opened.close()
