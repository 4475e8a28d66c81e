"""Draws the pictures of the monitor's page for the documentation: docs/images/monitor-*.png.

It runs `bloomtide watch --demo` for a few minutes, so that the charts have something to show, and
photographs the page with Chromium. `make pictures` calls it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PORT = 18380
ADDRESS = f"http://127.0.0.1:{PORT}/"


def main() -> None:
    """Run the demonstration, wait, and photograph the page in both themes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=310, help="how long the demo runs first")
    seconds = parser.parse_args().seconds
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bloomtide", "watch", "--demo", "--data", folder]
        settings = ["--set", f"http-port={PORT}", "--set", "port=16380"]
        watching = subprocess.Popen([*command, *settings], stderr=subprocess.DEVNULL)
        try:
            wait_for_page()
            time.sleep(seconds)
            with sync_playwright() as started:
                browser = started.chromium.launch(
                    executable_path=chromium, args=["--no-sandbox", "--hide-scrollbars"]
                )
                for theme in ("light", "dark"):
                    context = browser.new_context(
                        viewport={"width": 1320, "height": 1500},
                        color_scheme=theme,  # type: ignore[arg-type]
                        timezone_id="UTC",
                    )
                    photograph(context.new_page(), IMAGES / f"monitor-{theme}.png")
                browser.close()
        finally:
            watching.terminate()
            watching.wait(60)


def wait_for_page() -> None:
    """Return when the page answers; give up after a minute."""
    for _ in range(600):
        try:
            urllib.request.urlopen(ADDRESS, timeout=1).close()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    sys.exit("the page did not answer within a minute")


def photograph(page: Page, path: Path) -> None:
    """Look up the third hot key, choose a range of time, and take the picture."""
    page.goto(ADDRESS)
    page.wait_for_selector("#hot-rows tr:nth-child(20)")
    page.click("#hot-rows tr:nth-child(3)")
    page.wait_for_selector("#facts dd")
    chart = page.locator("#timeline").bounding_box()
    assert chart is not None
    middle = chart["y"] + chart["height"] / 2
    page.mouse.move(chart["x"] + chart["width"] * 0.80, middle)
    page.mouse.down()
    page.mouse.move(chart["x"] + chart["width"] * 0.93, middle, steps=8)
    page.mouse.up()
    page.wait_for_selector("#top-rows tr:nth-child(10)")
    page.mouse.move(0, 0)
    page.wait_for_timeout(1500)
    page.screenshot(path=path, full_page=True)


if __name__ == "__main__":
    main()
