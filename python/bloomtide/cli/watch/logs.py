"""Logs: files that are read once or followed, packed ones, and what comes through pipes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bloomtide.cli import console
from bloomtide.cli.console import CommandError
from bloomtide.cli.log_counts import LogCounts
from bloomtide.cli.log_files import LogFiles, expand, is_stream
from bloomtide.cli.logs import FORM, WHAT, tell_odd
from bloomtide.cli.sources import CHUNK, stdin
from bloomtide.cli.watch.source import Source, Stopping
from bloomtide.monitor import LogFeed, Monitor
from bloomtide.records import LogReport
from bloomtide.system import has_input

PAUSE = 0.2
"""Seconds between two looks at files or a pipe that are quiet."""


def log_sources(
    names: Sequence[str], *, follow: bool, options: dict[str, Any], tell: bool = False
) -> list[Source]:
    """All files together are one source, since one file may have what another one had."""
    files = [name for name in names if not is_stream(name)]
    streams: list[Source] = [Piped(name, options) for name in names if is_stream(name)]
    return streams + ([Logs(files, options, follow=follow, tell=tell)] if files else [])


def is_any_there(names: Sequence[str]) -> bool:
    """Whether there is something to read."""
    return any(
        is_stream(name) or any(Path(path).exists() for path in expand(name)) for name in names
    )


class Logs:
    """Files; with `follow` they are read on as they grow, through rotation."""

    def __init__(
        self, names: Sequence[str], options: dict[str, Any], *, follow: bool, tell: bool = False
    ) -> None:
        """With `tell`, says what was wrong with the logs that were there at the start."""
        self.name = ", ".join(names)
        self.follow = follow
        self._names = names
        self._options = options
        self._tell = tell
        self._files: LogFiles | None = None
        self._counts: LogCounts | None = None

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """Feeds the lines behind the positions that the monitor has."""
        by = self._options["by"]
        files = LogFiles(self._names, monitor.positions, by=by, follow=self.follow)
        counts = LogCounts(lambda key, words: monitor.log(source=key, **words), self._options)
        self._files, self._counts = files, counts
        try:
            while not stopping():
                came = False
                for piece in files.read():
                    came = True
                    counts.take(piece)
                    if stopping():
                        return
                if self._tell:
                    tell_odd(counts.reports(), by=by)
                    for told in (*(problem.message for problem in self.problems), self.waiting):
                        if told:
                            console.message(told)
                    self._tell = False
                if not self.follow:
                    return
                if not came:
                    time.sleep(PAUSE)
        finally:
            files.close()

    @property
    def waiting(self) -> str:
        """Files that are gone for now."""
        missing = set[str]() if self._files is None else self._files.missing
        return f"waiting for {', '.join(sorted(missing))}" if missing else ""

    def reports(self) -> list[tuple[str, LogReport]]:
        """What became of the lines of each log."""
        return [] if self._counts is None else self._counts.reports()

    @property
    def problems(self) -> Sequence[CommandError]:
        """Of the files that could not be read."""
        return [] if self._files is None else list(self._files.problems.values())


class Piped:
    """Standard input or a pipe, which has no positions: what was read is gone."""

    waiting = ""
    problems: Sequence[CommandError] = ()

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name = name
        self._options = options
        self._feed: LogFeed | None = None

    def reports(self) -> list[tuple[str, LogReport]]:
        """What became of the lines."""
        return [] if self._feed is None else [(self.name, self._feed.report())]

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """Feeds the lines until the pipe ends."""
        file = stdin(WHAT, FORM) if self.name == "-" else Path(self.name).open("rb")  # noqa: SIM115
        self._feed = feed = monitor.log(**self._options)
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
