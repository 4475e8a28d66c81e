"""GUARD.LIST, GUARD.STATS: what the filters before databases saved, as their processes told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bloomtide.server.commands.handler import ReplyError, Words, in_thread, text, wrong_number
from bloomtide.server.commands.history import plain

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server


def names(server: Server, _client: Client, words: Words) -> list[bytes]:
    """GUARD.LIST."""
    if words:
        raise wrong_number("guard.list")
    return [name.encode() for name in sorted(_guards(server))]


def stats(server: Server, _client: Client, words: Words) -> Any:
    """GUARD.STATS name."""
    if len(words) != 1:
        raise wrong_number("guard.stats")
    guard = _guards(server).get(text(words[0]))
    if guard is None:
        raise ReplyError("ERR there is no guard of this name")
    return in_thread(lambda: plain(guard.stats().as_dict()))


def _guards(server: Server) -> Mapping[str, Any]:
    return {} if server.monitor is None else server.monitor.guards


HANDLERS = {"GUARD.LIST": names, "GUARD.STATS": stats}
