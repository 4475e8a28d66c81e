"""Visitors: as many at a time as asked for, each with one connection, one page after the other.

HTTP by hand, because a client library would need more of the machine than the shop does.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

from webshop.teas import TEAS


@dataclass(slots=True)
class Visits:
    """What the visitors saw."""

    seconds: float = 0.0
    """From the first page to the last."""
    latencies: list[float] = field(default_factory=list)
    """Seconds of each page."""

    @property
    def rate(self) -> float:
        """Pages in a second."""
        return len(self.latencies) / self.seconds

    def milliseconds(self, share: float) -> float:
        """What that share of all pages stayed below: 0.99 for the p99."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def visit(port: int, *, seconds: float, visitors: int, customers: int, seed: int) -> Visits:
    """Ask for pages of random customers, as fast as they come."""
    visits = Visits()
    start = time.perf_counter()
    end = start + seconds
    await asyncio.gather(
        *(
            _visitor(port, end, customers, random.Random(seed + i), visits.latencies)
            for i in range(visitors)
        )
    )
    visits.seconds = time.perf_counter() - start
    return visits


async def _visitor(
    port: int, end: float, customers: int, chance: random.Random, latencies: list[float]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while (asked := time.perf_counter()) < end:
            tea, customer = chance.randint(1, len(TEAS)), chance.randint(1, customers)
            await fetch(reader, writer, f"/tea/{tea}", customer)
            latencies.append(time.perf_counter() - asked)
    finally:
        writer.close()


async def fetch(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, customer: int
) -> bytes:
    """The body of a page, which must be there."""
    cookie = f"Cookie: customer={customer}\r\n"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: shop\r\n{cookie}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ConnectionError(f"{path}: {head.splitlines()[0].decode()}")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return await reader.readexactly(int(length))
