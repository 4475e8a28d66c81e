"""One writer, many readers: the lock file of a store.

A writer holds `flock` on the file for as long as it is open, and its process id is inside, for the
message that the second one gets. The kernel lets go of the lock when the process ends in any way,
so a stale lock does not exist. Readers take none: what they read never changes in place.
"""

from __future__ import annotations

import os
from pathlib import Path
from weakref import WeakSet

from bloomtide import system
from bloomtide.durable.disk import storage_errors
from bloomtide.errors import LockedError


class WriterLock:
    """The right to write a store, held until `release`."""

    def __init__(self, path: Path, *, hint: str = "close it there") -> None:
        """Takes the lock, or refuses with the id of the process that has it; `hint` tells why."""
        system.require_posix("a store that is written")
        with storage_errors(path, "open"):
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        with storage_errors(path, "lock"):
            free = system.try_lock(self._handle)
        if not free:
            text = os.pread(self._handle, 32, 0).decode("ascii", "replace").strip()
            os.close(self._handle)
            pid = int(text) if text.isdecimal() else None
            raise LockedError(
                f"{path.parent} is open for writing in process {text or 'unknown'}",
                hint=hint,
                path=str(path.parent),
                operation="lock",
                pid=pid,
            )
        with storage_errors(path, "write"):
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0)
        self.held = True
        """Not after `release`, and not in a process that was forked off."""
        _held.add(self)

    def release(self) -> None:
        """Lets another process write. A forked process only closes its copy."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle, self.held = -1, False


_held: WeakSet[WriterLock] = WeakSet()


def _forget_all() -> None:
    for lock in _held:
        lock.held = False


system.after_fork_in_child(_forget_all)
