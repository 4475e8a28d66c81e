"""SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE: snapshots. Here a snapshot also rewrites the journal.

WAITAOF waits for the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomtide.server.commands.handler import OK, ReplyError, Words, integer

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server


def save(server: Server, _client: Client, _words: Words) -> Any:
    """SAVE: returns when the snapshot is on the disk; everyone waits meanwhile."""
    if server.durability.rewriting:
        raise ReplyError("ERR Background save already in progress")
    server.durability.save()
    return OK


def save_in_background(server: Server, _client: Client, _words: Words) -> Any:
    """BGSAVE."""
    if not server.durability.save_in_background():
        raise ReplyError("ERR Background save already in progress")
    return "Background saving started"


def rewrite(server: Server, _client: Client, _words: Words) -> Any:
    """BGREWRITEAOF."""
    if not server.durability.save_in_background():
        raise ReplyError("ERR Background append only file rewriting already in progress")
    return "Background append only file rewriting started"


def last_save(server: Server, _client: Client, _words: Words) -> int:
    """LASTSAVE."""
    return int(server.durability.last_save)


def wait_for_disk(server: Server, _client: Client, words: Words) -> Any:
    """WAITAOF numlocal numreplicas timeout: the journal is synced; there are no replicas."""
    local, replicas, timeout = (integer(word) for word in words)
    if not 0 <= local <= 1 or replicas < 0:
        raise ReplyError("ERR value is out of range")
    if timeout < 0:
        raise ReplyError("ERR timeout is negative")
    if local and not server.settings.appendonly:
        raise ReplyError(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
        )

    async def wait() -> list[int]:
        return [int(await server.durability.synced()), 0]

    return wait()


HANDLERS = {
    "SAVE": save,
    "BGSAVE": save_in_background,
    "BGREWRITEAOF": rewrite,
    "LASTSAVE": last_save,
    "WAITAOF": wait_for_disk,
}
