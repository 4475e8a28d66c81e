"""What a monitor is fed from, and the thread that feeds it.

A `Source` reads until its end, or until it is told to stop, and gives what it read to the monitor
with its position. What is in the ledger has its position there too; so a source that is started
again goes on exactly behind the last event that counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from bloomtide.cli.console import CommandError
from bloomtide.errors import BloomtideError
from bloomtide.monitor import Monitor
from bloomtide.records import LogReport

Stopping = Callable[[], bool]
"""Must the source stop now?"""


class Source(Protocol):
    """Where events come from."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def waiting(self) -> str:
        """What it waits for, if that is not just the next event; empty otherwise."""

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """Feeds the monitor; looks a few times a second whether to stop."""

    @property
    def problems(self) -> Sequence[CommandError]:
        """What it could not read, without ending for that."""

    def reports(self) -> list[tuple[str, LogReport]]:
        """Of each log: its name, and what became of its lines."""


class Feeder:
    """The thread of one source. A source that fails ends alone; the others go on."""

    def __init__(self, source: Source, monitor: Monitor) -> None:
        self.source = source
        self.problem: CommandError | BloomtideError | None = None
        self._monitor = monitor
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"source {source.name}", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def stop(self) -> None:
        """Takes no more events; returns when none is on its way."""
        self._stopped.set()
        if self._thread.ident is not None:  # a server that could not start has started no source
            self._thread.join()

    def wait(self, seconds: float) -> bool:
        """Whether the source has come to its end, within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def problems(self) -> list[CommandError | BloomtideError]:
        """What could not be read."""
        own = [] if self.problem is None else [self.problem]
        return [*self.source.problems, *own]

    def _run(self) -> None:
        try:
            self.source.run(self._monitor, self._stopped.is_set)
        except (CommandError, BloomtideError) as problem:
            self.problem = problem
        except OSError as problem:
            text = problem.strerror or str(problem)
            self.problem = CommandError(f"{self.source.name}: {text}", hint="is it still there?")
