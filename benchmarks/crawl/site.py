"""A site to be crawled: any number of pages, each linked many times in several spellings.

Page n links to pages 2n + 1 and 2n + 2, so every page can be reached from page 0, and to four pages
anywhere, so most links lead to what was seen before. The spellings of a link differ in the order of
the query and in the fragment, which Scrapy's fingerprint does not see.

It is a server of its own, so that it outlives a crawl that is killed, and the judge of every crawl:
it writes down each page it gave out, in order.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

_SPELLINGS = ("/p?n={}&lang=en", "/p?lang=en&n={}", "/p?n={}&lang=en#top")


def links_of(page: int, pages: int) -> list[str]:
    """Where a page links to."""
    # Odd multipliers scatter well enough; the same page always has the same links.
    anywhere = ((page * factor + 12345) % pages for factor in (2654435761, 40503, 69069, 1664525))
    targets = [child for child in (2 * page + 1, 2 * page + 2) if child < pages]
    return [
        _SPELLINGS[(page + place) % 3].format(target)
        for place, target in enumerate([*targets, *anywhere])
    ]


class Site(asyncio.Protocol):
    """HTTP/1.1, as little of it as a crawl needs."""

    def __init__(self, pages: int, journal: int) -> None:
        self._pages = pages
        self._journal = journal
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, self._received = self._received.split(b"\r\n\r\n", 1)
            self._answer(head.split(b" ", 2)[1].decode())

    def _answer(self, path: str) -> None:
        query = dict(part.split("=") for part in path.partition("?")[2].split("&") if "=" in part)
        page = int(query.get("n", -1))
        if 0 <= page < self._pages:
            links = "".join(f'<a href="{link}">x</a>' for link in links_of(page, self._pages))
            body, status = f"<html><body>{page} {links}</body></html>", "200 OK"
            os.write(self._journal, f"{page}\n".encode())
        else:
            body, status = "no such page", "404 Not Found"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        assert isinstance(self._transport, asyncio.Transport)
        self._transport.write((head + body).encode())


async def serve(pages: int, journal: Path) -> None:
    """Serves until it is told to end; the first line it prints is the port."""
    file = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Site(pages, file), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    loop.add_signal_handler(signal.SIGTERM, server.close)
    try:
        await server.serve_forever()
    except asyncio.CancelledError:
        os.close(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", type=int)
    parser.add_argument("journal", type=Path)
    words = parser.parse_args()
    asyncio.run(serve(words.pages, words.journal))
