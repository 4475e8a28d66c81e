"""CLIENT: who is connected, under which name, and how to close a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomtide.server.commands.handler import (
    OK,
    ReplyError,
    Words,
    family,
    integer,
    syntax_error,
    text,
    wrong_number,
)

if TYPE_CHECKING:
    from bloomtide.server.client import Client
    from bloomtide.server.listener import Server


def line_about(client: Client) -> str:
    """One client as CLIENT LIST tells it."""
    session = client.session
    library, version = session.library
    fields = {
        "id": client.id,
        "addr": client.peer,
        "name": session.name,
        "age": int(client.seen - client.born + client.idle),
        "idle": int(client.idle),
        "flags": "N",
        "db": 0,
        "qbuf": session.buffered,
        "omem": client.waiting,
        "cmd": client.last_command,
        "user": session.user or "",
        "resp": session.protocol,
        "lib-name": library,
        "lib-ver": version,
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())


def identity(_server: Server, client: Client, _words: Words) -> int:
    """CLIENT ID."""
    return client.id


def info(_server: Server, client: Client, _words: Words) -> bytes:
    """CLIENT INFO."""
    return f"{line_about(client)}\n".encode()


def everyone(server: Server, _client: Client, words: Words) -> bytes:
    """CLIENT LIST [ID id ...]."""
    found = list(server.clients.values())
    if words:
        if words[0].upper() == b"TYPE" and len(words) == 2:
            found = found if words[1].upper() == b"NORMAL" else []
        elif words[0].upper() == b"ID" and len(words) > 1:
            wanted = {integer(word) for word in words[1:]}
            found = [client for client in found if client.id in wanted]
        else:
            raise syntax_error()
    return "".join(f"{line_about(client)}\n" for client in found).encode()


def kill(server: Server, client: Client, words: Words) -> Any:
    """CLIENT KILL addr:port, or CLIENT KILL [ID id] [ADDR addr] [USER name] [SKIPME yes|no]."""
    if len(words) == 1:
        found = [other for other in server.clients.values() if other.peer == text(words[0])]
        if not found:
            raise ReplyError("ERR No such client")
        _close(found)
        return OK
    if not words or len(words) % 2:
        raise syntax_error()
    found = list(server.clients.values())
    skip_me = True
    for name, value in zip(words[::2], words[1::2], strict=True):
        match name.upper():
            case b"ID":
                wanted = integer(value)
                found = [other for other in found if other.id == wanted]
            case b"ADDR":
                found = [other for other in found if other.peer == text(value)]
            case b"USER":
                found = [other for other in found if other.session.user == text(value)]
            case b"SKIPME" if value.lower() in (b"yes", b"no"):
                skip_me = value.lower() == b"yes"
            case _:
                raise syntax_error()
    found = [other for other in found if not (skip_me and other is client)]
    _close(found)
    return len(found)


def _close(found: list[Client]) -> None:
    for client in found:
        client.close()


def get_name(_server: Server, client: Client, _words: Words) -> bytes | None:
    """CLIENT GETNAME."""
    return client.session.name.encode() or None


def set_name(_server: Server, client: Client, words: Words) -> Any:
    """CLIENT SETNAME name."""
    if len(words) != 1:
        raise wrong_number("client|setname")
    client.session.name = _plain(words[0], "Client names")
    return OK


def set_info(_server: Server, client: Client, words: Words) -> Any:
    """CLIENT SETINFO LIB-NAME|LIB-VER value."""
    if len(words) != 2:
        raise wrong_number("client|setinfo")
    library, version = client.session.library
    match words[0].upper():
        case b"LIB-NAME":
            client.session.library = (_plain(words[1], "lib-name"), version)
        case b"LIB-VER":
            client.session.library = (library, _plain(words[1], "lib-ver"))
        case _:
            raise ReplyError(f"ERR Unrecognized option '{text(words[0])}'")
    return OK


def _plain(word: bytes, what: str) -> str:
    """One word of CLIENT LIST: no space, no control characters."""
    if len(word) > 1024 or any(not 0x21 <= byte <= 0x7E for byte in word):
        raise ReplyError(f"ERR {what} cannot contain spaces, newlines or special characters.")
    return word.decode("ascii")


def agree(_server: Server, _client: Client, _words: Words) -> Any:
    """CLIENT NO-EVICT, NO-TOUCH: nothing is ever evicted here."""
    return OK


HANDLERS = {
    "CLIENT": family(
        "CLIENT",
        {
            "ID": identity,
            "INFO": info,
            "LIST": everyone,
            "KILL": kill,
            "GETNAME": get_name,
            "SETNAME": set_name,
            "SETINFO": set_info,
            "NO-EVICT": agree,
            "NO-TOUCH": agree,
        },
    )
}
