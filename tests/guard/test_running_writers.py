"""Commits that nobody waits for any more, and connections of a guard's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, event, insert, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import StaticPool

from bloomtide import DatabaseGuard
from bloomtide.errors import ParameterError, StorageError
from bloomtide.guard.background import BackgroundQueries
from bloomtide.guard.running_writers import wait_for_writers
from bloomtide.guard.schema.mapping import runner
from tests.guard.databases import BASKET, Database
from tests.waiting import until

LONG = 30
HOLD = text("SELECT pg_advisory_xact_lock(7)")
"""Takes as long as another transaction has the lock."""


def wait(database: Database, patience: float, table: str = "basket") -> None:
    with database.engine.connect() as connection:
        wait_for_writers(runner(connection), connection.rollback, table, patience)


@contextmanager
def a_writer_at_work(database: Database, statement: str) -> Iterator[None]:
    """A transaction that has written and whose next statement does not end meanwhile."""
    with database.engine.connect() as connection:
        connection.execute(text(statement))
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        with database.engine.connect() as holder:
            holder.execute(HOLD)
            busy = threading.Thread(target=connection.execute, args=(HOLD,))
            busy.start()
            until(lambda: _waits_for_a_lock(database, pid))
            try:
                yield
            finally:
                holder.rollback()
                busy.join()
                connection.rollback()


def _waits_for_a_lock(database: Database, pid: int) -> bool:
    query = text("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = :pid")
    with database.engine.connect() as connection:
        return bool(connection.execute(query, {"pid": pid}).scalar_one())


def test_a_writer_that_is_at_work_is_waited_for(postgres_basket: Database) -> None:
    with (
        a_writer_at_work(postgres_basket, "INSERT INTO basket (customer) VALUES (1)"),
        pytest.raises(StorageError, match="does not end"),
    ):
        wait(postgres_basket, 0.6)
    wait(postgres_basket, LONG)


TREES = {
    "partition": "CREATE TABLE part PARTITION OF t FOR VALUES FROM (0) TO (9)",
    "inheriting table": "CREATE TABLE part () INHERITS (t)",
}


@pytest.mark.parametrize("tree", TREES)
def test_a_writer_of_a_part_of_the_table_is_a_writer_of_the_table(
    postgres_basket: Database, tree: str
) -> None:
    """Its lock is on the part alone."""
    by = " PARTITION BY RANGE (k)" if tree == "partition" else ""
    postgres_basket.run(f"CREATE TABLE t (k integer){by}", TREES[tree])
    column = Table("t", MetaData(), Column("k", Integer)).c.k
    with (
        a_writer_at_work(postgres_basket, "INSERT INTO part VALUES (1)"),
        pytest.raises(StorageError, match="does not end"),
    ):
        wait(postgres_basket, 0.6, "t")
    writer = create_engine(postgres_basket.url)
    with writer.connect() as connection:
        later = connection.begin_twophase("later")
        connection.execute(text("INSERT INTO part VALUES (7)"))
        later.prepare()
        with DatabaseGuard(postgres_basket.engine, column, rebuild="manual") as guard:
            assert not guard.build(), "it may be committed by anybody"
            later.commit()
            assert guard.build()
            assert guard.may_exist(7)
    writer.dispose()


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
            looked, looks = asyncio.Event(), list[str]()

            def look(*about: Any) -> None:
                looks.append(about[2])
                looked.set()

            async def commit_after_a_look() -> None:
                await looked.wait()
                await writer.commit()

            commit = asyncio.create_task(commit_after_a_look())
            event.listen(builder.sync_connection, "after_cursor_execute", look)
            await builder.run_sync(
                lambda inner: wait_for_writers(
                    runner(inner), inner.rollback, '"basket"', LONG, in_loop=True
                )
            )
            assert commit.done(), "the loop went on"
            assert len(looks) > 1, "the first look found the writer"
        await engine.dispose()

    asyncio.run(visit())


def test_queries_run_on_connections_that_the_engine_does_not_know(basket: Database) -> None:
    engine = create_engine(basket.url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    heard: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *about: heard.append(about[2]))
    queries = BackgroundQueries(engine, is_async=False)
    with engine.connect():  # the only one it has
        assert queries.run(lambda mine: mine.execute(text("SELECT 1")).scalar_one()) == 1
    assert heard == []
    queries.close()
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


def test_the_first_build_is_not_valid_beside_a_writer_that_is_older_than_the_guard(
    postgres_basket: Database,
) -> None:
    engine = create_engine(postgres_basket.url)
    with engine.connect() as connection:
        connection.execute(insert(BASKET), {"customer": 7})
        with DatabaseGuard(engine, BASKET.c.customer, 1e-6, rebuild="manual") as guard:
            assert not guard.build()
            assert guard.stats().reason == "a transaction was open when the guard was made"
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.commit()  # which no event tells of
            assert guard.may_exist(7)
            assert guard.build()
            assert guard.may_exist(7)
            assert not guard.may_exist(8)
            connection.rollback()
            connection.execute(insert(BASKET), {"customer": 8})
            assert guard.build(), "beside one that the guard knows"
            driver.commit()
            assert guard.may_exist(8)
    engine.dispose()
