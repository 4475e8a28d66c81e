"""`bloomtide history ingest`: logs into a store, a line never becoming a Python object.

The logs themselves are the journal: what was read since the last commit is read again after a kill.
A commit has the events and how far each log was read in one transaction, so each line counts once.
Only what comes through a pipe cannot be read again, and goes through the store's own journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bloomtide import LogCounter
from bloomtide.cli import console
from bloomtide.cli.history import options
from bloomtide.cli.log_counts import LogCounts
from bloomtide.cli.log_files import LogFiles, is_stream
from bloomtide.cli.logs import FORM, WHAT, finish
from bloomtide.cli.options import (
    as_json,
    by_field,
    choice,
    error_rate,
    flag,
    json_map,
    log_files,
    no_query,
    option,
)
from bloomtide.cli.progress import Advance, reading
from bloomtide.cli.quantities import show_bytes, show_count
from bloomtide.cli.sources import chunks
from bloomtide.cli.stop import Stop, StoppedError, undisturbed
from bloomtide.durable.policy import SYNCS, Sync
from bloomtide.records import LogReport

if TYPE_CHECKING:
    from bloomtide.history import History, HistoryStats

COMMIT = 10.0
"""Seconds of reading after which what was read is committed, if sealing has not done it."""


class Counter:
    """One log on its way into the store's buffer."""

    def __init__(self, history: History, source: str | None, options: dict[str, Any]) -> None:
        self._history = history
        self._source = source
        self._counter = history.feed(lambda buffer: LogCounter(buffer, **options))

    def feed(self, data: bytes, position: Any = None) -> None:
        """Counts the lines that end in these bytes; with a position no line is held back."""

        def work(_: object) -> None:
            self._counter.feed(data)
            if position is not None:
                self._counter.settle()

        self._history.feed(work, source=self._source, position=position)

    def finish(self) -> None:
        """The log has ended."""
        self._history.feed(lambda _: self._counter.finish(), source=self._source)

    def report(self) -> LogReport:
        """What became of its lines."""
        return self._counter.report()


@click.command()
@options.store
@log_files
@by_field
@option("--window", metavar="TIME", help="Of a new store: what one row spans; 1m if not given.")
@error_rate
@option(
    "--retention",
    metavar="RULES",
    help='How long rows are kept: "1m for 1d, 1h for 30d, 1d for 10y".',
)
@option("--lateness", metavar="TIME", help="How long rows wait for late lines; 0s.")
@choice(
    "--sync",
    of=SYNCS,
    metavar="WHEN",
    help="When a line is safe from a power cut: always, everysec (default) or no.",
)
@option(
    "--format",
    metavar="FORMAT",
    help="As `bloomtide top` has it; if not given, found from the first lines.",
)
@json_map
@no_query
@flag("--again", help="Count the logs from their start, also if they were counted before.")
@as_json
def ingest(
    store: Path,
    files: tuple[str, ...],
    by: str,
    window: str | None,
    error: float | None,
    retention: str | None,
    lateness: str | None,
    sync: Sync | None,
    format: str | None,
    json_map: str | None,
    no_query: bool,
    again: bool,
    json: bool,
) -> int:
    """Count logs by time into a store, which is made if it is not there.

    Logs may come in any order: each line counts at its own time, and once, however often its log
    is named, also after it was renamed or compressed. Lines that are not understood are counted,
    and the first are shown.
    """
    settings = {
        "window": window, "error_rate": error, "retention": retention, "lateness": lateness,
        "sync": sync,
    }  # fmt: skip
    words = {"by": by, "query": not no_query, "format": format, "json_map": json_map}
    run = Run(store, settings, words)
    names = list(files) or ["-"]
    streams = [name for name in names if is_stream(name)]
    logs = [name for name in names if name not in streams]
    begun = time.perf_counter()
    with run.stop.listening(), reading(names, what="logs") as advance:
        try:
            if logs:
                run.read_files(logs, again, advance)
            if streams and not run.stopped:
                run.read_streams(streams, advance)
        except StoppedError:  # while nothing was read
            run.stopped = True
    return run.tell(json, time.perf_counter() - begun)


