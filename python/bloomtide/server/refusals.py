"""Wrong passwords: each is answered late, so that nobody tries many, and counted."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bloomtide.server.commands.handler import ReplyError

if TYPE_CHECKING:
    from bloomtide.server.client import Client

REFUSED = "AUTH|REFUSED"
"""What the keyspace asks us to answer where a password was wrong."""
FIRST, LONGEST = 0.05, 3.2
"""Seconds that a client waits for its first refusal, and at most for a later one."""
EACH = 0.05
"""Seconds between two refusals of all clients together."""


class Refusals:
    """When a refusal may go out. Nobody else waits for it; the client is not read from."""

    def __init__(self) -> None:
        self.count = 0
        """Of all clients."""
        self._next = 0.0

    async def refuse(self, client: Client) -> ReplyError:
        """The refusal, once this client and all clients together have waited for it."""
        self.count += 1  # also of one that leaves before its answer
        now = time.monotonic()
        self._next = max(self._next, now) + EACH
        await asyncio.sleep(max(self._next - now, min(FIRST * 2**client.refused, LONGEST)))
        client.refused = min(client.refused + 1, 16)
        return ReplyError("WRONGPASS invalid username-password pair or user is disabled.")
