"""Redis Streams: `redis://[user:password@]host:port/stream`, read as one consumer of a group.

An entry is acknowledged to Redis only when the ledger has its event on the disk. The ledger also
has the id of the last entry, so one that was counted and not acknowledged before a crash is
acknowledged then, and not counted again.

Fields of an entry: `key` (or what `?key=` says), and if they are there `count` and `time`, which is
in Unix seconds or ISO 8601 with its zone. The time of an entry that has none is that of its id. An
entry with a missing or wrong field is acknowledged, or else it would come again for ever; it is
counted as skipped, and the first ones are shown. Options of the address: `group`, `consumer` (both
`bloomtide`), `key`. The password may come from BLOOMTIDE_SOURCE_PASSWORD, since an argument can be
read by others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from bloomtide._core import parse_instant
from bloomtide.cli.console import CommandError
from bloomtide.cli.logs import tell_odd
from bloomtide.cli.watch.source import Stopping
from bloomtide.extras import require
from bloomtide.monitor import Monitor
from bloomtide.records import BadLine, LogReport

COUNT = 10_000
"""Entries that are taken at once."""
BLOCK = 200
"""Milliseconds that Redis waits for the next one."""
PASSWORD = "BLOOMTIDE_SOURCE_PASSWORD"
"""The variable that has it."""
BAD = 5
"""Entries that were not understood and are kept to be shown."""
Id = tuple[int, int]


class RedisStream:
    """The entries of a stream."""

    waiting = ""
    problems: Sequence[CommandError] = ()

    def __init__(self, url: str, *, tell: bool = False) -> None:
        """With `tell`, says at once when an entry is not understood, the first time."""
        parts = urlsplit(url)
        words = dict(parse_qsl(parts.query))
        self.stream = unquote(parts.path.lstrip("/"))
        self.group = words.pop("group", "bloomtide")
        self.consumer = words.pop("consumer", "bloomtide")
        self.field = words.pop("key", "key").encode()
        self.name = f"redis://{parts.hostname}:{parts.port or 6379}/{self.stream}"
        self.key = f"{self.name}#{self.group}"
        """The name under which its position is kept."""
        self._tell = tell
        self._entries = self._counted = 0
        self._bad: list[BadLine] = []
        if not self.stream or words:
            unknown = f", and knows no {', '.join(words)}" if words else ""
            raise CommandError(
                f"{self.name} names no stream{unknown}", hint="write redis://127.0.0.1:6379/visits"
            )
        password = os.environ.get(PASSWORD) if parts.password is None else unquote(parts.password)
        self._redis = _connect(parts.hostname, parts.port, parts.username, password)

    def run(self, monitor: Monitor, stopping: Stopping) -> None:
        """Feeds the entries: first those that were not acknowledged, then new ones as they come."""
        import redis

        try:
            self._make_group(redis.ResponseError)
            last = "0"
            while not stopping():
                answer = self._redis.xreadgroup(
                    self.group, self.consumer, {self.stream: last}, COUNT, BLOCK
                )
                entries = _entries(answer)
                if not entries:
                    last = ">"
                    continue
                self._take(monitor, entries)
                # What is not acknowledged is told by its ids; the next ones are behind these.
                last = ">" if last == ">" else entries[-1][0].decode()
        except redis.RedisError as problem:
            raise CommandError(
                f"{self.name}: {problem}", hint="does the server run, and is it a stream?"
            ) from None

    def reports(self) -> list[tuple[str, LogReport]]:
        """What became of the entries."""
        report = LogReport(
            format="stream", lines=self._entries, parsed=self._counted, counted=self._counted,
            skipped=self._entries - self._counted, bad=tuple(self._bad), latest=None,
        )  # fmt: skip
        return [(self.name, report)]

    def _make_group(self, refused: type[Exception]) -> None:
        try:
            self._redis.xgroup_create(self.stream, self.group, "0", mkstream=True)
        except refused as problem:
            if "BUSYGROUP" not in str(problem):
                raise

    def _take(self, monitor: Monitor, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        known = monitor.positions.get(self.key)
        done = (-1, -1) if known is None else (int(known[0]), int(known[1]))
        fresh = [(_id(name), fields) for name, fields in entries if _id(name) > done]
        rows = [row for entry in fresh if (row := self._row(*entry)) is not None]
        self._counted += len(rows)
        if self._bad and self._tell:
            self._tell = False
            tell_odd(self.reports(), by="key")
        if rows:
            keys, counts, times = (list(column) for column in zip(*rows, strict=True))
            position = list(fresh[-1][0])
            monitor.add_many(keys, counts, times, source=self.key, position=position)
            monitor.flush()
        self._redis.xack(self.stream, self.group, *(name for name, _ in entries))

    def _row(self, number: Id, fields: dict[bytes, bytes]) -> tuple[bytes, int, float] | None:
        """Key, count and time of an entry; None, and a place among the bad ones, if it is none."""
        self._entries += 1
        wrong = "key"
        try:
            key = fields[self.field]
            wrong = "count"
            count = int(fields.get(b"count", 1))
            wrong = "time"
            at = _time(fields.get(b"time"), number)
        except (KeyError, ValueError):
            pass
        else:
            if not 1 <= count < 2**62:
                wrong = "count"
            elif 0 <= at < 2.5e11:
                return key, count, at
        if len(self._bad) < BAD:
            text = b"%d-%d " % number + b" ".join(b"%b=%b" % pair for pair in fields.items())
            self._bad.append(BadLine(number=self._entries, text=text[:200], reason=wrong, tried=()))
        return None


def _time(text: bytes | None, number: Id) -> float:
    """Unix seconds; ValueError if the text is no time."""
    if text is None:
        return number[0] / 1000
    try:
        return float(text)
    except ValueError:
        return float(parse_instant(text.decode(), "time"))


def _connect(host: str | None, port: int | None, user: str | None, password: str | None) -> Any:
    with require("redis", "a Redis Stream"):
        import redis
    return redis.Redis(
        host or "127.0.0.1",
        port or 6379,
        username=user and unquote(user),
        password=password,
        socket_timeout=30,
    )


def _entries(answer: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of the one stream; RESP3 answers by name, and deleted entries have no fields."""
    if not answer:
        return []
    found = next(iter(answer.values()))[0] if isinstance(answer, dict) else answer[0][1]
    return [(name, fields or {}) for name, fields in found]


def _id(name: bytes) -> Id:
    milliseconds, _, number = name.partition(b"-")
    return int(milliseconds), int(number or 0)
