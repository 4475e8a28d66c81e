"""Live numbers: one picture of everything each second, for whoever listens (server-sent events).

Each event is whole. So who comes late, comes back or reads too slowly misses nothing but the past:
`Last-Event-ID` is welcome and makes no difference. The numbers are collected once for all
listeners, and not at all without any; only the trail of the hot keys goes on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bloomtide.errors import BloomtideError, RequestError, UnsupportedError
from bloomtide.server.http import questions
from bloomtide.server.http.failures import describe, mistake
from bloomtide.server.http.parts import Parts
from bloomtide.server.http.plain import plain, to_json
from bloomtide.server.http.trail import KEYS, PastSteps, Trail, trend_of

HOT = 25
"""Keys in a picture."""
OLD = 3600.0
"""Seconds by which the time of an old log is behind the clock."""
SHOWN = 50
"""Structures in a picture."""
MEASURE = 10.0
"""Seconds for which what was measured of named structures is told again."""
BEAT = 5.0
"""Seconds without an event after which a comment keeps the connection open."""
_TYPE = "text/event-stream; charset=utf-8"


class Live:
    """Collects the pictures and hands them out."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.trail = Trail(parts.monitor.settings.half_life if parts.monitor is not None else None)
        self._measured: tuple[float, list[dict[str, Any]]] = (float("-inf"), [])
        self._event = b""
        self._number = 0
        self._listeners = 0
        self._stopped = False
        self._fresh = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._tick()
            await asyncio.sleep(1.0 - time.time() % 1.0)

    def stop(self) -> None:
        """Ends all streams, so that a server that waits for its connections can stop."""
        self._stopped = True
        self._fresh.set()

    async def _tick(self) -> None:
        try:
            if self._parts.monitor is not None and self.trail.due(time.monotonic()):
                await self._parts.ask(self._follow)
            if not self._listeners:
                return
            name, told = "picture", to_json(await self._parts.ask(self._picture))
        except BloomtideError as error:
            name, told = "problem", to_json(describe(error))
        except Exception as error:  # noqa: BLE001 - the stream must go on
            name, told = "problem", to_json(describe(mistake("/api/live", error)))
        self._number += 1
        self._event = b"id: %d\nevent: %b\ndata: %b\n\n" % (self._number, name.encode(), told)
        self._fresh.set()
        self._fresh = asyncio.Event()

    def _follow(self) -> None:
        monitor = self._parts.require_monitor()
        with suppress(UnsupportedError):
            self.trail.look(monitor.top(KEYS), time.monotonic(), monitor.now())

    def hot(self, n: int) -> list[dict[str, Any]]:
        """The hottest keys with their trails."""
        monitor = self._parts.require_monitor()
        steps: Trail | PastSteps = self.trail
        if monitor.history is not None and self._is_old():
            steps = PastSteps(monitor.history, monitor.now())
        told = []
        for item in monitor.hot(n):
            came = steps.came(item.key)
            shown = {**plain(item), "came": came, "every": steps.every}
            # The monitor compares half-lives; the steps are closer to now, and are what is drawn.
            shown["trend"] = trend_of(came) or shown["trend"]
            told.append(shown)
        return told

    def _is_old(self) -> bool:
        """Whether the stream is an old log: its now is not the clock's."""
        monitor = self._parts.require_monitor()
        return monitor.clock() - monitor.now() > OLD

    def _structures(self) -> list[dict[str, Any]]:
        # How full large filters are is measured, and nobody may use them meanwhile.
        if self._parts.keyspace is None:
            return questions.structures(self._parts, {"n": SHOWN})["items"]
        now = time.monotonic()
        if now - self._measured[0] > MEASURE:
            self._measured = (now, questions.structures(self._parts, {"n": SHOWN})["items"])
        return self._measured[1]

    def _hot_if_kept(self) -> list[dict[str, Any]] | None:
        try:
            return self.hot(HOT)
        except UnsupportedError:
            return None

    def _picture(self) -> dict[str, Any]:
        parts = self._parts
        told: dict[str, Any] = {
            "time": time.time(),
            **questions.stats(parts, {}),
            "structures": self._structures(),
            "guards": questions.guards(parts, {})["items"],
            "sources": questions.sources(parts, {}),
        }
        if parts.monitor is not None:
            pulse = plain(parts.monitor.pulse())
            told |= {"hot": self._hot_if_kept(), "pulse": pulse, "old": self._is_old()}
        return told

    async def listen(self, send: Send) -> None:
        """Sends event after event."""
        limit = self._parts.limits.send_seconds
        self._listeners += 1
        try:
            if self._listeners == 1:
                await self._tick()  # nobody listened, so the last picture may be old
            event = self._event
            while not self._stopped:
                fresh = self._fresh
                with anyio.fail_after(limit):
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                event = b": beat\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(fresh.wait(), BEAT)
                    event = self._event
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._listeners -= 1

    def require_room(self) -> None:
        """Refuses a listener too many."""
        if self._listeners >= self._parts.limits.streams:
            raise RequestError(
                f"{self._listeners} streams are open, and no more are allowed",
                hint="close one, or ask /api/stats from time to time", status=503, field="streams",
            )  # fmt: skip


class _Stream(Response):
    """A response that ends when the client is gone, reads nothing for long, or the server stops."""

    def __init__(self, live: Live) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        headers.append((b"content-type", _TYPE.encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        listening = asyncio.ensure_future(self._live.listen(send))
        leaving = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((listening, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, leaving):
                task.cancel()
            await asyncio.gather(listening, leaving, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def stream(request: Request) -> Response:
    """`/api/live`."""
    live: Live = request.app.state.live
    live.require_room()
    # Who asks for the head only would wait for an end that never comes.
    return Response(media_type=_TYPE) if request.method == "HEAD" else _Stream(live)
