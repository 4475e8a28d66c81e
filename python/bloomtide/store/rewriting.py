"""A snapshot made by a forked process: its memory is what the parent held at that moment.

The child writes the files and brings them to the disk; only the parent may commit them, by its
manifest. So a child that fails, is killed, or outlives its parent changes nothing.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

from bloomtide import system
from bloomtide.durable.disk import Disk
from bloomtide.durable.lock import WriterLock
from bloomtide.errors import StorageError

_TOLD = 4096
"""Bytes of the child's message; less than a pipe holds, so that it never waits for a reader."""


class Rewriting:
    """A rewrite that is going on in a child."""

    def __init__(
        self,
        directory: Path,
        write: Callable[[Path], object],
        disk: Disk,
        lock: WriterLock,
        commit: Callable[[], None],
    ) -> None:
        """Forks. `commit` is called in the parent once the files are on the disk."""
        self.done = False
        self._directory = directory
        self._disk = disk
        self._commit = commit
        self._told, tell = os.pipe()
        with warnings.catch_warnings():
            # Other threads may be there; the child uses nothing of theirs and ends by _exit.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = system.fork()
        if self._pid == 0:
            _write_and_exit(directory, write, disk, lock, tell)
        os.close(tell)

    def poll(self) -> bool:
        """Is it done? Commits the snapshot if so; raises if it failed."""
        return self.done or self._collect(os.WNOHANG)

    def wait(self) -> None:
        """Returns when the snapshot counts; raises if it failed."""
        if not self.done:
            self._collect(0)

    def cancel(self) -> None:
        """Stops it, if it is not done; nothing of it is left."""
        if not self.done:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._end()
            self._disk.remove_tree(self._directory)

    def _collect(self, options: int) -> bool:
        found, status = os.waitpid(self._pid, options)
        if found == 0:
            return False
        text = self._end()
        if status == 0:
            self._commit()
            return True
        self._disk.remove_tree(self._directory)
        raise StorageError(
            f"cannot write the snapshot {self._directory}: {text or f'it ended with {status}'}",
            hint="the journal has everything; check that the disk has room",
            path=str(self._directory),
            operation="rewrite",
        )

    def _end(self) -> str:
        self.done = True
        text = os.read(self._told, _TOLD).decode("utf-8", "replace")
        os.close(self._told)
        return text


def _write_and_exit(
    directory: Path, write: Callable[[Path], object], disk: Disk, lock: WriterLock, tell: int
) -> None:
    """The life of the child."""
    code = 1
    try:
        # Else a server that starts after the parent was killed would find lock and ports taken.
        lock.release()
        os.closerange(3, tell)
        os.closerange(tell + 1, os.sysconf("SC_OPEN_MAX"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        disk.make_directory(directory)
        write(directory)
        disk.sync_tree(directory)
        disk.sync_directory(directory.parent)
        code = 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process must end here
        os.write(tell, str(error).encode("utf-8", "replace")[:_TOLD])
    finally:
        os._exit(code)
