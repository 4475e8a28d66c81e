"""Threads that keep a guard up with writers it cannot see: `Repeated` work, and `Freshness`.

A filter that is not told of a commit is wrong from then on. Whoever relies on being told later, by
a change table or by the next rebuild, promises a bound: no answer is older than that. `Freshness`
keeps the promise when the work that should renew it fails, hangs or dies: it lets everything pass
when the time is up, and trusts the filter again when the work has succeeded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Protocol

from bloomtide.guard.notify import Alarm

log = logging.getLogger("bloomtide.guard")

_LOOK = 0.1
"""Seconds between two looks at what another process may change."""
_LEAST = 0.02
"""Seconds between two runs, however often somebody calls."""


class Pausable(Protocol):
    """Keys that can be told to let everything pass."""

    fresh_until: float
    """On the monotonic clock; infinite if it needs no renewal."""

    def pause(self, reason: str) -> None: ...
    def resume(self) -> None: ...


class Freshness:
    """Pauses the keys while they are older than promised; that is, at first."""

    def __init__(
        self, keys: Pausable, reason: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._keys = keys
        self._reason = reason
        self._alarm = Alarm()
        self._lock = threading.Lock()
        self._paused = False
        self._closed = False
        if keys.fresh_until == inf:  # another process may have renewed it
            keys.fresh_until = 0.0
        self._compare()
        self._thread = threading.Thread(target=self._run, name="bloomtide freshness", daemon=True)
        self._thread.start()

    def renew(self, until: float) -> None:
        """The work has succeeded: answers may be given until then."""
        self._keys.fresh_until = max(until, self._keys.fresh_until)
        self._compare()

    def _compare(self) -> float:
        """Pauses or resumes if it is time to; how long that is right at most."""
        with self._lock:
            left = self._keys.fresh_until - self._clock()
            if (left <= 0) != self._paused:
                self._paused = left <= 0
                if self._paused:
                    self._keys.pause(self._reason)
                else:
                    self._keys.resume()
            # While it is paused, another process may be the one that renews.
            return min(left, 1.0) if left > 0 else _LOOK

    def _run(self) -> None:
        while not self._closed:
            self._alarm.wait(self._compare())

    def close(self) -> None:
        self._closed = True
        self._alarm.ring()
        self._thread.join()
        self._alarm.close()


class Repeated:
    """Runs `work` at once, then every so often and whenever its alarm rings, in a thread."""

    def __init__(
        self, name: str, work: Callable[[], object], every: float, alarm: Alarm | None = None
    ) -> None:
        self._work = work
        self._every = every
        self._alarm = alarm or Alarm()
        self._closed = False
        self.failures = 0
        """In a row."""
        self.runs = 0
        self._thread = threading.Thread(target=self._run, name=f"bloomtide {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ring(self) -> None:
        """Run now."""
        self._alarm.ring()

    def _run(self) -> None:
        while not self._closed:
            began = time.monotonic()
            try:
                self._work()
            except Exception as error:  # noqa: BLE001 - a thread that dies would help nobody
                self.failures += 1
                log.warning("%s failed, and will be tried again: %s", self._thread.name, error)
            else:
                self.failures = 0
            self.runs += 1
            if not self._closed:
                self._alarm.wait(self._every)
                self._pause_until(began + _LEAST)

    def _pause_until(self, moment: float) -> None:
        if not self._closed and (left := moment - time.monotonic()) > 0:
            time.sleep(left)

    def close(self) -> None:
        """Returns when the work that is going on has ended."""
        self._closed = True
        self._alarm.ring()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._alarm.close()
