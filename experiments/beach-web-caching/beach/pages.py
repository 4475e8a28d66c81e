"""E15, fourth part: pages of a shop, and the load of its database, with and without the guard.

The shop of `examples/shop` on PostgreSQL, on SQLite where that is not installed. Two shops have one
database; visitors go to both in turn, as many as asked for, each asking for its next page as soon
as it has one. Transactions are what PostgreSQL itself counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from trials.outcome import Claim, Outcome, Row, ratio
from webshop.app import Settings
from webshop.load import Load, Side, compare

WANTED = 0.9
"""Of all basket queries, at 95 % empty baskets."""


def pages(server: bool, customers: int, empty: tuple[int, ...], load: Load) -> Outcome:
    """For each percentage of empty baskets; `server` if PostgreSQL is wanted."""
    rows: list[Row] = []
    with _databases(server) as urls:
        for percent, url in zip(empty, urls, strict=False):
            settings = Settings(url, customers, full=1 - percent / 100)
            sides = asyncio.run(compare(settings, load))
            rows += [_row(url, percent, name, side) for name, side in sides.items()]
    return Outcome(rows, list(_claims(rows)))


@contextmanager
def _databases(server: bool) -> Iterator[Iterator[str]]:
    """URLs of empty databases, as many as are asked for."""
    try:
        from tests.services.postgres import Postgres, why_not
    except ModuleNotFoundError as error:
        if error.name not in ("tests", "pytest"):
            raise
        reason: str | None = "the tests are not installed"
    else:
        reason = why_not()
    if server and not reason:
        with Postgres.running() as running:
            yield (running.new_database() for _ in count())
        return
    if server:
        print(f"{reason}: the shop has SQLite instead")
    with TemporaryDirectory() as folder:
        yield (f"sqlite+aiosqlite:///{Path(folder) / str(i)}.db" for i in count())


def _row(url: str, percent: int, name: str, side: Side) -> Row:
    return {
        "database": url.partition("+")[0],
        "empty_percent": percent,
        "guard": name,
        "pages": len(side.visits.latencies),
        "pages_per_second": side.visits.rate,
        "p50_ms": side.visits.milliseconds(0.5),
        "p99_ms": side.visits.milliseconds(0.99),
        "asked": side.asked,
        "avoided": side.avoided,
        "avoided_share": side.avoided_share,
        "transactions": side.transactions or 0,
    }


def _claims(rows: list[Row]) -> Iterator[Claim]:
    for off, on in zip(rows[::2], rows[1::2], strict=True):
        text = f"{on['database']}, {on['empty_percent']} % of baskets empty"
        share = on["avoided_share"]
        at_least = WANTED if on["empty_percent"] >= 95 else on["empty_percent"] / 100 - 0.05
        yield Claim(f"{text}: basket queries avoided", "", f"{share:.1%}", share >= at_least)
        rates = off["pages_per_second"], on["pages_per_second"]
        yield Claim(
            f"{text}: pages a second without and with the guard",
            "",
            f"{rates[0]:,.0f} and {rates[1]:,.0f}, {ratio(rates[1], rates[0])}",
            rates[1] > rates[0],
        )
        slow = off["p99_ms"], on["p99_ms"]
        yield Claim(
            f"{text}: p99 without and with it",
            "",
            f"{slow[0]:.1f} and {slow[1]:.1f} ms",
            slow[1] < slow[0],
        )
        if on["transactions"]:
            per = [row["transactions"] / row["pages"] for row in (off, on)]
            yield Claim(
                f"{text}: transactions of the database for each page",
                "",
                f"{per[0]:.3f} and {per[1]:.3f}",
                per[1] < per[0],
            )
