"""`OtherWriters`: keeps a guard up with those who do not write through its engine.

| | who is seen | how soon |
|---|---|---|
| nothing of these | who writes through the guarded engine | before the commit |
| `refresh` | everybody | by the next rebuild |
| `outbox` | everybody whose writes fire triggers | when the change table is read next |
| `notify` | the same | at once, as a rule |

Each promises a bound and keeps it by letting everything pass (`follow.py`): what was committed
longer ago than twice `refresh`, or five readings of the change table, is never called absent.

Of several processes that share a filter one reads the changes. When it dies, the next one goes on
from its position, which is among the shared files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy import Column, Connection, Engine

from bloomtide._core import parse_duration
from bloomtide.errors import ParameterError, require
from bloomtide.guard.changes import Changes
from bloomtide.guard.errands import Errands
from bloomtide.guard.follow import Freshness, Pausable, Repeated
from bloomtide.guard.notify import Alarm, Listener, connector
from bloomtide.guard.outbox import Position
from bloomtide.guard.pending import Key
from bloomtide.guard.values import Normalizer

_EVERY = 1.0
"""Seconds between two readings, unless told."""
_READINGS = 5
"""Times between two readings that an answer may be old."""
_REBUILDS = 2
"""Times between two rebuilds that an answer may be old."""
_LOOKS = 20
"""How often it is looked whether a rebuild is due, in the time between two."""


class Followed(Pausable, Protocol):
    """The keys to keep up: `HeldKeys` or `SharedKeys`."""

    built_at: float
    """When the scan of the filter in use began, on the monotonic clock."""
    position: str | None
    """How far the changes of others are in the filter; None if that is not known."""

    @property
    def rebuilding(self) -> bool: ...
    def add_many(self, keys: Sequence[Key]) -> None: ...
    def distrust(self, reason: str) -> None: ...
    def may_follow(self) -> bool:
        """Whether this is the process that reads the changes."""


class OtherWriters:
    """Rebuilds and reads changes, in threads, until it is closed."""

    def __init__(
        self,
        engine: Engine,
        keys: Followed,
        build: Callable[[Connection], bool],
        *,
        is_async: bool = False,
        refresh: float | None = None,
        changes: Changes | None = None,
        every: float = 1.0,
        notify: bool = False,
    ) -> None:
        """`refresh` and `every` are seconds: between rebuilds, and between readings."""
        connect = connector(engine) if notify else None  # refuses before anything is made
        self._errands = Errands(engine, is_async=is_async)
        self._keys = keys
        self._build = build
        self._refresh_every = refresh
        self._changes = changes
        self._lag = every * _READINGS if changes else (refresh or 0.0) * _REBUILDS
        self._scanned: tuple[float, float] | None = None
        self._begun = False
        self._freshness = Freshness(keys, "other writers could not be followed for too long")
        self._threads: list[Repeated] = []
        if refresh is not None:
            self._threads.append(Repeated("refresh", self._refresh, refresh / _LOOKS))
        if changes is not None:
            alarm = Listener(connect, changes.channel) if connect else Alarm()
            self._threads.append(Repeated("changes", self._follow, every, alarm))
        for thread in self._threads:
            thread.start()

    # --- around a build -----------------------------------------------------------------------

    def around(self, connection: Connection, scan: Iterable[list[Key]]) -> Iterator[list[Key]]:
        """The keys of a scan, and what others have committed since it began."""
        self._begun, self._scanned = True, None
        began = looked_at = time.monotonic()
        since = None
        if self._changes is not None:
            self._changes.install(connection)
            # Before the scan, so that nothing falls between the two.
            since = self._changes.position(connection)
        yield from scan
        if self._changes is not None and since is not None:
            looked_at = time.monotonic()
            since = self._changes.read(connection, since, self._keys.add_many)
            # Who follows already goes on from where it is, which cannot be too far.
            if since is not None and self._keys.position is None:
                self._keys.position = since.to_json()
        self._scanned = (began, looked_at)

    def built(self) -> None:
        """The filter that was scanned last is in use."""
        if self._scanned is None:
            return  # by another process
        self._keys.built_at, looked_at = self._scanned
        if self._changes is None or self._keys.position is not None:
            self._freshness.renew(looked_at + self._lag)

    # --- in threads ---------------------------------------------------------------------------

    def _refresh(self) -> None:
        if not (self._begun or self._keys.built_at):
            return  # the first build is up to the caller
        due = self._keys.built_at + (self._refresh_every or 0.0)
        if time.monotonic() >= due and not self._keys.rebuilding:
            self._errands.run(self._build)

    def _follow(self, *, now: bool = False) -> None:
        """Reads the changes, if that is for this process to do; or `now` in any case."""
        changes, position = self._changes, self._keys.position
        if changes is None or not (self._keys.may_follow() or now):
            return
        if position is None:
            # Lost, or the first build has failed; but that it is begun is up to the caller.
            begun = (self._begun or self._keys.built_at) and not self._keys.rebuilding
            if begun and self._keys.position is None:  # still, if a build has just ended
                self._errands.run(self._build)
            return
        since, began = Position.from_json(position), time.monotonic()
        reached = self._errands.run(
            lambda connection: changes.read(connection, since, self._keys.add_many)
        )
        if reached is None:
            self._keys.position = None
            self._keys.distrust("changes of other writers were lost")
            self._errands.run(self._build)
        else:
            self._keys.position = reached.to_json()
            self._freshness.renew(began + self._lag)

    # --- on demand ----------------------------------------------------------------------------

    @property
    def reads_changes(self) -> bool:
        return self._changes is not None

    def catch_up(self) -> None:
        """Reads the changes before it returns."""
        self._follow(now=True)

    def uninstall(self) -> None:
        """Removes the change table."""
        if self._changes is not None:
            self._errands.run(self._changes.uninstall)

    def close(self) -> None:
        for thread in self._threads:
            thread.close()
        self._freshness.close()
        self._errands.close()


def refuse_removals(name: str, removals: str) -> None:
    """A key that was seen twice would be counted twice."""
    if removals == "commit":
        raise ParameterError(
            f'`removals` must be "never" with `{name}`',
            hint="use `refresh` to get rid of deleted keys",
            name="removals", got=removals, allowed='"never"',
        )  # fmt: skip


def follow_others(
    engine: Engine, columns: Sequence[Column[Any]], keys: Followed,
    build: Callable[[Connection], bool], *, normal: Normalizer | None, is_async: bool,
    refresh: Any, outbox: Any, notify: bool, removals: str,
) -> OtherWriters | None:  # fmt: skip
    """What a guard's options ask for; None if nothing."""
    require("notify", notify, "left out without `outbox`", not notify or bool(outbox))
    seconds = None if refresh is None else parse_duration(refresh, "refresh")
    every, changes = _EVERY, None
    if outbox:
        refuse_removals("outbox", removals)
        if outbox is not True:
            every = parse_duration(outbox, "outbox")
        changes = Changes(columns, engine.dialect, normal, notify=notify)
    if seconds is None and changes is None:
        return None
    return OtherWriters(
        engine, keys, build, is_async=is_async, refresh=seconds, changes=changes, every=every,
        notify=notify,
    )  # fmt: skip
