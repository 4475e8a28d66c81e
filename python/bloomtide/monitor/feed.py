"""`LogFeed`: lines of a log into a monitor, without Python for a line.

A chunk of bytes becomes a block of events, which goes to the ledger and then into every structure.
With each chunk may come a position: how far its source was read. It is in the same record as the
events, so after a crash `Monitor.positions` says exactly which bytes count already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bloomtide._core import Events, LogCounter
from bloomtide.records import Applied, LogReport

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bloomtide.monitor.monitor import Monitor


class LogFeed:
    """One log that goes into a monitor. Made by `Monitor.log`."""

    def __init__(self, monitor: Monitor, source: str | None, options: dict[str, Any]) -> None:
        self.source = source
        self._monitor = monitor
        self._events: Events = monitor.events()
        self._counter = LogCounter(self._events, **options)
        self._lock = threading.Lock()

    def feed(self, data: Buffer, position: Any = None) -> int:
        """Counts the lines that end in these bytes; how many keys were new.

        `position` is anything that JSON can hold, and stands behind a whole line. With it no line
        is held back: the format is found by the lines that are there. It is kept also if these
        bytes have no event.
        """

        def work(now: float) -> None:
            self._counter.feed(data, now)
            if position is not None:
                self._counter.settle(now)

        return self._run(work, position)

    def settle(self, position: Any = None) -> int:
        """Finds the format by the lines held back so far, and counts them."""
        return self._run(self._counter.settle, position)

    def finish(self, position: Any = None) -> int:
        """Counts a last line without a line end. Another log of the same format may follow."""
        return self._run(self._counter.finish, position)

    def report(self) -> LogReport:
        """What became of the lines so far."""
        return self._counter.report()

    @property
    def refused(self) -> int:
        """Lines whose key no structure takes: with `seen="url"` those that are no URL."""
        return self._events.refused

    def _run(self, work: Callable[[float], None], position: Any) -> int:
        with self._lock:
            work(self._monitor.arrival())
            applied: Applied | None = self._monitor.take(self._events, self.source, position)
            return 0 if applied is None else applied.new
