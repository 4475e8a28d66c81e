"""TIME, ROLE, MODULE, SHUTDOWN: the small ones about the server itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bloomtide.server.commands.handler import Words, family, syntax_error, wrong_number

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server

MODULE_VERSION = 80_000
"""Of RedisBloom, whose commands these are: clients ask for it before they use them."""


def clock(_server: Server, _client: Client, words: Words) -> list[bytes]:
    """TIME."""
    if words:
        raise wrong_number("time")
    seconds, micros = divmod(time.time_ns() // 1000, 10**6)
    return [b"%d" % seconds, b"%d" % micros]


def role(_server: Server, _client: Client, _words: Words) -> list[Any]:
    """ROLE: always a master without replicas."""
    return [b"master", 0, []]


def modules(_server: Server, _client: Client, _words: Words) -> list[Any]:
    """MODULE LIST."""
    return [{b"name": b"bf", b"ver": MODULE_VERSION, b"path": b"", b"args": []}]


def shutdown(server: Server, client: Client, words: Words) -> Any:
    """SHUTDOWN [NOSAVE|SAVE]: the connection closes without a reply, as with Redis."""
    wanted = [word.upper() for word in words]
    if set(wanted) - {b"SAVE", b"NOSAVE", b"NOW", b"FORCE"} or {b"SAVE", b"NOSAVE"} <= set(wanted):
        raise syntax_error()
    server.save_at_end = b"NOSAVE" not in wanted
    server.stopping.set()
    client.close()
    return None


HANDLERS = {
    "TIME": clock,
    "ROLE": role,
    "MODULE": family("MODULE", {"LIST": modules}),
    "SHUTDOWN": shutdown,
}
