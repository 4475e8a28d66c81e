"""Signals that end a stream in an orderly way: what was read is written and remembered first."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0
"""Seconds after which a second signal means it; wrappers often send the first one twice."""


class StoppedError(Exception):
    """A signal asked us to end."""

    def __init__(self, number: int, *, orderly: bool) -> None:
        super().__init__(number)
        self.code = 128 + number
        self.orderly = orderly
        """The lines in hand were written."""


class Stop:
    """Holds ctrl-C and SIGTERM back while lines are in hand; waiting for input ends at once."""

    def __init__(self) -> None:
        self.busy = False
        self.arrived: tuple[int, float] | None = None
        """Which signal, and when."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes the signals, except those that are ignored, as `nohup` and `&` in scripts do."""
        with _handling(self._arrive):
            yield

    @contextmanager
    def in_hand(self) -> Iterator[None]:
        """Between reading lines and having written them."""
        self.busy = True
        try:
            yield
        finally:
            self.busy = False
        if self.arrived is not None:
            raise StoppedError(self.arrived[0], orderly=True)

    def _arrive(self, number: int, frame: Any) -> None:
        now = time.monotonic()
        waited = self.arrived is not None and now - self.arrived[1] > PATIENCE
        self.arrived = self.arrived or (number, now)
        if waited or not self.busy:
            raise StoppedError(number, orderly=not self.busy)


def undisturbed() -> Any:
    """Signals do nothing meanwhile: what must not be cut short is short itself."""
    return _handling(signal.SIG_IGN)


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: old for n in numbers if (old := signal.getsignal(n)) != signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
