"""The planted faults: mistakes of the stand-in, and damage done to the real guard from outside."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from benchmarks.guard_histories.model import StandIn
from benchmarks.guard_histories.play import Plant
from bloomtide import DatabaseGuard


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake and where it shows."""

    name: str
    plant: Plant
    database: str = "sqlite"
    ask: dict[str, Any] = field(default_factory=dict)
    """What histories should have: see `draw_history`."""


def mistaken(name: str) -> Plant:
    """A stand-in with a mistake."""
    return functools.partial(StandIn, mistake=name, told=itertools.count(1))


REMOVALS, OUTBOX = {"removals": "commit"}, {"outbox": "60s"}
STANDS_IN: dict[str, dict[str, Any]] = {
    "drops one key in a hundred": {},
    "sees only the first row of an executemany": {},
    "sees only the first row of several VALUES": {},
    "misses INSERT .. SELECT": {},
    "misses one INSERT in twenty": {},
    "misses the change of an upsert": {},
    "misses UPDATE": {},
    "misses REPLACE": {},
    "believes that only parameters are keys": {},
    "misses text": {},
    "compares the table's name by case": {},
    "misses a qualified name": {},
    "misses statements of other tables": {"hazard": "cascade"},
    "matches columns by their key": {},
    "misses what the statement does not name": {"hazard": "server"},
    "misses RETURNING": {},
    "takes a change of the schema for nothing": {},
    "trusts transactions older than itself": {},
    "a rollback forgets what was known": {},
    "a savepoint's rollback forgets the transaction": {},
    "answers from before the rebuild": {},
    "a build forgets what is written meanwhile": {},
    "a build forgets open transactions": {},
    "a build reads all but one": {},
    "keeps the case of NOCASE": {"kind": "nocase"},
    "skips the TypeDecorator": {"kind": "prefixed"},
    "does not hear distrust": {},
    "may_exist_many denies the last": {},
    "filter_many leaves out the first": {},
    "exists denies": {},
    "catch_up reads nothing": {"options": OUTBOX},
    "catch_up reads only the first change": {"options": OUTBOX},
    "removes at the statement": {"options": REMOVALS},
    "removes without a look": {"options": REMOVALS},
    "remembers deletions after a rollback": {"options": REMOVALS},
    "removes what came again": {"options": REMOVALS},
}
ON_POSTGRESQL: dict[str, dict[str, Any]] = {
    "misses a CTE": {},
    "keeps the blanks of CHAR": {"kind": "char"},
    "removes without a look": {"options": REMOVALS},
    "a build forgets open transactions": {},
    "misses statements of other tables": {"hazard": "rule"},
}


class Damaged:
    """The real guard with some of its methods changed."""

    def __init__(self, guard: DatabaseGuard, **changes: Callable[..., Any]) -> None:
        self.guard = guard
        self.changes = changes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.guard, name)
        return functools.partial(self.changes[name], found) if name in self.changes else found


def _lies(ask: Any, key: Any) -> bool:
    """Denies one key in twenty."""
    return bool(ask(key)) and zlib.crc32(repr(key).encode()) % 20 != 0


def _one_too_few(ask: Any, keys: Any) -> Any:
    found = ask(keys)
    found[:1] = False
    return found


def _deaf(*arguments: Any) -> None:
    return None


def damaged(**changes: Callable[..., Any]) -> Plant:
    return lambda *arguments, **words: Damaged(DatabaseGuard(*arguments, **words), **changes)


def hard_of_hearing(every: int) -> Plant:
    """Its listeners before and after statements miss one call in so many."""

    def plant(engine: sa.Engine, column: Any, **options: Any) -> Any:
        listen, calls = sa.event.listen, iter(range(1, 1 << 62))

        def listens(target: Any, name: str, function: Any, *rest: Any, **words: Any) -> None:
            if "execute" not in name or words.get("retval"):
                listen(target, name, function, *rest, **words)
                return

            def sometimes(*arguments: Any, **named: Any) -> Any:
                return None if next(calls) % every == 0 else function(*arguments, **named)

            listen(target, name, sometimes, *rest, **words)

        setattr(sa.event, "listen", listens)  # noqa: B010
        try:
            return DatabaseGuard(engine, column, **options)
        finally:
            setattr(sa.event, "listen", listen)  # noqa: B010

    return plant


AROUND: tuple[Fault, ...] = (
    Fault("the real guard denies one key in twenty", damaged(may_exist=_lies)),
    Fault("the real guard's may_exist_many denies the first", damaged(may_exist_many=_one_too_few)),
    Fault("the real guard does not hear distrust", damaged(distrust=_deaf)),
    Fault(
        "the real guard's catch_up does nothing", damaged(catch_up=_deaf), ask={"options": OUTBOX}
    ),
)
FAULTS: tuple[Fault, ...] = (
    *(Fault(name, mistaken(name), ask=ask) for name, ask in STANDS_IN.items()),
    *(
        Fault(f"PostgreSQL: {name}", mistaken(name), "postgresql", ask)
        for name, ask in ON_POSTGRESQL.items()
    ),
    *AROUND,
)
