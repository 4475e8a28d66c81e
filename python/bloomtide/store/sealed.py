"""`SealedSet`: an exact set that says whose it is, and tells whether its file is as it was closed.

SQLite has no checksums: a flipped bit in a key gives another key, and no error. So a closed set is
sealed: the table `seal` has one row, with the CRC-32C of the whole file but that row's page. It is
checked when the set is opened, by one read of the file. The first commit of a run breaks the seal,
in the same transaction, and `close` makes a new one.

A run that is killed leaves the seal broken. Then the number of keys and the order of the tree are
checked instead: lost and moved keys are found, a key that was changed in place may not be.

Whoever opens the set holds a lock of its own meanwhile, and nothing but this class writes to it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path

from bloomtide._core import crc32c
from bloomtide.errors import IncompatibleError, SnapshotError, StorageError
from bloomtide.store.exact import ExactSet

_CHUNK = 1 << 20
_COUNTERS = (slice(24, 28), slice(92, 100))
"""What every commit changes in the first page: the counter of changes and two copies of it."""


class SealedSet(ExactSet):
    """A set of byte strings in a file of a known owner."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        owner: int,
        *,
        batch: int = 10_000,
        cache: int = 2 << 20,
    ) -> None:
        """Opens a set that `make` made for this owner, and checks all of it."""
        self.path = os.fspath(path)
        self.owner = owner
        self._changed = False
        with self._errors("open"):
            self._verify()
        super().__init__(path, batch=batch, cache=cache)

    @classmethod
    def make(cls, path: str | os.PathLike[str], owner: int) -> None:
        """Makes the file of an empty set."""
        ExactSet(path).close()
        with _connected(os.fspath(path)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                "CREATE TABLE seal (owner INTEGER, keys INTEGER, checksum INTEGER, own INTEGER)"
            )
            database.execute("INSERT INTO seal VALUES (?, 0, NULL, ?)", (owner, _own(owner, 0)))
            database.execute("COMMIT")
        cls(path, owner)._finish()

    def _create(self) -> None:
        """Nothing: an empty file has lost its keys."""

    def _verify(self) -> None:
        """Not while the set is open: closing any handle of a file drops the locks of SQLite."""
        with _connected(self.path) as database:
            [application] = database.execute("PRAGMA application_id").fetchone()
            if not application:
                raise self._damaged("it is empty")
            rows, page = _seal_of(database)
            if not page or len(rows) != 1 or rows[0][3] != _own(*rows[0][:3]):
                raise self._damaged("its seal is wrong")
            owner, keys, checksum, _ = rows[0]
            if owner != self.owner:
                raise IncompatibleError(
                    f"{self.path} belongs to another owner",
                    hint="give the set of this one", field="owner", expected=self.owner, got=owner,
                )  # fmt: skip
            if checksum is None:
                self._verify_unsealed(database, keys)
        if checksum is not None and checksum != _checksum(self.path, page):
            raise self._damaged("its checksum is wrong")

    def _verify_unsealed(self, database: sqlite3.Connection, keys: int) -> None:
        [verdict] = database.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged(verdict)
        [found] = database.execute("SELECT count(*) FROM keys").fetchone()
        if found != keys:
            raise self._damaged(f"it has {found:,} keys and should have {keys:,}")

    def _damaged(self, error: object) -> SnapshotError:
        return SnapshotError(
            f"{self.path} is damaged, or another program changed it: {error}",
            hint="restore it from a copy", path=self.path,
        )  # fmt: skip

    def flush(self) -> None:
        """Commits what was added, durably; the first commit breaks the seal."""
        if self._open and self._uncommitted:
            with self._errors("write"):
                [(owner, keys)] = self._run("SELECT owner, keys FROM seal").fetchall()
                keys += self._uncommitted
                self._database.execute(
                    "UPDATE seal SET keys = ?, checksum = NULL, own = ?", (keys, _own(owner, keys))
                )
            self._changed = True
        super().flush()

    def close(self) -> None:
        """Commits, closes, and seals what changed. Closing again does nothing."""
        if self._open:
            super().close()
            if self._changed:
                self._finish()

    def _finish(self) -> None:
        """Seals the closed file, unless another program reads it and so holds up the journal."""
        if self._open:
            super().close()
        with self._errors("write"):
            with _connected(self.path) as database:
                [(owner, keys, _, _)], page = _seal_of(database)
            if Path(f"{self.path}-wal").exists():
                return
            checksum = _checksum(self.path, page)
            with _connected(self.path) as database:
                database.execute(
                    "UPDATE seal SET checksum = ?, own = ?", (checksum, _own(owner, keys, checksum))
                )
        self._changed = False


def _seal_of(database: sqlite3.Connection) -> tuple[list[tuple[int, int, int | None, int]], int]:
    """The rows of the seal, of which there is one, and their page; 0 if that is wrong."""
    rows = database.execute("SELECT owner, keys, checksum, own FROM seal").fetchall()
    named = "SELECT rootpage FROM sqlite_master WHERE name = 'seal'"
    [page] = database.execute(named).fetchone() or [0]
    return rows, page if isinstance(page, int) and 2 <= page < 1 << 32 else 0


def _own(owner: int, keys: int, checksum: int | None = None) -> int:
    """The checksum of the row itself, whose page the file's checksum leaves out."""
    last = "-" if checksum is None else repr(checksum)
    return crc32c(f"{owner!r} {keys!r} {last}".encode())


@contextmanager
def _connected(path: str) -> Iterator[sqlite3.Connection]:
    """An existing file, opened by SQLite."""
    uri = f"{Path(path).absolute().as_uri()}?mode=rw"
    database = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        yield database
    finally:
        database.close()


def _checksum(path: str, seal: int) -> int:
    """Of the whole file, without the page of the seal and what making the seal changes."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            head = bytearray(file.read(100))
            size = int.from_bytes(head[16:18], "big")
            size = 65536 if size == 1 else size
            for counter in _COUNTERS:
                head[counter] = bytes(counter.stop - counter.start)
            check = crc32c(head)
            check = _update(check, file, (seal - 1) * size - len(head))
            file.seek(seal * size)
            return _update(check, file, sys.maxsize)
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error.strerror}", path=path, operation="read"
        ) from error


def _update(check: int, file: RawIOBase, length: int) -> int:
    """The checksum gone on over so many bytes, or up to the end of the file."""
    while length > 0 and (part := file.read(min(length, _CHUNK))):
        check = crc32c(part, check)
        length -= len(part)
    return check
