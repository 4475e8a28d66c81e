"""Where histories are played: a SQLite file for each, or an emptied PostgreSQL database."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from benchmarks.guard_histories.schema import Schema
from tests.services.postgres import Postgres

MEMORY = Path("/dev/shm")


class Ground:
    """Engines for one history after another."""

    error: type[Exception]
    """The driver's own errors."""
    shared_at: Path | None = None
    """Where the shared filter of another process is."""
    place: str
    """The file or URL of the history that is played."""

    def __init__(self) -> None:
        self.number = 0
        place = MEMORY if MEMORY.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="histories-", dir=place))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def copy(self) -> Ground:
        """For another process: it knows the driver, and owns nothing."""
        made = Elsewhere.__new__(Elsewhere)
        made.error, made.folder, made.number = self.error, self.folder, self.number
        return made

    def fresh(self, schema: Schema) -> AbstractContextManager[tuple[sa.Engine, sa.Engine]]:
        """The engine that is guarded, and the judge's, on an empty database."""
        raise NotImplementedError

    def kill(self, connection: Any) -> None:
        """Breaks a connection without a word to SQLAlchemy."""
        raise NotImplementedError


class Elsewhere(Ground):
    """What another process has of the ground."""


def open_engine(schema: Schema, place: str) -> sa.Engine:
    """Nobody waits long for a lock that somebody of the same thread holds."""
    if schema.database == "postgresql":
        words = {
            "options": "-c search_path=public,ext -c lock_timeout=30 -c statement_timeout=5000"
            " -c client_min_messages=error",
            "prepare_threshold": None,
        }
        return sa.create_engine(place, connect_args=words)

    def prepare(connection: sqlite3.Connection, record: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = ON")
        if schema.wal:
            connection.execute("PRAGMA journal_mode = WAL")
        if schema.namespace:
            connection.execute(f"ATTACH '{place}.aux' AS aux")

    engine = sa.create_engine(f"sqlite:///{place}", connect_args={"timeout": 0})
    sa.event.listen(engine, "connect", prepare)
    return engine


class SqliteGround(Ground):
    """Files in memory where there is such a place."""

    error = sqlite3.Error

    @contextmanager
    def fresh(self, schema: Schema) -> Iterator[tuple[sa.Engine, sa.Engine]]:
        self.number += 1
        path = self.folder / f"{self.number}.db"
        self.place = str(path)
        engines = [open_engine(schema, self.place) for _ in range(2)]
        try:
            yield engines[0], engines[1]
        finally:
            for engine in engines:
                engine.dispose()
            for file in self.folder.glob(f"{self.number}.db*"):
                file.unlink(missing_ok=True)
            shutil.rmtree(self.folder / f"shared{self.number}", ignore_errors=True)

    def kill(self, connection: Any) -> None:
        connection.close()


class PostgresGround(Ground):
    """One database, emptied before each history; its connections serve many histories."""

    def __init__(self, url: str | None = None) -> None:
        import psycopg

        super().__init__()
        self.error = psycopg.Error
        self.stack = ExitStack()
        if url is None:
            url = self.stack.enter_context(Postgres.running()).new_database()
        self.url = self.place = url
        self.admin = sa.create_engine(url, connect_args={"options": "-c lock_timeout=200"})
        self.engines: list[sa.Engine] = []
        self.broken = False
        with self.admin.begin() as connection:
            connection.exec_driver_sql("CREATE SCHEMA ext")
            with suppress(SQLAlchemyError), connection.begin_nested():
                connection.exec_driver_sql("CREATE EXTENSION citext SCHEMA ext")

    def close(self) -> None:
        self._dispose()
        self.admin.dispose()
        self.stack.close()
        super().close()

    def _dispose(self) -> None:
        for engine in self.engines:
            engine.dispose()
        self.engines = []

    def _open(self, schema: Schema) -> None:
        self.engines = [open_engine(schema, self.place) for _ in range(2)]

    def _empty(self) -> None:
        with self.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for xid in (
                connection.exec_driver_sql("SELECT gid FROM pg_prepared_xacts").scalars().all()
            ):
                connection.exec_driver_sql(f"ROLLBACK PREPARED '{xid}'")
            names = connection.exec_driver_sql(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'"
                " AND nspname NOT IN ('information_schema', 'ext')"
            )
            for name in names.scalars().all():
                connection.exec_driver_sql(f'DROP SCHEMA "{name}" CASCADE')
            connection.exec_driver_sql("CREATE SCHEMA public")

    @contextmanager
    def fresh(self, schema: Schema) -> Iterator[tuple[sa.Engine, sa.Engine]]:
        self.number += 1
        try:
            self._empty()
        except SQLAlchemyError:  # somebody still holds a lock
            self._dispose()
            with self.admin.begin() as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
                )
            self._empty()
        if self.number % 20 == 0 or self.broken:
            self.broken = False
            self._dispose()
        if not self.engines:
            self._open(schema)
        yield self.engines[0], self.engines[1]
        shutil.rmtree(self.folder / f"shared{self.number}", ignore_errors=True)

    def kill(self, connection: Any) -> None:
        self.broken = True
        with self.admin.begin() as link:
            link.exec_driver_sql(
                "SELECT pg_terminate_backend(%s, 2000)", (connection.info.backend_pid,)
            )


def ground_of(database: str) -> Ground:
    return SqliteGround() if database == "sqlite" else PostgresGround()
