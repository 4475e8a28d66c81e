"""Commits that nobody waits for any more, and connections of a guard's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import StaticPool

from bloomtide import DatabaseGuard
from bloomtide.errors import ParameterError, StorageError
from bloomtide.guard.errands import Errands
from bloomtide.guard.settle import wait_for_writers
from tests.guard.databases import BASKET, Database
from tests.guard.guards import until

LONG = 30


def wait(database: Database, patience: float) -> None:
    with database.engine.connect() as connection:
        wait_for_writers(connection, BASKET, patience)


@contextmanager
def a_writer_at_work(database: Database, statement: str) -> Iterator[None]:
    """A transaction that has written and whose next statement takes long."""
    with database.engine.connect() as connection:
        connection.execute(text(statement))
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        busy = threading.Thread(target=_sleep, args=(connection,))
        busy.start()
        until(lambda: _is_asleep(database, pid))  # or it could not be cancelled
        try:
            yield
        finally:
            database.run(f"SELECT pg_cancel_backend({pid})")
            busy.join()
            connection.rollback()


def _is_asleep(database: Database, pid: int) -> bool:
    query = text("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = :pid")
    with database.engine.connect() as connection:
        return bool(connection.execute(query, {"pid": pid}).scalar_one())


def _sleep(connection: object) -> None:
    with pytest.raises(Exception, match="cancel"):
        connection.execute(text(f"SELECT pg_sleep({LONG})"))  # type: ignore[attr-defined]


def test_a_writer_that_is_at_work_is_waited_for(postgres_basket: Database) -> None:
    with (
        a_writer_at_work(postgres_basket, "INSERT INTO basket (customer) VALUES (1)"),
        pytest.raises(StorageError, match="does not end"),
    ):
        wait(postgres_basket, 0.6)
    wait(postgres_basket, LONG)


def test_readers_and_writers_of_other_tables_are_not_waited_for(postgres_basket: Database) -> None:
    postgres_basket.run("CREATE TABLE other (id integer)")
    for statement in ("SELECT * FROM basket", "INSERT INTO other VALUES (1)"):
        with a_writer_at_work(postgres_basket, statement):
            wait(postgres_basket, 0.0)


def test_a_writer_that_is_idle_is_not_waited_for(postgres_basket: Database) -> None:
    with postgres_basket.engine.connect() as connection:
        connection.execute(text("INSERT INTO basket (customer) VALUES (1)"))
        wait(postgres_basket, LONG)


def test_a_writer_in_the_same_loop_can_end_while_it_is_waited_for(
    postgres_basket: Database,
) -> None:
    async def visit() -> None:
        engine = create_async_engine(postgres_basket.url)
        async with engine.connect() as writer, engine.connect() as builder:
            await writer.execute(text("INSERT INTO basket (customer) VALUES (1)"))
            commit = asyncio.create_task(_commit_soon(writer))
            await builder.run_sync(wait_for_writers, BASKET, LONG)
            assert commit.done(), "the loop went on"
        await engine.dispose()

    asyncio.run(visit())


async def _commit_soon(writer: AsyncConnection) -> None:
    await asyncio.sleep(0.01)
    await writer.commit()


def test_other_databases_have_nobody_to_wait_for(sqlite_basket: Database) -> None:
    with sqlite_basket.engine.connect() as connection:
        statements: list[str] = []
        event.listen(
            sqlite_basket.engine,
            "before_cursor_execute",
            lambda *about: statements.append(about[2]),
        )
        wait_for_writers(connection, BASKET, 0.0)
    assert statements == []


def test_errands_run_on_connections_that_the_engine_does_not_know(basket: Database) -> None:
    engine = create_engine(basket.url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    heard: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *about: heard.append(about[2]))
    errands = Errands(engine, is_async=False)
    with engine.connect():  # the only one it has
        assert errands.run(lambda mine: mine.execute(text("SELECT 1")).scalar_one()) == 1
    assert heard == []
    errands.close()
    engine.dispose()


@pytest.mark.parametrize("pool", [None, StaticPool])
@pytest.mark.parametrize("option", [{"refresh": "1s"}, {"outbox": True}])
def test_a_database_in_memory_is_refused_where_threads_need_it(
    pool: type | None, option: dict[str, object]
) -> None:
    engine = create_engine("sqlite://", poolclass=pool)
    with pytest.raises(ParameterError, match="once more"):
        DatabaseGuard(engine, BASKET.c.customer, **option)  # type: ignore[arg-type]
    engine.dispose()
