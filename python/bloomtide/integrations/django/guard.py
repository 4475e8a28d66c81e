"""`ModelGuard`: do I have to ask the database for this key at all?

The counterpart of `bloomtide.DatabaseGuard` for Django's models, with the same rule: the filter
holds every committed key, so False is certain, and in any doubt the database is asked. What is seen
of the writes, and what is not, is in `watch.py` and `statements.py`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Self
from weakref import WeakSet

from django.db import DatabaseError, connections, models

from bloomtide import system
from bloomtide.errors import BloomtideError, NullKeyError, ParameterError
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.filter.memory import Progress
from bloomtide.guard.key_parts import Unseen
from bloomtide.guard.running_writers import wait_for_writers
from bloomtide.guard.schema.facts import TableFacts
from bloomtide.guard.stats import GuardStats, QuestionCounts, State
from bloomtide.guard.writes.sql import Reader
from bloomtide.guard.writes.transaction import Key, OpenTransaction
from bloomtide.integrations.django import watch
from bloomtide.integrations.django.columns import KeyColumn

_BATCH = 10_000
_OFTEN = 1.0
"""Seconds between two looks whether a build is due."""
_PATIENCE = 10.0
"""Seconds between two builds that start by themselves."""


_log = logging.getLogger("bloomtide.guard")
_guards: WeakSet[ModelGuard] = WeakSet()


class ModelGuard:
    """Knows which keys of a column certainly do not exist.

    >>> baskets = ModelGuard(Basket, "customer", error_rate=0.01)   # doctest: +SKIP
    >>> baskets.may_exist(4711)                                     # doctest: +SKIP
    False
    """

    def __init__(
        self,
        model: type[models.Model],
        field: str,
        error_rate: float = 0.01,
        *,
        capacity: int | None = None,
        using: str = "default",
        shared: str | os.PathLike[str] | None = None,
        build: bool = True,
    ) -> None:
        """A guard of the column of `field`.

        - `capacity`: keys to make room for at least.
        - `using`: the alias of the database.
        - `shared`: a directory, for all processes of this machine that use one filter. Without it
          a guard sees only what its own process writes.
        - `build`: the first question starts a build beside it, and so does the first after a
          doubt. Otherwise call `build()` yourself.
        """
        if not watch.is_watching():
            raise ParameterError(
                "Django's connections are not watched",
                hint='put "bloomtide.integrations.django" first into INSTALLED_APPS',
                name="INSTALLED_APPS",
                got="without it",
                allowed="with it",
            )
        self.using = using
        self.column = KeyColumn(model, field, connections[using])
        subject = None if shared is None else self.column.subject(connections[using])
        self._store = KeyFilter(error_rate, capacity=capacity, shared=shared, subject=subject)
        self._builds = build
        self._next_look = 0.0
        self._looking = threading.Lock()
        self._counting = threading.Lock()
        self._counts = QuestionCounts()
        self._facts: TableFacts | None = None
        self.reader = Reader(self.column.target(connections[using]))
        watch.add(self)
        _guards.add(self)

    # --- questions ----------------------------------------------------------------------------

    def may_exist(self, key: object) -> bool:
        """False only if no committed row has the key."""
        answer = self._passes(key)
        self._count(1, 0 if answer else 1)
        return answer

    def filter_many(self, keys: Iterable[Any]) -> list[Any]:
        """The keys that are worth asking for."""
        every = list(keys)
        left = [key for key in every if self._passes(key)]
        self._count(len(every), len(every) - len(left))
        return left

    def exists(self, key: object) -> bool:
        """Whether a row has the key; the database is asked only if that is possible."""
        return self.may_exist(key) and self._noted(self._rows(key).exists())

    def get(self, key: object) -> models.Model | None:
        """A row that has the key, or None."""
        if not self.may_exist(key):
            return None
        found: models.Model | None = self._rows(key).first()
        self._noted(found is not None)
        return found

    def _passes(self, value: object) -> bool:
        if self._builds and time.monotonic() >= self._next_look:
            self._look()
        try:
            key = self.column.asked(value, connections[self.using])
        except Unseen:
            return True  # no filter holds it as it is: the database decides
        if key is None:
            raise NullKeyError(
                "NULL equals nothing, so it is no key",
                hint="ask the database with `__isnull`",
                index=0,
                added=0,
            )
        return self._store.may_exist(key)

    def _rows(self, key: object) -> Any:
        rows = self.column.model._base_manager.using(self.using)
        return rows.filter(**{self.column.field.attname: key})

    def _noted(self, found: bool) -> bool:
        with self._counting:
            self._counts.true_keys += found
            self._counts.false_true += not found and self._store.trusted
        return found

    def _count(self, asked: int, avoided: int) -> None:
        with self._counting:
            self._counts.asked += asked
            self._counts.avoided += avoided

    # --- building -----------------------------------------------------------------------------

    def build(self, progress: Progress | None = None) -> bool:
        """Reads all keys into a new filter and puts it to use; False if unseen writes spoil it.

        Not inside a transaction: what others commit meanwhile might be invisible to it.
        """
        self._store.refuse_orphan()
        connection = connections[self.using]
        if connection.in_atomic_block or not connection.get_autocommit():
            raise ParameterError(
                "a guard cannot be built inside a transaction",
                hint="call `build` outside of `atomic`; in tests use TransactionTestCase",
                name="using",
                got=self.using,
                allowed="a connection in autocommit mode",
            )
        self.column.refuse_another(connection)
        if self._store.may_join():
            return True
        attname = self.column.field.attname
        rows = self.column.model._base_manager.using(self.using)
        keys = rows.exclude(**{attname: None}).values_list(attname, flat=True)
        return self._store.rebuild(
            lambda: self._batches(keys, connection),
            expected=keys.count(),
            progress=progress,
        )

    def _batches(self, keys: Any, connection: Any) -> Iterator[Sequence[Key]]:
        if connection.vendor == "postgresql":
            name = connection.ops.quote_name(self.column.table)

            def run(sql: str) -> Any:
                with connection.cursor() as cursor:
                    cursor.execute(sql)
                    return cursor.fetchall()

            wait_for_writers(run, lambda: None, name)
        facts = self.column.check(connection)
        if self._facts is not None and self._facts.fingerprint != facts.fingerprint:
            self._store.distrust("the table has changed")
        self._facts = facts
        self.reader = Reader(facts.target(self.column.target(connection)))
        values = keys.iterator(chunk_size=_BATCH)
        while batch := list(islice(values, _BATCH)):
            yield [self.column.read(value, connection) for value in batch]
        if self.column.check(connection).fingerprint != facts.fingerprint:
            self._store.distrust("the table was changed while it was read")

    def connected(self, connection: Any) -> None:
        """A new connection: the database may have been changed since the last one."""
        if self._facts is None or self._store.state is not State.READY:
            return
        try:
            same = self.column.check(connection).fingerprint == self._facts.fingerprint
        except (DatabaseError, BloomtideError):
            same = False
        if not same:
            self._store.distrust("the table has changed")

    def _look(self) -> None:
        """Starts a build if one is due: in a thread of its own, with a connection of its own."""
        with self._looking:
            if time.monotonic() < self._next_look:
                return
            due = self._store.due()
            self._next_look = float("inf") if due else time.monotonic() + _OFTEN
        if due:
            threading.Thread(target=self._build_beside, name="bloomtide-guard", daemon=True).start()

    def _build_beside(self) -> None:
        try:
            self.build()
        except (DatabaseError, BloomtideError) as error:
            # The database is away, or a row holds what its field cannot: all keys pass.
            _log.warning("the guard of `%s` could not be built: %s", self.column.table, error)
        finally:
            connections[self.using].close()
            self._next_look = time.monotonic() + _PATIENCE

    # --- what is written ----------------------------------------------------------------------

    def concerns(self, connection: Any) -> bool:
        """Another alias may lead to the same database."""
        if connection.alias == self.using:
            return True
        own = connections[self.using]
        return connection.vendor == own.vendor and _place(connection) == _place(own)

    def begin(self, driver: Any) -> OpenTransaction:
        """For the writes of one connection."""
        return self._store.begin(driver)

    def committing(self, transaction: OpenTransaction) -> None:
        """A commit is about to be sent."""
        self._store.committing(transaction)

    def landed(self, transaction: OpenTransaction) -> None:
        """What was sent since `committing` is done, and the transaction goes on."""
        self._store.landed(transaction)

    def deleted(self, rows: int) -> None:
        """So many rows were deleted."""
        self._store.count_stale(rows)

    def distrust(self, reason: str) -> None:
        """Say so if you know of writes that the guard cannot see: all keys pass until a build."""
        self._store.distrust(reason)

    # --- the rest -----------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Only in the state READY does it ever answer False."""
        return self._store.state

    def stats(self) -> GuardStats:
        """What it was asked, what it answered, and what it holds."""
        held = self._store.stats()
        with self._counting:
            return self._counts.stats(held)

    def start_anew(self) -> None:
        """In a forked process, where nobody knows who holds the locks."""
        self._looking, self._counting = threading.Lock(), threading.Lock()
        self._next_look = 0.0

    def close(self) -> None:
        """It hears of no write any more, and lets all keys pass."""
        self._builds = False
        self._store.close(lambda: watch.remove(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _place(connection: Any) -> tuple[str, ...]:
    settings = connection.settings_dict
    return tuple(str(settings.get(name, "")) for name in ("NAME", "HOST", "PORT"))


def _after_fork() -> None:
    for guard in list(_guards):
        guard.start_anew()


system.after_fork_in_child(_after_fork)
