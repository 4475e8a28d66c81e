"""`Errands`: what a guard does with the database in threads of its own.

On connections of their own, so that no request waits for one that a guard took, and so that the
guard does not listen to itself. An `AsyncEngine` needs a loop to run in, which each thread has for
the length of an errand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import NullPool, SingletonThreadPool, StaticPool

from bloomery.errors import ParameterError

Answer = TypeVar("Answer")


class Errands:
    """Runs work on a connection, in whichever thread calls."""

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        self._is_async = is_async
        self._shares = isinstance(engine.pool, (StaticPool, SingletonThreadPool))
        """A database in memory exists only in the connections that are there already."""
        if self._shares and is_async:
            raise ParameterError(
                "`refresh` and `outbox` need a database that can be connected to again",
                hint="use a file, or an Engine that is not asynchronous",
                name="engine", got=str(engine.url), allowed="a database that is not in memory",
            )  # fmt: skip
        self._engine = engine
        if not self._shares:
            pool = engine.pool.recreate()
            if is_async:
                # A connection belongs to the loop it was made in, and loops come and go.
                pool = NullPool(
                    pool._creator, _dispatch=engine.pool.dispatch, dialect=engine.dialect
                )
            self._engine = Engine(pool, engine.dialect, engine.url)

    def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """What `work` answers; it commits what it wants to keep."""
        if not self._is_async:
            with self._engine.connect() as connection:
                return work(connection)

        async def errand() -> Answer:
            async with AsyncEngine(self._engine).connect() as connection:
                return await connection.run_sync(work)

        return asyncio.run(errand())

    def close(self) -> None:
        if not self._shares:
            self._engine.pool.dispose()