class Run:
    """One run of the command."""

    def __init__(self, store: Path, settings: dict[str, Any], words: dict[str, Any]) -> None:
        self.stop = Stop()
        self.stopped = False
        self._store = store
        self._settings = settings
        self._words = words
        self._reports: list[tuple[str, LogReport]] = []
        self._problems: list[console.CommandError] = []
        self._begun: list[str] = []
        self._known = 0
        """Files without anything new."""
        self._stats: HistoryStats | None = None

    def read_files(self, names: Sequence[str], again: bool, advance: Advance) -> None:
        """Counts what is new in these logs."""
        with self._open(keep=lambda: None) as history:
            files = LogFiles(
                names, history.positions, by=self._words["by"], again=again, advance=advance
            )
            counts = LogCounts(lambda *made: Counter(history, *made), self._words)
            committed = time.monotonic()
            try:
                for piece in files.read():
                    with self.stop.in_hand():
                        counts.take(piece)
                        if time.monotonic() - committed > COMMIT:
                            history.checkpoint()
                            committed = time.monotonic()
            except StoppedError as stopped:
                self.stopped = True
                if not stopped.orderly:
                    return
            finally:
                self._reports += counts.reports()
                self._problems += files.problems.values()
                self._begun, self._known = sorted(files.begun), files.done_before
            with undisturbed():
                history.checkpoint(seal=not self.stopped)

    def read_streams(self, names: Sequence[str], advance: Advance) -> None:
        """Counts what comes from stdin and from pipes, until they end."""
        with self._open() as history:
            for name in names:
                counter = Counter(history, None, self._words)
                try:
                    for chunk in chunks(name, advance, WHAT, FORM):
                        with self.stop.in_hand():
                            counter.feed(chunk)
                except console.CommandError as problem:
                    # What was read of a damaged file counts, and the others are read as well.
                    self._problems.append(problem)
                except StoppedError:
                    self.stopped = True
                with undisturbed():
                    counter.finish()
                    history.flush()
                self._reports.append((name, counter.report()))
                if self.stopped:
                    return

    @contextmanager
    def _open(self, **words: Any) -> Iterator[History]:
        from bloomtide.history import History

        history = History.open(self._store, **self._settings, **words)
        try:
            yield history
            try:
                if not self.stopped:
                    with self.stop.in_hand():
                        history.compact()
            except StoppedError:
                self.stopped = True
            self._stats = history.stats()
        finally:
            with undisturbed():
                history.close()

    def tell(self, json: bool, seconds: float) -> int:
        """Writes what was done; answers the exit code."""
        names, reports = [name for name, _ in self._reports], [each for _, each in self._reports]
        counted, stats = sum(report.counted for report in reports), self._stats
        if json:
            told = {
                "lines": sum(report.lines for report in reports),
                "counted": counted,
                "skipped": sum(report.skipped for report in reports),
                "without_field": sum(report.without for report in reports),
                "seconds": seconds,
                "store": None if stats is None else stats.as_dict(),
            }
            console.write_json(told)
        elif counted and stats is not None:
            rate = show_count(counted / max(seconds, 1e-9))
            console.message(
                f"{show_count(counted)} lines counted, {rate} a second; the store holds"
                f" {show_count(stats.events)} events in"
                f" {show_bytes(stats.bytes + stats.journal_bytes)}"
            )
        for name in self._begun:
            console.message(f"{name}: the last line has no end yet, and counts when it has one")
        fresh = any(report.lines for report in reports)
        if self._known and not (fresh or self._problems or self.stopped):
            console.message("nothing new: these logs were read before; --again counts them again")
            return 0
        by = self._words["by"]
        return finish(names, reports, self._problems, by=by, interrupted=self.stopped)
