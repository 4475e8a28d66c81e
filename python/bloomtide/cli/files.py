"""Filter files as the commands use them: to read, or to change and save.

Two commands that load, add and save at the same time would lose the keys of one of them. So a
command that replaces a file holds its `flock` meanwhile, the lock that `BloomFilter.open` uses too.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import bloomtide
from bloomtide import BloomFilter, HotList, system
from bloomtide._core import Replacing
from bloomtide.cli import console
from bloomtide.cli.console import CommandError
from bloomtide.cli.kinds import Filter
from bloomtide.errors import UnsealedError
from bloomtide.format import HEAD, kind_of
from bloomtide.system import LockBeside

if TYPE_CHECKING:
    from bloomtide.recent import RecentFilter


def read_filter(file: Path) -> Filter:
    """Load a filter; a shared one that is open for writing is mapped as it is now."""
    try:
        return _filter_of(file)
    except UnsealedError:
        return BloomFilter.open(file, mode="r")


def read_state(file: Path) -> Filter | RecentFilter:
    """The same, or a state of `dedup --within`."""
    if is_recent(file):
        from bloomtide.recent import RecentFilter

        return RecentFilter.load(file)
    return read_filter(file)


def is_recent(file: Path) -> bool:
    """Whether the file says that it is a state of `dedup --within`."""
    with contextlib.suppress(OSError), file.open("rb") as opened:
        return kind_of(opened.read(HEAD)) == "recent"
    return False


@contextlib.contextmanager
def filter_to_change(file: Path, *, shared: bool = False) -> Iterator[Filter]:
    """A filter to add to. A snapshot is replaced at the end, and only if all went well.

    With `shared`, and if other processes have the file open, each key goes in at once: then
    there is nothing to take back.
    """
    file = file.resolve()  # saving must replace the file, not a link to it
    lock = None if shared else lock_alone(file)
    if lock is not None:
        with lock:
            loaded = _load_sealed(file)
            if loaded is not None:
                yield loaded
                loaded.save(file)
                return
    with BloomFilter.open(file, mode="r+") as mapped:
        yield mapped


def _load_sealed(file: Path) -> Filter | None:
    try:
        return _filter_of(file)
    except UnsealedError:
        return None


def _filter_of(file: Path) -> Filter:
    if is_recent(file):
        raise CommandError(
            f"{file} is a state of `dedup --within`",
            hint="`dedup` goes on from it, `info` and `check` look into it",
        )
    loaded = bloomtide.load(file)
    if isinstance(loaded, HotList):
        raise CommandError(
            f"{file} holds a hot list, not a filter", hint="HotList.load reads it in Python"
        )
    return loaded


class LockedFile:
    """A file that is locked for this process alone until the block ends; its own saves pass."""

    def __init__(self, opened: BinaryIO, file: Path) -> None:
        self._opened = opened
        self._replacing = Replacing(file)

    def __enter__(self) -> LockedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._replacing.release()
        self._opened.close()


def lock_alone(file: Path) -> LockedFile | LockBeside | None:
    """The file, locked for this process alone; None if writers have it mapped."""
    attempts = 0
    while True:
        try:
            opened = file.open("rb")
        except OSError as problem:
            raise console.CommandError(
                f"cannot open {file}: {problem.strerror}",
                hint="`bloomtide new` makes a filter file",
            ) from None
        if not system.POSIX:
            opened.close()
            beside = LockBeside(file)
            if beside.try_take():
                return beside
        elif system.try_lock(opened):
            # Whoever had the lock before may have replaced the file; then ours is the old one.
            if file.exists() and os.path.samestat(os.fstat(opened.fileno()), file.stat()):
                return LockedFile(opened, file)
        elif system.try_lock(opened, shared=True):
            opened.close()
            return None
        opened.close()
        attempts += 1
        _wait(file, attempts)


@contextlib.contextmanager
def making(file: Path) -> Iterator[None]:
    """No other command makes this file meanwhile: whether it is there is to be asked inside."""
    beside = LockBeside(file.with_name(f"{file.name}.new"))
    attempts = 0
    try:
        while not beside.try_take():
            attempts += 1
            _wait(file, attempts)
    except OSError as problem:
        raise CommandError(
            f"cannot make {file}: {problem.strerror}", hint="name a file in a folder of yours"
        ) from None
    with beside:
        yield


def _wait(file: Path, attempts: int) -> None:
    """A moment; said once, after a second."""
    if attempts == 20:
        console.message(f"waiting for another command that changes {file}")
    time.sleep(0.05)
