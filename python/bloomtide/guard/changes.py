"""`Changes`: the change table as keys of a filter, read from a position on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Column, Connection
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import SQLAlchemyError

from bloomtide.guard.follow import log
from bloomtide.guard.outbox import Position, outbox_for
from bloomtide.guard.outbox_postgres import PostgresOutbox
from bloomtide.guard.pending import Key
from bloomtide.guard.values import Normal, Normalizer
from bloomtide.guard.writes import OWN

_KEEP = 3600.0
"""Seconds that changes stay readable."""
_STEPS = 60
"""How often in that time some are pruned."""


class Changes:
    """What others write to the key columns of one table."""

    def __init__(
        self, columns: Sequence[Column[Any]], dialect: Dialect, normal: Normalizer | None = None,
        *, notify: bool = False,
    ) -> None:  # fmt: skip
        self._outbox = outbox_for(columns, dialect)
        self._normal = Normal(self._outbox.columns, dialect, normal)
        self._notify = notify
        self._seen: deque[tuple[float, Position]] = deque()

    @property
    def channel(self) -> str:
        """Where `NOTIFY` says that there is something to read."""
        return self._outbox.name

    def install(self, connection: Connection) -> None:
        """Makes what is missing of the change table and its triggers."""
        was = connection.get_execution_options().get(OWN, False)
        connection.execution_options(**{OWN: True})
        try:
            self._outbox.install(connection)
            if self._notify and isinstance(self._outbox, PostgresOutbox):
                self._outbox.install_wake_up(connection)
            connection.commit()
        finally:
            connection.execution_options(**{OWN: was})

    def uninstall(self, connection: Connection) -> None:
        """Removes all of it."""
        self._outbox.uninstall(connection)
        connection.commit()

    def position(self, connection: Connection) -> Position:
        """Everything that is committed now."""
        found = self._outbox.position(connection)
        connection.rollback()
        return found

    def read(
        self, connection: Connection, since: Position, add_many: Callable[[Sequence[Key]], object]
    ) -> Position | None:
        """Adds the keys that were committed after `since`; None if some of them were lost."""

        def add(rows: Sequence[tuple[Any, ...]]) -> None:
            add_many([key for row in rows if (key := self._normal.stored(row)) is not None])

        reached = self._outbox.read(connection, since, add, self._normal.read)
        connection.rollback()
        if reached is not None:
            self._prune(connection, reached)
        return reached

    def _prune(self, connection: Connection, reached: Position) -> None:
        """Deletes what was read long ago; a reader that is further behind will notice."""
        now = time.monotonic()
        if not self._seen or now - self._seen[-1][0] >= _KEEP / _STEPS:
            self._seen.append((now, reached))
        if now - self._seen[0][0] > _KEEP:
            until = self._seen.popleft()[1]
            try:
                self._outbox.prune(connection, until)
                connection.commit()
            except SQLAlchemyError as error:  # what was read is read all the same
                connection.rollback()
                log.warning("old changes could not be deleted: %s", error)
