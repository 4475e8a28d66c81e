"""What keeps a log, each as numbered events: what all of them promise is tested once.

An event is added once and held as often as its user counts it. `rotate` makes the log go on in a
new file. `kill` gives locks and threads back, as the system does for a process that is gone.
"""

from __future__ import annotations

import asyncio
import struct
import time
from hashlib import sha1
from pathlib import Path
from typing import Protocol

from bloomtide import Monitor
from bloomtide._core import Keyspace
from bloomtide.durable.disk import Disk
from bloomtide.durable.policy import Sync
from bloomtide.errors import StorageError
from bloomtide.history import History
from bloomtide.integrations.scrapy.options import Options
from bloomtide.integrations.scrapy.seen import Seen
from bloomtide.server.durability import Durability
from bloomtide.server.settings import Settings
from bloomtide.store import Ledger
from tests.durable.faults import PowerCut, abandon
from tests.history_store.exact import DAY, HOUR, START, SURE
from tests.server.process import request

TIMES = (0, 100, HOUR, HOUR + 50, 2 * HOUR, 70, 2 * HOUR + 1, DAY, DAY + HOUR, 30, 10, 2 * DAY)
"""When events happen: two hours, late ones of the first hour, and the days behind them."""
EVENTS = len(TIMES)
FIRST_HOUR = [number for number, at in enumerate(TIMES) if at < HOUR]
"""Events that nothing is sealed between."""


class User(Protocol):
    """Something that keeps a log."""

    kind: str = "ledger journal"
    skips_damage: bool = False
    """It can do without a record, and so opens all the same."""

    def __init__(self, path: Path, disk: Disk, sync: Sync) -> None: ...
    def add(self, number: int) -> None: ...
    def rotate(self, number: int) -> None: ...
    def held(self) -> list[int]: ...
    def kill(self) -> None: ...


def key(number: int) -> str:
    return f"event {number}"


def clock() -> float:
    return START + 400 * DAY


def kill_ledger(ledger: Ledger) -> None:
    ledger.log.close()
    ledger._lock.release()


class OfLedger(User):
    """Holds the numbers themselves."""

    def __init__(self, path: Path, disk: Disk, sync: Sync) -> None:
        self.disk = disk
        self.ledger = Ledger.open(path, sync=sync, disk=disk)
        self.numbers: list[int] = []
        if (snapshot := self.ledger.snapshot) is not None:
            self.numbers = list((snapshot / "state").read_bytes())
        self.numbers += [struct.unpack(">q", payload)[0] for _, payload in self.ledger.replay()]

    def add(self, number: int) -> None:
        self.ledger.append(struct.pack(">q", number))
        self.numbers.append(number)

    def rotate(self, number: int) -> None:
        self.ledger.rewrite(lambda place: self.disk.write_file(place / "state", self.state()))

    def state(self) -> bytes:
        return bytes(self.numbers)

    def held(self) -> list[int]:
        return self.numbers

    def kill(self) -> None:
        kill_ledger(self.ledger)


class OfHistory(User):
    """Counts events in their own minutes, seals and rolls up."""

    kind = "history journal"

    def __init__(self, path: Path, disk: Disk, sync: Sync) -> None:
        self.path = path
        self.store = History.open(
            path, "1m", error_rate=SURE, sync=sync, background=False, clock=clock, disk=disk
        )

    def add(self, number: int) -> None:
        self.store.add(key(number), at=START + TIMES[number])

    def rotate(self, number: int) -> None:
        if number == 1:
            self.store.seal()
        self.store.compact(now=START + (number + 1) * DAY + HOUR)

    def held(self) -> list[int]:
        found = []
        for number, at in enumerate(TIMES):
            hour = START + at // HOUR * HOUR
            count = self.store.count(key(number), hour, hour + HOUR)
            assert count.missing == ()
            assert self.store.count(key(number)).upper == count.upper
            assert self.store.count(key(number), rollups=False).upper == count.upper
            found += [number] * count.upper
        assert self.store.total().upper == len(found)
        assert self.store.verify().problems == ()
        named = {report.file for report in self.store.segments()} - {None}
        assert {file.name for file in self.path.glob("segments/*.segment")} == named
        return found

    def kill(self) -> None:
        abandon(self.store)


