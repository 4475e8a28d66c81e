"""`Notifications`: PostgreSQL's NOTIFY as a wake-up call, so that changes are read at once.

Only a call: what was missed while the connection was down is lost, and nobody says so. The truth
is the change table, which is read every so often without being called. Hence the order: LISTEN
first, then read; and a connection that had to be made again means reading, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine

from bloomtide.errors import ParameterError

_GLANCE = 0.1
"""Seconds until a wait notices that it should end."""


class Notifications:
    """Waits for a notification, for a call of `set`, or until time is up."""

    def __init__(self, connect: Callable[[], Any], channel: str) -> None:
        """`connect` makes a connection of psycopg that commits each statement."""
        self._connect = connect
        self._channel = channel.replace('"', '""')
        self._connection: Any = None
        self._called = threading.Event()

    @property
    def listening(self) -> bool:
        return self._connection is not None

    def set(self) -> None:
        """Ends the wait."""
        self._called.set()

    def clear(self) -> None:
        self._called.clear()

    def wait(self, seconds: float) -> bool:
        """Whether there was a call, or calls may have been missed; False if time was up."""
        import psycopg

        if self._connection is None:
            try:
                connection = self._connect()
                connection.execute(f'LISTEN "{self._channel}"')
            except psycopg.Error:
                return self._called.wait(seconds)
            self._connection = connection
            return True
        end = time.monotonic() + seconds
        try:
            while not self._called.is_set() and (left := end - time.monotonic()) > 0:
                if any(True for _ in self._connection.notifies(timeout=min(left, _GLANCE))):
                    return True
        except (psycopg.Error, OSError):
            self._hang_up()
            return True
        return self._called.is_set()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """To be called when nobody waits."""
        self._hang_up()


def connector(engine: Engine) -> Callable[[], Any]:
    """Makes connections for `Notifications`, to where the engine goes."""
    got = f"{engine.dialect.name}+{engine.dialect.driver}"
    if got not in ("postgresql+psycopg", "postgresql+psycopg_async"):
        raise ParameterError(
            f"`notify` needs PostgreSQL and psycopg, got: {got}",
            hint="leave `notify` out; the change table is read every so often all the same",
            name="notify", got=got, allowed="PostgreSQL with psycopg",
        )  # fmt: skip
    import psycopg

    def connect() -> Any:
        arguments, options = engine.dialect.create_connect_args(engine.url)
        return psycopg.connect(*arguments, **{**options, "autocommit": True})

    return connect
