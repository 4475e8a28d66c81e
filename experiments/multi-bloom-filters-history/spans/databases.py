"""The same counts in stores that are exact: a table (key, window, count) in DuckDB and in SQLite.

A window's counts are known when it is over, so each store gets every window's counts once, grouped
by Arrow. Each store answers the same question with its own SQL, prepared or cached where it can.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from spans.events import Micros

QUESTION = (
    "SELECT coalesce(sum(n), 0) FROM hits WHERE key = ? AND window_start >= ? AND window_start < ?"
)


class Store(Protocol):
    """What the comparison asks of a store."""

    name: str

    def add(self, keys: pa.Array, at: Micros) -> None:
        """Events in the order of time; a piece never ends within a window."""

    def finish(self) -> None:
        """All that a user would do before he asks: indexes, flushing, sealing."""

    def count(self, key: str, start: int, end: int) -> int:
        """How often in [start, end), whole windows in microseconds."""

    def bytes(self) -> int:
        """On disk, after `finish`."""

    def close(self) -> None:
        """Let go of the files."""


def grouped(keys: pa.Array, at: Micros, width: int) -> pa.Table:
    """key, window, count."""
    table = pa.table(
        {"key": keys, "window_start": at - at % width, "n": np.ones(len(at), np.int64)}
    )
    counted = table.group_by(["key", "window_start"], use_threads=False).aggregate([("n", "sum")])
    return counted.rename_columns(["key", "window_start", "n"])


class DuckDB:
    """A table in the order of time, as it fills; `order` and `index` are what helps a key's query.

    `order="key"` writes the whole table again, sorted by key: only for data that is complete.
    """

    def __init__(self, folder: Path, width: int, *, order: str = "", index: bool = False) -> None:
        import duckdb

        self.name = "DuckDB" + (", sorted by key" if order else "") + (", index" if index else "")
        self.width, self.order, self.index = width, order, index
        self.path = folder / f"{self.name}.duckdb"
        self.database: Any = duckdb.connect(str(self.path), config={"threads": 1})
        self.database.execute("CREATE TABLE hits (key VARCHAR, window_start BIGINT, n BIGINT)")

    def add(self, keys: pa.Array, at: Micros) -> None:
        """One insert for each piece."""
        piece = grouped(keys, at, self.width)
        self.database.register("piece", piece)
        self.database.execute("INSERT INTO hits SELECT * FROM piece")
        self.database.unregister("piece")

    def finish(self) -> None:
        """The file is as small as DuckDB makes it: copied whole, without what was freed."""
        import duckdb

        order = "ORDER BY key, window_start" if self.order else ""
        copy = self.path.with_suffix(".copy")
        self.database.execute(f"ATTACH '{copy}' AS kept")
        self.database.execute(f"CREATE TABLE kept.hits AS SELECT * FROM hits {order}")
        if self.index:
            self.database.execute("CREATE INDEX by_key ON kept.hits (key)")
        self.database.execute("DETACH kept")
        self.database.close()
        copy.replace(self.path)
        self.database = duckdb.connect(str(self.path), config={"threads": 1})

    def count(self, key: str, start: int, end: int) -> int:
        """By SQL."""
        return int(self.database.execute(QUESTION, (key, start, end)).fetchone()[0])

    def bytes(self) -> int:
        """The one file."""
        return self.path.stat().st_size

    def close(self) -> None:
        """And its lock."""
        self.database.close()


class SQLite:
    """A table whose rows lie in the order of (key, window): the table is its own index."""

    def __init__(self, folder: Path, width: int) -> None:
        self.name = "SQLite, index"
        self.width = width
        self.path = folder / "hits.sqlite"
        self.database = sqlite3.connect(self.path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = NORMAL")
        self.database.execute(
            "CREATE TABLE hits (key TEXT, window_start INT, n INT,"
            " PRIMARY KEY (key, window_start)) WITHOUT ROWID"
        )

    def add(self, keys: pa.Array, at: Micros) -> None:
        """One transaction for each piece."""
        piece = grouped(keys, at, self.width).to_pydict()
        rows = zip(piece["key"], piece["window_start"], piece["n"], strict=True)
        self.database.execute("BEGIN")
        self.database.executemany("INSERT INTO hits VALUES (?, ?, ?)", rows)
        self.database.execute("COMMIT")

    def finish(self) -> None:
        """Write it again without what was freed."""
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.database.execute("VACUUM")
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def count(self, key: str, start: int, end: int) -> int:
        """By SQL."""
        return int(self.database.execute(QUESTION, (key, start, end)).fetchone()[0])

    def bytes(self) -> int:
        """The one file."""
        return self.path.stat().st_size

    def close(self) -> None:
        """And its lock."""
        self.database.close()
