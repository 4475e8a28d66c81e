"""A shop in a process of its own, and visitors who say what they see."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import until

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop"
CUSTOMERS = 1000
FULL = 0.05


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page says of the basket."""

    items: int
    asked: bool


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop that is open."""

    url: str

    def visitor(self) -> closing[http.client.HTTPConnection]:
        """A connection of one's own."""
        address = self.url.removeprefix("http://")
        return closing(http.client.HTTPConnection(address, timeout=30))

    def told(self) -> dict[str, Any]:
        """What the live page gets."""
        with self.visitor() as visitor:
            told: dict[str, Any] = json.loads(ask(visitor, "/guard.json"))
        return told


@contextmanager
def open_shop(database: str, *options: str) -> Iterator[Shop]:
    """Until its guard is ready, if it has one."""
    command = [
        *(sys.executable, "-W", "error", str(SHOP), "--port=0", f"--database={database}"),
        *(f"--customers={CUSTOMERS}", f"--full={FULL}", *options),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            shop = Shop(process.stdout.readline().strip())
            assert shop.url, "the shop did not open"
            wait_until_ready(shop)
            yield shop
        finally:
            process.terminate()
    assert process.returncode in (0, -15)


def wait_until_ready(shop: Shop) -> None:
    """A build takes milliseconds here; a minute of waiting is a failure."""

    def ready() -> bool:
        guard = shop.told()["guard"]
        return guard is None or guard["state"] == "ready"

    until(ready, within=60)


def ask(
    visitor: http.client.HTTPConnection, path: str, customer: int = 1, method: str = "GET"
) -> bytes:
    """The body of a page, which must be there."""
    visitor.request(method, path, headers={"Cookie": f"customer={customer}"})
    response = visitor.getresponse()
    body = response.read()
    assert response.status in (200, 303), (path, response.status, body)
    return body


def look(visitor: http.client.HTTPConnection, customer: int) -> Seen:
    """What a page shows the customer."""
    text = ask(visitor, "/tea/3", customer).decode()
    badge = re.search(r'class="badge[^"]*">(\d+)<', text)
    assert badge
    return Seen(int(badge[1]), "asked the database" in text)
