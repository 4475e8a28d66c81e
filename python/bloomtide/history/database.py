"""The database that holds catalogues: a SQLite file, or what SQLAlchemy finds at a URL.

Both run the same statements, with parameters by name. What they refuse becomes an error of this
library. SQLite needs no package, and SQLAlchemy alone is a third of the time of a command.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from bloomtide import extras
from bloomtide.errors import SnapshotError, StorageError

TABLE = "bloomtide_catalogue"
SYNCHRONOUS = "EXTRA"
"""EXTRA also brings the directory to the disk. With less, a commit could come undone after a power
cut when the journal it replaced is gone already."""
_BUSY = 30
"""Seconds that a transaction waits for others of a SQLite file."""

Execute = Callable[..., Any]
"""Runs a statement with its parameters by name; the answer is a cursor."""
Use = Literal["read", "write"]


class SqliteFile:
    """A file of the store's own. Each transaction opens it, so no thread or fork shares it."""

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self.path = path
        self.shown = str(path)

    @contextmanager
    def begin(self, use: Use) -> Iterator[Execute]:
        """One transaction."""
        try:
            with closing(self._connect(use)) as connection:
                connection.execute("BEGIN IMMEDIATE" if use == "write" else "BEGIN")
                with connection:
                    yield lambda statement, **words: connection.execute(statement, words)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a reason may have damaged names
            raise _refused(
                self.shown, use, error, type(error) is sqlite3.OperationalError
            ) from error

    def has_table(self) -> bool:
        """Whether any store was ever registered here."""
        if not (self.path.is_file() and self.path.stat().st_size):
            return False  # connecting would make the file
        with self.begin("read") as execute:
            query = "SELECT 1 FROM sqlite_master WHERE name = :name"
            return execute(query, name=TABLE).fetchone() is not None

    def problems(self) -> list[str]:
        """What SQLite itself finds wrong with its file."""
        with self.begin("read") as execute:
            found = [str(row[0]) for row in execute("PRAGMA integrity_check")]
        return [f"{self.shown}: {reason}" for reason in found if reason != "ok"]

    def close(self) -> None:
        """Nothing is open."""

    def _connect(self, use: Use) -> sqlite3.Connection:
        mode = "rwc" if use == "write" else "rw"  # who reads makes no file
        url = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        connection = sqlite3.connect(url, timeout=_BUSY, isolation_level=None, uri=True)
        connection.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
        return connection


class Database:
    """A database at a URL."""

    def __init__(self, url: str) -> None:
        """Connects when first used."""
        with extras.require("history", "`catalogue`"):
            import sqlalchemy as sql
        self._sql = sql
        self._engine = sql.create_engine(url)
        self.shown = self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def begin(self, use: Use) -> Iterator[Execute]:
        """One transaction; all that it reads is of one moment."""
        try:
            with self._engine.connect() as connection:
                if use == "read" and self._engine.dialect.name != "sqlite":
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield lambda statement, **words: connection.execute(
                        self._sql.text(statement), words
                    )
        except self._sql.exc.DBAPIError as error:
            lost = isinstance(error, self._sql.exc.OperationalError) or error.connection_invalidated
            raise _refused(self.shown, use, error.orig, lost) from error

    def has_table(self) -> bool:
        """Whether any store was ever registered here."""
        try:
            return bool(self._sql.inspect(self._engine).has_table(TABLE))
        except self._sql.exc.DBAPIError as error:
            raise _refused(self.shown, "read", error.orig, lost=True) from error

    def problems(self) -> list[str]:
        """A server looks after its files itself."""
        return []

    def close(self) -> None:
        """Gives the connections back."""
        self._engine.dispose()


def _refused(shown: str, use: Use, error: object, lost: bool) -> StorageError | SnapshotError:
    """`lost`: the database did not answer, or has no room; else it is damaged."""
    reason = str(error).strip().partition("\n")[0]
    if lost:
        return StorageError(
            f"cannot {use} the catalogue {shown}: {reason}",
            hint="check that the database runs, and that its disk has room",
            path=shown, operation=use,
        )  # fmt: skip
    return SnapshotError(
        f"{shown} is no catalogue, or a damaged one: {reason}",
        hint="restore it from a backup", path=shown, offset=None,
    )  # fmt: skip
