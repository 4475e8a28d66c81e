"""A counter for each log of `LogFiles`, made when its first lines come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bloomtide import LogReader
from bloomtide.cli.log_files import Piece
from bloomtide.cli.positions import Log
from bloomtide.records import LogReport


class Counter(Protocol):
    """What counts one log, and stores the position with the events."""

    def feed(self, data: bytes, position: Any = None) -> object:
        """Lines; the position is behind them."""

    def report(self) -> LogReport:
        """What became of them."""


class LogCounts:
    """The counters of all logs."""

    def __init__(self, make: Callable[..., Counter], options: dict[str, Any]) -> None:
        """`make` takes the key under which the position is stored, and the options."""
        self._make = make
        self._options = options
        self._counters: dict[str, tuple[str, Counter]] = {}

    def take(self, piece: Piece) -> None:
        """Counts it."""
        log = piece.log
        if log.key not in self._counters:
            self._counters[log.key] = piece.path, self._begin(log)
        _, counter = self._counters[log.key]
        counter.feed(piece.data, piece.position)

    def reports(self) -> list[tuple[str, LogReport]]:
        """What became of the lines of each log."""
        return [(name, counter.report()) for name, counter in [*self._counters.values()]]

    def _begin(self, log: Log) -> Counter:
        options = self._options
        if log.head and options["format"] is None and options["json_map"] is None:
            # The lines that come now may be too few, or too odd, to tell the format by.
            reader = LogReader()
            reader.feed(log.head[: log.head.rfind(b"\n") + 1])
            reader.settle()
            options = options | {"format": reader.report().format}
        counter = self._make(log.key, options)
        if log.fields:
            counter.feed(log.fields)
        return counter
