"""A snapshot is one cut, and nobody waits while it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomtide import Monitor
from bloomtide.durable.disk import Disk
from bloomtide.errors import ChecksumError, KindError

WAIT = 60
"""Seconds after which something that should happen has not."""


class HeldDisk(Disk):
    """Stops in the middle of writing a snapshot, until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.let_go = threading.Event()
        self.held = False

    def sync_tree(self, path: Path) -> None:
        if self.held:
            self.reached.set()
            assert self.let_go.wait(WAIT)
        super().sync_tree(path)


@pytest.fixture
def disk() -> Iterator[HeldDisk]:
    made = HeldDisk()
    yield made
    made.let_go.set()


def open_monitor(path: Path, disk: Disk | None = None, *, background: bool = False) -> Monitor:
    return Monitor.open(path, capacity=2000, hot=20, disk=disk, background=background, sync="no")


def in_thread(work: threading.Thread) -> threading.Thread:
    work.start()
    return work


def test_events_and_questions_go_on_while_a_snapshot_is_written(
    tmp_path: Path, disk: HeldDisk
) -> None:
    monitor = open_monitor(tmp_path / "m", disk)
    monitor.add_many(["before"] * 5)
    disk.held = True
    saving = in_thread(threading.Thread(target=monitor.save))
    assert disk.reached.wait(WAIT)
    monitor.add_many(["meanwhile"] * 3, source="stream", position=7)
    assert monitor.count("meanwhile").value == 3
    assert monitor.stats().events == 8
    assert monitor.pulse() is not None
    disk.let_go.set()
    saving.join(WAIT)
    ledger = monitor._ledger
    assert ledger is not None
    assert ledger.snapshot_sequence == 1
    assert ledger.sequence == 2
    digest = monitor.digest()
    # As after a kill: nothing is saved, and the directory is free.
    assert monitor.history is not None
    monitor.history.close()
    ledger.close()
    with open_monitor(tmp_path / "m") as again:
        assert again.digest() == digest
        assert again.positions == {"stream": 7}
        assert again.history is not None
        assert again.history.total().upper == 8


def test_a_snapshot_holds_what_came_before_it_and_nothing_else(
    tmp_path: Path, disk: HeldDisk
) -> None:
    with open_monitor(tmp_path / "m", disk) as monitor:
        monitor.add_many(["before"] * 5)
        disk.held = True
        saving = in_thread(threading.Thread(target=monitor.save))
        assert disk.reached.wait(WAIT)
        monitor.add("meanwhile")
        [directory] = [
            found for found in (tmp_path / "m").glob("snapshot-*")
            if not found.name.startswith("snapshot-00000000000000000000")
        ]  # fmt: skip
        assert '"events":5' in (directory / "monitor.json").read_text()
        disk.let_go.set()
        saving.join(WAIT)


def test_a_snapshot_that_is_due_is_made_by_a_thread_of_its_own(
    tmp_path: Path, disk: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bloomtide.monitor.monitor._REWRITE", 200)
    with open_monitor(tmp_path / "m", disk, background=True) as monitor:
        disk.held = True
        for number in range(50):
            monitor.add(f"key {number}")
        assert disk.reached.wait(WAIT)
        assert monitor.stats().events == 50
        disk.let_go.set()
    with open_monitor(tmp_path / "m") as again:
        assert again.stats().events == 50
        assert again.stats().journal_bytes < 200


def test_two_snapshots_at_once_are_made_one_after_the_other(tmp_path: Path, disk: HeldDisk) -> None:
    with open_monitor(tmp_path / "m", disk) as monitor:
        monitor.add("one")
        disk.held = True
        both = [in_thread(threading.Thread(target=monitor.save)) for _ in range(2)]
        assert disk.reached.wait(WAIT)
        disk.let_go.set()
        for each in both:
            each.join(WAIT)
            assert not each.is_alive()
        assert monitor.failure is None
        digest = monitor.digest()
    with open_monitor(tmp_path / "m") as again:
        assert again.digest() == digest


def test_a_structure_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    with Monitor.open(tmp_path / "m", history=False, background=False) as monitor:
        monitor.add("k")
        monitor.save()
    [heat] = (tmp_path / "m").rglob("heat.bloom")
    heat.with_name("counts.bloom").write_bytes(heat.read_bytes())
    with pytest.raises(KindError, match="holds a `tbf`, not a `pdcf`"):
        Monitor.open(tmp_path / "m")


@pytest.mark.parametrize("name", ["seen", "counts", "heat", "hot", "slow"])
def test_a_structure_of_another_monitor_is_refused(name: str, tmp_path: Path) -> None:
    """A sound file of the same settings, which denies keys that this monitor has."""
    for folder in ("one", "other"):
        with Monitor.open(tmp_path / folder, history=False, background=False) as monitor:
            monitor.add(folder)
            monitor.save()
    [mine], [theirs] = ((tmp_path / folder).rglob(f"{name}.bloom") for folder in ("one", "other"))
    own = mine.read_bytes()
    mine.write_bytes(theirs.read_bytes())
    with pytest.raises(ChecksumError) as caught:
        Monitor.open(tmp_path / "one")
    assert caught.value.path == str(mine)
    assert caught.value.hint
    mine.write_bytes(own)
    with Monitor.open(tmp_path / "one") as monitor:
        assert monitor.count("one").value == 1
