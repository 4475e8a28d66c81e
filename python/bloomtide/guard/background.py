"""What a guard does in threads of its own: `BackgroundQueries`, `Repeated` work, `Notifications`.

PostgreSQL's NOTIFY is a wake-up call, so that changes are read at once, and no more: what was
missed while the connection was down is lost, and nobody says so. The truth is the change table,
which is read every so often without being called. Hence the order: LISTEN first, then read; and a
connection that had to be made again means reading, too.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from bloomtide.errors import ParameterError
from bloomtide.guard.table import is_in_memory, separate

log = logging.getLogger("bloomtide.guard")
Answer = TypeVar("Answer")
_LEAST = 0.02
"""Seconds between two runs, however often somebody calls."""
_GLANCE = 0.1
"""Seconds until a wait for a notification notices that it should end."""


class BackgroundQueries:
    """Runs work on a connection of its own, so that no request waits for one of the pool.

    An `AsyncEngine` needs a loop to run in, which there is for the length of one piece of work.
    """

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        if is_in_memory(engine):
            raise ParameterError(
                "`refresh` and `outbox` need a database that can be connected to once more",
                hint="use a file; a database in memory has no other writers",
                name="engine", got=str(engine.url), allowed="a database that is not in memory",
            )  # fmt: skip
        self._is_async = is_async
        self._of = engine
        self._own = separate(engine)

    def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """What `work` answers; it commits what it wants to keep."""
        if not self._is_async:
            with self._own.connect() as connection:
                return work(connection)

        from sqlalchemy.ext.asyncio import AsyncEngine  # not without greenlet

        async def in_loop() -> Answer:
            # A connection belongs to the loop it was made in, and loops come and go.
            engine = AsyncEngine(separate(self._of))
            try:
                async with engine.connect() as connection:
                    return await connection.run_sync(work)
            finally:
                await engine.dispose()

        return asyncio.run(in_loop())

    def close(self) -> None:
        if not self._is_async:
            self._own.pool.dispose()


class Repeated:
    """Runs `work` at once, then every so often and whenever its alarm is set, in a thread."""

    def __init__(
        self, name: str, work: Callable[[], object], every: float, alarm: Any = None
    ) -> None:
        self._work = work
        self._every = every
        self.alarm: threading.Event | Notifications = alarm or threading.Event()
        self._closed = False
        self.runs = 0
        self._thread = threading.Thread(target=self._run, name=f"bloomtide {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            began = time.monotonic()
            try:
                self._work()
            except Exception as error:  # noqa: BLE001 - a thread that dies would help nobody
                log.warning("%s failed, and will be tried again: %s", self._thread.name, error)
            self.runs += 1
            if not self._closed:
                self.alarm.wait(self._every)
            if not self._closed:
                self.alarm.clear()
                time.sleep(max(began + _LEAST - time.monotonic(), 0.0))

    def close(self) -> None:
        """Returns when the work that is going on has ended."""
        self._closed = True
        self.alarm.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()


class Notifications:
    """An alarm that also wakes for a notification of PostgreSQL."""

    def __init__(self, connect: Callable[[], Any], channel: str) -> None:
        """`connect` makes a connection of psycopg that commits each statement."""
        self._connect = connect
        self._channel = channel.replace('"', '""')
        self._connection: Any = None
        self._called = threading.Event()
        self.set, self.clear = self._called.set, self._called.clear

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
                return self._called.wait(seconds)
            self._connection = connection
            return True
        end = time.monotonic() + seconds
        try:
            while not self._called.is_set() and (left := end - time.monotonic()) > 0:
                if any(True for _ in self._connection.notifies(timeout=min(left, _GLANCE))):
                    return True
        except (psycopg.Error, OSError):
            self.close()
            return True
        return self._called.is_set()

    def close(self) -> None:
        """To be called when nobody else waits."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


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
