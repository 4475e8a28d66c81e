"""The same hour of traffic for all tests of the server, and what must be counted of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomtide.monitor import Monitor

START = 1_767_225_600.0
"""The first of January 2026."""
NOW = START + 3600.0
PAGES = 40


def traffic() -> tuple[list[str], list[float]]:
    """Page i comes 120/(i+1) times, evenly over the hour; `/late` only in its last ten minutes."""
    keys, times = [], []
    for page in range(PAGES):
        for hit in range(120 // (page + 1)):
            keys.append(f"/page/{page}")
            times.append(START + 3600.0 * (hit + 0.5) / (120 // (page + 1)))
    keys += ["/late"] * 50
    times += [START + 3000.0 + 12 * i for i in range(50)]
    order = sorted(range(len(keys)), key=lambda i: times[i])
    return [keys[i] for i in order], [times[i] for i in order]


EVENTS = len(traffic()[0])


@contextmanager
def open_monitor(
    path: Path | None, *, filled: bool = True, clock: float = NOW
) -> Iterator[Monitor]:
    """A monitor whose clock stands still, at the end of the hour if nothing else is said."""
    with Monitor.open(path, capacity=10_000, clock=lambda: clock) as monitor:
        if filled:
            keys, times = traffic()
            monitor.add_many(keys, at=times)
        yield monitor
