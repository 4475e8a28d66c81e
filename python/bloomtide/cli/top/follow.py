"""A file that grows, followed as `tail -F` does: by name, through rotation and truncation.

`poll` never waits. Who calls it decides how often to look, and what happens meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bloomtide.cli.console import CommandError
from bloomtide.cli.sources import CHUNK

HEAD = 1024
"""Bytes at the begin of a file by which it is known again."""


class Follower:
    """What is new in a file since it was last looked at."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.gone = False
        self.head = b""
        try:
            self.file: BinaryIO = self.path.open("rb", buffering=0)
        except OSError as problem:
            raise CommandError(
                f"cannot read a log from {path}: {problem.strerror or problem}",
                hint="name a log file, or `-` for stdin",
            ) from None

    def poll(self) -> Iterator[bytes | None]:
        """The bytes that came; None where another file begins and the begun line will not end."""
        if self._was_cut():
            # Truncated, as `copytruncate` does: what is in it now is new.
            self.file.seek(0)
            self.head = b""
            yield None
        yield from self._rest()
        replacement = self._replacement()
        if replacement is not None:
            yield from self._rest()  # the last lines before the rename may be quite new
            self.file.close()
            self.file, self.head = replacement, b""
            yield None
            yield from self._rest()

    def resume(self, offset: int) -> int:
        """Goes on behind so many bytes, which were read before; answers how many they are."""
        self.head = self.file.read(min(HEAD, offset))
        return self.file.seek(offset)

    def close(self) -> None:
        """Stop following."""
        self.file.close()

    def _rest(self) -> Iterator[bytes]:
        while chunk := self.file.read(CHUNK):
            # It is read in order, so as long as the head is short this is what follows it.
            self.head += chunk[: HEAD - len(self.head)]
            yield chunk

    def _was_cut(self) -> bool:
        """Whether the file is shorter now, or begins otherwise: cut, and grown again since."""
        place = self.file.tell()
        if os.fstat(self.file.fileno()).st_size < place:
            return True
        self.file.seek(0)
        head = self.file.read(len(self.head))
        self.file.seek(place)
        return head != self.head

    def _replacement(self) -> BinaryIO | None:
        """The file that has the name now, if it is another one; for a while none may have it."""
        try:
            if os.path.samestat(self.path.stat(), os.fstat(self.file.fileno())):
                self.gone = False
                return None
            opened: BinaryIO = self.path.open("rb", buffering=0)
        except OSError:
            self.gone = True
            return None
        self.gone = False
        return opened
