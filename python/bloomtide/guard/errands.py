"""`Errands`: what a guard does with the database in threads of its own.

On connections of their own, so that no request waits for one that a guard took, and so that the
guard does not listen to itself. An `AsyncEngine` needs a loop to run in, which there is for the
length of an errand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.pool import NullPool, SingletonThreadPool, StaticPool

from bloomtide.errors import ParameterError
from bloomtide.guard.writes import OWN

Answer = TypeVar("Answer")


class Errands:
    """Runs work on a connection, in whichever thread calls."""

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        pool = engine.pool
        if isinstance(pool, (StaticPool, SingletonThreadPool)):
            raise ParameterError(
                "`refresh` and `outbox` need a database that can be connected to once more",
                hint="use a file; a database in memory has no other writers",
                name="engine", got=str(engine.url), allowed="a database that is not in memory",
            )  # fmt: skip
        self._is_async = is_async
        own = pool.recreate()
        if is_async:
            # A connection belongs to the loop it was made in, and loops come and go.
            own = NullPool(pool._creator, _dispatch=pool.dispatch, dialect=engine.dialect)
        self._engine = Engine(own, engine.dialect, engine.url, execution_options={OWN: True})

    def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """What `work` answers; it commits what it wants to keep."""
        if not self._is_async:
            with self._engine.connect() as connection:
                return work(connection)

        from sqlalchemy.ext.asyncio import AsyncEngine  # not without greenlet

        async def errand() -> Answer:
            async with AsyncEngine(self._engine).connect() as connection:
                return await connection.run_sync(work)

        return asyncio.run(errand())

    def close(self) -> None:
        if not self._is_async:
            self._engine.pool.dispose()
