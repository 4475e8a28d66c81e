"""`Upkeep`: builds a guard's filter again when that is worth its while, and follows other writers.

| | who is seen | how soon |
|---|---|---|
| nothing of these | who writes through the guarded engine | before the commit |
| `refresh` | everybody | by the next rebuild |
| `outbox` | everybody whose writes fire triggers | when the change table is read next |
| `notify` | the same | at once, as a rule |

Each promises a bound. `fresh_until` of the keys keeps it: when that moment has passed, because the
work that renews it failed, hangs or died, everything passes until it has succeeded. What was
committed longer ago than twice `refresh`, or five readings of the change table, is never called
absent. Of several processes that share a filter one reads the changes. When it dies, the next one
goes on from its position, which is among the shared files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Engine

from bloomtide._core import parse_duration
from bloomtide.errors import ParameterError, StorageError, require
from bloomtide.guard.background import BackgroundQueries, Notifications, Repeated, connector
from bloomtide.guard.filter.keys import KeyFilter
from bloomtide.guard.key_parts import Normalizer
from bloomtide.guard.outbox.table import Outbox, Position
from bloomtide.guard.table import in_transactions

_GLANCE = 0.02
"""Seconds between two looks whether a build has ended."""
_EVERY = 1.0
"""Seconds between two readings, unless told."""
_READINGS = 5
"""Times between two readings that an answer may be old."""
_REBUILDS = 2
"""Times between two rebuilds that an answer may be old."""
_LOOK = 5.0
"""Seconds between two looks whether a rebuild is due, at most."""
_LOOKS = 20
"""Looks in the time between two refreshes."""
_REST = 30.0
"""Seconds between two rebuilds at least, unless `refresh` asks for them; also if one failed."""
_SHARE = 20
"""And this many times as long as a build takes: it reads all of the column."""


class Follow:
    """How other writers are followed, as the options of a guard say."""

    def __init__(
        self, engine: Engine, columns: Sequence[Column[Any]], normal: Normalizer | None, *,
        refresh: Any, outbox: Any, notify: bool, removals: str,
    ) -> None:  # fmt: skip
        require(
            "notify",
            notify,
            "left out without `outbox`",
            not notify or bool(outbox),
            hint="add `outbox=True`",
        )
        self.notify = notify
        self.refresh = None if refresh is None else parse_duration(refresh, "refresh")
        self.every = _EVERY
        self.outbox: Outbox | None = None
        if outbox:
            refuse_removals("outbox", removals)
            self.every = _EVERY if outbox is True else parse_duration(outbox, "outbox")
            self.outbox = Outbox(columns, engine.dialect, normal, notify=notify)

    def __bool__(self) -> bool:
        return self.refresh is not None or self.outbox is not None

    @property
    def bound(self) -> float:
        """Seconds that an answer may be old."""
        return self.every * _READINGS if self.outbox else (self.refresh or 0.0) * _REBUILDS


def refuse_removals(name: str, removals: str) -> None:
    """A deleted key may be written again by somebody of whom nobody hears in time."""
    if removals == "commit":
        raise ParameterError(
            f'`removals` must be "never" with `{name}`',
            hint="use `refresh` to get rid of deleted keys",
            name="removals", got=removals, allowed='"never"',
        )  # fmt: skip


def remove(outbox: Outbox, queries: BackgroundQueries) -> None:
    """Removes a change table."""

    def work(connection: Connection) -> None:
        outbox.uninstall(in_transactions(connection))
        connection.commit()

    queries.run(work)


class Upkeep:
    """Rebuilds and reads changes, in threads, until it is closed."""

    def __init__(
        self, engine: Engine, keys: KeyFilter, build: Callable[[Connection], bool], how: Follow,
        *, is_async: bool, rebuilds: bool = True,
    ) -> None:  # fmt: skip
        """`rebuilds`: also when that is worth its while, and not only when `how` asks for it."""
        connect = connector(engine) if how.notify else None  # refuses before anything is made
        self._queries = BackgroundQueries(engine, is_async=is_async)
        self._keys = keys
        self._place = keys.place
        self._build = build
        self._how = how
        self._rebuilds = rebuilds
        self._began = 0.0
        self._since: Position | None = None
        self._scanned: tuple[float, float] | None = None
        self.begun = False
        """Somebody has asked for the first build."""
        self._stopped = False
        """Until somebody asks for a build."""
        self._next = time.monotonic() + _REST
        self._threads: list[Repeated] = []
        self._notifications: Notifications | None = None
        if how and self._place.fresh_until is None:
            self._place.fresh_until = 0.0  # nobody follows yet
        if rebuilds or how.refresh is not None:
            every = min(_LOOK, (how.refresh or _LOOK * _LOOKS) / _LOOKS)
            self._threads.append(Repeated("rebuild", self.look, every))
        if how.outbox is not None:
            if connect is not None:
                self._notifications = Notifications(connect, how.outbox.name)
            changes = Repeated("changes", self._read_changes, how.every, self._notifications)
            self._threads.append(changes)
        for thread in self._threads:
            thread.start()

    # --- around a build -----------------------------------------------------------------------

    def resume(self) -> None:
        """Somebody asks for a build."""
        self._stopped = False

    def before_scan(self, connection: Connection) -> None:
        """The position before the scan, so that nothing falls between the two."""
        if self._stopped:
            # A thread's build that began before: `uninstall` waits for it to end.
            raise StorageError(
                "the change table was removed", hint="call `build` to install it again",
                path="", operation="build",
            )  # fmt: skip
        self.begun, self._scanned = True, None
        self._began = time.monotonic()
        if self._how.outbox is not None:
            self._how.outbox.install(connection)
            self._since = self._how.outbox.position(connection)
            # The position knows the schema: what was renamed before it must not be part of it.
            self._how.outbox.install(connection)

    def after_scan(self, connection: Connection) -> None:
        """Reads what others have committed since the scan began."""
        looked_at = self._began
        if self._how.outbox is not None and self._since is not None:
            looked_at = time.monotonic()
            reached = self._how.outbox.read_keys(connection, self._since, self._keys.add_many)
            # Who follows already goes on from where it is, which cannot be too far.
            if reached is not None and self._place.position is None:
                self._place.position = reached.to_json()
        self._scanned = (self._began, looked_at)

    def built(self) -> None:
        """The filter that was scanned last is in use."""
        if self._scanned is None or not self._how:
            return  # by another process
        self._place.built_at, looked_at = self._scanned
        if self._how.outbox is None or self._place.position is not None:
            self._renew(looked_at)

    def _renew(self, looked_at: float) -> None:
        until = looked_at + self._how.bound
        self._place.fresh_until = max(until, self._place.fresh_until or 0.0)

    # --- in threads ---------------------------------------------------------------------------

    def _is_begun(self) -> bool:
        """That the first build is begun is up to the caller."""
        begun = self.begun or self._place.built_at > 0
        return begun and not self._stopped and not self._keys.rebuilding

    def look(self) -> None:
        """Builds if it is due, and time."""
        now, refresh = time.monotonic(), self._how.refresh
        if not self._is_begun():
            return
        if refresh is not None and now >= self._place.built_at + refresh:
            self._queries.run(self._build)
        elif self._rebuilds and now >= self._next and self._keys.due():
            try:
                self._queries.run(self._build)
            finally:
                taken = time.monotonic() - now
                self._next = time.monotonic() + max(_REST, _SHARE * taken)

    def _read_changes(self, *, now: bool = False) -> None:
        """Reads the changes, if that is for this process to do; or `now` in any case."""
        outbox, position = self._how.outbox, self._place.position
        if outbox is None or self._stopped or not (self._place.may_follow() or now):
            return
        if position is None:  # it was lost, or the first build has failed
            if self._is_begun() and self._place.position is None:  # still, if a build has ended
                self._queries.run(self._build)
            return
        since, began = Position.from_json(position), time.monotonic()
        reached = self._queries.run(
            lambda connection: outbox.read_keys(connection, since, self._keys.add_many)
        )
        if reached is None:
            self._place.position = None
            self._keys.distrust("changes of other writers were lost")
            self._queries.run(self._build)
        else:
            self._place.position = reached.to_json()
            self._renew(began)

    # --- on demand ----------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Reads the changes before it returns."""
        self._read_changes(now=True)

    def uninstall(self) -> None:
        """Removes the change table, and follows nobody until somebody asks for a build."""
        assert self._how.outbox is not None
        self._stopped = True
        while self._keys.rebuilding:
            time.sleep(_GLANCE)
        remove(self._how.outbox, self._queries)
        self._keys.distrust("the change table was removed")
        self._place.position = None

    def close(self) -> None:
        for thread in self._threads:
            thread.close()
        if self._notifications is not None:
            self._notifications.close()
        self._queries.close()
