"""`SeenLog`: every key since the last snapshot, appended one by one.

A record is 32 bytes: the key (20), when it came (a double), and a CRC-32C over both. A record is
given to the system by one write before the request goes on, so a killed process loses none; when
the disk itself has it is the word of `durable/policy.py`.

What a crash leaves is read as far as it can be: half a record at the end is cut off, a record whose
checksum is wrong is skipped. A skipped key makes its page be fetched again; none is lost by it.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from bloomtide import system
from bloomtide._core import crc32c
from bloomtide.durable.policy import Sync
from bloomtide.errors import SnapshotError, StorageError
from bloomtide.format import read_start, start

KEY = 20
_RECORD = struct.Struct("<20sdI")
_BODY = struct.Struct("<20sd")
_KIND = "seen log"
_HEADER = start(_KIND, bytes(4))
"""As long as a record."""
_CHUNK = 4096 * _RECORD.size


class SeenLog:
    """An append-only file of keys and times, used by one process."""

    def __init__(self, path: Path, sync: Sync) -> None:
        system.require_posix("a crawl with a JOBDIR")
        self.path = path
        self.skipped = 0
        """Records whose checksum was wrong."""
        self.cut = 0
        """Bytes of half a record that were cut off the end."""
        self.size = 0
        """Bytes of all records."""
        self._policy = sync
        self._synced = time.monotonic()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            self._lock()
            self._check()
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if not system.try_lock(self._file):
            raise StorageError(
                f"{self.path} is in use by another crawl",
                hint="give each crawl a JOBDIR of its own; BLOOMTIDE_SHARED shares a filter",
                path=str(self.path), operation="lock",
            )  # fmt: skip

    def _check(self) -> None:
        size = os.fstat(self._file).st_size
        head = os.pread(self._file, len(_HEADER), 0)
        if len(head) < len(_HEADER) and _HEADER.startswith(head):
            self.reset()  # new, or killed before its first record
            return
        try:
            read_start(head, _KIND, self.path)
        except SnapshotError as error:
            error.hint = "restore it, or remove it to crawl its pages again"
            raise
        self.cut = size % _RECORD.size
        self.size = size - self.cut - len(_HEADER)
        if self.cut:
            os.ftruncate(self._file, size - self.cut)

    def replay(self) -> Iterator[tuple[list[bytes], list[float]]]:
        """Keys and times in the order they came, some thousand at once."""
        offset = len(_HEADER)
        while chunk := os.pread(self._file, _CHUNK, offset):
            offset += len(chunk)
            keys, times = [], []
            for key, at, sum_ in _RECORD.iter_unpack(chunk):
                if crc32c(_BODY.pack(key, at)) == sum_:
                    keys.append(key)
                    times.append(at)
                else:
                    self.skipped += 1
            yield keys, times

    def append(self, key: bytes, at: float) -> None:
        """Writes one record; when it returns, a killed process does not lose it."""
        body = _BODY.pack(key, at)
        written = os.write(self._file, body + crc32c(body).to_bytes(4, "little"))
        if written != _RECORD.size:
            # The rest of the record would shift all that follow.
            os.ftruncate(self._file, len(_HEADER) + self.size)
            raise StorageError(
                f"{self.path}: the disk is full", path=str(self.path), operation="write"
            )
        self.size += written
        if self._policy == "always" or (
            self._policy == "everysec" and time.monotonic() - self._synced >= 1
        ):
            self.sync()

    def sync(self) -> None:
        """Forces the records to the disk."""
        system.sync(self._file)
        self._synced = time.monotonic()

    def reset(self) -> None:
        """Forgets every record: a snapshot has them."""
        os.ftruncate(self._file, 0)
        os.write(self._file, _HEADER)
        system.sync(self._file)
        self.size = 0

    def close(self) -> None:
        """Forces the records to the disk, and closes."""
        if self._file >= 0:
            self.sync()
            os.close(self._file)
            self._file = -1
