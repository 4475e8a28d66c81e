"""`SharedPage`: the page of numbers that all processes of a shared guard look at.

Which generation of the filter is in use, which one is being built, and how often the keys became
unknown. A number is read by one load of a word, without a lock; it is changed with the lock held.
The order of changes is chosen so that a process that is killed between any two leaves no lie.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from threading import Lock

from bloomtide.guard.filter.locks import FileLock

_SIZE = mmap.PAGESIZE
_REASON = 1024
"""Where the text begins that says why the keys are unknown: its length, then UTF-8."""


class Word(IntEnum):
    """The numbers, by their place."""

    CURRENT = 0
    """Generation in use, which answers; 0: none, every key may exist."""
    BUILDING = 1
    """Generation that is being built; 0: none."""
    LATEST = 2
    """The largest number a generation ever had; a build takes the next one when it begins."""
    EPOCH = 3
    """Of the sections."""
    DOUBTS = 4
    """How often keys were written that nobody saw."""
    STALE = 5
    """Rows deleted whose keys are still inside."""
    BUILDS = 6
    """Generations that came into use."""
    BUILD_NANOSECONDS = 7
    """What the latest of them took."""
    BUILT_AT = 8
    """When the scan of the generation in use began, as below."""
    FRESH_UNTIL = 9
    """Nanoseconds of the monotonic clock, which all processes of a machine share; 0: for ever."""


class SharedPage:
    """The mapped page. `lock` is for everyone who changes it."""

    def __init__(self, directory: Path) -> None:
        path = directory / "control"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if os.fstat(file).st_size < _SIZE:
                os.ftruncate(file, _SIZE)
            self._page = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        self.words = memoryview(self._page).cast("Q")
        self._path = directory / "control.lock"
        self._across = FileLock(self._path)
        self._within = Lock()

    @contextmanager
    def lock(self) -> Iterator[memoryview[int]]:
        """No other thread or process changes anything meanwhile."""
        with self._within, self._across.held():
            yield self.words

    @property
    def reason(self) -> str:
        """Why the keys are unknown; empty if they are not."""
        length = int.from_bytes(self._page[_REASON : _REASON + 2], "little")
        return self._page[_REASON + 2 : _REASON + 2 + length].decode(errors="replace")

    @reason.setter
    def reason(self, text: str) -> None:
        data = text.encode(errors="replace")[: _SIZE - _REASON - 2]
        self._page[_REASON : _REASON + 2 + len(data)] = len(data).to_bytes(2, "little") + data

    def clear(self) -> None:
        self._page[:] = bytes(_SIZE)

    def after_fork(self) -> None:
        """In the child: a lock of its own, since the inherited one is the parent's."""
        self._across.close()
        self._across = FileLock(self._path)
        self._within = Lock()

    def close(self) -> None:
        """Lets go of the lock; the page stays until the last who is looking at it is gone."""
        self._across.close()
