"""One connection: a read buffer goes to the native session in one call, its replies leave in one.

A command that Python answers stops the session; its handler gives the reply, at once or later, and
the session goes on. Meanwhile nothing more is read from this client, and the others do not wait.

A client that does not take its replies is not read from. If too much waits for it, or it takes
nothing for too long, it is closed.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
import time
from typing import TYPE_CHECKING, Any, cast

from bloomtide.errors import BloomtideError
from bloomtide.server.commands.handler import ReplyError

if TYPE_CHECKING:
    from bloomtide.server.listener import Server

log = logging.getLogger("bloomtide.server")
_HELD = 1 << 20
"""Replies in bytes that may wait for the disk before the client is not read from."""
_KEPT = 1 << 20
"""Replies in bytes that may wait for the client before it is not read from."""


class Client(asyncio.Protocol):
    """A connection of the Redis protocol."""

    __slots__ = (
        "_due", "_ended", "_held", "_hold", "_left", "_loop", "_stash", "_transport", "_unusual",
        "_writing_paused",
        "answering", "born", "id", "last_command", "peer", "refused", "seen", "server", "session",
        "stuck_since",
    )  # fmt: skip

    def __init__(self, server: Server) -> None:
        self.server = server
        self.id = server.next_id()
        self.session = server.keyspace.session(client=self.id)
        # By a clock that does not jump.
        self.born = self.seen = time.monotonic()
        self.last_command = "NULL"
        self.peer = "?"
        self.answering: asyncio.Task[None] | None = None
        self.stuck_since: float | None = None
        """Since when it takes nothing of what waits for it."""
        self.refused = 0
        """Wrong passwords so far."""
        self._loop = asyncio.get_running_loop()
        self._hold = server.durability.hold
        self._held = 0
        self._due = False
        """Its next turn is scheduled."""
        self._stash: list[bytes] = []
        self._writing_paused = False
        self._left = 0
        self._ended = False
        self._unusual = False
        """Something has to be looked at after a reply has left; false for nearly all of them."""

    # --- what asyncio calls ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        # Not an instance of it with uvloop, but like one.
        self._transport = transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        if isinstance(address, tuple):
            host, port = address[:2]
            self.peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if not self.server.admit(self):
            transport.write(b"-ERR max number of clients reached\r\n")
            transport.close()
            return
        transport.set_write_buffer_limits(_KEPT)
        _keep_alive(transport, self.server.settings.tcp_keepalive)

    def data_received(self, data: bytes) -> None:
        """Everything that is complete in the buffer is done now."""
        if self._unusual and (self.answering is not None or self._stash):
            self._stash.append(data)  # it arrived although reading was paused
            return
        self._execute(data)

    def eof_received(self) -> bool:
        """The client sends no more, but may still read."""
        self._ended = self._unusual = True
        return not self._finished()  # else the transport closes itself

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        del exc
        if self.answering is not None:
            self.answering.cancel()
        self._stash.clear()
        self.session.discard()
        self.server.forget(self)

    def pause_writing(self) -> None:
        """Too much waits for this client."""
        self._writing_paused = self._unusual = True
        self.stuck_since = time.monotonic()
        self._left = self._transport.get_write_buffer_size()
        self._adjust_reading()

    def resume_writing(self) -> None:
        """It took its replies."""
        self._writing_paused = False
        self.stuck_since = None
        self._adjust_reading()
        self._go_on()

    # --- executing ------------------------------------------------------------------------------

    def _execute(self, data: bytes) -> None:
        self.seen = time.monotonic()
        session = self.session
        reply = session.execute(data, time.time())
        if session.foreign is not None or session.more:
            self._unusual = True
            self._answer(reply)
            return
        if reply:
            self._held += len(reply)
            self._hold(self, reply)
        if session.closing or session.buffered or self._held > _HELD:
            self._unusual = True
            self._look_at_rest()
            self._adjust_reading()

    def _answer(self, reply: bytes) -> None:
        """Answers commands of Python until there is none, or one of them takes its time."""
        session = self.session
        while True:
            if reply:
                self._held += len(reply)
                self._hold(self, reply)
            if session.foreign is not None:
                found = self.server.answer(self, session.foreign)
                if inspect.isawaitable(found):
                    self.answering = asyncio.ensure_future(self._answer_later(found))
                    self._adjust_reading()
                    return
                reply = session.resume(found, time.time())
            else:
                if session.more and not self._due and not self._crowded():
                    # Its turn is over: first the others.
                    self._due = True
                    self._loop.call_soon(self._take_turn)
                break
        self._look_at_rest()
        self._adjust_reading()

    async def _answer_later(self, awaitable: Any) -> None:
        try:
            found = await awaitable
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a reply is due, whatever happened
            found = as_reply(error)
        self.answering = None
        if not self._transport.is_closing():
            self._answer(self.session.resume(found, time.time()))
            self._go_on()

    def _take_turn(self) -> None:
        self._due = False
        self._go_on()

    def _go_on(self) -> None:
        """Does what had to wait, unless that is due later anyway."""
        if self.session.more and self.answering is None and not self._waits():
            self._answer(self.session.execute(b"", time.time()))
        while self._stash and self.answering is None and not self._waits():
            self._execute(self._stash.pop(0))

    def _look_at_rest(self) -> None:
        limit = self.server.settings.client_query_buffer_limit
        if self.session.buffered > limit:
            log.warning("closed client %d: its request has more than %d bytes", self.id, limit)
            self._transport.abort()
        elif self._finished():
            self._transport.close()

    def _finished(self) -> bool:
        """Has it said its last, and got all replies?"""
        if not (self.session.closing or self._ended) or self._held:
            return False
        return self.answering is None and not self._stash and not self.session.more

    # --- replies --------------------------------------------------------------------------------

    def send(self, reply: bytes) -> None:
        """The reply may go out."""
        self._held -= len(reply)
        transport = self._transport
        if transport.is_closing():
            return
        transport.write(reply)
        if self._unusual:
            self._look_after_reply()

    def _look_after_reply(self) -> None:
        if self._writing_paused:
            waiting = self._transport.get_write_buffer_size()
            limit = self.server.settings.client_output_buffer_limit
            if waiting > limit:
                log.warning("closed client %d: %d bytes waited for it", self.id, waiting)
                self._transport.abort()
            return
        if self._finished():
            self._transport.close()
            return
        self._go_on()
        self._adjust_reading()
        self._unusual = bool(
            self._ended or self._stash or self.answering or self._crowded()
            or self.session.closing or self.session.more or self.session.buffered
        )  # fmt: skip

    def fail(self, reason: str) -> None:
        """The change of a reply may not be safe: the client must not take it as done."""
        if not self._transport.is_closing():
            text = reason.replace("\r", " ").replace("\n", " ")
            self._transport.write(f"-MISCONF {text}\r\n".encode())
            self._transport.close()

    def close(self) -> None:
        """Ends the connection after what was sent."""
        self._transport.close()

    def abort(self) -> None:
        """Ends the connection now."""
        self._transport.abort()

    @property
    def idle(self) -> float:
        """Seconds since its last request."""
        return time.monotonic() - self.seen

    @property
    def waiting(self) -> int:
        """Bytes that wait for it."""
        return self._held + self._transport.get_write_buffer_size()

    def stuck_for(self, now: float) -> float:
        """Seconds, by a monotonic clock, in which it took nothing of what waits for it."""
        if self.stuck_since is None:
            return 0.0
        left = self._transport.get_write_buffer_size()
        if left < self._left:
            self.stuck_since = now
        self._left = left
        return now - self.stuck_since

    def _waits(self) -> bool:
        return self._due or self._crowded()

    def _crowded(self) -> bool:
        return self._writing_paused or self._held > _HELD

    def _adjust_reading(self) -> None:
        transport = self._transport
        if transport.is_closing():
            return
        wanted = not (self._crowded() or self.answering is not None or self.session.more)
        if wanted != transport.is_reading():
            (transport.resume_reading if wanted else transport.pause_reading)()


def as_reply(error: Exception) -> Exception:
    """An error as the protocol tells it: one line, with a code first."""
    if isinstance(error, ReplyError):
        return error
    if isinstance(error, BloomtideError):
        text = f"{error.message}; {error.hint}" if error.hint else error.message
        return ReplyError(f"ERR {text}")
    # Its text may hold a key, which is nobody's business but the debugger's.
    log.error("a command failed: %s", type(error).__name__)
    log.debug("a command failed", exc_info=error)
    return ReplyError(f"ERR unexpected {type(error).__name__}")


def _keep_alive(transport: asyncio.Transport, seconds: int) -> None:
    """A peer that vanished without a word is noticed."""
    found = transport.get_extra_info("socket")
    if found is None or not seconds or found.family == socket.AF_UNIX:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", max(seconds // 3, 1)),
                          ("TCP_KEEPCNT", 3)):  # fmt: skip
        if hasattr(socket, option):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
