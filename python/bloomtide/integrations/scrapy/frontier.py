"""`Frontier`: the requests that were accepted and are not done, on disk.

Scrapy writes down what is left of its queue when it is stopped; when it is killed, the queue and
the requests on their way are gone. This list has each request from before its page counts as seen
until all that came of the page is scheduled. So after a kill it has what is still to be done.

Every change is one transaction in the system's hands when it returns: a killed process loses none.
For a machine that stops it is forced to the disk by the same policy as what was seen.
Requests are kept as Scrapy keeps them, pickled: read no job directory that you do not trust.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from bloomtide.durable.background import Background
from bloomtide.durable.disk import storage_errors
from bloomtide.durable.policy import INTERVAL, Sync
from bloomtide.errors import SnapshotError, StorageError

_APPLICATION = 0x424C4D46
"""`BLMF`, in the place where SQLite keeps whose file it is."""
_SCHEMA = """
BEGIN;
CREATE TABLE pending (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, request BLOB NOT NULL);
CREATE TABLE job (running INTEGER NOT NULL);
INSERT INTO job VALUES (0);
PRAGMA user_version = 1;
PRAGMA application_id = {application};
COMMIT;
"""


class Frontier:
    """Requests by key, in the order they came."""

    def __init__(self, path: Path, sync: Sync = "everysec") -> None:
        self.path = path
        self._unsynced = False
        self._failed: str | None = None
        self._syncer: Background | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None)
        try:
            [tables] = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self.new = tables == 0
            """Whether this is the job's first run."""
            if self.new:
                self._database.executescript(_SCHEMA.format(application=_APPLICATION))
            self._database.execute("PRAGMA journal_mode = WAL")
            # NORMAL never loses the order of changes, and leaves forcing them to `_sync`.
            level = "FULL" if sync == "always" else "NORMAL"
            self._database.execute(f"PRAGMA synchronous = {level}")
            self._database.execute("PRAGMA cache_size = -256")
            [owner] = self._database.execute("PRAGMA application_id").fetchone()
            if owner != _APPLICATION:
                raise sqlite3.DatabaseError("a database of another program")
            [running] = self._database.execute("SELECT running FROM job").fetchone()
        except (sqlite3.Error, TypeError) as error:
            self._database.close()
            raise SnapshotError(
                f"{path} is no list of requests: {error}",
                hint=f"restore it, or begin a new job: remove {path.parent.parent}",
                path=str(path),
            ) from error
        self.killed = bool(running)
        """Whether the last run ended without a word."""
        if sync == "everysec":
            self._syncer = Background("frontier", self._sync, self._fail, INTERVAL)

    def _change(self, statement: str, values: tuple[bytes, ...] = ()) -> None:
        if self._failed is not None:
            raise StorageError(
                f"{self.path} takes no more changes: {self._failed}",
                hint="make room, and resume the crawl", path=str(self.path), operation="write",
            )  # fmt: skip
        self._unsynced = True
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise StorageError(
                f"cannot write {self.path}: {error}", path=str(self.path), operation="write"
            ) from error

    def begin(self) -> None:
        """From here on a run that does not end by `close` was killed."""
        self._change("UPDATE job SET running = 1")

    def add(self, key: bytes, request: bytes) -> None:
        """Takes a request in; one of a key is enough."""
        self._change("INSERT OR IGNORE INTO pending (key, request) VALUES (?, ?)", (key, request))

    def _sync(self) -> None:
        """Forces all changes to the disk: they are in the file beside this one."""
        if not self._unsynced:
            return
        self._unsynced = False
        path = f"{self.path}-wal"
        with storage_errors(path, "bring to the disk"):
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def _fail(self, reason: str) -> None:
        self._failed = reason

    def done(self, key: bytes) -> None:
        """Strikes a request off."""
        self._change("DELETE FROM pending WHERE key = ?", (key,))

    def __len__(self) -> int:
        [count] = self._database.execute("SELECT count(*) FROM pending").fetchone()
        return int(count)

    def __iter__(self) -> Iterator[bytes]:
        """The requests, oldest first."""
        last = 0
        # A page at a time, so that the list may change meanwhile.
        while rows := self._database.execute(
            "SELECT id, request FROM pending WHERE id > ? ORDER BY id LIMIT 500", (last,)
        ).fetchall():
            last = rows[-1][0]
            yield from (request for _, request in rows)

    def close(self, *, finished: bool) -> None:
        """Ends a run in order. Of a crawl that is finished nothing is left to do."""
        try:
            if finished:
                self._change("DELETE FROM pending")
            self._change("UPDATE job SET running = 0")
        finally:
            self.release()

    def release(self) -> None:
        """Lets go of the file and leaves it as it is."""
        if self._syncer is not None:
            self._syncer.stop()
        self._database.close()
