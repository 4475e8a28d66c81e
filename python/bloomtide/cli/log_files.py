"""What is new in a set of log files, each line once: the reader of `history ingest` and `watch`.

`LogFiles.read` is one round: it finds the files that the names and patterns mean now, knows each by
its content (`positions.py`), and gives the lines behind the position of its log. A command that
ends after one round and one that follows files for months differ in the number of rounds only.

1. A position stands behind a whole line and comes with the lines before it. Whoever stores both in
   one step counts each line once, wherever it is stopped.
2. A last line without its end waits until it is complete, in packed files too: one that was packed
   amid a write says less than the log it was made of.
3. Files that are known by their inodes are read first, and those of which nobody can tell what
   they are last. So copies and packed forms are compared with all that is there.
4. A file is looked at again after it was read: one that is cut off meanwhile gives nothing of what
   it became.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bloomtide._core import count_lines
from bloomtide.cli.console import CommandError
from bloomtide.cli.logs import FORM, WHAT
from bloomtide.cli.positions import UNIT, Content, FileId, Log, Logs, Seen, file_id
from bloomtide.cli.progress import Advance
from bloomtide.cli.sources import ahead, is_packed, unpacked, unreadable

CHUNK = 1 << 18
"""Bytes that are read at once: few enough for the cache, from reading to counting."""
LOOK = 1 << 14
"""Bytes at the start of a log by which its format is found when reading begins further behind."""
GRACE = 60.0
"""Seconds in which a file may be written on after another one has taken its name."""
OPEN = 500
"""Files that stay open while they are followed; those that changed last."""
_FIELDS = b"\n#Fields:"
"""What begins the line with the columns of those behind it, in the W3C format."""


def _nothing(count: int) -> None:
    """Nobody wants to see the progress."""


class _UnsureError(Exception):
    """Which log a file belongs to may be known when the others have been read."""


@dataclass(slots=True)
class Piece:
    """Whole lines of a log; but a line longer than `CHUNK` comes in several pieces."""

    log: Log
    path: str
    """The file it comes from."""
    data: bytes
    position: dict[str, Any] | None
    """How far the log is counted with this piece; None amid a line."""


class _File:
    """An open file."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.path = path
        self.file = file
        self.packed = is_packed(path)
        self.log: Log | None = None
        self.replaced: float | None = None
        """Since when another file has its name."""

    @property
    def name(self) -> str:
        """The same from whatever directory it was named."""
        return os.path.abspath(self.path)  # noqa: PTH100 - links stay

    @property
    def status(self) -> os.stat_result:
        return os.fstat(self.file.fileno())

    def still_has(self, log: Log) -> bool:
        """Whether a log that was in this file is in it now."""
        if self.packed:
            return log.was_seen(self.status)
        return log.was_seen(self.status) or log.is_in(self.file.fileno())

    def seen(self, status: os.stat_result) -> Seen:
        """The file as it is."""
        return (*file_id(status), status.st_size, status.st_mtime_ns, self.name)

    def pieces(self, advance: Advance = _nothing, start: int = 0) -> Iterator[bytes]:
        """The content. From another start than 0 only if it is not packed."""
        if self.packed:
            self.file.seek(0)
            yield from unpacked(self.path, self.file, advance, WHAT, FORM)
            return
        advance(start)
        while piece := os.pread(self.file.fileno(), CHUNK, start):
            # The begun line is read again: sooner than put together with its rest.
            piece = piece[: piece.rfind(b"\n") + 1] or piece
            start += len(piece)
            yield piece
            advance(len(piece))


