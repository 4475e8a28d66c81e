"""What a guard does in threads of its own: `BackgroundQueries` and `Repeated` work."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from bloomtide.errors import ParameterError
from bloomtide.guard.writes.engine import OWN

log = logging.getLogger("bloomtide.guard")
Answer = TypeVar("Answer")
_LEAST = 0.02
"""Seconds between two runs, however often somebody calls."""


class BackgroundQueries:
    """Runs work on a connection of its own, so that no request waits for one of the pool.

    An `AsyncEngine` needs a loop to run in, which there is for the length of one piece of work.
    """

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        if isinstance(engine.pool, (StaticPool, SingletonThreadPool)):
            raise ParameterError(
                "`refresh` and `outbox` need a database that can be connected to once more",
                hint="use a file; a database in memory has no other writers",
                name="engine", got=str(engine.url), allowed="a database that is not in memory",
            )  # fmt: skip
        self._is_async = is_async
        self._of = engine
        self._own = self._engine()

    def _engine(self) -> Engine:
        of = self._of
        return Engine(of.pool.recreate(), of.dialect, of.url, execution_options={OWN: True})

    def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """What `work` answers; it commits what it wants to keep."""
        if not self._is_async:
            with self._own.connect() as connection:
                return work(connection)

        from sqlalchemy.ext.asyncio import AsyncEngine  # not without greenlet

        async def in_loop() -> Answer:
            # A connection belongs to the loop it was made in, and loops come and go.
            engine = AsyncEngine(self._engine())
            try:
                async with engine.connect() as connection:
                    return await connection.run_sync(work)
            finally:
                await engine.dispose()

        return asyncio.run(in_loop())

    def close(self) -> None:
        if not self._is_async:
            self._own.pool.dispose()


class Alarm(Protocol):
    """A `threading.Event`, or what else may call."""

    def set(self) -> None: ...
    def clear(self) -> None: ...
    def wait(self, seconds: float, /) -> bool: ...


class Repeated:
    """Runs `work` at once, then every so often and whenever its alarm is set, in a thread."""

    def __init__(
        self, name: str, work: Callable[[], object], every: float, alarm: Alarm | None = None
    ) -> None:
        self._work = work
        self._every = every
        self.alarm: Alarm = alarm or threading.Event()
        self._closed = False
        self.failures = 0
        """In a row."""
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
                self.failures += 1
                log.warning("%s failed, and will be tried again: %s", self._thread.name, error)
            else:
                self.failures = 0
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
