"""`SharedSections`: waits until every commit that was under way at some moment has ended.

A writer makes sure that its keys are in all filters it knows of, and then commits. If a build began
in between, its scan may be too early for the row, and its filter came too late for the key. So a
builder first makes the new filter known, then waits for all sections that were entered before, and
only then scans: what those wrote is committed or gone, and all others see the new filter before
they commit.

A section is the commit of one transaction, in any process. Sections belong to epochs of even or
odd number, one lock file each: a section shares the lock of its epoch, a builder begins the next
epoch and takes the lock of the old one for itself for a moment. The system lets go of the locks of
a process that dies, so nobody waits for the dead. (Kernels call the idea read-copy-update.)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from bloomtide import system
from bloomtide.errors import StorageError

_GLANCE = 0.002
"""Seconds between two looks at a lock."""


class FileLock:
    """A lock of a file, held by this process until it lets go or dies."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def take(self, *, shared: bool = False) -> None:
        system.lock(self._file, shared=shared)

    def try_take(self) -> bool:
        """Takes it for this process alone, unless somebody has it."""
        return system.try_lock(self._file)

    def release(self) -> None:
        system.unlock(self._file)

    def close(self) -> None:
        """Lets go, unless the process that this one was forked from has it open as well."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        self.take()
        try:
            yield
        finally:
            self.release()


class SharedSections:
    """The sections of all processes; `epoch` reads the number that they share."""

    def __init__(self, directory: Path, epoch: Callable[[], int]) -> None:
        self._epoch = epoch
        self._mutex = Lock()
        self._locks = [FileLock(directory / f"epoch-{side}") for side in (0, 1)]
        self._open = [0, 0]
        self._closed = False

    def enter(self) -> int:
        """Begins a section; `leave` needs what it answers."""
        with self._mutex:
            while True:
                epoch = self._epoch()
                side = epoch & 1
                if not self._open[side]:
                    self._locks[side].take(shared=True)
                # A builder changes the epoch and then takes the lock. If it is the same still, the
                # builder has yet to come, and will wait for this section.
                if self._epoch() == epoch:
                    self._open[side] += 1
                    return side
                if not self._open[side]:
                    self._locks[side].release()

    def leave(self, side: int) -> None:
        with self._mutex:
            self._open[side] -= 1
            if not self._closed and not self._open[side]:
                self._locks[side].release()

    def settle(self, begin_epoch: Callable[[], None], patience: float) -> None:
        """Calls `begin_epoch`, which makes the number larger by one, and returns when all other
        processes have left the sections that they were in.

        The sections of this process are not waited for: a thread may ask for a build in the midst
        of its own transaction. One call at a time.
        """
        old = self._epoch() & 1
        deadline = time.monotonic() + patience
        # An earlier call may have lost its patience, and its sections be open still.
        self._wait_for(1 - old, deadline)
        begin_epoch()
        self._wait_for(old, deadline)

    def _wait_for(self, side: int, deadline: float) -> None:
        while not self._is_left(side):
            if time.monotonic() > deadline:
                raise StorageError(
                    "a commit of another process does not end",
                    hint="look for what blocks the database, then build again",
                    path=f"epoch-{side}", operation="build",
                )  # fmt: skip
            time.sleep(_GLANCE)

    def _is_left(self, side: int) -> bool:
        """Whether no other process shares the lock."""
        with self._mutex:
            # The lock that this process shares becomes its own for a moment.
            alone = self._locks[side].try_take()
            if self._open[side]:
                self._locks[side].take(shared=True)
            elif alone:
                self._locks[side].release()
            return alone

    def close(self) -> None:
        """Leaves all of them."""
        with self._mutex:
            self._closed = True
            self.forget()

    def forget(self) -> None:
        """In a forked child, where nobody knows who holds the mutex: drops what is the parent's."""
        for lock in self._locks:
            lock.close()
