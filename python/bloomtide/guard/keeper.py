"""`Keeper`: builds a guard's filter again when that is worth its while, in a thread.

It is, when keys were written that nobody saw, when the predicted error has passed the target, or
when many rows are gone whose keys are still inside (`HeldKeys.due`). A build reads all of the
column, so there is a rest between two of them: a program that writes unseen keys all the time must
not keep its database busy with builds. The first build is up to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from sqlalchemy import Connection, Engine

from bloomtide.guard.errands import Errands
from bloomtide.guard.follow import Repeated

_LOOK = 5.0
"""Seconds between two looks."""
_REST = 30.0
"""Seconds between two builds at least, also if one failed."""
_SHARE = 20
"""And this many times as long as a build takes."""


class Due(Protocol):
    """Keys that know when a build is worth its while."""

    @property
    def rebuilding(self) -> bool: ...
    def due(self) -> str: ...


class Keeper:
    """Looks every few seconds, until it is closed."""

    def __init__(
        self, engine: Engine, keys: Due, build: Callable[[Connection], bool], *, is_async: bool
    ) -> None:
        self._errands = Errands(engine, is_async=is_async)
        self._keys = keys
        self._build = build
        self._next = time.monotonic() + _REST
        self._thread = Repeated("rebuild", self.look, _LOOK)
        self._thread.start()

    def look(self) -> None:
        """Builds if it is due, and time."""
        if time.monotonic() < self._next or self._keys.rebuilding or not self._keys.due():
            return
        began = time.monotonic()
        try:
            self._errands.run(self._build)
        finally:
            now = time.monotonic()
            self._next = now + max(_REST, _SHARE * (now - began))

    def close(self) -> None:
        self._thread.close()
        self._errands.close()