class OfMonitor(User):
    """Counts events in each structure and in its history."""

    def __init__(self, path: Path, disk: Disk, sync: Sync) -> None:
        self.monitor = Monitor.open(
            path, sync=sync, clock=clock, background=False, disk=disk,
            capacity=2000, error_rate=1e-7, hot=20,
        )  # fmt: skip

    def add(self, number: int) -> None:
        self.monitor.add(key(number), at=START + TIMES[number])

    def rotate(self, number: int) -> None:
        self.monitor.save()

    def held(self) -> list[int]:
        history = self.monitor.history
        assert history is not None
        found = []
        for number in range(EVENTS):
            count = self.monitor.count(key(number)).value
            assert history.count(key(number)).upper == count
            assert self.monitor.seen(key(number)) == (count > 0)
            found += [number] * int(count)
        assert self.monitor.stats().events == history.total().upper == len(found)
        return found

    def kill(self) -> None:
        monitor = self.monitor
        if monitor._measurer is not None:
            monitor._measurer.stop()
        assert monitor.history is not None
        abandon(monitor.history)
        assert monitor._ledger is not None
        kill_ledger(monitor._ledger)


class OfServer(User):
    """Counts events in a sketch; a client waits for each reply."""

    def __init__(self, path: Path, disk: Disk, sync: Sync) -> None:
        settings = Settings.from_text([("dir", str(path)), ("appendfsync", sync)])
        self.keyspace = Keyspace()
        self.durability = Durability(self.keyspace, settings, disk=disk)
        self.durability.load()
        self.session = self.keyspace.session(client=1)
        self.replies: list[bytes] = []
        self.refused: list[str] = []

    def send(self, reply: bytes) -> None:
        self.replies.append(reply)

    def fail(self, reason: str) -> None:
        self.refused.append(reason)

    def ask(self, *words: str) -> bytes:
        return self.session.execute(request(*words), time.time())

    def do(self, *words: str) -> None:
        """A command whose reply must come."""
        self.replies, self.refused = [], []

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            self.durability.start()
            self.durability.hold(self, self.ask(*words))
            await self.durability.drain()

        asyncio.run(main())
        if self.refused and "PowerCut" not in self.refused[0]:
            raise StorageError(self.refused[0], path="", operation="write")
        if not self.replies:
            raise PowerCut
        if self.replies[0].startswith(b"-"):
            raise StorageError(self.replies[0].decode(), path="", operation="write")

    def add(self, number: int) -> None:
        if self.ask("CMS.INFO", "sketch").startswith(b"-"):
            self.do("CMS.INITBYDIM", "sketch", "2000", "5")
        self.do("CMS.INCRBY", "sketch", key(number), "1")

    def rotate(self, number: int) -> None:
        self.durability.save()

    def held(self) -> list[int]:
        found: list[int] = []
        for number in range(EVENTS):
            reply = self.ask("CMS.QUERY", "sketch", key(number))
            found += [number] * int(reply.partition(b"\r\n:")[2] or b"0")
        return found

    def kill(self) -> None:
        self.durability._thread.shutdown()
        assert self.durability._ledger is not None
        kill_ledger(self.durability._ledger)


class OfCrawl(User):
    """A set: each page that it has seen."""

    skips_damage = True

    def __init__(self, path: Path, disk: Disk, sync: Sync) -> None:
        self.seen = Seen(Options(capacity=1000, sync=sync), path, disk=disk)

    def add(self, number: int) -> None:
        self.seen.add(sha1(key(number).encode()).digest())

    def rotate(self, number: int) -> None:
        self.seen.save()

    def held(self) -> list[int]:
        keys = [sha1(key(number).encode()).digest() for number in range(EVENTS)]
        return [number for number, page in enumerate(keys) if page in self.seen]

    def kill(self) -> None:
        assert self.seen._ledger is not None
        kill_ledger(self.seen._ledger)


USERS: dict[str, type[User]] = {
    "ledger": OfLedger, "history": OfHistory, "monitor": OfMonitor, "server": OfServer,
    "crawl": OfCrawl,
}  # fmt: skip
