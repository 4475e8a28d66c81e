"""`Log`: a file of records that one process writes, and what is believed of it when it is read.

How records lie in the file, and how a torn tail is told from damage, is in `durable.rs` of the core
and on `docs/formats/journal.md`. A record is in the system's hands when `append` returns, so a kill
of the process loses none; when the disk itself has it is the word of `policy.py`.

After a write or a sync that failed nobody knows what is on the disk, and asking again may answer
"all is well" without it being so. So the first failure is the last word: nothing more is taken,
until the file is opened anew and what is really there has been read.

One thread appends; `sync` may run in another and does not hold it up.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bloomtide._core import RecordScan, pack_records
from bloomtide.durable.background import Background
from bloomtide.durable.disk import Disk, storage_errors
from bloomtide.durable.policy import INTERVAL, Sync
from bloomtide.errors import ClosedError, JournalError, StorageError
from bloomtide.format import HEAD, errors_at, start

if TYPE_CHECKING:
    from typing_extensions import Buffer

_ADDED = struct.Struct("<4sQ")
START = HEAD + _ADDED.size + 4
"""Bytes before the first record."""


def scan(path: Path, kind: str, data: Buffer | None = None) -> RecordScan:
    """The records of a file as it is now. Without `data` it is mapped, since it may be larger than
    the memory that is free: only for who has the lock, or it might be cut under the map."""
    if data is None:
        with storage_errors(path, "read"), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap(file.fileno(), 0, access=ACCESS_READ) if size else b""
    with errors_at(path):
        return RecordScan(data, kind)


def pack_file(kind: str, payloads: list[bytes], *, first: int = 1) -> bytes:
    """A whole file of these records, numbered from `first` on."""
    mark = os.urandom(4)
    return start(kind, _ADDED.pack(mark, first)) + pack_records(mark, first, payloads)


class Log:
    """A file of records, open for writing."""

    path: Path
    sequence: int
    """The number of the last record; one less than that of the first before there is any."""
    size: int
    """Bytes of the file."""
    failed: str | None
    """Why nothing more is taken; None while all is well."""

    @classmethod
    def create(
        cls, disk: Disk, path: Path, kind: str, sync: Sync, payloads: list[bytes], *, first: int = 1
    ) -> Self:
        """A new file that begins with these records, on the disk as a whole when this returns."""
        data = pack_file(kind, payloads, first=first)
        disk.write_file(path, data)
        return cls(disk, path, sync, data[HEAD : HEAD + 4], first + len(payloads) - 1, len(data))

    @classmethod
    def resume(cls, disk: Disk, path: Path, sync: Sync, found: RecordScan) -> Self:
        """Goes on behind the last sound record; a torn tail is cut."""
        assert found.next is not None
        return cls(disk, path, sync, found.mark, found.next - 1, found.end)

    def __init__(
        self, disk: Disk, path: Path, sync: Sync, mark: bytes, sequence: int, length: int
    ) -> None:
        """Use `create` or `resume`."""
        self.path, self.sequence, self.size = path, sequence, length
        self.failed = None
        self.syncs, self.sync_seconds = 0, 0.0
        """How many there were, and what the last one took."""
        self._disk, self._mark = disk, mark
        self._unsynced = False
        # The handle is used and closed only by who holds this; `write` does not wait for it.
        self._syncing = threading.Lock()
        self._syncer: Background | None = None
        self._handle = disk.reopen(path, length)
        self.policy = sync

    @property
    def policy(self) -> Sync:
        """When what was appended is safe from a power cut."""
        return self._policy

    @policy.setter
    def policy(self, sync: Sync) -> None:
        self._policy = sync
        if self._syncer is not None:
            self._syncer.stop()
            self._syncer = None
        if sync == "everysec":
            self._syncer = Background("log", self._sync_if_due, lambda _: None, INTERVAL)

    def append(self, payloads: list[bytes]) -> int:
        """Adds records, as safe as the policy says when this returns; the number of the last."""
        self.write(payloads)
        if self._policy == "always":
            self.sync()
        return self.sequence

    def write(self, payloads: list[bytes]) -> int:
        """The same, whatever the policy, without a sync."""
        if self.failed is not None or self._handle < 0:
            self.require_sound()
        if payloads:
            data = pack_records(self._mark, self.sequence + 1, payloads)
            try:
                self._disk.append(self._handle, self.path, data)
                self.sequence += len(payloads)
                self.size += len(data)
                self._unsynced = True
            except StorageError as error:
                self.fail(error)
            except BaseException as error:
                self.cut_short(error)
                raise
        return self.sequence

    def sync(self) -> None:
        """Everything appended before this call is on the disk when it returns."""
        with self._syncing:
            if self.failed is not None:
                self.require_sound()
            if not self._unsynced:
                return
            # Cleared first: what is appended while the disk works is not covered by it.
            self._unsynced = False
            begin = time.perf_counter()
            with self.last_word():
                self._disk.sync(self._handle, self.path)
            self.syncs += 1
            self.sync_seconds = time.perf_counter() - begin

    def _sync_if_due(self) -> None:
        if self._unsynced and self.failed is None:
            self.sync()

    def close(self) -> None:
        """Gives the file back, without bringing anything to the disk."""
        self.policy = "no"
        with self._syncing:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def require_sound(self) -> None:
        """Refuses if an earlier write failed, or the file was closed."""
        if self.failed is not None:
            raise JournalError(
                f"{self.path} takes no more records: {self.failed}",
                hint="everything can still be read; make room and open it again",
                path=str(self.path), operation="write", offset=None,
            )  # fmt: skip
        if self._handle < 0:
            raise ClosedError(f"{self.path} was closed", hint="open it again", path=str(self.path))

    def fail(self, error: StorageError) -> None:
        """Takes nothing more from now on."""
        self.failed = self.failed or error.message
        self.require_sound()

    def cut_short(self, error: BaseException) -> None:
        """Takes nothing more, since ctrl-C or the like ended a change in the middle."""
        self.failed = self.failed or f"a change was cut short by {type(error).__name__}"

    @contextmanager
    def last_word(self) -> Iterator[None]:
        """Around what must not fail, or else nothing more is taken."""
        try:
            yield
        except StorageError as error:
            self.fail(error)
