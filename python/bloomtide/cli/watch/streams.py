"""Redis Streams: `redis://[user:password@]host:port/stream`, read as one consumer of a group.

An entry is acknowledged to Redis only when the ledger has its event on the disk. The ledger also
has the id of the last entry, so one that was counted and not acknowledged before a crash is
acknowledged then, and not counted again.

Fields of an entry: `key` (or what `?key=` says), and if they are there `time` in Unix seconds and
`count`. The time of an entry that has none is that of its id. Options of the address: `group`,
`consumer` (both `bloomtide`), `key`. The password may come from BLOOMTIDE_SOURCE_PASSWORD, since an
argument can be read by others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from bloomtide.cli.console import CommandError
from bloomtide.cli.watch.source import Stopping
from bloomtide.extras import require
from bloomtide.monitor import Monitor
from bloomtide.records import LogReport

COUNT = 10_000
"""Entries that are taken at once."""
BLOCK = 200
"""Milliseconds that Redis waits for the next one."""
PASSWORD = "BLOOMTIDE_SOURCE_PASSWORD"
"""The variable that has it."""
Id = tuple[int, int]


class RedisStream:
    """The entries of a stream."""

    waiting = ""
    problems: Sequence[CommandError] = ()

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        words = dict(parse_qsl(parts.query))
        self.stream = unquote(parts.path.lstrip("/"))
        self.group = words.pop("group", "bloomtide")
        self.consumer = words.pop("consumer", "bloomtide")
        self.field = words.pop("key", "key").encode()
        self.name = f"redis://{parts.hostname}:{parts.port or 6379}/{self.stream}"
        self.key = f"{self.name}#{self.group}"
        """The name under which its position is kept."""
        self.skipped = 0
        """Entries without a key, or with a time or count that is none."""
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
        """An entry is no line."""
        return []

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
        rows = [row for number, fields in fresh if (row := self._row(number, fields)) is not None]
        self.skipped += len(fresh) - len(rows)
        if rows:
            keys, counts, times = (list(column) for column in zip(*rows, strict=True))
            position = list(fresh[-1][0])
            monitor.add_many(keys, counts, times, source=self.key, position=position)
            monitor.flush()
        self._redis.xack(self.stream, self.group, *(name for name, _ in entries))

    def _row(self, number: Id, fields: dict[bytes, bytes]) -> tuple[bytes, int, float] | None:
        """Key, count and time of an entry; None if it is no event."""
        key = fields.get(self.field)
        try:
            count = int(fields.get(b"count", 1))
            at = float(fields.get(b"time", number[0] / 1000))
        except ValueError:
            return None
        good = key is not None and 1 <= count < 2**62 and math.isfinite(at) and 0 <= at < 2.5e11
        return (key, count, at) if key is not None and good else None


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
