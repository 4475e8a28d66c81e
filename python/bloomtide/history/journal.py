"""The journal of a store: a file that holds what the open segments hold, for the day of a crash.

Each generation has a file of its own, `journal-<generation>`. The records come from the buffer of
the open segments, which also reads them again; this file knows only bytes, and when they are safe
(`durable/policy.py`). Of a store with `keep` it holds what was open at the last sealing or
checkpoint: whoever feeds the store keeps the rest, and gives what is behind its `mark` again.

After a write or a sync that failed nobody knows what is on the disk, and asking again may answer
"all is well" without it being so. So the first failure is the last word: every later `append` is
refused, until the store is opened anew and has read what is really there.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from bloomtide.durable.disk import Disk
from bloomtide.durable.policy import Sync
from bloomtide.errors import StorageError
from bloomtide.history.entry import checksum

_HEAD = 64
"""Bytes that tell one journal from another."""


def journal_path(directory: Path, generation: int) -> Path:
    """Where the journal of a generation lies."""
    return directory / f"journal-{generation:08d}"


def begun_as(data: bytes) -> dict[str, Any]:
    """What the catalogue says of a journal that begins with these bytes: `head` tells it from
    others, the rest whether all of its begin is there."""
    return {"bytes": len(data), "checksum": checksum(data), "head": checksum(data[:_HEAD])}


class Journal:
    """The journal file that is written now."""

    def __init__(self, disk: Disk, path: Path, sync: Sync, length: int) -> None:
        """Goes on behind the first `length` bytes of the file; the rest is a torn tail and cut."""
        self.path = path
        self.bytes = length
        self.failure: StorageError | None = None
        self._disk = disk
        self._mode = sync
        self._handle = disk.reopen(path, length)
        self._unsynced = False
        # Not the store's lock: the thread that syncs each second must not stop questions.
        self._gate = threading.Lock()

    def append(self, data: bytes) -> None:
        """Adds records, as safe as the policy says when this returns."""
        with self._gate:
            self.require_sound()
            if not data:
                return
            try:
                self._disk.append(self._handle, self.path, data)
                self.bytes += len(data)
                self._unsynced = True
                if self._mode == "always":
                    self._sync()
            except StorageError as error:
                self.failure = error
                raise

    def sync(self) -> None:
        """Everything appended so far is on the disk when this returns."""
        with self._gate:
            self.require_sound()
            try:
                self._sync()
            except StorageError as error:
                self.failure = error
                raise

    def close(self) -> None:
        """Gives the file back, without bringing anything to the disk."""
        with self._gate:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1

    def _sync(self) -> None:
        if self._unsynced and self._handle >= 0:
            self._disk.sync(self._handle, self.path)
            self._unsynced = False

    def require_sound(self) -> None:
        """Refuses if an earlier write failed."""
        if self.failure is not None:
            raise StorageError(
                f"{self.path} takes no more events: {self.failure.message}",
                hint="the store still answers; make room and open it again",
                path=str(self.path),
                operation="write",
            ) from self.failure
