"""How far a log was counted, in a form that finds the same log again under any name.

A log is what is in it. Rotation renames it, compresses it, copies it or cuts it off, and none of
that changes which of its lines were counted. So a position says how many bytes of the content,
unpacked and in whole lines, were counted, and by which checksums that content is known:

    marks    of its first 1, 2, 4, 8, ... KiB: two logs differ at the first of them, mostly
    crc      of all that was counted
    tail     of the last KiB of that: shows at once whether a file known by its inode was cut off
    files    where it was: device, inode, size, time and name of the files when they were read
    whole    false from the first lines of a packed file to its end: only there its checksum says
             whether these were its lines

It says of how many lines that was, too, so that a line can be told by its number in the log.

1. A file that begins with all that was counted of a log is that log. It goes on behind that.
2. A file that ends earlier, and equals the log as far as it goes, was counted (`find`).
3. Any other file is a log of its own, also if some of its first lines are the same; but one that
   may be the sound form of a damaged one that was counted in part is refused (`find_damaged`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Self

from bloomtide._core import crc32c

UNIT = 1024
"""Bytes of the first mark, and of the tail."""
_FILES = 8
"""Files that a log is known to be in: the last ones."""

FileId = tuple[int, int]
"""Device and inode."""
Seen = tuple[int, int, int, int, str]
"""A file as it was: device, inode, size, time of its last change in nanoseconds, and its name."""


class Content:
    """The checksums of content that comes piece by piece."""

    __slots__ = ("crc", "end", "marks", "offset")

    def __init__(self) -> None:
        self.offset = 0
        self.crc = 0
        self.marks: tuple[int, ...] = ()
        self.end = b""
        """The last KiB."""

    def add(self, data: bytes | memoryview) -> None:
        """More content."""
        rest = memoryview(data)
        while rest:
            edge = UNIT << len(self.marks)
            part = rest[: edge - self.offset]
            self.crc = crc32c(part, self.crc)
            self.offset += len(part)
            if self.offset == edge:
                self.marks += (self.crc,)
            rest = rest[len(part) :]
        self.end = (self.end + bytes(data[-UNIT:]))[-UNIT:]


class Log:
    """One log, and how far it was counted."""

    def __init__(self, key: str, by: str) -> None:
        """Nothing of it was counted. `key` is its own; `by` is the field that is counted."""
        self.key = key
        self.by = by
        self.content = Content()
        self.tail = 0
        self.lines = 0
        self.files: list[Seen] = []
        self.whole = True
        self.counted = False
        """Whether a line of it ever was; a log that was misunderstood is none that was read."""
        self.head = b""
        """How it begins, once it was read on from another place; not a part of the position."""
        self.fields = b""
        """The line that named its columns last before that place, if it has such lines."""

    @classmethod
    def restored(cls, key: str, position: Mapping[str, Any]) -> Self:
        """From what `position` gave."""
        log = cls(key, position["by"])
        log.content.offset, log.content.crc = position["offset"], position["crc"]
        log.content.marks = tuple(position["marks"])
        log.tail, log.lines, log.counted = position["tail"], position["lines"], True
        log.whole = position["whole"]
        log.files = [tuple(seen) for seen in position["files"]]
        return log

    def position(self) -> dict[str, Any]:
        """As plain values for JSON."""
        content = self.content
        return {
            "by": self.by, "offset": content.offset, "crc": content.crc, "marks": content.marks,
            "tail": self.tail, "lines": self.lines, "files": self.files, "whole": self.whole,
        }  # fmt: skip

    def move(self, content: Content) -> None:
        """Everything up to there is counted."""
        self.content = copy(content)
        self.tail = crc32c(content.end)

    def forget(self) -> None:
        """Nothing of it was counted."""
        self.content, self.tail, self.lines, self.files = Content(), 0, 0, []
        self.whole = True

    def is_known_in(self, status: os.stat_result) -> bool:
        """Whether it was in this file once."""
        return any(seen[:2] == file_id(status) for seen in self.files)

    def was_seen(self, status: os.stat_result) -> bool:
        """Whether it was in this file, which has not changed since."""
        as_it_is = (*file_id(status), status.st_size, status.st_mtime_ns)
        return any(seen[:4] == as_it_is for seen in self.files)

    def was_cut(self, status: os.stat_result, name: str) -> bool:
        """Whether the file was longer then: what is in it now is new. Of another name it may be
        another file, since inodes are used again."""
        return any(
            (*seen[:2], seen[4]) == (*file_id(status), name) and seen[2] > status.st_size
            for seen in self.files
        )

    def is_in(self, handle: int) -> bool:
        """Whether a file that had the log still begins with what was counted, by the first KiB
        and the last one before the offset."""
        offset, marks = self.content.offset, self.content.marks
        head = os.pread(handle, min(UNIT, offset), 0)
        end = os.pread(handle, min(UNIT, offset), max(offset - UNIT, 0))
        if offset > os.fstat(handle).st_size or crc32c(end) != self.tail:
            return False
        return crc32c(head) == (marks[0] if marks else self.content.crc)


class Logs:
    """All logs that are known."""

    def __init__(self, positions: Mapping[str, Any], by: str) -> None:
        """`positions` as `Log.position` gave them; other sources are passed over."""
        self._keys = set(positions)
        self._by = by
        known = [
            Log.restored(key, position)
            for key, position in positions.items()
            if isinstance(position, dict) and "crc" in position
        ]
        self._logs = [log for log in known if log.by == by]
        self._in_file: dict[FileId, list[Log]] = {}
        for log in self._logs:
            for device, inode, *_ in log.files:
                self._in_file.setdefault((device, inode), []).append(log)

    def add(self, name: str) -> Log:
        """A new one."""
        key, number = name, 1
        while key in self._keys:
            number += 1
            key = f"{name} {number}"
        self._keys.add(key)
        log = Log(key, self._by)
        self._logs.append(log)
        return log

    def in_file(self, file: FileId) -> list[Log]:
        """Those that were in this file once, whatever is in it now."""
        return self._in_file.get(file, [])

    def see(self, log: Log, seen: Seen) -> None:
        """The log is in this file, and was read when the file was like that."""
        file = seen[:2]
        others = [other for other in log.files if other[:2] != file]
        log.files = [*others, seen][-_FILES:]
        known = self._in_file.setdefault(file, [])
        if log not in known:
            known.append(log)

    def find_damaged(self, pieces: Iterable[bytes], size: int) -> Log | None:
        """A log that was not read to the sound end of a packed file, if this content, of a file of
        that size, may be what it was before the damage."""
        parts = [log for log in self._logs if not log.whole]
        start = b""
        for piece in pieces if parts else ():
            start += piece[: UNIT - len(start)]
            if len(start) == UNIT:
                break
        content = Content()
        content.add(start)
        for log in parts:
            begins_so = log.content.marks[:1] == content.marks != ()
            if begins_so or any(seen[2] == size for seen in log.files):
                return log
        return None

    def find(
        self, pieces: Iterable[bytes], is_part: Callable[[Log, Content], bool]
    ) -> tuple[Log | None, bool]:
        """The log that this content belongs to, and whether all of it was counted.

        `is_part(log, content)` says of content that ends before what was counted, and agrees with
        the marks so far, whether it is a part of that log. A file that is damaged ends there.
        """
        left = [log for log in self._logs if log.content.offset]
        found: Log | None = None
        content = Content()
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                if not left:
                    return found, False
                mark = UNIT << len(content.marks)
                edge = min(mark, *(log.content.offset for log in left))
                part = rest[: edge - content.offset]
                content.add(part)
                rest = rest[len(part) :]
                if content.offset == mark:
                    at = len(content.marks) - 1
                    left = [
                        log
                        for log in left
                        if len(log.content.marks) <= at or log.content.marks[at] == content.crc
                    ]
                ends = [log for log in left if log.content.offset == content.offset]
                left = [log for log in left if log.content.offset > content.offset]
                found = next((log for log in ends if log.content.crc == content.crc), found)
        if content.offset:
            for log in left:
                if is_part(log, content):
                    return log, True
        return found, False


def file_id(status: os.stat_result) -> FileId:
    """Which file it is, as long as it is there."""
    return status.st_dev, status.st_ino
