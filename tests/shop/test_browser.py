"""The shop as people see it: Chromium clicks through it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="Starlette is not installed")
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.shop.running import Shop, open_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("browser")
    with open_shop(f"sqlite+aiosqlite:///{folder / 'shop.db'}") as shop:
        yield shop


@pytest.fixture
def page(browser: Browser, shop: Shop, tmp_path: Path) -> Iterator[Page]:
    """A new window; an error in it fails the test. `SHOP_PICTURES` keeps what it shows last."""
    size: ViewportSize = {"width": 1100, "height": 800}
    with browser.new_context(base_url=shop.url, viewport=size) as context:
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("requestfailed", lambda request: errors.append(request.url))
        page.set_default_timeout(20_000)
        yield page
        pictures = Path(os.environ.get("SHOP_PICTURES", tmp_path))
        page.screenshot(path=pictures / f"{len(list(pictures.glob('*.png')))}.png")
        # Before the window is closed: that ends the requests that are still open.
        assert not errors


def badge(page: Page) -> str:
    return page.locator(".badge").inner_text()


def test_a_visitor_fills_a_basket_and_empties_it_again(page: Page) -> None:
    page.goto("/become/empty")
    assert badge(page) == "0"
    how = page.locator("#how")
    expect(how).to_have_text("known to be empty, nobody asked")
    page.get_by_text("Darjeeling").click()
    page.get_by_role("button", name="Into the basket").click()
    assert badge(page) == "1"
    expect(how).to_have_text("asked the database")
    page.get_by_role("button", name="Into the basket").click()
    page.locator("a.basket").click()
    expect(page.get_by_role("row", name="Darjeeling")).to_contain_text("€ 25.80")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#nothing")).to_be_visible()
    assert badge(page) == "0"


def test_who_has_a_basket_sees_it_on_every_page(page: Page) -> None:
    page.goto("/become/full")
    items = int(badge(page))
    assert items > 0
    for path in ("/tea/1", "/basket", "/guard", "/"):
        page.goto(path)
        assert int(badge(page)) == items
    assert page.locator(".tea").count() == 12


def test_the_live_page_counts_what_happens_elsewhere_and_has_a_switch(
    page: Page, shop: Shop
) -> None:
    page.goto("/become/empty")
    page.goto("/guard")
    expect(page.locator("#state")).to_have_text("ready")
    avoided = page.locator("#avoided")
    expect(avoided).not_to_be_empty()
    before = int(avoided.inner_text().replace(",", ""))
    elsewhere = page.context.new_page()
    for _ in range(5):
        elsewhere.goto("/")
    expect(avoided).to_have_text(f"{before + 5:,}")
    assert page.locator("#chart rect").count() > 0
    page.get_by_role("button", name="Switch the guard off").click()
    expect(page.locator("#state")).to_have_text("ready, switched off")
    asked = int(page.locator("#asked").inner_text().replace(",", ""))
    elsewhere.goto("/")
    expect(elsewhere.locator("#how")).to_have_text("asked the database")
    expect(page.locator("#asked")).to_have_text(f"{asked + 1:,}")
    page.get_by_role("button", name="Switch the guard on").click()
    expect(page.locator("#state")).to_have_text("ready")
    built = shop.told()["guard"]["rebuilds"]
    with page.expect_response("**/guard/rebuild"):
        page.get_by_role("button", name="Rebuild from the database").click()
    assert shop.told()["guard"]["rebuilds"] > built
    expect(page.locator("#share")).to_contain_text("%")
