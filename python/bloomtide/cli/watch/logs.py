"""Logs: files that are read once or followed, packed ones, and stdin.

A position is how many bytes of a file were read as whole lines, and the digest of how it begins: a
file of the same name that begins otherwise is another one, and read from its start.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bloomtide.cli.console import CommandError
from bloomtide.cli.logs import FORM, WHAT
from bloomtide.cli.sources import CHUNK, chunks, is_packed, stdin
from bloomtide.cli.top.follow import HEAD, Follower
from bloomtide.cli.watch.source import Source, Stopping
from bloomtide.monitor import LogFeed, Monitor
from bloomtide.records import LogReport
from bloomtide.system import has_input

PAUSE = 0.2
"""Seconds between two looks at a file or pipe that is quiet."""


def log_sources(names: list[str], *, follow: bool, options: dict[str, Any]) -> list[Source]:
    """A source for each file that the names and patterns mean."""
    found: list[Source] = []
    for name in names:
        if name == "-":
            found.append(Piped(options))
            continue
        # A file may be called like a pattern.
        matches = [name] if Path(name).exists() else sorted(glob.glob(name, recursive=True))  # noqa: PTH207
        if not matches:
            raise CommandError(
                f"there is no log {name}", hint="name a log, a pattern in quotes, or `-` for stdin"
            )
        found += [Log(match, options, follow=follow and not is_packed(match)) for match in matches]
    return found


class _Lines:
    """What all logs have: a feed, made when it is known where the lines go."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name = name
        self.waiting = ""
        self._options = options
        self._feed: LogFeed | None = None

    def report(self) -> LogReport | None:
        """What became of the lines."""
        return None if self._feed is None else self._feed.report()

    def _open(self, monitor: Monitor, source: str | None) -> LogFeed:
        self._feed = monitor.log(source=source, **self._options)
        return self._feed


class Log(_Lines):
    """A file; with `follow` it is read on as it grows, through rotation."""

    def __init__(self, path: str, options: dict[str, Any], *, follow: bool) -> None:
        super().__init__(path, options)
        self.follow = follow
        self.key = str(Path(path).resolve())
        """The name under which its position is kept."""

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """Feeds the lines behind the position that the monitor has."""
        feed = self._open(monitor, self.key)
        known = monitor.positions.get(self.key)
        if is_packed(self.name):
            self._read_packed(feed, known, stopping)
        else:
            self._read_plain(feed, known, stopping)

    def _read_packed(self, feed: LogFeed, known: Any, stopping: Stopping) -> None:
        with Path(self.name).open("rb") as file:
            head = file.read(HEAD)
        rest, done = b"", known["offset"] if _is_same(known, head) else 0
        for piece in _behind(chunks(self.name, lambda count: None, WHAT, FORM), done):
            rest, done = self._take(feed, head, rest + piece, done)
            if stopping():
                return
        feed.feed(rest)
        feed.finish(_position(head, done + len(rest)))

    def _read_plain(self, feed: LogFeed, known: Any, stopping: Stopping) -> None:
        follower = Follower(self.name)
        done = follower.resume(known["offset"]) if self._is_known(known) else 0
        rest = b""
        try:
            while not stopping():
                came = False
                for piece in follower.poll():
                    came = True
                    if piece is None:  # another file begins, and the begun line will not end
                        feed.feed(rest)
                        feed.finish()
                        rest, done = b"", 0
                        continue
                    rest, done = self._take(feed, follower.head, rest + piece, done)
                    if stopping():
                        return
                self.waiting = f"waiting for {self.name} to come back" if follower.gone else ""
                if not self.follow:
                    feed.feed(rest)
                    feed.finish(_position(follower.head, done + len(rest)))
                    return
                if not came:
                    time.sleep(PAUSE)
        finally:
            follower.close()

    @staticmethod
    def _take(feed: LogFeed, head: bytes, data: bytes, done: int) -> tuple[bytes, int]:
        """Feeds the whole lines; what is left of the data, and how much of the file is read."""
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) >= CHUNK:
            cut = len(data)  # a line so long is none, whichever part of it is seen
        if cut:
            done += cut
            feed.feed(data[:cut], _position(head, done))
        return data[cut:], done

    def _is_known(self, known: Any) -> bool:
        with Path(self.name).open("rb") as file:
            head = file.read(HEAD)
        return _is_same(known, head) and Path(self.name).stat().st_size >= known["offset"]


class Piped(_Lines):
    """Standard input, which has no positions: what was read is gone."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__("-", options)

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """Feeds the lines until the pipe ends."""
        feed = self._open(monitor, None)
        file = stdin(WHAT, FORM)
        try:
            descriptor = file.fileno()
        except OSError:  # replaced by something that is only in memory
            while chunk := file.read(CHUNK):
                feed.feed(chunk)
            feed.finish()
            return
        while not stopping():
            if not has_input(descriptor, PAUSE):
                feed.settle()
            elif chunk := os.read(descriptor, CHUNK):
                feed.feed(chunk)
            else:
                break
        feed.finish()


def _behind(pieces: Iterable[bytes], done: int) -> Iterator[bytes]:
    """What follows the first so many bytes."""
    for piece in pieces:
        if done < len(piece):
            yield piece[done:]
        done = max(done - len(piece), 0)


def _position(head: bytes, offset: int) -> dict[str, Any]:
    return {"offset": offset, "head": _digest(head), "size": len(head)}


def _is_same(known: Any, head: bytes) -> bool:
    """Whether a file that begins so is the one that was read."""
    return (
        isinstance(known, dict)
        and len(head) >= known["size"]
        and _digest(head[: known["size"]]) == known["head"]
    )


def _digest(head: bytes) -> str:
    return blake2b(head, digest_size=8).hexdigest()
