"""Replies leave when their changes are safe, in order; after a disk failed none is acknowledged.

The keyspace is the real one; only the disk may fail, and only the sockets are missing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from bloomtide._core import Keyspace
from bloomtide.durable.disk import Disk
from bloomtide.errors import StorageError
from bloomtide.server.durability import Durability
from bloomtide.server.settings import Settings
from bloomtide.store import Ledger
from tests.durable.faults import FailingDisk
from tests.server.process import request
from tests.waiting import run_ready_tasks, until_async


class Receiver:
    """Notes what it was sent."""

    def __init__(self) -> None:
        self.told: list[bytes | str] = []

    def send(self, reply: bytes) -> None:
        self.told.append(reply)

    def fail(self, reason: str) -> None:
        self.told.append(reason)


class SlowDisk(Disk):
    """A sync ends when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.syncs = 0

    def sync(self, handle: int, path: Path) -> None:
        if path.name.startswith("journal-") and not path.name.endswith(".tmp"):
            self.syncs += 1
            self.begun.set()
            assert self.may_end.wait(20)


class Bench:
    """A keyspace, its durability, and one session."""

    def __init__(self, path: Path, sync: str, disk: Disk | None = None) -> None:
        settings = Settings.from_text([("dir", str(path)), ("appendfsync", sync)])
        self.keyspace = Keyspace()
        self.durability = Durability(self.keyspace, settings, disk=disk or FailingDisk())
        self.durability.load()
        self.durability.start()
        self.session = self.keyspace.session(client=1)

    def do(self, receiver: Receiver, *words: str) -> None:
        self.durability.hold(receiver, self.session.execute(request(*words), time.time()))

    async def settle(self) -> None:
        await self.durability.drain()


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_under_always_no_reply_leaves_before_its_sync_and_all_share_one(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SlowDisk()
        bench = Bench(tmp_path, "always", disk)
        first, second, reader = Receiver(), Receiver(), Receiver()
        for number in range(5):
            bench.do(first, "BF.ADD", "a", f"x{number}")
            bench.do(second, "BF.ADD", "b", f"x{number}")
        assert await asyncio.to_thread(disk.begun.wait, 20)
        # While the disk works: another change, and a question that could see what is not yet safe.
        bench.do(first, "BF.ADD", "a", "later")
        bench.do(reader, "BF.EXISTS", "a", "x0")
        await run_ready_tasks()
        assert first.told == second.told == reader.told == []
        disk.may_end.set()
        await bench.settle()
        assert first.told == [b":1\r\n"] * 6
        assert second.told == [b":1\r\n"] * 5
        assert reader.told == [b":1\r\n"]
        assert disk.syncs == 2
        bench.durability.close(snapshot=False)

    run(main)


def test_a_question_alone_needs_no_disk(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SlowDisk()
        bench = Bench(tmp_path, "always", disk)
        reader = Receiver()
        bench.do(reader, "BF.EXISTS", "a", "x")
        await bench.settle()
        assert reader.told == [b":0\r\n"]
        assert disk.syncs == 0
        bench.durability.close(snapshot=False)

    run(main)


@pytest.mark.parametrize("step", [0, 1], ids=["the write fails", "the sync fails"])
def test_after_a_failure_nothing_is_acknowledged_and_everything_can_be_read(
    tmp_path: Path, step: int
) -> None:
    async def main() -> None:
        disk = FailingDisk(full=True)
        bench = Bench(tmp_path, "always", disk)
        writer, reader = Receiver(), Receiver()
        bench.do(writer, "BF.ADD", "a", "safe")
        await bench.settle()
        disk.fail_in(step)
        bench.do(writer, "BF.ADD", "a", "unsure")
        await bench.settle()
        assert writer.told[0] == b":1\r\n"
        assert "No space left" in str(writer.told[1])
        disk.make_room()
        bench.do(writer, "BF.ADD", "a", "refused")
        bench.do(reader, "BF.EXISTS", "a", "safe")
        await bench.settle()
        assert bytes(writer.told[2]).startswith(b"-MISCONF")  # type: ignore[arg-type]
        assert reader.told == [b":1\r\n"]
        about = bench.durability.about()
        assert about["aof_last_write_status"] == "err"
        with pytest.raises(StorageError):
            bench.durability.save()
        bench.durability.close(snapshot=True)

    run(main)
    again = Keyspace()
    with Ledger.open(tmp_path) as ledger:
        for _, payload in ledger.replay():
            again.replay(payload)
    found = again.session(client=1).execute(request("BF.EXISTS", "a", "safe"), 0.0)
    assert found == b":1\r\n"


def test_a_journal_that_has_grown_is_rewritten_and_nothing_changes(tmp_path: Path) -> None:
    async def main() -> None:
        settings = Settings.from_text(
            [("dir", str(tmp_path)), ("auto-aof-rewrite-min-size", "2000")]
        )
        keyspace = Keyspace()
        durability = Durability(keyspace, settings)
        durability.load()
        durability.start()
        session = keyspace.session(client=1)
        receiver = Receiver()
        for number in range(100):
            reply = session.execute(request("BF.ADD", "a", f"item {number}"), time.time())
            durability.hold(receiver, reply)
            await run_ready_tasks(1)
        before = durability.about()["aof_current_size"]
        await until_async(lambda: durability.about()["aof_base_size"])
        assert isinstance(before, int)
        assert before > 2000
        assert not durability.rewriting
        digest = keyspace.digest()
        durability.close(snapshot=False)
        again = Keyspace()
        restored = Durability(again, settings)
        restored.load()
        assert again.digest() == digest
        restored.close(snapshot=False)

    run(main)


def test_everysec_syncs_within_a_second_without_being_asked(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SlowDisk()
        disk.may_end.set()
        bench = Bench(tmp_path, "everysec", disk)
        writer = Receiver()
        bench.do(writer, "BF.ADD", "a", "x")
        await bench.settle()
        assert writer.told == [b":1\r\n"], "under everysec a reply does not wait for the disk"
        assert await asyncio.to_thread(disk.begun.wait, 20)
        bench.durability.close(snapshot=False)

    run(main)


def test_without_a_data_directory_nothing_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        place = tmp_path / "never"
        settings = Settings.from_text([("dir", str(place)), ("appendonly", "no")])
        keyspace = Keyspace()
        durability = Durability(keyspace, settings)
        durability.load()
        durability.start()
        receiver = Receiver()
        session = keyspace.session(client=1)
        durability.hold(receiver, session.execute(request("BF.ADD", "a", "x"), 0.0))
        await durability.drain()
        assert receiver.told == [b":1\r\n"]
        with pytest.raises(StorageError, match="no data directory"):
            durability.save()
        durability.close(snapshot=True)
        assert not place.exists()

    run(main)