class LogFiles:
    """The files that some names and patterns mean."""

    def __init__(
        self, names: Sequence[str], positions: Mapping[str, Any], *, by: str,
        again: bool = False, follow: bool = False, advance: Advance = _nothing,
    ) -> None:  # fmt: skip
        """`positions` are those of earlier runs. With `again` each log is read from its start."""
        self.problems: dict[str, CommandError] = {}
        """Of each file that could not be read, or not to its end."""
        self.begun: set[str] = set()
        """Files whose last line has no end yet."""
        self.missing: set[str] = set()
        """Names and patterns that are followed and mean no file for now."""
        self.done_before = 0
        """Files without anything new."""
        self._names = list(names)
        self._logs = Logs(positions, by)
        self._again = set(positions) if again else set[str]()
        self._follow = follow
        self._advance = advance
        self._found: dict[FileId, str] = {}
        self._decide = False
        """Whether there are no other files any more that may tell what is in one."""
        self._open: dict[FileId, _File] = {}

    def read(self) -> Iterator[Piece]:
        """What is new since the last round."""
        absent: set[str] = set()
        found = self._found = self._find(absent)
        waiting: list[FileId] = []
        self._decide = False
        for each in sorted(found, key=lambda each: not self._logs.in_file(each)):
            try:
                yield from self._visit(each, found[each])
            except _UnsureError:
                waiting.append(each)
        self._decide = True
        for each in waiting:
            yield from self._visit(each, found[each])
        for each in self._open.keys() - found.keys():
            # Renamed to a name that is not ours, or removed.
            file = self._open[each]
            over = self._is_over(file)
            yield from self._read(file)
            if over:
                self._open.pop(each).file.close()
        gone = {each.path for each in self._open.values() if each.replaced is None}
        self.missing = absent | gone - set(found.values())

    def close(self) -> None:
        """Gives all files back."""
        for file in self._open.values():
            file.file.close()
        self._open.clear()

    # --- which files --------------------------------------------------------------------------

    def _find(self, absent: set[str]) -> dict[FileId, str]:
        """A name of each file; a hard link is no other file. Notes what is waited for."""
        found: dict[FileId, str] = {}
        for path in self._paths(absent):
            try:
                status = os.stat(path)  # noqa: PTH116 - a `Path` for each file and round is slow
            except OSError as problem:
                if self._follow:
                    absent.add(path)
                else:
                    self.problems[path] = unreadable(path, problem, WHAT, FORM)
                continue
            if stat.S_ISREG(status.st_mode):
                found.setdefault(file_id(status), path)
            else:
                odd = IsADirectoryError(None, "it is not a regular file")
                self.problems[path] = unreadable(path, odd, WHAT, FORM)
        return found

    def _paths(self, absent: set[str]) -> Iterator[str]:
        for name in self._names:
            paths = expand(name)
            yield from paths
            if not paths and self._follow:
                absent.add(name)
            elif not paths:
                self.problems[name] = no_log(name)

    def _visit(self, each: FileId, path: str) -> Iterator[Piece]:
        """What is new in a file."""
        with self._opened(each, path) as file:
            if file is not None:
                yield from self._read(file)

    @contextlib.contextmanager
    def _opened(self, each: FileId, path: str) -> Iterator[_File | None]:
        """The file, which stays open if it is followed; None if it cannot be opened."""
        file = self._open.get(each)
        if file is not None:
            file.path, file.replaced = path, None
            yield file
            return
        try:
            opened = Path(path).open("rb")  # noqa: SIM115 - stays open
        except OSError as problem:
            self.problems[path] = unreadable(path, problem, WHAT, FORM)
            yield None
            return
        file = _File(path, opened)
        if self._follow and not file.packed:
            held = self._open.setdefault(file_id(file.status), file)
            if held is not file:  # the name means another file by now
                opened.close()
            yield held
            if len(self._open) > OPEN:
                quiet = min(self._open, key=lambda each: self._open[each].status.st_mtime_ns)
                self._open.pop(quiet).file.close()
            return
        with opened:
            yield file

    def _is_over(self, file: _File) -> bool:
        """Whether nobody writes to a file any more that has lost its name."""
        if not Path(file.path).exists():
            return False
        now = time.monotonic()
        file.replaced = now if file.replaced is None else file.replaced
        return now - file.replaced >= GRACE

    # --- one file -----------------------------------------------------------------------------

    def _read(self, file: _File) -> Iterator[Piece]:
        status = file.status
        try:
            if self._is_done(status):
                self.done_before += 1
                return
            log, counted = self._identify(file, status)
            before, known = log.content.offset, log.is_known_in(status)
            if not counted:
                # Read, and unpacked, while the lines before are counted.
                with contextlib.closing(ahead(self._rest(file, log), file.path)) as pieces:
                    yield from self._lines(file, log, status, pieces)
                log.whole = True
            self._logs.see(log, file.seen(status))
            self.done_before += log.content.offset == before
            if log.content.offset and (file.packed or not known):
                # So that it is known again without being unpacked.
                yield Piece(log, file.path, b"", log.position())
            self.problems.pop(file.path, None)
        except CommandError as problem:
            self.problems[file.path] = problem
        except OSError as problem:
            self.problems[file.path] = unreadable(file.path, problem, WHAT, FORM)

    def _is_done(self, status: os.stat_result) -> bool:
        """Whether the file was read to its end and has not changed since."""
        return any(
            log.was_seen(status) and log.key not in self._again
            for log in self._logs.in_file(file_id(status))
        )

    def _identify(self, file: _File, status: os.stat_result) -> tuple[Log, bool]:
        """The log in the file, and whether all that is in the file was counted."""
        log, counted = None, False
        if not file.packed:
            here = [log for log in self._logs.in_file(file_id(status)) if log.content.offset]
            here = [log for log in here if log.is_in(file.file.fileno())]
            log = max(here, key=lambda log: log.content.offset, default=None)
        if log is None:
            damage: list[CommandError] = []
            log, counted = self._logs.find(
                _until_damage(file.pieces(), damage),
                lambda *found: self._is_part(file, status, *found),
            )
            if counted and damage:
                raise damage[0]
        if log is None:
            # Nobody knows which of its lines were counted, so it is all of it or nothing.
            log = self._logs.find_damaged(_until_damage(file.pieces(), []), status.st_size)
            if log is not None and log.key not in self._again:
                raise CommandError(
                    f"{file.path} may be the log of which {log.lines:,} lines were counted from a"
                    " damaged file: which of its lines these are cannot be known",
                    hint="--again counts all of it, these lines once more",
                )
        if log is None:
            begun = file.log is not None and not file.log.content.offset
            log = file.log if begun and file.log is not None else self._logs.add(file.name)
        elif log.key in self._again:
            log.forget()
            counted = False
        self._again.discard(log.key)
        file.log = log
        return log, counted

    def _is_part(self, file: _File, status: os.stat_result, log: Log, content: Content) -> bool:
        """Whether the file is a copy of how the log begins, and not one that was cut off."""
        if not file.packed and log.was_cut(status, file.name):
            return False
        for device, inode, _, _, name in log.files:
            path = self._found.get((device, inode), name)
            with contextlib.suppress(OSError, CommandError), Path(path).open("rb") as opened:
                other, start = _File(path, opened), Content()
                if file_id(status) == file_id(other.status) or not other.still_has(log):
                    continue
                for piece in other.pieces():
                    start.add(piece[: content.offset - start.offset])
                    if start.offset == content.offset:
                        return start.crc == content.crc
        # None of its files can be asked. The marks agree, so at least the first half is the same.
        if not self._decide:
            raise _UnsureError
        return content.offset >= UNIT

    def _lines(
        self, file: _File, log: Log, status: os.stat_result, pieces: Iterable[bytes]
    ) -> Iterator[Piece]:
        content, begun, amid = None, b"", False
        for piece in pieces:
            content = content or copy(log.content)
            begun = begun + piece if begun else piece
            cut = begun.rfind(b"\n") + 1
            if not cut and len(begun) < CHUNK:
                continue
            data, begun = (begun[:cut], begun[cut:]) if cut else (begun, b"")
            amid = not cut
            if not file.packed and not log.is_in(file.file.fileno()):
                return
            content.add(data)
            if cut:
                log.move(content)
                log.whole = not file.packed
                log.lines += count_lines(data)
                # Without a time, since it was not read to its end.
                size = status.st_size if file.packed else content.offset
                self._logs.see(log, (*file_id(status), size, 0, file.name))
            yield Piece(log, file.path, data, log.position() if cut else None)
        if begun or amid:
            self.begun.add(file.path)
        else:
            self.begun.discard(file.path)

    def _rest(self, file: _File, log: Log) -> Iterator[bytes]:
        """What is behind the position. Notes of what is before it how it begins, and its columns:
        who counts the rest must know the format."""
        start = log.content.offset
        if start and not file.packed:
            handle = file.file.fileno()
            log.head = os.pread(handle, min(LOOK, start), 0)
            log.content.end = os.pread(handle, min(UNIT, start), max(start - UNIT, 0))
            if not log.head.startswith(b"#") or log.fields:
                yield from file.pieces(self._advance, start)
                return
        log.head, before = b"", b"\n"
        for piece in file.pieces(self._advance):
            if start:
                part, piece = piece[:start], piece[start:]
                start -= len(part)
                log.head += part[: LOOK - len(log.head)]
                before += part
                if (at := before.rfind(_FIELDS)) >= 0 and b"\n" in before[at + 1 :]:
                    log.fields = before[at + 1 :].partition(b"\n")[0] + b"\n"
                before = before[-LOOK:]
                log.content.end = before[-min(UNIT, log.content.offset) :]
            if piece:
                yield piece


def _until_damage(pieces: Iterator[bytes], damage: list[CommandError]) -> Iterator[bytes]:
    try:
        yield from pieces
    except CommandError as problem:
        damage.append(problem)


def is_stream(name: str) -> bool:
    """Whether it is stdin or a pipe: what was read of it cannot be read again."""
    path = Path(name)
    return name == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def expand(name: str) -> list[str]:
    """The files that a name or a pattern means; a file may be called like a pattern."""
    is_name = not glob.has_magic(name) or Path(name).exists()
    return [name] if is_name else sorted(glob.glob(name, recursive=True))  # noqa: PTH207


def no_log(name: str) -> CommandError:
    """A name that means nothing."""
    hint = "name a log, a pattern in quotes, or `-` for stdin"
    return CommandError(f"there is no log {name}", hint=hint)
