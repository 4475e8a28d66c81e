"""A site that does not exist: traffic for who wants to see a monitor work.

A new monitor gets the last minutes first, so that there is a past to look at. They are fed by a
clock that runs through these minutes, and so look as if the monitor had been there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from bloomtide.cli.console import CommandError
from bloomtide.cli.watch.source import Stopping
from bloomtide.monitor import Monitor
from bloomtide.records import LogReport
from bloomtide.stream import Traffic

PAST = 900
"""Seconds of the past."""
TICKS = 5
"""Parts of a second in which visits come."""


class DemoClock:
    """The machine's clock, but for the time in which the past is made."""

    def __init__(self) -> None:
        self.told: float | None = None

    def __call__(self) -> float:
        return time.time() if self.told is None else self.told


class Demo:
    """The visits of such a site, as they come."""

    name = "demo"
    waiting = ""
    problems: Sequence[CommandError] = ()

    def __init__(self, clock: DemoClock, per_second: int = 1000) -> None:
        self._clock = clock
        self._traffic = Traffic(seed=int(time.time()), per_second=per_second)

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """The past, if there is none yet; then every second its visits."""
        if monitor.stats().events == 0:
            self._make_past(monitor, stopping)
        second = int(time.time())
        while not stopping():
            keys, times = self._traffic.second(second)
            share = -(-len(keys) // TICKS)
            for tick in range(TICKS):
                part = slice(tick * share, (tick + 1) * share)
                # What happens later in this second has not happened yet.
                monitor.add_many(keys[part], at=times[part].clip(max=time.time()))
                time.sleep(max(second + (tick + 1) / TICKS - time.time(), 0))
                if stopping():
                    return
            second = max(second + 1, int(time.time()))

    def reports(self) -> list[tuple[str, LogReport]]:
        """Nothing is read."""
        return []

    def _make_past(self, monitor: Monitor, stopping: Stopping) -> None:
        now = int(time.time())
        try:
            for second in range(now - PAST, now):
                if stopping():
                    return
                self._clock.told = second + 1.0
                keys, times = self._traffic.second(second)
                monitor.add_many(keys, at=times)
        finally:
            self._clock.told = None
