"""A disk that fails: at one chosen write the power goes, or there is no more room.

When the power goes, a write in progress is torn in the middle, everything that was not brought to
the disk is lost, and nothing more happens. A full disk refuses all further writes by name until
there is room again; removing still works.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from bloomtide.durable.disk import Disk, storage_errors
from bloomtide.history import History


class PowerCut(BaseException):
    """The machine stopped here."""


class FailingDisk(Disk):
    """Counts its operations and fails at one of them."""

    def __init__(self, fail_at: int | None = None, *, full: bool = False) -> None:
        """Never fails without `fail_at`; operations count from 0."""
        self.steps = 0
        self.full = full
        self._fail_at = fail_at
        self._dead = False
        self._synced: dict[Path, int] = {}
        self._unsynced_names: set[Path] = set()
        self._replaced: dict[Path, bytes] = {}
        """What a name stood for, until a rename over it is on the disk."""

    def fail_in(self, steps: int) -> None:
        """Fails after so many more operations."""
        self._fail_at = self.steps + steps

    def make_room(self) -> None:
        """Ends a full disk."""
        self._fail_at = None
        self._dead = False

    def lose_power(self, *, keep_names: bool = False) -> None:
        """Takes away what was never brought to the disk; of names a disk may have some."""
        for path in () if keep_names else self._unsynced_names:
            path.unlink(missing_ok=True)
            if path in self._replaced:
                path.write_bytes(self._replaced[path])
                self._synced.pop(path, None)
        for path, length in self._synced.items():
            if path.exists() and path.stat().st_size > length:
                os.truncate(path, length)

    def create(self, path: Path) -> int:
        self._step(path)
        handle = super().create(path)
        self._synced[path] = 0
        self._unsynced_names.add(path)
        return handle

    def reopen(self, path: Path, length: int) -> int:
        handle = super().reopen(path, length)
        self._synced[path] = length
        return handle

    def append(self, handle: int, path: Path, data: bytes) -> None:
        if self._is_next():
            super().append(handle, path, data[: len(data) // 2])
        self._step(path)
        super().append(handle, path, data)

    def sync(self, handle: int, path: Path) -> None:
        self._step(path)
        # What a sync would bring to the disk is known here; `quick_disk` says why it does not.
        self._synced[path] = os.fstat(handle).st_size

    def rename(self, old: Path, new: Path) -> None:
        self._step(new)
        if new.exists() and new not in self._unsynced_names:
            self._replaced[new] = new.read_bytes()
        super().rename(old, new)
        self._synced[new] = self._synced.pop(old)
        self._unsynced_names.discard(old)
        self._unsynced_names.add(new)

    def sync_directory(self, path: Path) -> None:
        self._step(path)
        self._unsynced_names = {name for name in self._unsynced_names if name.parent != path}
        self._replaced = {name: old for name, old in self._replaced.items() if name.parent != path}

    def unlink(self, path: Path) -> None:
        if not self.full:
            self._step(path)
        super().unlink(path)
        self._synced.pop(path, None)
        self._unsynced_names.discard(path)

    def commit(self, transaction: Callable[[], None]) -> None:
        self._step(Path("catalogue"))
        super().commit(transaction)

    def put(self, upload: Callable[[], None]) -> None:
        self._step(Path("upload"))
        super().put(upload)

    def _is_next(self) -> bool:
        return not self._dead and self.steps == self._fail_at

    def _step(self, path: Path) -> None:
        self._dead = self._dead or self._is_next()
        self.steps += 1
        if self._dead and not self.full:
            raise PowerCut
        if self._dead:
            with storage_errors(path, "write"):
                raise OSError(errno.ENOSPC, "No space left on device")


def abandon(store: History) -> None:
    """What is left of a process that is gone: its lock is free, nothing else happens."""
    store._state.catalogue.close()
    if store._state.journal is not None:
        store._state.journal.close()
    assert store._lock is not None
    store._lock.release()
    store._closed = True
