"""CONFIG GET, SET and RESETSTAT: the settings while the server runs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from bloomtide.errors import ParameterError
from bloomtide.server.commands.handler import OK, ReplyError, Words, family, text, wrong_number
from bloomtide.server.settings import CHANGEABLE, SECRET, field_types, shown

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server

FIXED = {
    "databases": "1",
    "save": "",
    "appenddirname": "",
    "maxmemory-policy": "noeviction",
    "bf-error-rate": "0.01",
    "bf-initial-size": "100",
    "bf-expansion-factor": "2",
    "cf-initial-size": "1024",
    "cf-bucket-size": "2",
    "cf-max-iterations": "20",
    "cf-expansion-factor": "1",
}
"""What clients ask for that cannot be set here."""


def get(server: Server, _client: Client, words: Words) -> dict[bytes, bytes]:
    """CONFIG GET pattern ...: a map, empty if nothing has such a name."""
    if not words:
        raise wrong_number("config|get")
    patterns = [text(word).lower() for word in words]
    known = FIXED | server.settings.as_text() | {shown(name): "" for name in SECRET}
    return {
        name.encode(): value.encode()
        for name, value in sorted(known.items())
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def change(server: Server, _client: Client, words: Words) -> Any:
    """CONFIG SET name value ...: all of them or none."""
    if not words or len(words) % 2:
        raise wrong_number("config|set")
    pairs = [(text(name), text(value)) for name, value in zip(words[::2], words[1::2], strict=True)]
    for name, _ in pairs:
        field = name.lower().replace("-", "_")
        if field not in CHANGEABLE:
            known = field in field_types() or name.lower() in FIXED
            why = "can't set immutable config" if known else "unknown option"
            raise _failed(name, why)
    try:
        server.change(server.settings.replaced(pairs))
    except ParameterError as error:
        raise _failed(error.name, error.message) from None
    return OK


def _failed(name: str, why: str) -> ReplyError:
    said = f"ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"
    return ReplyError(said)


def reset(server: Server, _client: Client, _words: Words) -> Any:
    """CONFIG RESETSTAT: the numbers of connections begin again."""
    server.connections = server.rejected = 0
    return OK


HANDLERS = {"CONFIG": family("CONFIG", {"GET": get, "SET": change, "RESETSTAT": reset})}
