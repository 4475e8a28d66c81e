"""What the handlers share: their form, the errors they answer, and how words become values."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server

Words = Sequence[bytes]
Handler = Callable[["Server", "Client", Words], Any]
OK = "OK"


def in_thread(work: Callable[[], Any]) -> Awaitable[Any]:
    """The reply of something that may wait for a lock or the disk: nobody else waits for it."""
    return asyncio.get_running_loop().run_in_executor(None, work)


class ReplyError(Exception):
    """An error reply: a code in capitals, then a sentence."""


def wrong_number(name: str) -> ReplyError:
    """As Redis words it."""
    return ReplyError(f"ERR wrong number of arguments for '{name.lower()}' command")


def syntax_error() -> ReplyError:
    """As Redis words it."""
    return ReplyError("ERR syntax error")


def text(word: bytes) -> str:
    """A word that must be text."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise ReplyError("ERR a word is not UTF-8 text") from None


def integer(word: bytes) -> int:
    """A word that must be a whole number."""
    try:
        return int(word[:32])
    except ValueError:
        raise ReplyError("ERR value is not an integer or out of range") from None


def family(name: str, handlers: Mapping[str, Handler]) -> Handler:
    """A command whose first word chooses what it does."""

    def handle(server: Server, client: Client, words: Words) -> Any:
        if not words:
            raise wrong_number(name)
        chosen = words[0].decode("ascii", "replace").upper()
        if chosen not in handlers:
            shown = words[0][:128].decode("utf-8", "replace")
            raise ReplyError(f"ERR unknown subcommand '{shown}'. Try {name} HELP.")
        return handlers[chosen](server, client, words[1:])

    return handle


def options(words: Words, names: Mapping[str, Callable[[bytes], Any]]) -> dict[str, Any]:
    """`NAME value` pairs in any order, each at most once."""
    found: dict[str, Any] = {}
    if len(words) % 2:
        raise syntax_error()
    for name, value in zip(words[::2], words[1::2], strict=True):
        key = name.decode("ascii", "replace").upper()
        if key not in names or key.lower() in found:
            raise syntax_error()
        found[key.lower()] = names[key](value)
    return found
