"""MONITOR.SEEN, COUNT, HEAT, TOP, STATS: questions about the stream that the monitor watches.

The first two never wait. The others may, for who adds or makes a snapshot, and have a thread.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bloomtide.server.commands.handler import (
    ReplyError,
    Words,
    in_thread,
    integer,
    wrong_number,
)
from bloomtide.server.commands.history import plain

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.http.parts import Monitor
    from bloomtide.server.listener import Server

_MOST = 100_000
"""Keys of one answer."""


def _monitor(server: Server) -> Monitor:
    if server.monitor is None:
        raise ReplyError("ERR no monitor runs here; `bloomtide watch` starts one")
    return server.monitor


def seen(server: Server, _client: Client, words: Words) -> bool:
    """MONITOR.SEEN item."""
    if len(words) != 1:
        raise wrong_number("monitor.seen")
    return _monitor(server).seen(words[0])


def count(server: Server, _client: Client, words: Words) -> Any:
    """MONITOR.COUNT item: its estimate with its bounds."""
    if len(words) != 1:
        raise wrong_number("monitor.count")
    return plain(asdict(_monitor(server).count(words[0])))


def heat(server: Server, _client: Client, words: Words) -> Any:
    """MONITOR.HEAT item: its count now, if each event fades."""
    if len(words) != 1:
        raise wrong_number("monitor.heat")
    monitor = _monitor(server)
    return in_thread(lambda: plain(asdict(monitor.heat(words[0]))))


def top(server: Server, _client: Client, words: Words) -> Any:
    """MONITOR.TOP [n]: what is hottest now."""
    if len(words) > 1:
        raise wrong_number("monitor.top")
    wanted = integer(words[0]) if words else 20
    if not 1 <= wanted <= _MOST:
        raise ReplyError(f"ERR n must be 1 to {_MOST}")
    monitor = _monitor(server)
    return in_thread(lambda: [plain(asdict(item)) for item in monitor.top(wanted)])


def stats(server: Server, _client: Client, words: Words) -> Any:
    """MONITOR.STATS."""
    if words:
        raise wrong_number("monitor.stats")
    monitor = _monitor(server)
    return in_thread(lambda: plain(asdict(monitor.stats())))


HANDLERS = {
    "MONITOR.SEEN": seen,
    "MONITOR.COUNT": count,
    "MONITOR.HEAT": heat,
    "MONITOR.TOP": top,
    "MONITOR.STATS": stats,
}
