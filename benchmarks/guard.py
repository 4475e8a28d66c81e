"""What a guard costs: a question, and the hooks at an INSERT that is committed by itself.

The same rows go in through an engine with a guard and through one without, in turns. SQLite is a
file, and PostgreSQL, where it is installed, a server of its own; both with their usual settings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice

from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, create_engine

from benchmarks.engines.contract import Missing
from benchmarks.measure import per_key, turns
from bloomery import DatabaseGuard
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
    """Nanoseconds of one piece of work, the best of all rounds."""

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
    plain, guarded = create_engine(url), create_engine(url)
    METADATA.create_all(plain)
    number, last = count(), 0
    best: dict[Engine, float] = {}

    def insert(engine: Engine) -> int:
        for key in islice(number, inserts):
            with engine.begin() as connection:
                connection.execute(BASKET.insert(), {"customer_id": key, "note": "tea"})
        return key

    with _guarded(guarded) as guard:
        for round_number in range(rounds):
            for engine in turns([plain, guarded], round_number):
                taken, key = per_key(lambda: insert(engine), inserts)  # noqa: B023
                best[engine] = min(taken, best.get(engine, taken))
                last = key if engine is guarded else last
        if not guard.may_exist(last) or guard.may_exist(-1):
            raise SystemExit("the guard did not see what was inserted")
    plain.dispose()
    return GuardCost(f"INSERT and COMMIT, {name}", best[plain], best[guarded])
