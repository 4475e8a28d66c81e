"""What a guard costs: a question, and the hooks at an INSERT that is committed by itself.

The same rows go in through an engine with a guard and through one without, in turns. SQLite is a
file, and PostgreSQL, where it is installed, a server of its own; both with their usual settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from statistics import median

from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, create_engine

from benchmarks.engines.contract import Missing
from benchmarks.measure import per_key, turns
from bloomtide import DatabaseGuard
from tests.services.postgres import Postgres, why_not

QUESTION = "may_exist"
METADATA = MetaData()
BASKET = Table(
    "basket",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("customer_id", Integer, unique=True),
    Column("note", String(100)),
)


@dataclass(frozen=True, slots=True)
class GuardCost:
    """Nanoseconds of one piece of work: the best round of questions, the median INSERT."""

    work: str
    plain: float | None
    """Without a guard; None for a question, which has no other side."""
    guarded: float


def measure(keys: int, inserts: int, rounds: int) -> tuple[list[GuardCost], list[Missing]]:
    """Asks for as many absent keys as there are keys, and inserts rows one by one."""
    found = [_question(keys, rounds)]
    missing: list[Missing] = []
    with tempfile.TemporaryDirectory() as directory:
        found.append(_inserts("SQLite", f"sqlite:///{directory}/shop.db", inserts, rounds))
    if reason := why_not():
        missing.append(Missing("INSERT on PostgreSQL", reason))
    else:
        with Postgres.running(durable=True) as server:
            found.append(_inserts("PostgreSQL", server.new_database(), inserts, rounds))
    return found, missing


@contextmanager
def _guarded(engine: Engine) -> Iterator[DatabaseGuard]:
    with DatabaseGuard(engine, BASKET.c.customer_id, rebuild="manual") as guard:
        if not guard.build():
            raise SystemExit("the guard could not be built")
        yield guard
    engine.dispose()


def _question(keys: int, rounds: int) -> GuardCost:
    engine = create_engine("sqlite://")
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(BASKET.insert(), [{"customer_id": key} for key in range(keys)])
    with _guarded(engine) as guard:
        absent, ask = range(keys, 2 * keys), guard.may_exist

        def questions() -> None:
            for key in absent:
                ask(key)

        taken = min(per_key(questions, keys)[0] for _ in range(rounds))
    return GuardCost(QUESTION, None, taken)


def _inserts(name: str, url: str, inserts: int, rounds: int) -> GuardCost:
    """One INSERT without and one with a guard in turns, so that the disk's moods hit both alike;
    the median of all, because a commit that waits for the disk has no best case of its own."""
    plain, guarded = create_engine(url), create_engine(url)
    METADATA.create_all(plain)
    taken: dict[Engine, list[float]] = {plain: [], guarded: []}

    def insert(engine: Engine, key: int) -> None:
        with engine.begin() as connection:
            connection.execute(BASKET.insert(), {"customer_id": key, "note": "tea"})

    with _guarded(guarded) as guard:
        keys = count()
        for number in range(inserts * rounds):
            for engine in turns([plain, guarded], number):
                key = next(keys)
                taken[engine].append(per_key(lambda: insert(engine, key), 1)[0])  # noqa: B023
                if engine is guarded and not guard.may_exist(key):
                    raise SystemExit("the guard did not see what was inserted")
        if guard.may_exist(-1):
            raise SystemExit("the guard passes what was never inserted")
    plain.dispose()
    return GuardCost(f"INSERT and COMMIT, {name}", median(taken[plain]), median(taken[guarded]))
