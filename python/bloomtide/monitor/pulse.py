"""A ring of the last five minutes, by second: events that came, and how many were new."""

from __future__ import annotations

from bloomtide.monitor.records import Pulse

SECONDS = 300
"""How far back it goes."""
RATE = 10
"""Seconds that a rate is taken over."""


class PulseRing:
    """Numbers of the last seconds. Whoever changes it holds the monitor's lock."""

    def __init__(self) -> None:
        self._last = 0
        self._events = [0] * SECONDS
        self._new = [0] * SECONDS

    def add(self, second: int, events: int, new: int) -> None:
        """What came in a second; one that is over already keeps its numbers while it is here."""
        self._move(second)
        if second > self._last - SECONDS:
            self._events[second % SECONDS] += events
            self._new[second % SECONDS] += new

    def read(self, second: int) -> Pulse:
        """The seconds up to this one."""
        self._move(second)
        start = self._last - SECONDS + 1
        order = [(start + i) % SECONDS for i in range(SECONDS)]
        return Pulse(
            start=start,
            events=tuple(self._events[i] for i in order),
            new=tuple(self._new[i] for i in order),
        )

    def rate(self, second: int) -> float:
        """Events a second, over the last whole seconds."""
        self._move(second)
        return sum(self._events[(self._last - i) % SECONDS] for i in range(1, RATE + 1)) / RATE

    def _move(self, second: int) -> None:
        """Forgets what is too old. A clock that goes back moves nothing."""
        for passed in range(max(self._last + 1, second - SECONDS + 1), second + 1):
            self._events[passed % SECONDS] = 0
            self._new[passed % SECONDS] = 0
        self._last = max(self._last, second)
