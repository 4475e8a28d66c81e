"""`ExactSet`: a set of keys on disk that never errs; the second check behind a filter.

A filter calls a few new keys seen. Who must not lose one asks this set about each key that was
called seen, and adds each new one. It is a SQLite database of one table, so memory stays at
`cache` bytes however many keys there are; a key is found by one walk down a B-tree.

A key of up to 32 bytes is kept as it is, a longer one as its BLAKE2b-256. The latter have 33 bytes,
so the two never meet.

Additions are committed together: after `batch` of them, by `flush` and by `close`. A commit is on
the disk before it returns. What was added since the last one is lost if the process is killed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Self

from bloomtide.errors import (
    ClosedError,
    InvariantError,
    KeyTypeError,
    NotASnapshotError,
    SnapshotError,
    StorageError,
    VersionError,
    require,
)

_APPLICATION = 0x424C4D58
"""`BLMX`, in the place where SQLite keeps whose file it is."""
_VERSION = 1
_QUESTIONS = 500
"""Keys asked about by one statement; SQLite allows some more."""


def is_exact_set(path: str | os.PathLike[str]) -> bool:
    """Whether the file says that it is such a set. Reads its first bytes only."""
    with Path(path).open("rb") as opened:
        head = opened.read(72)
    return head.startswith(b"SQLite format 3\0") and head[68:] == _APPLICATION.to_bytes(4, "big")


class ExactSet:
    """A set of byte strings in a file."""

    def __init__(
        self, path: str | os.PathLike[str], *, batch: int = 10_000, cache: int = 2 << 20
    ) -> None:
        """Opens the file, or makes it. `cache` is the memory for its pages, in bytes."""
        require("batch", batch, "at least 1", batch >= 1)
        require("cache", cache, "at least 65536 bytes", cache >= 65536)
        self.path = os.fspath(path)
        self.batch = batch
        self._uncommitted = 0
        self._open = False
        with self._errors("open"):
            self._database = sqlite3.connect(self.path, isolation_level=None)
        try:
            with self._errors("open"):
                self._create()
                self._check()
                # The journal is a file of its own beside this one, while it is open.
                self._run("PRAGMA journal_mode = WAL")
                self._run("PRAGMA synchronous = FULL")
                self._run(f"PRAGMA cache_size = -{cache >> 10}")
                self._run(f"PRAGMA wal_autocheckpoint = {max(cache >> 12, 16)}")
        except BaseException:
            self._database.close()
            raise
        self._open = True

    def _create(self) -> None:
        """Makes the table in an empty file, also in one that a kill left empty."""
        [tables] = self._run("SELECT count(*) FROM sqlite_master").fetchone()
        [application] = self._run("PRAGMA application_id").fetchone()
        if tables or application:
            return
        self._run("BEGIN EXCLUSIVE")
        self._run(f"PRAGMA application_id = {_APPLICATION}")
        self._run(f"PRAGMA user_version = {_VERSION}")
        self._run("CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY) WITHOUT ROWID")
        self._run("COMMIT")

    def _check(self) -> None:
        [application] = self._run("PRAGMA application_id").fetchone()
        [version] = self._run("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise NotASnapshotError(
                f"{self.path} is a database of another program", hint="give another path"
            )
        if version != _VERSION:
            raise VersionError(
                f"{self.path} has version {version}; this bloomtide reads {_VERSION}",
                hint="update bloomtide", expected=_VERSION, got=version,
            )  # fmt: skip
        self._run("SELECT count(*) FROM (SELECT 1 FROM keys LIMIT 1)").fetchone()

    def _run(self, statement: str, values: Sequence[bytes] = ()) -> sqlite3.Cursor:
        return self._database.execute(statement, values)

    @contextmanager
    def _errors(self, operation: str) -> Iterator[None]:
        """Our errors in the place of SQLite's."""
        try:
            yield
        except sqlite3.OperationalError as error:
            # Also "no such table": a database that says it is ours and is not.
            if "no such" in str(error):
                raise self._damaged(error) from error
            raise StorageError(
                f"cannot {operation} {self.path}: {error}", path=self.path, operation=operation
            ) from error
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise NotASnapshotError(
                    f"{self.path} is no set of keys", hint="give another path"
                ) from error
            raise self._damaged(error) from error

    def _damaged(self, error: object) -> SnapshotError:
        return SnapshotError(
            f"{self.path} is damaged: {error}",
            hint="restore it from a copy, or remove it and start with an empty set",
            path=self.path,
        )

    def _require_open(self) -> None:
        if not self._open:
            raise ClosedError(f"{self.path} was closed", path=self.path)

    def _begin(self) -> None:
        self._require_open()
        if not self._database.in_transaction:
            self._run("BEGIN IMMEDIATE")

    def add(self, key: bytes) -> bool:
        """Adds the key; True iff it is new."""
        stored = _stored(key)
        with self._errors("write"):
            self._begin()
            new = self._run("INSERT OR IGNORE INTO keys VALUES (?)", (stored,)).rowcount == 1
        self._count(new)
        return new

    def add_many(self, keys: Iterable[bytes]) -> list[bool]:
        """Adds every key in order; True for each that is new, the first of equal ones only."""
        answers: list[bool] = []
        rows = iter([_stored(key) for key in keys])
        while group := list(islice(rows, _QUESTIONS)):
            with self._errors("write"):
                self._begin()
                absent = set(group) - self._present(group)
                # In order, so that neighbours in the tree are written together.
                self._database.executemany(
                    "INSERT INTO keys VALUES (?)", ((key,) for key in sorted(absent))
                )
            self._count(len(absent))
            for key in group:
                answers.append(key in absent)
                absent.discard(key)
        return answers

    def _present(self, group: list[bytes]) -> set[bytes]:
        holes = ",".join("?" * len(group))
        return {key for (key,) in self._run(f"SELECT key FROM keys WHERE key IN ({holes})", group)}

    def _count(self, new: int) -> None:
        self._uncommitted += new
        if self._uncommitted >= self.batch:
            self.flush()

    def __contains__(self, key: bytes) -> bool:
        stored = _stored(key)
        self._require_open()
        with self._errors("read"):
            found = self._run("SELECT 1 FROM keys WHERE key = ?", (stored,)).fetchone()
        return found is not None

    def __iter__(self) -> Iterator[bytes]:
        """Every key as it is kept: longer ones are digests. In no order that means anything."""
        self._require_open()
        with self._errors("read"):
            for (key,) in self._run("SELECT key FROM keys"):
                yield key

    def __len__(self) -> int:
        """How many keys; it reads the whole set."""
        self._require_open()
        with self._errors("read"):
            [count] = self._run("SELECT count(*) FROM keys").fetchone()
        return int(count)

    def flush(self) -> None:
        """Commits what was added, durably."""
        with self._errors("write"):
            if self._open and self._database.in_transaction:
                self._run("COMMIT")
        self._uncommitted = 0

    def discard(self) -> None:
        """Forgets what was added since the last commit."""
        with self._errors("write"):
            if self._open and self._database.in_transaction:
                self._run("ROLLBACK")
        self._uncommitted = 0

    def close(self) -> None:
        """Commits and closes. Closing again does nothing."""
        if self._open:
            try:
                self.flush()
            finally:
                self._open = False
                with self._errors("write"):
                    self._database.close()

    def validate(self) -> None:
        """Reads the whole file; `InvariantError` if its tree is not in order."""
        with self._errors("read"):
            [verdict] = self._run("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise InvariantError(f"{self.path} is damaged: {verdict}", invariant="b-tree")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ExactSet {self.path!r}{'' if self._open else ' (closed)'}>"


def _stored(key: bytes) -> bytes:
    if not isinstance(key, bytes):
        raise KeyTypeError(
            f"a key of an exact set must be `bytes`, got: `{type(key).__name__}`",
            hint="text: key.encode()", got=type(key).__name__, index=None, added=None,
        )  # fmt: skip
    return key if len(key) <= 32 else b"#" + blake2b(key, digest_size=32).digest()
