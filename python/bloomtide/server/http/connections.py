"""Connections of HTTP: not too many, none that stays silent, and none that does not read.

uvicorn closes a connection that is idle after an answer. One that never sends a whole head of a
request, or takes nothing of its answer, it would keep for ever; so each second all are looked at.
Bodies and streams have limits of their own (`parts.Limits`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Cycle(Protocol):
    """uvicorn's request that is being answered."""

    response_complete: bool


class Connection(Protocol):
    """What is looked at of uvicorn's connections, whichever parser they have."""

    transport: asyncio.Transport | None
    cycle: Cycle | None


class Patience(Protocol):
    """How long is waited for whom; settings of the server."""

    @property
    def http_timeout(self) -> int: ...
    @property
    def client_output_seconds(self) -> int: ...


class Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is told so."""
        told = cast(asyncio.Transport, transport)
        told.write(_FULL)
        told.close()


def at_most(connections: int) -> type[asyncio.Protocol]:
    """uvicorn's own kind of connection, for so many at a time."""

    def make(**given: Any) -> asyncio.Protocol:
        if len(given["server_state"].connections) >= connections:
            return Refused()
        return AutoHTTPProtocol(**given)

    # uvicorn calls it and asks nothing else of it.
    return cast(type[asyncio.Protocol], make)


class Watch:
    """Knows since when nothing happens on a connection."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Connection, tuple[object, float]] = WeakKeyDictionary()

    def look(self, connections: Iterable[Connection], patience: Patience, now: float) -> None:
        """Closes who was waited for too long."""
        for each in list(connections):
            transport = each.transport
            if transport is None or transport.is_closing():
                continue
            waiting = transport.get_write_buffer_size()
            answering = each.cycle is not None and not each.cycle.response_complete
            if waiting:
                state, limit = ("reads", waiting), patience.client_output_seconds
            elif answering:
                self._seen.pop(each, None)  # it waits for us
                continue
            else:
                state, limit = ("asks", id(each.cycle)), patience.http_timeout
            before, since = self._seen.get(each, (None, now))
            if before != state:
                self._seen[each] = (state, now)
            elif now - since > limit:
                transport.abort()

    async def run(
        self, connections: Callable[[], Iterable[Connection]], patience: Callable[[], Patience]
    ) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(1)
            self.look(connections(), patience(), time.monotonic())
