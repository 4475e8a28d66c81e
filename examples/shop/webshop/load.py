"""Page rate and latency with and without the guard, side by side in one run.

Two shops, each a process of its own, have the same database: one has a guard, one has none. The
same visitors go to one, then to the other, a few times in turn, so that both have the same good and
bad moments of the machine.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from webshop.app import Settings
from webshop.client import Visits, fetch, visit

SHOP = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked for."""

    seconds: float
    """Of each round."""
    rounds: int
    visitors: int


@dataclass(slots=True)
class Side:
    """What one of the two shops did."""

    visits: Visits = field(default_factory=Visits)
    asked: int = 0
    """Pages that asked the database for the basket."""
    avoided: int = 0
    transactions: int | None = None
    """What PostgreSQL counted itself, whoever asked; None elsewhere."""

    @property
    def avoided_share(self) -> float:
        """Of all basket questions."""
        return self.avoided / (self.asked + self.avoided)


async def compare(settings: Settings, load: Load) -> dict[str, Side]:
    """The sides "off" and "on"."""
    sides = {"off": Side(), "on": Side()}
    async with _shop(settings, "off") as without, _shop(settings, "on") as guarded:
        ports = {"off": without, "on": guarded}
        for port in ports.values():
            await _ready(port)
            await _round(port, settings, Load(min(1.0, load.seconds), 1, load.visitors), 0)
        committed = await _committed(settings)
        for number in range(load.rounds):
            for name, side in sides.items():
                port = ports[name]
                before = await _told(port)
                visits = await _round(port, settings, load, 1000 * (number + 1))
                side.visits.latencies += visits.latencies
                side.visits.seconds += visits.seconds
                told, now = await _told(port), await _committed(settings)
                side.asked += told["asked"] - before["asked"]
                side.avoided += told["avoided"] - before["avoided"]
                if now is not None and committed is not None:
                    side.transactions = (side.transactions or 0) + now - committed
                committed = now
    return sides


@asynccontextmanager
async def _shop(settings: Settings, guard: str) -> AsyncIterator[int]:
    """A shop in a process of its own; its port."""
    options = [f"--{name}={getattr(settings, name)}" for name in ("database", "customers", "full")]
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, str(SHOP), "serve", "--port=0", f"--guard={guard}", *options],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        if process.stdout is None:
            raise ConnectionError("the shop has no output")
        line = (await process.stdout.readline()).decode().strip()
        if not line:
            raise ConnectionError("the shop did not open; its message is above")
        port = int(line.rpartition(":")[2])
        await _get(port, "/")  # it is seeded by then
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _round(port: int, settings: Settings, load: Load, seed: int) -> Visits:
    return await visit(
        port,
        seconds=load.seconds,
        visitors=load.visitors,
        customers=settings.customers,
        seed=seed,
    )


async def _get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await fetch(reader, writer, path, 1)
    finally:
        writer.close()


async def _told(port: int) -> dict[str, int]:
    told: dict[str, int] = json.loads(await _get(port, "/guard.json"))
    return told


async def _ready(port: int) -> None:
    """Until the guard is built, if there is one."""
    while True:
        guard = json.loads(await _get(port, "/guard.json"))["guard"]
        if not guard or guard["state"].lower() == "ready":
            return
        await asyncio.sleep(0.05)


async def _committed(settings: Settings) -> int | None:
    """Transactions that PostgreSQL has counted, after the second that its backends may be late."""
    if not settings.database.startswith("postgresql"):
        return None
    await asyncio.sleep(1.1)
    engine = create_async_engine(settings.database)
    try:
        async with engine.connect() as connection:
            counted = await connection.scalar(
                text(
                    "SELECT xact_commit + xact_rollback FROM pg_stat_database"
                    " WHERE datname = current_database()"
                )
            )
        return int(counted or 0)
    finally:
        await engine.dispose()


def table(sides: dict[str, Side]) -> str:
    """Both sides, beside each other."""
    off, on = sides["off"], sides["on"]
    lines = [f"{'':32}{'guard off':>12}{'guard on':>12}"]
    for what, one, other in (
        ("pages", f"{len(off.visits.latencies):,}", f"{len(on.visits.latencies):,}"),
        ("pages a second", f"{off.visits.rate:,.0f}", f"{on.visits.rate:,.0f}"),
        *(
            (
                f"p{100 * share:.0f}, ms",
                f"{off.visits.milliseconds(share):.2f}",
                f"{on.visits.milliseconds(share):.2f}",
            )
            for share in (0.5, 0.99)
        ),
        ("basket queries", f"{off.asked:,}", f"{on.asked:,}"),
        ("basket queries avoided", f"{off.avoided_share:.1%}", f"{on.avoided_share:.1%}"),
        ("transactions of the database", _count(off), _count(on)),
    ):
        lines.append(f"{what:32}{one:>12}{other:>12}")
    return "\n".join(lines) + "\n"


def _count(side: Side) -> str:
    return "-" if side.transactions is None else f"{side.transactions:,}"
