"""`Listener`: PostgreSQL's NOTIFY as a wake-up call, so that changes are read at once.

Only a call: what was missed while the connection was down is lost, and nobody says so. The truth
is the change table, which is read every so often without being called. Hence the order: LISTEN
first, then read; and a connection that had to be made again means reading, too.

`Alarm` is the same without a database: time passes, or somebody in this process rings.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from sqlalchemy import Engine

from bloomtide.errors import ParameterError

# `select.select` fails in a process with many open files, but Windows has nothing else.
_Selector: type[selectors.BaseSelector] = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)


class Alarm:
    """Waits until it is rung or time is up."""

    def __init__(self) -> None:
        self._ear, self._bell = socket.socketpair()
        self._bell.setblocking(False)

    def wait(self, seconds: float) -> bool:
        """Whether it was rung; False if time was up."""
        return bool(self._wait_for(None, seconds))

    def _wait_for(self, other: int | None, seconds: float) -> set[int]:
        """Its own file if it was rung, and the other one if something came from there."""
        with _Selector() as selector:
            for file in {self._ear.fileno(), other} - {None}:
                selector.register(file, selectors.EVENT_READ)  # type: ignore[arg-type]
            ready = {key.fd for key, _ in selector.select(max(seconds, 0.0))}
        if self._ear.fileno() in ready:
            self._ear.recv(4096)
        return ready

    def ring(self) -> None:
        """Ends the wait, or the next one if nobody waits now."""
        with suppress(BlockingIOError):  # it rings already
            self._bell.send(b"!")

    def close(self) -> None:
        self._ear.close()
        self._bell.close()


class _Libpq(Protocol):
    """What is used of a connection of psycopg."""

    pgconn: Any

    def fileno(self) -> int: ...
    def close(self) -> None: ...
    def execute(self, query: str) -> Any: ...


class Listener(Alarm):
    """An alarm that NOTIFY rings, too."""

    def __init__(self, connect: Callable[[], _Libpq], channel: str) -> None:
        """`connect` makes a connection of psycopg that commits each statement."""
        super().__init__()
        self._connect = connect
        self._channel = channel.replace('"', '""')
        self._connection: _Libpq | None = None

    @property
    def listening(self) -> bool:
        return self._connection is not None

    def wait(self, seconds: float) -> bool:
        """Whether there was a call, or calls may have been missed; False if time was up."""
        import psycopg

        if self._connection is None:
            try:
                connection = self._connect()
                connection.execute(f'LISTEN "{self._channel}"')
            except psycopg.Error:
                return super().wait(seconds)
            self._connection = connection
            return True
        try:
            file = self._connection.fileno()
            ready = self._wait_for(file, seconds)
            if file in ready:
                self._connection.pgconn.consume_input()
                while self._connection.pgconn.notifies() is not None:
                    pass
        except (psycopg.Error, OSError):
            self._hang_up()
            return True
        return bool(ready)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self._hang_up()
        super().close()


def connector(engine: Engine) -> Callable[[], _Libpq]:
    """Makes connections for a `Listener`, to where the engine goes."""
    if engine.dialect.name != "postgresql" or engine.dialect.driver not in (
        "psycopg",
        "psycopg_async",
    ):
        got = f"{engine.dialect.name}+{engine.dialect.driver}"
        raise ParameterError(
            f"`notify` needs PostgreSQL and psycopg, got: {got}",
            hint="leave `notify` out; the change table is read every so often all the same",
            name="notify", got=got, allowed="PostgreSQL with psycopg",
        )  # fmt: skip
    import psycopg

    def connect() -> _Libpq:
        arguments, options = engine.dialect.create_connect_args(engine.url)
        connection: _Libpq = psycopg.connect(*arguments, **{**options, "autocommit": True})
        return connection

    return connect
