"""Every change a store makes to files, through one small object, so that a test can fail or stop
the store at each of them.

A file is written under another name, brought to the disk, renamed, and the directory brought to
the disk: it is there as a whole or not at all. What the operating system refuses becomes a
`StorageError` with the path and the operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomtide import system
from bloomtide.errors import StorageError

TEMPORARY = ".tmp"
"""How the names of unfinished files end."""


class Disk:
    """The file operations of a store."""

    def make_directory(self, path: Path) -> None:
        """Makes a directory and those above it, durably."""
        with storage_errors(path, "make the directory"):
            if not path.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                self.sync_directory(path.parent)

    def write_file(self, path: Path, data: bytes) -> None:
        """Writes a whole file, durably; nothing of it is there if this fails."""
        temporary = path.with_name(path.name + TEMPORARY)
        try:
            handle = self.create(temporary)
            try:
                self.append(handle, temporary, data)
                self.sync(handle, temporary)
            finally:
                os.close(handle)
            self.rename(temporary, path)
        except StorageError:
            temporary.unlink(missing_ok=True)
            raise
        self.sync_directory(path.parent)

    def create(self, path: Path) -> int:
        """A new, empty file, open for appending."""
        with storage_errors(path, "create"):
            return os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND, 0o644)

    def reopen(self, path: Path, length: int) -> int:
        """An existing file, cut to this length, open for appending."""
        with storage_errors(path, "open"):
            handle = os.open(path, os.O_WRONLY | os.O_APPEND)
            if os.fstat(handle).st_size != length:
                os.ftruncate(handle, length)
                system.sync(handle)
            return handle

    def append(self, handle: int, path: Path, data: bytes) -> None:
        """Writes all of it at the end; a part of it may be there if this fails."""
        try:
            written = os.write(handle, data)
            while written < len(data):
                written += os.write(handle, memoryview(data)[written:])
        except OSError as error:
            raise _refused(path, "write", error) from error

    def sync(self, handle: int, path: Path) -> None:
        """What was written is on the disk when this returns."""
        with storage_errors(path, "bring to the disk"):
            system.sync(handle)

    def rename(self, old: Path, new: Path) -> None:
        """The file has its new name, at once."""
        with storage_errors(new, "rename"):
            old.replace(new)

    def sync_directory(self, path: Path) -> None:
        """Names in this directory are on the disk when this returns."""
        with storage_errors(path, "bring to the disk"):
            system.sync_directory(path)

    def unlink(self, path: Path) -> None:
        """The file is gone, also if it was gone before."""
        with storage_errors(path, "remove"):
            path.unlink(missing_ok=True)

    def sync_tree(self, path: Path) -> None:
        """Brings each file below a directory and all names to the disk."""
        for found in sorted(path.iterdir()):
            if found.is_dir():
                self.sync_tree(found)
                continue
            with storage_errors(found, "open"):
                handle = os.open(found, os.O_RDONLY)
            try:
                self.sync(handle, found)
            finally:
                os.close(handle)
        self.sync_directory(path)

    def remove_tree(self, path: Path) -> None:
        """The directory and all that is in it are gone, also if they were gone before."""
        if not path.is_dir():
            return
        with storage_errors(path, "remove"):
            for found in sorted(path.iterdir()):
                if found.is_dir() and not found.is_symlink():
                    self.remove_tree(found)
                else:
                    self.unlink(found)
            path.rmdir()

    def commit(self, transaction: Callable[[], None]) -> None:
        """Runs a transaction of the catalogue: a write like the others."""
        transaction()

    def put(self, upload: Callable[[], None]) -> None:
        """Runs an upload to an object store: a write like the others."""
        upload()


@contextmanager
def storage_errors(path: Path | str, operation: str) -> Iterator[None]:
    """Gives what the operating system refused its path and its operation."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise _refused(path, operation, error) from error


def _refused(path: Path | str, operation: str, error: OSError) -> StorageError:
    return StorageError(
        f"cannot {operation} {path}: {error.strerror or error}",
        hint="check that the disk has room and the directory may be written",
        path=str(path),
        operation=operation,
    )
