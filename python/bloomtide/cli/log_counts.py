"""A counter for each log of `LogFiles`, made when its first lines come.

The position of a log is stored with the first line that counts, and not before: a log that was read
as another format is read anew when somebody says which one it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bloomtide import LogCounter, LogReader
from bloomtide._core import Events, count_lines
from bloomtide.cli.log_files import Piece
from bloomtide.records import LogReport


class Counter(Protocol):
    """What counts one log, and stores the position with the events."""

    def feed(self, data: bytes, position: Any = None) -> object:
        """Lines; the position is behind them."""

    def finish(self) -> object:
        """No line is held back any more."""

    def report(self) -> LogReport:
        """What became of them."""


@dataclass(slots=True)
class _Counted:
    """A log that is being counted."""

    path: str
    counter: Counter
    trial: LogCounter | None
    """Counts into nothing, to know of lines whether they count before they do; None once one
    did."""
    before: int
    """Lines of the log that were not given to the counter."""
    named: int
    """Lines that were given to it and do not come now: the one with the columns."""

    def report(self) -> LogReport:
        """What became of its lines, with their numbers in the log."""
        report, shift = self.counter.report(), self.before - self.named
        bad = tuple(replace(line, number=line.number + shift) for line in report.bad)
        return replace(report, lines=report.lines - self.named, bad=bad)


class LogCounts:
    """The counters of all logs."""

    def __init__(self, make: Callable[..., Counter], options: dict[str, Any]) -> None:
        """`make` takes the key under which the position is stored, and the options."""
        self._make = make
        self._options = options
        self._logs: dict[str, _Counted] = {}

    def take(self, piece: Piece) -> None:
        """Counts it."""
        log = piece.log
        if log.key not in self._logs:
            self._logs[log.key] = self._begin(piece)
        counted = self._logs[log.key]
        if counted.trial is not None:
            counted.trial.feed(piece.data)
            if piece.position is not None:
                counted.trial.settle()
            if counted.trial.report().counted:
                counted.trial, log.counted = None, True
        counted.counter.feed(piece.data, piece.position if log.counted else None)
        if piece.position is not None and not log.counted:
            counted.counter.finish()

    def reports(self) -> list[tuple[str, LogReport]]:
        """What became of the lines of each log."""
        return [(counted.path, counted.report()) for counted in [*self._logs.values()]]

    def _begin(self, piece: Piece) -> _Counted:
        log, options = piece.log, self._options
        if log.head and options["format"] is None and options["json_map"] is None:
            # The lines that come now may be too few, or too odd, to tell the format by.
            reader = LogReader()
            reader.feed(log.head[: log.head.rfind(b"\n") + 1])
            reader.settle()
            options = options | {"format": reader.report().format}
        counter = self._make(log.key, options)
        if log.fields:
            counter.feed(log.fields)
        before = log.lines - count_lines(piece.data)
        trial = None if log.counted else LogCounter(Events(), **options)
        return _Counted(piece.path, counter, trial, before, named=1 if log.fields else 0)
