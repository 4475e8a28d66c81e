"""A thread that does something now and then, and can be woken or stopped.

What goes wrong in it is told to `report` and does not end it: nobody waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from bloomtide.errors import BloomtideError


class Background:
    """Runs `work` when woken, and every `interval` seconds if there is one."""

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        report: Callable[[str], None],
        interval: float | None = None,
    ) -> None:
        """Starts at once."""
        self._work = work
        self._report = report
        self._interval = interval
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def stop(self) -> None:
        """Waits for the work at hand and ends the thread."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait(self._interval)
            self._wake.clear()
            if self._stopped.is_set():
                return
            try:
                self._work()
            except BloomtideError as error:
                self._report(error.message)
