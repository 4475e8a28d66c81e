"""HISTORY.*: counts by time, of named stores; `monitor` is the history of the monitor if one runs.

    HISTORY.RESERVE name [WINDOW 1m] [ERROR rate] [RETENTION ladder] [LATENESS span]
    HISTORY.ADD     name item [COUNT n] [AT time]
    HISTORY.MADD    name item ...
    HISTORY.COUNT   name item [START time] [END time] [LAST span]
    HISTORY.SERIES  name item [STEP span] [START time] [END time] [LAST span]
    HISTORY.TOTAL   name [START time] [END time] [LAST span]
    HISTORY.TOP     name [COUNT n] [START time] [END time] [LAST span]
    HISTORY.INFO    name
    HISTORY.LIST

A time is a number of seconds since 1970 or ISO 8601, a span is `90s`, `1m`, `1h` or `7d`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bloomtide.server.commands.handler import (
    OK,
    ReplyError,
    Words,
    in_thread,
    integer,
    options,
    text,
    wrong_number,
)

if TYPE_CHECKING:
    from bloomtide.history import History
    from bloomtide.server.client import Client
    from bloomtide.server.http.parts import Monitor
    from bloomtide.server.listener import Server

MONITOR = "monitor"
MICRO = 1_000_000


def instant(word: bytes) -> float | str:
    """Seconds since 1970, or ISO 8601, which the store reads itself."""
    try:
        return float(word)
    except ValueError:
        return text(word)


def real(word: bytes) -> float:
    """A number."""
    try:
        return float(word)
    except ValueError:
        raise ReplyError("ERR value is not a valid float") from None


RANGE: dict[str, Callable[[bytes], Any]] = {"START": instant, "END": instant, "LAST": text}


def _store(server: Server, word: bytes) -> History:
    """The store to ask."""
    name = text(word)
    if name == MONITOR and server.monitor is not None:
        if server.monitor.history is None:
            raise ReplyError("ERR the monitor keeps no history")
        found: History = server.monitor.history
        return found
    return server.histories.get(name)


def _target(server: Server, word: bytes) -> History | Monitor:
    """What events go into: those of the monitor's history by its ledger, or a kill loses them."""
    store = _store(server, word)
    return server.monitor if text(word) == MONITOR and server.monitor is not None else store


def reserve(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.RESERVE."""
    if not words:
        raise wrong_number("history.reserve")
    name = text(words[0])
    if name == MONITOR:
        raise ReplyError("ERR this name is the monitor's")
    known = {"WINDOW": text, "ERROR": real, "RETENTION": text, "LATENESS": text}
    given = options(words[1:], known)
    if "error" in given:
        given["error_rate"] = given.pop("error")

    def work() -> str:
        server.histories.reserve(name, **given)
        return OK

    return in_thread(work)


def add(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.ADD."""
    if len(words) < 2:
        raise wrong_number("history.add")
    given = options(words[2:], {"COUNT": integer, "AT": instant})

    def work() -> str:
        _target(server, words[0]).add(words[1], given.get("count", 1), given.get("at"))
        return OK

    return in_thread(work)


def add_many(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.MADD."""
    if len(words) < 2:
        raise wrong_number("history.madd")

    def work() -> int:
        target, items = _target(server, words[0]), list(words[1:])
        target.add_many(items)
        return len(items)

    return in_thread(work)


def count(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.COUNT."""
    if len(words) < 2:
        raise wrong_number("history.count")
    given = options(words[2:], RANGE)
    return in_thread(lambda: plain(asdict(_store(server, words[0]).count(words[1], **given))))


def series(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.SERIES: [time, upper bound of the count] of each step."""
    if len(words) < 2:
        raise wrong_number("history.series")
    given = options(words[2:], RANGE | {"STEP": text})

    def work() -> Any:
        found = _store(server, words[0]).series(words[1], **given)
        return [
            [at / MICRO, int(upper)]
            for at, upper in zip(found.start.astype("int64").tolist(), found.upper, strict=True)
        ]

    return in_thread(work)


def total(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.TOTAL."""
    if not words:
        raise wrong_number("history.total")
    given = options(words[1:], RANGE)
    return in_thread(lambda: plain(asdict(_store(server, words[0]).total(**given))))


def top(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.TOP: [item, count, lower, upper] of each, the largest first."""
    if not words:
        raise wrong_number("history.top")
    given = options(words[1:], RANGE | {"COUNT": integer})
    if "count" in given:
        given["n"] = given.pop("count")

    def work() -> Any:
        return [plain(asdict(item)) for item in _store(server, words[0]).top(**given).items]

    return in_thread(work)


def about(server: Server, _client: Client, words: Words) -> Any:
    """HISTORY.INFO."""
    if len(words) != 1:
        raise wrong_number("history.info")
    return in_thread(lambda: plain(asdict(_store(server, words[0]).stats())))


def names(server: Server, client: Client, words: Words) -> Any:
    """HISTORY.LIST: those that the user may use."""
    if words:
        raise wrong_number("history.list")

    def work() -> list[bytes]:
        found = server.histories.names()
        running = server.monitor is not None and server.monitor.history is not None
        named = [name.encode() for name in ([MONITOR] if running else []) + found]
        return [name for name in named if client.session.may_use(name)]

    return in_thread(work)


def plain(value: Any) -> Any:
    """A record as the protocol can tell it: names and texts become byte strings."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bool | int | float | bytes):
        return value
    return plain(value.item()) if hasattr(value, "item") else str(value).encode()


HANDLERS = {
    "HISTORY.RESERVE": reserve,
    "HISTORY.ADD": add,
    "HISTORY.MADD": add_many,
    "HISTORY.COUNT": count,
    "HISTORY.SERIES": series,
    "HISTORY.TOTAL": total,
    "HISTORY.TOP": top,
    "HISTORY.INFO": about,
    "HISTORY.LIST": names,
}
