"""The planted faults: mistakes of the stand-in, and damage done to the real guard from outside."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


class HardOfHearing:
    """The real guard, whose listeners to statements miss one call in `every`."""

    def __init__(self, every: int, engine: sa.Engine, column: Any, **options: Any) -> None:
        self.every = every
        self.calls = itertools.count(1)
        self.instead: dict[Any, Callable[..., Any]] = {}
        with self._between():
            self.guard = DatabaseGuard(engine, column, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.guard, name)

    def close(self) -> None:
        with self._between():
            self.guard.close()

    @contextmanager
    def _between(self) -> Iterator[None]:
        """Stands between the guard and SQLAlchemy's `listen` and `remove`."""
        listen, remove = sa.event.listen, sa.event.remove

        def listens(target: Any, name: str, function: Any, *rest: Any, **words: Any) -> None:
            listen(target, name, self._other(name, function), *rest, **words)

        def removes(target: Any, name: str, function: Any) -> None:
            remove(target, name, self._other(name, function))

        setattr(sa.event, "listen", listens)  # noqa: B010
        setattr(sa.event, "remove", removes)  # noqa: B010
        try:
            yield
        finally:
            setattr(sa.event, "listen", listen)  # noqa: B010
            setattr(sa.event, "remove", remove)  # noqa: B010

    def _other(self, name: str, function: Any) -> Any:
        if "execute" not in name:
            return function

        def sometimes(*arguments: Any, **words: Any) -> Any:
            missed = next(self.calls) % self.every == 0
            return None if missed else function(*arguments, **words)

        return self.instead.setdefault((name, function), sometimes)


AROUND: tuple[Fault, ...] = (
    Fault("the real guard denies one key in twenty", damaged(may_exist=_lies)),
    Fault("the real guard's may_exist_many denies the first", damaged(may_exist_many=_one_too_few)),
    Fault("the real guard misses one statement in five", functools.partial(HardOfHearing, 5)),
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
