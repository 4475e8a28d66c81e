"""A log of its own: when what is appended is on the disk, and how it goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bloomtide.durable.disk import Disk
from bloomtide.durable.log import Log, scan
from bloomtide.durable.policy import SYNCS, require_sync
from bloomtide.errors import ClosedError, KindError, ParameterError
from tests.durable.faults import FailingDisk, PowerCut
from tests.waiting import until

KIND = "ledger journal"


class Counting(Disk):
    """Notes how much of a file was there at each sync of it."""

    def __init__(self) -> None:
        self.synced: list[int] = []

    def sync(self, handle: int, path: Path) -> None:
        if path.name == "log":
            self.synced.append(os.fstat(handle).st_size)


def payloads(path: Path) -> list[tuple[int, bytes]]:
    return list(scan(path, KIND))


def test_it_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    path, disk = tmp_path / "log", Disk()
    log = Log.create(disk, path, KIND, "no", [b"a", b""], first=5)
    assert log.append([b"c" * 300]) == 7
    log.close()
    with path.open("ab") as file:
        file.write(b"torn")
    found = scan(path, KIND)
    found.finish()
    log = Log.resume(disk, path, "no", found)
    assert log.append([b"d", b"e"]) == 9
    assert log.append([]) == 9
    assert log.size == path.stat().st_size
    log.close()
    assert payloads(path) == [(5, b"a"), (6, b""), (7, b"c" * 300), (8, b"d"), (9, b"e")]
    with pytest.raises(ClosedError):
        log.append([b"f"])
    with pytest.raises(KindError, match="history journal"):
        scan(path, "history journal")


def test_always_syncs_before_append_returns_and_no_never(tmp_path: Path) -> None:
    for sync, syncs in (("always", 3), ("no", 0)):
        disk = Counting()
        log = Log.create(disk, tmp_path / "log", KIND, sync, [])  # type: ignore[arg-type]
        for number in range(3):
            log.append([b"%d" % number])
            assert sync == "no" or disk.synced[-1] == log.size
        assert len(disk.synced) == log.syncs == syncs
        log.write([b"later"])
        log.sync()
        log.sync()
        assert disk.synced[syncs:] == [log.size], "what is there is not brought there again"
        log.close()


def test_everysec_syncs_without_being_asked_and_the_policy_may_change(tmp_path: Path) -> None:
    disk = Counting()
    log = Log.create(disk, tmp_path / "log", KIND, "everysec", [])
    log.append([b"a"])
    until(lambda: disk.synced == [log.size])
    log.policy = "always"
    log.append([b"b"])
    assert disk.synced[1:] == [log.size]
    log.policy = "everysec"
    log.append([b"c"])
    until(lambda: disk.synced[2:] == [log.size])
    log.close()
    assert log._syncer is None


def test_a_sync_that_failed_by_itself_is_the_last_word_too(tmp_path: Path) -> None:
    disk = FailingDisk(full=True)
    log = Log.create(disk, tmp_path / "log", KIND, "everysec", [])
    disk.fail_in(1)
    log.append([b"a"])
    until(lambda: log.failed)
    assert "No space left" in str(log.failed)
    log.close()


@pytest.mark.parametrize("word", ["never", "", "Always"])
def test_another_word_is_refused(word: str) -> None:
    with pytest.raises(ParameterError, match="always, everysec, no"):
        require_sync(word)
    for sync in SYNCS:
        require_sync(sync)


def test_the_failing_disk_does_fail(tmp_path: Path) -> None:
    """Else the power cuts would prove nothing."""
    disk = FailingDisk(3)
    with pytest.raises(PowerCut):
        Log.create(disk, tmp_path / "log", KIND, "always", [b"a"])
    with pytest.raises(PowerCut):
        disk.write_file(tmp_path / "more", b"after the end")
    disk.lose_power()
    assert not (tmp_path / "log").exists()
