"""DEBUG DIGEST: one word for all contents, to compare a server before and after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bloomtide.server.commands.handler import Words, family

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server


def digest(server: Server, _client: Client, _words: Words) -> str:
    """DEBUG DIGEST."""
    return server.keyspace.digest()


HANDLERS = {"DEBUG": family("DEBUG", {"DIGEST": digest})}
